"""`loopcheck worlds`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options


def _counts(_: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        counts = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError as error:
        raise click.BadParameter(f"want whole numbers, as 1,64,4096, got '{value}'", param=parameter) from error
    if counts[0] < 1:
        raise click.BadParameter(f"want one world or more, got {counts[0]}", param=parameter)
    return counts


@click.command()
@click.argument("model", metavar="MODEL.xml|ROBOT", type=click.Path(path_type=Path))
@click.option("--engine", "engines", multiple=True, help="Engine to try; may repeat; default: all that have batches.")
@click.option(
    "--worlds", default="1,64,4096", show_default=True, callback=_counts, help="How many robots are in a batch."
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=100, show_default=True, help="After how many steps worlds are held."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the states where worlds begin."
)
@click.option("--mode", help="Keyframe to start from; default: the first, or qpos0 where there is none.")
@click.option("--configuration", default="", help="Which way gravity points; default: as in the file.")
@execution_options(RESULTS / "worlds")
def command(model: Path, execution: Execution, mode: str | None, configuration: str, **options: Any) -> int:
    """Say whether the worlds of a batch agree, and what steps per second cost in effort accuracy.

    Worlds that begin alike must stay alike, and one among others must do what it does alone, to what round-off makes of
    it. Then settings people use are tried: error of the effort of the file as it is, over the steps of the file's
    length that a batch makes in a second on the device at hand. With `--jobs 1` nothing else runs beside it. Exit
    status: 0 all worlds agree; 1 some do not; 3 something was not judged.

    \b
    Examples:
      loopcheck worlds my_robot.xml
      loopcheck worlds 3prr --engine mujoco
      loopcheck worlds my_robot.xml --engine mujoco --engine mujoco_warp --worlds 1,1024 --jobs 1
    """
    from validation.studies.worlds.study import WorldsStudy

    return execution.run(WorldsStudy(case=_case(model, configuration, mode), **options))


def _case(model: Path, configuration: str, mode: str | None) -> Any:
    """The case of a file, or of a robot of the catalogue."""
    from robots.robot import load, make_case, names, representative_case
    from validation.studies.judge.study import case_of_file

    if model.exists() or str(model) not in names():
        return case_of_file(model, configuration, mode=mode)
    usual = representative_case(load(str(model)))
    return make_case(
        usual.robot, variant=usual.variant, mode=mode or usual.mode, configuration=configuration or usual.configuration
    )
