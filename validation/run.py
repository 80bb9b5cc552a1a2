"""Plans the cases of a run, computes them in worker processes, and collects the tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan
from pathlib import Path

import pandas as pd

from robots.errors import HarnessError, NotFoundError, SingularityError
from robots.motion import Motion
from robots.robot import Case, Robot, configurations, load, make_case, modes, own_names
from robots.robot import names as robot_names
from validation import sources
from validation.audit import Row, Wanted, audit, doubts, failed_row, lost, wanted_of
from validation.compare import Evidence, summarize, unexplained
from validation.evaluate import Outcome, evaluate, motion_key, prescribe_or_error
from validation.findings import FILE, Key
from validation.record import Found, Request, collect
from validation.rendering import NO_MOVIES, movies
from validation.resolution import Resolution, measure_resolution
from validation.tables import Results
from validation.tolerances import with_own_limits
from validation.workers import ALL_CORES, INTERRUPTED, Call, Crew, Lost, Workers, crew, or_raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases of the catalogue to run; an empty tuple means all there are."""

    robots: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    """Folders of robots besides the catalogue; without names, they alone are run."""


def run(
    cases: Sequence[Case],
    *,
    wanted: tuple[str, ...] = (),
    dt: float | None = None,
    workers: Workers = ALL_CORES,
    command: Sequence[str] = (),
    own_limits: Mapping[str, float] | None = None,
) -> Results:
    """Run all sources on all cases in worker processes.

    What is interrupted, or does not survive or come to an end, reads `not run`; `Results.run` counts it.

    Args:
        cases: What to run.
        wanted: Names of the sources; by default all. The reference always runs.
        dt: Step of the report grid [s]; by default that of `robots.motion.report_grid`.
        workers: Worker processes, by default one for each core, and where they keep what they have computed.
        command: The command line, to be recorded.
        own_limits: The user's own limits of the relative error by source [-], instead of the registered ones.

    Raises:
        HarnessError: If a source is unknown, a limit makes no sense, or a motion cannot be assembled and this is not
            expected.
    """
    sources.want_known(wanted)
    request = Request(
        command=tuple(command), start=datetime.now(UTC), dt=dt, tolerances=with_own_limits(own_limits or {})
    )
    tasks = [(case, source) for case in cases for source in _sources_of(case.robot, wanted)]
    to_audit = [(case, engine) for case in cases for engine in (FILE, *_engines(tasks))]
    with crew(workers) as staff:
        motions = _motions(cases, dt, staff)
        held = _held_against({case.key: case for case, _ in to_audit}.values(), motions, staff)
        computed = [(case, source) for case, source in tasks if isinstance(motions[case.key], Motion)]
        audits = [(case, engine) for case, engine in to_audit if isinstance(held[case.key], Wanted)]
        calls = [  # what takes little last, so that no core waits long for the end
            *(Call(evaluate, (case, motions[case.key], source)) for case, source in computed),
            *(Call(audit, (case, held[case.key], engine)) for case, engine in audits),
        ]
        results = staff.all_of(calls, "sources and audits")
        evaluated, audited = iter(results[: len(computed)]), iter(results[len(computed) :])
        outcomes, rows = [], []
        for case, source in tasks:
            motion = motions[case.key]
            outcomes.append(_outcome(case, source, next(evaluated) if isinstance(motion, Motion) else motion))
        for case, engine in to_audit:
            want = held[case.key]
            rows += _audit_rows(case, engine, next(audited) if isinstance(want, Wanted) else want)
        summary = summarize(outcomes, Evidence(tolerances=request.tolerances, lost=lost(rows), doubts=doubts(rows)))
        doubtful = [] if INTERRUPTED in results else _beyond(summary, outcomes)
        resolved = staff.all_of([_resolution_call(outcome, motions) for outcome in doubtful], "resolution")
        drawn = NO_MOVIES if INTERRUPTED in [*results, *resolved] else movies(cases, motions, staff)
    found = Found(
        motions={key: motion for key, motion in motions.items() if isinstance(motion, Motion)},
        outcomes=outcomes,
        audited=rows,
        resolutions={
            (outcome.case.key, outcome.source): _resolution(outcome, result)
            for outcome, result in zip(doubtful, resolved, strict=True)
        },
        unanswered=sum(isinstance(result, Lost) for result in [*held.values(), *results, *resolved]),
        movies=drawn,
    )
    return collect(cases, found, request)


