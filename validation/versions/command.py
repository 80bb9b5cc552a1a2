"""`loopcheck versions`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcheck.robots.errors import listed
from loopcheck.validation.frame.options import (
    EXECUTION,
    JUDGEMENT,
    TARGET,
    Command,
    Target,
    format_option,
    jobs_option,
    option,
    time_limit_option,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from loopcheck.validation.versions.comparison import TermChange
    from loopcheck.validation.versions.result import ModelResult, Row

LISTED = 8
"""Largest number of fields or releases in a line."""


@click.command(cls=Command, short_help="Did an upgrade of an engine change my robot? Every release, every term.")
@click.argument("words", metavar="TARGET... [ENGINE==V]...", nargs=-1, type=Target())
@option("--only", is_flag=True, group=TARGET, help="Run only the named releases, not those between them.")
@option(
    "--pin",
    metavar="FILE",
    type=click.Path(path_type=Path),
    group=EXECUTION,
    help="Store the terms in the newest release of the run for --against.  [default release: the installed one]",
)
@option(
    "--against",
    metavar="FILE",
    type=click.Path(path_type=Path),
    group=JUDGEMENT,
    help="Compare with a file of --pin, at its states.  [default release: the installed one]",
)
@option("--efforts", is_flag=True, group=EXECUTION, help="Also compute the efforts of the unmodified simulation.")
@option("--all", "everything", is_flag=True, help="Also show releases without a change, fields, and round-off.")
@jobs_option
@time_limit_option("1800")
@format_option
def command(
    words: tuple[str, ...],
    only: bool,
    pin: Path | None,
    against: Path | None,
    efforts: bool,
    everything: bool,
    jobs: int | None,
    time_limit: float | None,
    format: str,
) -> int:
    """Run model files in releases of an engine, and list each release that changes their equations of motion.

    A TARGET may also be a folder of model files. Two releases of an engine mean all releases from the older to the
    newer, a single one all releases from it on; without any, the last ten releases of MuJoCo run. uv installs them
    from your package index, each in an environment of its own.

    The terms are compared at 20 states: mass matrix, bias, lengths of tendons and actuators, passive forces, actuator
    forces, constraint rows, J, aref, D, accelerations, and one step of the file's integrator. A change is a difference
    of more than 1e-9 of the largest value of a term. The first changed term is named; terms after it may follow from
    it. Fields of the compiled model are notes.

    Exit status: 0 no change; 1 an equation or the step changes; 3 a release did not run.

    \b
    Examples:
      loopcheck versions arm.xml
      loopcheck versions arm.xml mujoco==3.2.0 mujoco==4.0.0
      loopcheck versions models/ mujoco==3.9.0 mujoco==4.0.0 --only
      loopcheck versions arm.urdf pinocchio==3.7.0
      loopcheck versions arm.xml --pin arm.pin.json
      loopcheck versions --against arm.pin.json
    """
    from loopcheck.validation.execution.progress import display
    from loopcheck.validation.report.terminal import show
    from loopcheck.validation.versions.versions import Request, engine_word, versions

    if pin and against:
        raise click.UsageError("One of --pin and --against must be given, got both.")
    request = Request(
        targets=[word for word in words if not engine_word(word)],
        requirements=[word for word in words if engine_word(word)],
        only=only,
        pin=pin,
        against=against,
        jobs=jobs,
        time_limit=time_limit or 1800.0,
    )
    with display() as progress:
        result, releases = versions(request, progress)
    if format == "json":
        click.echo(result.as_json())
        return result.exit_status
    for model in result.models:
        show([*_shown(model, result.engine, everything=everything)])
    if efforts:
        from loopcheck.validation.versions.efforts import effort_changes

        for model in result.models:
            show([f"Unmodified simulation of {model.target}:", *effort_changes(releases, model.path)])
    if pin:
        show([f"Pinned in {releases.engine} {releases.versions[-1]}: {pin}"])
    return result.exit_status


def _shown(model: "ModelResult", engine: str, *, everything: bool) -> "Iterator[RenderableType]":
    """Table and sentences of a model file."""
    from rich.markup import escape

    from loopcheck import engines
    from loopcheck.validation.report.terminal import table

    name = engines.lineage(engine)
    lines = [list(map(escape, line)) for row in model.rows for line in _lines(row, everything=everything)]
    if lines:
        yield f"{model.target} in {name}:"
        title = "First changed term of each release"
        yield table(["release", "term", "size", "largest at", "then"], lines, title=title, splits=False)
    for row in model.changes:
        yield from _explained(row)
    if everything:
        for row in model.rows:
            yield from _notes(row)
    yield from _not_run(model)
    yield from (f"{note}." for note in model.notes)
    upgrades = [row for row in model.rows if row.before]
    if len(model.rows) > 1:
        word = "Changed" if model.changes else "No change" if upgrades else "No comparison"
        span = f"{name} {model.rows[0].release} to {model.rows[-1].release}"
        yield f"{word}: {len(model.changes)} of {len(upgrades)} upgrades change {model.target} ({span})."


def _explained(row: "Row") -> Iterator[str]:
    """Sentences on a change."""
    if row.again:
        yield f"{row.release} is equal to {row.again} again."
    if row.comparison.tight is not None:
        yield f"{row.release}: {row.comparison.tight:.1e} with a 100 times tighter solver."
    if row.changelog:
        yield f"Changelog, best match: {row.changelog}"


def _notes(row: "Row") -> Iterator[str]:
    """Differences that do not count."""
    if row.comparison.fields:
        yield f"{row.release}, fields: {listed(sorted(row.comparison.fields), LISTED)}"
    if row.comparison.settled:
        yield f"{row.release}, state after one second (informational): {row.comparison.settled:.1e}"


def _not_run(model: "ModelResult") -> Iterator[str]:
    """Releases that did not run, by reason."""
    reasons: dict[str, list[str]] = {}
    for row in model.rows:
        if row.verdict == "not run":
            reasons.setdefault(row.reason, []).append(row.release)
    for reason, of in reasons.items():
        yield f"Not run: {of[0]}{f' to {of[-1]} ({len(of)} releases)' if of[1:] else ''} {reason}"


def _lines(row: "Row", *, everything: bool) -> Iterator[list[str]]:
    """Rows of the table."""
    if row.comparison.terms:
        first, *others = row.comparison.terms
        yield [row.release, *_cells(first), ", ".join(one.term for one in others)]
    elif everything and row.before:
        finer = max(row.comparison.finer, key=lambda one: one.size, default=None)
        yield [row.release, *(_cells(finer) if finer else ("", "", "")), "round-off" if finer else "no change"]


def _cells(change: "TermChange") -> tuple[str, str, str]:
    return change.term, "" if change.term == "sizes" else f"{change.size:.1e}", ", ".join(change.elements)
