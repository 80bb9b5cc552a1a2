"""Collects the tables of a run, and records what another engineer needs to repeat it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import engines
from analytic.dynamics.excitation import excitation_in_words
from analytic.kinematics.mobility import in_words, mobility
from analytic.motion.laws import task
from analytic.motion.task import task_efforts
from analytic.papers import paper_model
from robots.mechanism import Mechanism
from robots.motion import Motion
from robots.robot import Case, WrenchSpec
from validation.judge import sources
from validation.judge.audit import Row, doubts, effort_rows, lost
from validation.judge.compare import Evidence, case_and_source, ladder_rows, summarize
from validation.judge.evaluate import Outcome, weighting
from validation.judge.independence import lineage, shares
from validation.judge.known_issues import concerning
from validation.judge.resolution import SEED, Resolution
from validation.judge.results import Results, table
from validation.judge.tolerances import REGISTER, Tolerance, audits, digest, registered
from validation.judge.verdicts import Key
from validation.report.geometry import point_rows
from validation.studies.run.movies import NO_MOVIES, Movies


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for."""

    dt: float | None
    """Step of the report grid that was asked for [s], if any."""
    tolerances: Mapping[str, Tolerance]
    """By name of the source; the registered ones, and the user's own limits instead."""


class RunOutput(NamedTuple):
    """What the workers of a run have found."""

    motions: Mapping[Key, Motion]
    """By robot, variant, mode and configuration."""
    outcomes: Sequence[Outcome]
    """Of every source on every case."""
    audited: Sequence[Row]
    """Rows of the audit of every engine on every case."""
    resolutions: Mapping[tuple[Key, str], Resolution]
    """Of every source beyond its limit, by case and source."""
    movies: Movies = NO_MOVIES


def collect(cases: Sequence[Case], output: RunOutput, request: Request) -> Results:
    """All tables of a run.

    Args:
        cases: What was run.
        output: What was found.
        request: What was asked for.
    """
    motions, outcomes, audited = output.motions, output.outcomes, output.audited
    first = {case.key[:3]: case for case in reversed(cases) if case.key in motions}
    free = [case for case in cases if case.key in motions and _is_own(case, cases, motions)]
    references = {outcome.case.key: outcome for outcome in outcomes if outcome.source == sources.REFERENCE}
    rungs = [
        row
        for outcome in outcomes
        for reference in [references[outcome.case.key]]
        if reference.history is not None and reference.scale is not None
        for row in ladder_rows(outcome, reference.history, reference.scale)
    ]
    evidence = Evidence(
        tolerances=request.tolerances, lost=lost(audited), doubts=doubts(audited), resolutions=output.resolutions
    )
    summary = summarize(outcomes, evidence)
    return Results(
        efforts=table("efforts", [row for outcome in outcomes for row in _effort_rows(outcome)]),
        motion=table("motion", [row for case in _in_order(first) for row in _motion_rows(case, motions[case.key])]),
        free_motion=table(
            "free_motion",
            [
                {"configuration": case.configuration, **row}
                for case in free
                for row in _motion_rows(case, motions[case.key])
            ],
        ),
        task=table("task", [row for case in _in_order(first) for row in _task_rows(case, motions[case.key])]),
        task_efforts=table("task_efforts", [row for outcome in outcomes for row in _task_effort_rows(outcome)]),
        summary=summary,
        ladder=table("ladder", rungs),
        audit=table("audit", [*audited, *effort_rows(summary)]),
        points=table(
            "points",
            [
                {**_of_motion(case), **row}
                for case in _in_order(first)
                for row in point_rows(case.mechanism, motions[case.key], case.robot.trace)
            ],
        ),
        frames=output.movies.frames,
        run=_run_record(cases, output, request),
    )


def _in_order(first: Mapping[Any, Case]) -> list[Case]:
    """Cases that were collected from the last to the first."""
    return list(first.values())[::-1]


