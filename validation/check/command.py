"""`loopcheck check`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcheck.validation.frame.options import (
    JUDGEMENT,
    RESULTS,
    Command,
    Execution,
    FiniteRange,
    accuracy_option,
    actuated_option,
    all_figures_option,
    baseline_option,
    configurations_option,
    execution_options,
    leave_out_option,
    modes_option,
    motion_option,
    numbers_of,
    option,
    sources_option,
    targets_argument,
    variants_option,
    want_one_baseline,
    write_baseline_option,
)

if TYPE_CHECKING:
    from loopcheck.validation.check.study import Check


@click.command(cls=Command, short_help="Do the engines agree with the reference?")
@targets_argument
@option("--all", "every", is_flag=True, group="Target", help="Check the whole catalogue.")
@modes_option
@variants_option
@configurations_option
@actuated_option
@leave_out_option
@motion_option
@sources_option("Source, engine or pattern, as mujoco/forward, mujoco or '*/kkt'; may repeat.  [default: all]")
@accuracy_option(
    "Judge the unmodified simulations (as_is) too: largest effort error relative to the peak, as 0.05 or 5%."
)
@option(
    "--tolerance",
    "tolerances",
    metavar="S=X",
    multiple=True,
    group=JUDGEMENT,
    help="Limit X of the relative error of source S, instead of the registered tolerance; may repeat.",
)
@option(
    "--dt",
    metavar="S",
    type=FiniteRange(min=0, min_open=True),
    group=JUDGEMENT,
    help="Report time step in seconds.  [default: 0.01 up to 2 s, 0.02 up to 4 s, then 0.05]",
)
@option(
    "--reactions",
    is_flag=True,
    group=JUDGEMENT,
    help="Compute the forces in all joints, bearings and closures too, and the largest load of each.",
)
@baseline_option
@write_baseline_option
@option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="JUnit file: a test case per case and source.")
@all_figures_option
@execution_options(RESULTS / "check")
def command(
    targets: tuple[str, ...],
    every: bool,
    execution: Execution,
    sources: tuple[str, ...],
    accuracy: float | None,
    tolerances: tuple[str, ...],
    dt: float | None,
    reactions: bool,
    junit: Path | None,
    all_figures: bool,
    baseline: Path | None,
    write_baseline: Path | None,
    **selection: Any,
) -> int:
    """Compute the actuator efforts of each TARGET by every source, compare them with the reference, write a report.

    Sources are the analytic models and the routes of each installed engine. Without --motion, a model file moves on a
    generated motion: smooth, from rest, inside the joint limits, away from singularities. Serial arms are robots too:
    the title of their table is "no loop: a tree". If a model file has no loops and its closed-loop version is in the
    same folder, the error of the serial model is reported.

    With --baseline, the exit status counts only rows that are worse than stored: a row that agreed and does not, a
    graver verdict, an error larger by more than its noise floor, a failing new row, a missing row. Rows of a changed
    model or motion count by their own verdicts. --write-baseline stores the rows and compares with them.

    \b
    Examples:
      loopcheck check 3prr
      loopcheck check my_robot.xml --accuracy 5%
      loopcheck check my_robot.xml --actuated hip,knee --motion walk.csv
      loopcheck check my_robot.xml --mode closed
      loopcheck check my_robot.xml --reactions
      loopcheck check --all --source mujoco --junit loopcheck.xml
      loopcheck check my_robot.xml --write-baseline baseline.json
      loopcheck check my_robot.xml --baseline baseline.json
    """
    from loopcheck.robots.catalogue import names, want_files, want_targets

    targets = _targets(targets, every=every)
    want_targets(targets)
    want_files([selection["motion"]] if selection["motion"] else [])
    want_one_baseline(baseline, write_baseline)
    own_limits = numbers_of(tolerances, "--tolerance")
    if sources:
        from loopcheck.validation.common.sources import groups

        groups(sources)  # refuses unknown names
    if own_limits:
        from loopcheck.validation.common.tolerances import with_own_limits

        with_own_limits(own_limits)  # as well
    from loopcheck.validation.check.baseline import compare, store, stored
    from loopcheck.validation.execution.files import want_writable

    for file in filter(None, (junit, write_baseline)):
        want_writable(file.parent)
    before = stored(baseline) if baseline else None
    if {*targets} <= {*names()} and not any(selection.values()):  # models of others may be refused, without workers
        execution.prepare()
    from loopcheck.validation.check.library import check_of
    from loopcheck.validation.check.study import results_of

    asked = {
        "sources": sources,
        "accuracy": accuracy,
        "tolerances": own_limits,
        "dt": dt,
        "reactions": reactions,
        **selection,
    }
    study = _with_twins(check_of(targets, writes_logs=True, **asked))
    execution.prepare()
    result, conclusion = execution.compute(study, all_figures=all_figures)
    if junit:
        from loopcheck.validation.check.junit import write_junit

        write_junit(results_of(result), junit)
    if write_baseline:
        store(results_of(result), write_baseline)
        before = stored(write_baseline)
    against = compare(results_of(result), before, str(write_baseline or baseline)) if before else None
    return execution.end(study, result, conclusion, against)


def _with_twins(study: "Check") -> "Check":
    """The study, with closed-loop versions of serial models that lie beside them."""
    from dataclasses import replace

    from loopcheck.robots.catalogue import is_model_file
    from loopcheck.validation.check.closed_twins import possible_twins

    files = [case for case in study.cases if is_model_file(case.robot.mjcf)]
    twins = {case.robot.name: paths for case in files if (paths := possible_twins(case.mechanism))}
    if not twins:
        return study
    from loopcheck.validation.serial.beside import closed_twin  # its imports take a seventh of a short check

    return replace(study, twins=twins, compare_twin=closed_twin)


def _targets(targets: tuple[str, ...], *, every: bool) -> tuple[str, ...]:
    if every == bool(targets):
        given = f"both --all and {targets[0]}" if targets else "neither"
        raise click.UsageError(f"A TARGET or --all must be given, got {given}. Robots: loopcheck list.")
    if every:
        from loopcheck.robots.catalogue import names

        return names()
    return targets
