"""`loopcheck gate`."""

from pathlib import Path

import click

from loopcheck.validation.frame.options import (
    EXECUTION,
    JUDGEMENT,
    Command,
    baseline_option,
    leave_out_option,
    names_of,
    option,
    targets_argument,
    want_one_baseline,
    write_baseline_option,
)


@click.command(cls=Command, short_help="Is a model file sound? Errors, warnings and notes in a second.")
@targets_argument
@leave_out_option
@option("--select", default="", metavar="CODES", group=JUDGEMENT, help="Codes or prefixes, as LC1,LC2.  [default: all]")
@option("--ignore", default="", metavar="CODES", group=JUDGEMENT, help="Codes or prefixes to leave out.")
@option("--warnings-as-errors", is_flag=True, group=JUDGEMENT, help="Exit status 1 for warnings too.")
@baseline_option
@write_baseline_option
@option("--fix", is_flag=True, group=EXECUTION, help="Print safe changes as a diff. Apply it with `git apply`.")
@option(
    "--format",
    type=click.Choice(["text", "json", "github", "markdown", "sarif"]),
    default="text",
    show_default=True,
    group=EXECUTION,
    help="Output on the terminal.",
)
def command(
    targets: tuple[str, ...],
    leave_out: tuple[str, ...],
    select: str,
    ignore: str,
    warnings_as_errors: bool,
    baseline: Path | None,
    write_baseline: Path | None,
    fix: bool,
    format: str,
) -> int:
    """Check model files without a simulation: loops, freedom, drives, start pose, inertias, signs, time step and units.

    A model without loops is a tree: the checks of loops do not apply.

    A comment `loopcheck: ignore LC206` in the line of an element or the line before switches a finding off;
    `loopcheck: ignore-file LC206` does so for a file. With --baseline, only findings count that are not stored, or
    larger than stored; the key of a finding is its file, code and element. Exit status: 1 for an error, 0 for warnings
    and notes, 2 for bad input.

    \b
    Examples:
      loopcheck gate my_robot.xml
      loopcheck gate models/*.xml --select LC1,LC2 --format sarif
      loopcheck gate my_robot.xml --fix | git apply
      loopcheck gate models/*.xml --write-baseline gate.json
      loopcheck gate models/*.xml --baseline gate.json
    """
    from dataclasses import replace

    from loopcheck.validation.gate.baseline import new_findings, store
    from loopcheck.validation.gate.findings import selected
    from loopcheck.validation.gate.fixes import closing_diff
    from loopcheck.validation.gate.formats import FORMATS
    from loopcheck.validation.gate.gate import gate, model_path

    if not targets:
        raise click.UsageError("at least one TARGET must be given, got none. Example: loopcheck gate my_robot.xml")
    want_one_baseline(baseline, write_baseline)
    selected((), names_of(select), names_of(ignore))
    for target in targets:
        model_path(target)
    results = [gate(target, leave_out) for target in targets]
    if fix:
        click.echo(b"".join(dict.fromkeys(map(closing_diff, results))), nl=False)  # a link and its file: one diff
    results = [
        replace(result, findings=tuple(selected(result.findings, names_of(select), names_of(ignore))))
        for result in results
    ]
    if write_baseline:
        store(results, write_baseline)
    if stored := write_baseline or baseline:
        results = new_findings(results, stored)
    failing = ("error", "warning") if warnings_as_errors else ("error",)
    status = int(any(finding.severity in failing for result in results for finding in result.findings))
    click.echo(FORMATS[format](results, status), err=fix)
    return status