def _is_own(case: Case, cases: Sequence[Case], motions: Mapping[Key, Motion]) -> bool:
    """Whether the configurations of a case move differently: dofs that nothing drives follow gravity."""
    alike = [other.key for other in cases if other.key[:3] == case.key[:3]]
    return any(motions.get(key) is not motions[case.key] for key in alike)


def _effort_rows(outcome: Outcome) -> Iterator[Mapping[str, Any]]:
    history = outcome.compared
    if history is None:
        return
    units = {
        a.name: unit
        for a, unit in zip(outcome.case.mechanism.actuators, outcome.case.mechanism.actuator_units, strict=True)
    }
    for column, actuator in enumerate(history.actuators):
        for t, effort in zip(history.t, history.effort[:, column], strict=True):
            yield {
                **case_and_source(outcome),
                "actuator": actuator,
                "unit": units.get(actuator, ""),
                "t": t,
                "effort": effort,
            }


def _task_rows(case: Case, motion: Motion) -> Iterator[Mapping[str, Any]]:
    law = task(case)
    for coordinate, unit, x in zip(law.coordinates, law.units, law.path(motion.t), strict=True) if law else ():
        for k, t in enumerate(motion.t):
            numbers = {"x": x.x[k], "xd": x.d[k], "xdd": x.dd[k]}
            yield {**_of_motion(case), "t": t, "coordinate": coordinate, "unit": unit, **numbers}


def _task_effort_rows(outcome: Outcome) -> Iterator[Mapping[str, Any]]:
    """A row for each task coordinate and time, if the outcome has the effort of every actuator."""
    law, history, mechanism = task(outcome.case), outcome.compared, outcome.case.mechanism
    if law is None or history is None or history.actuators != tuple(actuator.name for actuator in mechanism.actuators):
        return
    efforts = task_efforts(law, mechanism, history.t, history.effort)
    for coordinate, unit, of_coordinate in zip(law.coordinates, law.effort_units, efforts.T, strict=True):
        for t, effort in zip(history.t, of_coordinate, strict=True):
            yield {**case_and_source(outcome), "coordinate": coordinate, "unit": unit, "t": t, "effort": effort}


def _motion_rows(case: Case, motion: Motion) -> Iterator[Mapping[str, Any]]:
    """A row for each entry of q; a quaternion has four, of which the last three carry the angular velocity."""
    mechanism = case.mechanism
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        entries = {"ball": "wxyz", "free": ("x", "y", "z", "qw", "qx", "qy", "qz")}.get(joint.kind, ("",))
        rates = iter(range(dofs.start, dofs.stop))
        for entry, column in zip(entries, range(columns.start, columns.stop), strict=True):
            dof = None if entry in ("w", "qw") else next(rates)
            for k, t in enumerate(motion.t):
                yield {
                    **_of_motion(case),
                    "t": t,
                    "joint": f"{joint.name}.{entry}" if entry else joint.name,
                    "q": motion.q[k, column],
                    "qd": np.nan if dof is None else motion.qd[k, dof],
                    "qdd": np.nan if dof is None else motion.qdd[k, dof],
                }


def _of_motion(case: Case) -> dict[str, str]:
    return {"robot": case.robot.name, "variant": case.variant, "mode": case.mode}


