"""Plans the cases of a run, computes them in worker processes, and collects the tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console
from rich.progress import Progress

from robots.errors import HarnessError, NotFoundError, SingularityError
from robots.motion import Motion
from robots.robot import Case, Robot, configurations, load, make_case, modes, own_names
from robots.robot import names as robot_names
from validation import sources
from validation.audit import Row, audit, failed_row
from validation.evaluate import Outcome, evaluate, motion_key, prescribe_or_error
from validation.record import Found, Request, collect
from validation.tables import Results
from validation.tolerances import with_own_limits


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
    jobs: int | None = None,
    command: Sequence[str] = (),
    own_limits: Mapping[str, float] | None = None,
) -> Results:
    """Run all sources on all cases, one worker process for each core unless `jobs` says otherwise.

    Interrupted, or when a worker process dies, it returns what is there; the rest reads `not run`.

    Args:
        cases: What to run.
        wanted: Names of the sources; by default all. The reference always runs.
        dt: Step of the report grid [s]; by default that of `robots.motion.report_grid`.
        jobs: Number of worker processes.
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
    terminal = Console(stderr=True)
    with (
        Parallel(n_jobs=jobs or cpu_count(), return_as="generator") as pool,
        Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress,
    ):
        keys = {case.key: motion_key(case) for case in cases}
        one_per_motion = {keys[case.key]: case for case in reversed(cases)}
        calls = (delayed(prescribe_or_error)(case, dt) for case in one_per_motion.values())
        prescribed = progress.track(pool(calls), len(one_per_motion), description="motions")
        by_key = dict(zip(one_per_motion, prescribed, strict=True))
        motions = {case.key: by_key[keys[case.key]] for case in cases}
        _want_motions(cases, motions)
        computed = [(case, source) for case, source in tasks if isinstance(motions[case.key], Motion)]
        audits = (delayed(audit)(case, motions[case.key], _engines(tasks)) for case in cases)
        calls = (delayed(evaluate)(case, motions[case.key], source) for case, source in computed)
        results = progress.track(
            pool(chain(audits, calls)), len(cases) + len(computed), description="audit and sources"
        )
        found, audited = _gather(results, cases, computed)
    outcomes = [found.get((case.key, source)) or _without_motion(case, source, motions) for case, source in tasks]
    assembled = {key: motion for key, motion in motions.items() if isinstance(motion, Motion)}
    return collect(cases, Found(assembled, outcomes, audited), request)


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


def _want_motions(cases: Iterable[Case], motions: Mapping[Any, Motion | HarnessError]) -> None:
    """Raise for the first motion that could not be assembled, unless a singularity is expected of its mode."""
    for case in cases:
        motion = motions[case.key]
        expected = case.robot.expected.get(case.mode) == "not comparable" and isinstance(motion, SingularityError)
        if isinstance(motion, HarnessError) and not expected:
            raise motion


def _gather(
    results: Iterable[Outcome | list[Row]], cases: Sequence[Case], tasks: Sequence[tuple[Case, str]]
) -> tuple[dict[Any, Outcome], list[Row]]:
    """Outcomes by case and source, and rows of the audit; what an interruption or a crash took away reads `not run`."""
    found, audited, reason = {}, [], "interrupted"
    try:
        for result in results:
            if isinstance(result, Outcome):
                found[result.case.key, result.source] = result
            else:
                audited.append(result)
    except KeyboardInterrupt:
        pass
    except TerminatedWorkerError:
        reason = "a worker process died: an engine crashed, or memory ran out"
    for case, source in tasks:
        lost = Outcome(case=case, source=source, history=None, failure="not run", note=reason)
        found.setdefault((case.key, source), lost)
    rows = [row for of_case in audited for row in of_case]
    for case in cases[len(audited) :]:
        rows += [failed_row(case.key, engine, "not run", reason) for engine in _engines(tasks)]
    return found, rows


def _engines(tasks: Iterable[tuple[Case, str]]) -> list[str]:
    """Names of the engines whose routes run."""
    return list(dict.fromkeys(source.split("/")[0] for _, source in tasks if source not in sources.ANALYTIC))


def _without_motion(case: Case, source: str, motions: Mapping[Any, Motion | HarnessError]) -> Outcome:
    note = str(motions[case.key])
    return Outcome(case=case, source=source, history=None, failure="not comparable", note=note)
