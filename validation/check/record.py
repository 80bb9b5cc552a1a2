"""The record `run.json`: everything needed to repeat a check."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from loopcheck import engines
from loopcheck.analytic.papers import paper_model
from loopcheck.engines.loads import laws
from loopcheck.robots.efforts import Limits
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, WrenchSpec
from loopcheck.validation.check.audit.audit import Row, blocking_reasons, doubts
from loopcheck.validation.check.efforts.compare import case_and_source
from loopcheck.validation.check.efforts.evaluate import weighting
from loopcheck.validation.check.efforts.outcome import Outcome, Ran, Unmodified
from loopcheck.validation.check.efforts.resolution import SEED, Resolution
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.check.independence import lineage, own_laws, shares
from loopcheck.validation.common import sources
from loopcheck.validation.common.known_issues import concerning
from loopcheck.validation.common.tolerances import REGISTER, Tolerance, audits, digest, registered
from loopcheck.validation.common.verdicts import Key
from loopcheck.validation.execution.environments import is_there


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Options of a check."""

    dt: float | None
    """Step of the report grid from the command line [s], if any."""
    tolerances: Mapping[str, Tolerance]
    """Tolerances by source: registered, or limits of the user."""
    requested: tuple[frozenset[str], ...] = ()
    """Groups of sources that the user has named."""
    names: tuple[str, ...] = ()
    """Their sources, in the order of the user; by default all installed sources."""
    absent: tuple[str, ...] = ()
    """Default engines that are not installed."""
    motions: Mapping[Key, Motion] = field(default_factory=dict)
    """Motions of all cases, if already computed."""
    reactions: bool = False
    """Whether simulations also read the forces in the joints."""
    draws: bool = True
    """Whether a report is written."""
    publish: "Callable[[RunOutput], None]" = lambda output: None
    """Takes the first results, when those of all that does not simulate are there; the others read `not run`."""

    def limits_of(self, source: str) -> Limits | None:
        """Limits with which a simulation may omit steps; None for a source that the user has named: it takes all."""
        is_named = frozenset({source}) in self.requested
        return None if is_named or source not in self.tolerances else self.tolerances[source].limits


class RunOutput(NamedTuple):
    """Results of the workers of a check."""

    motions: Mapping[Key, Motion]
    """By robot, variant, mode and configuration."""
    outcomes: Sequence[Outcome]
    """Of every source on every case."""
    audited: Sequence[Row]
    """Rows of the audit of every engine on every case."""
    resolutions: Mapping[tuple[Key, str], Resolution]
    """Of every source beyond its limit, by case and source."""
    beside: Mapping[Key, Key] = MappingProxyType({})
    """Original cases, by the additional cases on random motions."""

    def evidence(self, request: Request) -> Evidence:
        """Inputs of the verdicts besides the efforts."""
        return Evidence(
            tolerances=request.tolerances,
            blocking_reasons=blocking_reasons(self.audited),
            doubts=doubts(self.audited),
            resolutions=self.resolutions,
            requested=request.requested,
        ).with_cases_beside(self.beside)


def run_record(
    cases: Sequence[Case], output: RunOutput, request: Request, descriptions: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Content of `run.json`.

    Args:
        output: Results of the workers.
        request: Options of the user.
        descriptions: Kind of mechanism of each robot and its motion, in words and numbers.
    """
    outcomes = output.outcomes
    run_sources = dict.fromkeys(outcome.source for outcome in outcomes)
    first = {case.robot.name: case for case in reversed(cases)}
    return {
        "dt": request.dt,
        "requested": [sorted(group) for group in request.requested],
        "analytic_only": bool(request.requested)
        and all(source in sources.ANALYTIC for group in request.requested for source in group),
        "absent": {
            engine: {"lineage": engines.lineage(engine), "extra": engines.extra(engine)} for engine in request.absent
        },
        "seeds": {"resolution": SEED} if output.resolutions else {},  # nothing else in a run is random
        "settings": {
            outcome.source: dict(outcome.history.settings) for outcome in outcomes if isinstance(outcome, Ran)
        },
        "sources": {source: sources.description(source) for source in run_sources if _is_there(source)},
        "lineages": {source: lineage(source) for source in run_sources},
        "laws": {source: list(own_laws(source)) for source in run_sources if _votes(source)},
        "loads": {
            name: sorted({law for case in cases if case.robot.name == name for law in laws(case.mechanism)})
            for name in first
        },
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
        "floors": list(_floors(output)),
        "gravity": {
            name: {case.configuration: case.mechanism.gravity.tolist() for case in cases if case.robot.name == name}
            for name in first
        },
        "random_modes": _random_modes(output.beside),
        "robots": {name: {**robot_record(case), **descriptions[name]} for name, case in first.items()},
    }


def _random_modes(originals: Mapping[Key, Key]) -> dict[str, dict[str, str]]:
    """Modes that stand for random motions, by robot, and the mode that each of them repeats."""
    modes: dict[str, dict[str, str]] = {}
    for (robot, _, mode, _), (_, _, original, _) in originals.items():
        modes.setdefault(robot, {})[mode] = original
    return modes


def _votes(source: str) -> bool:
    """Return whether a registered limit decides on a source."""
    tolerance = registered().get(source)
    return source != sources.REFERENCE and tolerance is not None and tolerance.relative_error is not None


def _is_there(source: str) -> bool:
    engine = sources.engine_of(source)
    return not engine or is_there(engine)


def _model_record(case: Case) -> Mapping[str, Any]:
    """Name and hash of the model file, and the hashes of all files that it reads, relative to its folder."""
    path = case.mechanism.model.path.absolute()
    files = {Path(os.path.relpath(file, path.parent)).as_posix(): h for file, h in case.mechanism.model.hashes.items()}
    return {"file": path.name, "sha256": file_hash(path), "files": files}


def _floors(output: RunOutput) -> Iterator[Mapping[str, Any]]:
    """Measured noise floor of each effort error [N or N m]: of unmodified simulations, and of errors beyond a limit."""
    for outcome in output.outcomes:
        resolution = output.resolutions.get((outcome.case.key, outcome.source))
        for k, actuator in enumerate(outcome.case.mechanism.actuators):
            floor = resolution.effort.get(actuator.name, math.nan) if resolution else math.nan
            if isinstance(outcome, Unmodified) and (outcome.settled.bounds or not outcome.settled.reason):
                floor = float(outcome.settled.floor_of_largest[k])
            if math.isfinite(floor):
                yield {**case_and_source(outcome), "actuator": actuator.name, "floor": floor}


def robot_record(case: Case) -> Mapping[str, Any]:
    """Properties of a robot before any computation."""
    robot = case.robot
    errata = paper_model(robot.paper).ERRATA if robot.paper else ()
    weighed = f"The reference takes the redundant efforts of least norm: {weighting(case.mechanism)}."
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
        "loops": len(case.mechanism.closures),
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
    }


def _wrench_in_words(wrench: WrenchSpec) -> str:
    force, point, moment = (
        ", ".join(f"{x:g}" for x in vector) for vector in (wrench.force, wrench.point, wrench.moment)
    )
    return (
        f"Constant external wrench on the {wrench.body}, world axes: force ({force}) N at the point ({point}) m of the "
        f"body frame, moment ({moment}) N m."
    )
