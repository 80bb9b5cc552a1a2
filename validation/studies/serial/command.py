"""`loopcheck serial`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command()
@click.argument("closed", metavar="CLOSED.xml", type=click.Path(path_type=Path))
@click.argument("serial", metavar="[SERIAL.xml]", type=click.Path(path_type=Path), required=False)
@click.option("--make", is_flag=True, help="Derive the stand-in from CLOSED.xml, as stand_in.xml.")
@click.option("--keep", metavar="JOINTS", default="", help="Its joints, as J1,J2; default: those that carry most.")
@click.option("--map", "pairs", metavar="JOINT=JOINT", multiple=True, help="Joints of both that are one; may repeat.")
@click.option("--hold", metavar="JOINTS", default="", help="Joints that stay where they are, as J1,J2; free ones do.")
@click.option("--samples", type=click.IntRange(min=1), default=256, show_default=True, help="Poses of the workspace.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of poses and random motions.")
@click.option("--speed", "speeds", metavar="MOTOR=SPEED", multiple=True, help="Largest speed of a motor; may repeat.")
@click.option("--accuracy", type=float, help="Largest plain error of a motor's effort over its peak, as 0.05: judged.")
@click.option("--mode", help="Keyframe of CLOSED.xml to start from; default: the first, or qpos0.")
@click.option("--actuated", default="", help="Actuated joints of CLOSED.xml, as J1,J2, instead of its actuators.")
@execution_options(RESULTS / "serial")
def command(
    closed: Path,
    serial: Path | None,
    execution: Execution,
    pairs: tuple[str, ...],
    speeds: tuple[str, ...],
    make: bool,
    **options: Any,
) -> int:
    """Say what a serial stand-in of a closed mechanism loses, what motor limits mean at its joints, and repair it.

    Compared are efforts, inertia, damping, springs and weights at the joints that both have, over the workspace and
    along motions. Written are serial.csv, serial_workspace.csv, serial_limits.csv, serial_pairs.csv, serial.html,
    serial_repaired.xml, which differs from SERIAL.xml in armature, damping, springs and limits of its joints and in
    the inertia of their links only, and joint_map.py and joint_map.c: transmission and all that the stand-in lacks as
    functions of the pose, for NumPy or C alone. Errors are measured, exit status 0; with --accuracy they are judged.

    \b
    Examples:
      loopcheck serial leg.xml leg_serial.xml
      loopcheck serial leg.xml --make --keep knee,pitch,roll
      loopcheck serial leg.xml leg_serial.xml --map knee_pin=knee --hold toe --accuracy 0.05 --out leg
    """
    from validation.studies.judge.study import case_of_file
    from validation.studies.serial.making import write_stand_in
    from validation.studies.serial.study import Serial

    if make == (serial is not None):
        raise click.UsageError("want either SERIAL.xml, a stand-in to be compared, or --make, which derives one")
    of_closed = {name: options.pop(name) for name in ("mode", "actuated")}
    keep, hold = (_names(options.pop(name)) for name in ("keep", "hold"))
    case = case_of_file(closed, **of_closed)
    stand_in, notes = (serial, []) if serial else write_stand_in(case, keep, hold, execution.out)
    return execution.run(
        Serial(
            closed=case,
            serial=case_of_file(stand_in),
            given=_named(pairs, "--map"),
            speeds={name: _number(value, name) for name, value in _named(speeds, "--speed").items()},
            hold=hold,
            notes=tuple(notes),
            **options,
        )
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _named(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Values by names, of NAME=VALUE."""
    named = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise click.BadParameter(f"want NAME=VALUE, got {text}", param_hint=option)
        named[name] = value
    return named


def _number(value: str, name: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise click.BadParameter(f"want a number for {name}, got {value}", param_hint="--speed") from error