def plan(selection: Selection) -> list[Case]:
    """The cases of a selection.

    Raises:
        NotFoundError: If a name is not known to any robot selected; the message lists the known ones.
        MechanismError: If the model of a robot is bad.
    """
    every_robot = own_names(selection.folders) if selection.folders else robot_names()
    robots = [load(name, selection.folders) for name in selection.robots or every_robot]
    every: list[tuple[Robot, str, str, str]] = [
        (robot, variant, mode, configuration)
        for robot in robots
        for variant in robot.variant_names
        for mechanism in [robot.mechanism(variant)]
        for mode in modes(mechanism)
        for configuration in configurations(mechanism)
    ]
    wanted = (selection.variants, selection.modes, selection.configurations)
    for column, (kind, names) in enumerate(zip(("variant", "mode", "configuration"), wanted, strict=True), start=1):
        known = tuple(dict.fromkeys(str(combination[column]) for combination in every))
        for name in names:
            if name not in known:
                raise NotFoundError(f"{kind} of {', '.join(robot.name for robot in robots)}", name, known)
    return [
        make_case(robot, variant=variant, mode=mode, configuration=configuration)
        for robot, variant, mode, configuration in every
        if all(not names or name in names for names, name in zip(wanted, (variant, mode, configuration), strict=True))
    ]


def _sources_of(robot: Robot, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The sources to run, the reference always and first."""
    return tuple(dict.fromkeys((sources.REFERENCE, *(wanted or sources.names(robot)))))


def _motions(cases: Sequence[Case], dt: float | None, staff: Crew) -> Mapping[Key, Motion | HarnessError]:
    """The motion of each case, the same for all cases that share it; or why it meets a singularity, where expected."""
    keys = {case.key: motion_key(case) for case in cases}
    one_per_motion = {keys[case.key]: case for case in reversed(cases)}
    found = dict(staff.results([Call(prescribe_or_error, (case, dt)) for case in one_per_motion.values()], "motions"))
    by_key = {
        key: or_raise(f"motion of {', '.join(filter(None, key))}", found[k]) for k, key in enumerate(one_per_motion)
    }
    for case in cases:
        motion = by_key[keys[case.key]]
        expected = case.robot.expected.get(case.mode) == "not comparable" and isinstance(motion, SingularityError)
        if isinstance(motion, HarnessError) and not expected:
            raise motion
    return {case.key: by_key[keys[case.key]] for case in cases}


def _beyond(summary: pd.DataFrame, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes of which an effort disagrees."""
    pairs = unexplained(summary)
    return [outcome for outcome in outcomes if (outcome.case.key, outcome.source) in pairs]


def _resolution_call(outcome: Outcome, motions: Mapping[Key, Motion | HarnessError]) -> Call:
    return Call(measure_resolution, (outcome.case, motions[outcome.case.key], outcome.source, outcome.compared))


def _resolution(outcome: Outcome, result: Resolution | Lost) -> Resolution:
    """What a source resolves, or why that is not known."""
    if isinstance(result, Resolution):
        return result
    actuators = [actuator.name for actuator in outcome.case.mechanism.actuators]
    return Resolution(effort=dict.fromkeys(actuators, nan), note=result.reason)


def _outcome(case: Case, source: str, result: Outcome | HarnessError | Lost) -> Outcome:
    """What a source found, or why it found nothing."""
    if isinstance(result, Outcome):
        return result
    failure, note = _failure(result)
    return Outcome(case=case, source=source, history=None, failure=failure, note=note)


def _failure(reason: HarnessError | Lost) -> tuple[str, str]:
    """Verdict and note on what was not computed."""
    return ("not run", reason.reason) if isinstance(reason, Lost) else ("not comparable", str(reason))


def _held_against(
    cases: Iterable[Case], motions: Mapping[Key, Motion | HarnessError], staff: Crew
) -> Mapping[Key, Wanted | HarnessError | Lost]:
    """What the engines are held against in each case, once for all of them; or why there is nothing."""
    moving = [case for case in cases if isinstance(motions[case.key], Motion)]
    found = dict(staff.results([Call(wanted_of, (case, motions[case.key])) for case in moving], "models"))
    failed = {key: motion for key, motion in motions.items() if isinstance(motion, HarnessError)}
    return {**failed, **{case.key: found[k] for k, case in enumerate(moving)}}


def _audit_rows(case: Case, engine: str, result: list[Row] | HarnessError | Lost) -> list[Row]:
    """What an audit found, or why it found nothing."""
    if isinstance(result, list):
        return result
    verdict, note = _failure(result)
    return [failed_row(case.key, engine, verdict, note)]


def _engines(tasks: Iterable[tuple[Case, str]]) -> list[str]:
    """Names of the engines whose routes run."""
    return list(dict.fromkeys(source.split("/")[0] for _, source in tasks if source not in sources.ANALYTIC))
