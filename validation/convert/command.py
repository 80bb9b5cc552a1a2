"""`loopcheck convert`."""

from pathlib import Path

import click

from loopcheck.robots.catalogue import LOOP_DIALECTS
from loopcheck.validation.frame.options import Command, Target, format_option, option, seed_option


@click.command(cls=Command, short_help="Write a model in another format, with proof.")
@click.argument("target", metavar="IN", type=Target())
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@option("--lossless", is_flag=True, help="Refuse a conversion that loses an element of the model.")
@option(
    "--loops",
    type=click.Choice(LOOP_DIALECTS),
    default=LOOP_DIALECTS[0],
    show_default=True,
    help="Statement of the loops of a URDF: a file in the dialect of Gepetto, robonex, solidworks_urdf_exporter2 or "
    "fusion2URDF, or <constraint> elements.",
)
@seed_option
@format_option
def command(target: str, out: Path, lossless: bool, loops: str, seed: int, format: str) -> int:
    """Write the model of a TARGET in another format, read it back, and prove that its dynamics is the same.

    The suffix of OUT states the format: .xml is MJCF, .urdf is URDF with its loops (--loops), .sdf is SDF, .usda or
    .usd is USD. All numbers have 17 digits; USD has doubles beside its floats. Elements that the format does not carry,
    or that IN has and its reader drops, are listed with their kind, and with their effect on the efforts.

    The proof compares input and output on the closed loops at 100 random poses and rates: reduced inertia, gravity,
    bias, efforts, limits and names. OUT.proof.json has all figures.

    An MJCF that becomes an MJCF is copied: only paths of included files and assets change.

    Exit status: 0 the same, settings of a simulation aside; 1 a quantity differs; 3 the same except for lost elements.

    \b
    Examples:
      loopcheck convert leg.urdf leg.xml
      loopcheck convert my_robot.xml my_robot.urdf --lossless
      loopcheck convert leg.xml leg.urdf --loops constraint
      loopcheck convert leg.usda leg.sdf
    """
    from rich.markup import escape

    from loopcheck.validation.convert.converting import STEPS, conversion_steps, finished, in_words
    from loopcheck.validation.execution.progress import display
    from loopcheck.validation.report.terminal import of_tree, show, table

    steps = conversion_steps(target, out, lossless=lossless, seed=seed, loops=loops)
    with display() as progress:
        done = finished(progress.track(steps, total=STEPS, description=f"convert {Path(target).name}"))
    if format == "json":
        click.echo(done.proof_file.read_text(encoding="utf-8").rstrip())
        return done.result.status
    rows = [
        [
            row.quantity,
            "" if row.error != row.error else f"{row.error:.1e}",
            f"{row.limit:.0e}",
            row.verdict,
            escape(row.note),
        ]
        for row in (*done.result.rows, done.result.effect)
    ]
    show(
        [
            table(
                ["quantity", "error", "limit", "verdict", "note"],
                rows,
                title=f"{target}{of_tree(done.loops)} and {out.name}",
            ),
            *(f"Not carried: {in_words(loss)}" for loss in done.result.losses),
            f"Compared around {done.start}",
            f"Written: {', '.join(str(path) for path in done.files)}",
            f"Proof: {done.proof_file}",
        ]
    )
    return done.result.status
