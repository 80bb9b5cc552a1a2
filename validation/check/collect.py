"""Collection of the tables of a check from the results of its workers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from loopcheck.analytic.dynamics.excitation import excitation_in_words
from loopcheck.analytic.kinematics.mobility import in_words, mobility, open_start
from loopcheck.analytic.kinematics.offsets import in_words as in_words_of_offset
from loopcheck.analytic.motion.laws import task
from loopcheck.analytic.motion.task import Coordinate, coordinates_of_platform, task_efforts
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, modes
from loopcheck.validation.check.audit.audit import effort_rows
from loopcheck.validation.check.efforts.compare import case_and_source, ladder_rows, summarize
from loopcheck.validation.check.efforts.outcome import Outcome, Ran, Reference
from loopcheck.validation.check.record import Request, RunOutput, run_record
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results, table
from loopcheck.validation.common.verdicts import Key
from loopcheck.validation.report.geometry import point_rows


def collect(cases: Sequence[Case], output: RunOutput, request: Request) -> Results:
    """All tables of a check.

    Args:
        output: Results of the workers.
        request: Options of the user.
    """
    motions, outcomes, audited = output.motions, output.outcomes, output.audited
    beside = {outcome.case.key: outcome.case for outcome in outcomes if outcome.case.key in output.beside}
    every = [*cases, *beside.values()]
    first = {case.key[:3]: case for case in reversed(cases) if case.key in motions}
    moving = {case.key[:3]: case for case in reversed(every) if case.key in motions}
    free = [case for case in every if case.key in motions and _is_own(case, every, motions)]
    references = {outcome.case.key: outcome for outcome in outcomes if outcome.source == sources.REFERENCE}
    rungs = [
        row
        for outcome in outcomes
        for reference in [references[outcome.case.key]]
        if isinstance(reference, Reference)
        for row in ladder_rows(outcome, reference.history, reference.scale)
    ]
    summary = summarize(outcomes, output.evidence(request))
    return Results(
        efforts=table("efforts", [row for outcome in outcomes for row in _effort_rows(outcome)]),
        motion=table("motion", [row for case in _in_order(moving) for row in _motion_rows(case, motions[case.key])]),
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
        reactions=table("reactions", []),
        connections=table("connections", []),
        run=run_record(cases, output, request, _descriptions(cases, motions, references.values())),
    )


def _in_order(first: Mapping[Any, Case]) -> list[Case]:
    """Cases that were collected from the last to the first."""
    return list(first.values())[::-1]


def _is_own(case: Case, cases: Sequence[Case], motions: Mapping[Key, Motion]) -> bool:
    """Return whether the motion depends on the configuration: undriven dofs follow gravity."""
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
    law, spec = task(case), case.robot.task
    if law:
        jets = zip(law.coordinates, law.units, law.path(motion.t), strict=True)
        coordinates = [Coordinate(name, unit, x.x, x.d, x.dd) for name, unit, x in jets]
    elif spec:
        coordinates = list(coordinates_of_platform(case.mechanism, spec.site, spec.positions, spec.turns, motion))
    else:
        return
    for name, unit, *columns in coordinates:
        for t, x, xd, xdd in zip(motion.t, *columns, strict=True):
            yield {**_of_motion(case), "t": t, "coordinate": name, "unit": unit, "x": x, "xd": xd, "xdd": xdd}


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
    """A row for each entry of q; a quaternion has four, and the last three carry the angular velocity."""
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


def _descriptions(
    cases: Sequence[Case], motions: Mapping[Key, Motion], references: Iterable[Outcome]
) -> Mapping[str, Mapping[str, Any]]:
    """Kind of mechanism of each robot in its first case, its motion, and its too weak motors."""
    first, beyond = {case.robot.name: case for case in reversed(cases)}, beyond_limits(references)
    return {
        name: {**_description(case, motions.get(case.key)), "beyond_limits": beyond.get(name, [])}
        for name, case in first.items()
    }


def _description(case: Case, motion: Motion | None) -> Mapping[str, Any]:
    """Kind of mechanism in the middle of its motion."""
    mechanism = case.mechanism
    opening = open_start(mechanism, case.guess) if case.mode in modes(mechanism) else ""
    analysis = mobility(mechanism, mechanism.rest_position if motion is None else motion.q[len(motion.t) // 2])
    counts = ("bodies", "joints", "loops", "closure_rows", "rank", "dof", "actuators", "driven")
    return {
        "mechanism": {name.replace("_", " "): getattr(analysis, name) for name in counts},
        "in_words": in_words(analysis),
        "undriven": list(analysis.unactuated),
        "oddities": [*map(in_words_of_offset, mechanism.offsets), *([opening] if opening else []), *analysis.warnings],
        "motion": [] if motion is None else [*motion.notes, *excitation_in_words(mechanism, motion)],
    }


def beyond_limits(references: Iterable[Outcome]) -> dict[str, list[str]]:
    """Actuators of each robot with an effort beyond a range of the model, and the case of the largest excess.

    Args:
        references: Outcomes of the reference, one per case.
    """
    needs: dict[tuple[str, str, str], tuple[float, Case]] = {}
    for outcome in references:
        if not isinstance(outcome, Ran):
            continue
        for actuator, limit, need in outcome.case.mechanism.needs(outcome.history.effort):
            key = (outcome.case.robot.name, actuator, limit)
            if need > 1 and need > needs.get(key, (0.0, None))[0]:
                needs[key] = (need, outcome.case)
    by_robot: dict[str, list[str]] = {}
    for (robot, actuator, limit), (need, case) in needs.items():
        much = f"{need:.2g} times its {limit}" if np.isfinite(need) else f"an effort outside its {limit}"
        by_robot.setdefault(robot, []).append(f"{actuator} needs {much} ({case.mode}, {case.configuration})")
    return by_robot