def _run_record(cases: Sequence[Case], output: RunOutput, request: Request) -> dict[str, Any]:
    """What `run.json` holds."""
    motions, outcomes = output.motions, output.outcomes
    run_sources = dict.fromkeys(outcome.source for outcome in outcomes)
    first = {case.robot.name: case for case in reversed(cases)}
    return {
        "dt": request.dt,
        "not_drawn": dict(output.movies.missing),
        "seeds": {"resolution": SEED} if output.resolutions else {},  # nothing else in a run is random
        "settings": {outcome.source: dict(outcome.history.settings) for outcome in outcomes if outcome.history},
        "sources": {source: sources.description(source) for source in run_sources if _is_installed(source)},
        "lineages": {source: lineage(source) for source in run_sources},
        "shares": {source: list(shares(source)) for source in run_sources if _votes(source)},
        "known_issues": [
            {**issue.model_dump(mode="json"), "reproduce": issue.reproduce}
            for issue in concerning(list(first), list(run_sources))
        ],
        "tolerances": {
            "file": REGISTER.name,
            "sha256": digest(),
            "routes": {
                name: {**tolerance.model_dump(exclude_defaults=True), "margin": tolerance.margin, "unit": "-"}
                for name, tolerance in request.tolerances.items()
                if name in run_sources
            },
            "own": {
                name: tolerance.relative_error
                for name, tolerance in request.tolerances.items()
                if name in run_sources and tolerance != registered().get(name)
            },
            "audits": {name: tolerance.model_dump(exclude_none=True) for name, tolerance in audits().items()},
        },
        "models": {name: _model_record(case) for name, case in first.items()},
        "robots": {name: _robot_record(case, motions.get(case.key)) for name, case in first.items()},
    }


def _votes(source: str) -> bool:
    """Whether a source is judged by a registered limit; what it shares is tried by `loopcheck mutants`."""
    tolerance = registered().get(source)
    return source != sources.REFERENCE and tolerance is not None and tolerance.relative_error is not None


def _is_installed(source: str) -> bool:
    return source in sources.ANALYTIC or sources.is_log(source) or engines.installed(source.split("/")[0])


def _model_record(case: Case) -> Mapping[str, str]:
    path = case.mechanism.model.path
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _robot_record(case: Case, motion: Motion | None) -> Mapping[str, Any]:
    robot = case.robot
    errata = paper_model(robot.paper).ERRATA if robot.paper else ()
    weighed = f"Of redundant efforts those of least norm are taken: {weighting(case.mechanism)}."
    return {
        "title": robot.title,
        "source": robot.source,
        "trace": robot.trace,
        "assumptions": [
            *robot.assumptions,
            *map(_wrench_in_words, robot.wrenches),
            *([weighed] if robot.effort_scales else []),
            *(f"Without {source}: {reason}" for source, reason in robot.without.items()),
        ],
        "left_out": list(case.mechanism.left_out),
        "expected": dict(robot.expected),
        "actuated": {
            case.mechanism.joints[j].name: case.mechanism.joints[j].unit for j in case.mechanism.actuated_joints
        },
        "errata": [
            {
                "key": erratum.key,
                "equation": erratum.equation,
                "printed": erratum.printed,
                "corrected": erratum.corrected,
                "effect": "switchable" if erratum.computes else "slip of notation",
            }
            for erratum in errata
        ],
        **_anatomy_record(case.mechanism, motion),
    }


def _wrench_in_words(wrench: WrenchSpec) -> str:
    force, point, moment = (
        ", ".join(f"{x:g}" for x in vector) for vector in (wrench.force, wrench.point, wrench.moment)
    )
    return (
        f"Constant external wrench on the {wrench.body}, world axes: force ({force}) N at the point ({point}) m of the "
        f"body frame, moment ({moment}) N m."
    )


def _anatomy_record(mechanism: Mechanism, motion: Motion | None) -> Mapping[str, Any]:
    """What kind of mechanism it is, seen at the middle of its motion."""
    analysis = mobility(mechanism, mechanism.rest_position if motion is None else motion.q[len(motion.t) // 2])
    counts = ("bodies", "joints", "loops", "closure_rows", "rank", "dof", "actuators", "driven")
    return {
        "mechanism": {name.replace("_", " "): getattr(analysis, name) for name in counts},
        "in_words": in_words(analysis),
        "undriven": list(analysis.undriven),
        "oddities": list(analysis.oddities),
        "motion": [] if motion is None else [*motion.notes, *excitation_in_words(mechanism, motion)],
    }
