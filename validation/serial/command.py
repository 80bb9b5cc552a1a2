"""`loopcheck serial`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    TARGET,
    Command,
    Execution,
    Target,
    accuracy_option,
    actuated_option,
    execution_options,
    leave_out_option,
    mode_option,
    names_of,
    numbers_of,
    option,
    seed_option,
)

if TYPE_CHECKING:
    from loopcheck.robots.robot import Case
    from loopcheck.validation.serial.audit import Audit


@click.command(cls=Command, short_help="What does my serial model need?")
@click.argument("closed", metavar="CLOSED", type=Target(), required=False, default="")
@click.argument("serial", metavar="[SERIAL]", type=Target(), required=False)
@mode_option
@actuated_option
@leave_out_option
@option("--make", is_flag=True, group=TARGET, help="Derive the serial model from CLOSED, as stand_in.xml.")
@option(
    "--keep-joint",
    "keep",
    metavar="J1,J2",
    default="",
    group=TARGET,
    help="Joints of the derived model; joints outside their loops are locked.  [default: the joints that carry most]",
)
@option(
    "--map",
    "pairs",
    metavar="J=J",
    multiple=True,
    group=TARGET,
    help="Joint of CLOSED = joint of SERIAL, where their names differ; may repeat.",
)
@option(
    "--hold",
    metavar="J1,J2",
    default="",
    group=TARGET,
    help="Joints to lock at their positions (floating joints are always locked).",
)
@option(
    "--audit",
    metavar="FILE",
    default="",
    group=TARGET,
    help="Audit a transmission: FILE.py:NAME, LIB.so:NAME or FILE.csv. CLOSED may be left out.",
)
@option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Number of sampled poses.",
)
@seed_option
@option(
    "--speed",
    "speeds",
    metavar="MOTOR=SPEED",
    multiple=True,
    help="Largest speed of a motor in rad/s or m/s; may repeat.",
)
@accuracy_option("Judge the serial model: largest effort error of a motor relative to its peak, as 0.05 or 5%.")
@execution_options(RESULTS / "serial")
def command(
    closed: str,
    serial: str | None,
    execution: Execution,
    pairs: tuple[str, ...],
    speeds: tuple[str, ...],
    make: bool,
    mode: str,
    actuated: str,
    leave_out: tuple[str, ...],
    audit: str,
    **options: Any,
) -> int:
    """Compare a serial model with the closed mechanism that it simplifies: effort errors, limits, and a repair.

    CLOSED and SERIAL are TARGETs, or CLOSED is a published transmission by its name (loopcheck list). Compares efforts,
    inertia, damping, springs and weights at the common joints, over the workspace and along motions. Without
    --accuracy the errors are measured only, exit status 0.

    \b
    Writes:
      serial_repaired.xml        SERIAL with inertia and limits of CLOSED
      transmission.py, .h        cranks and rods in closed form: Python and C
      joint_map.py, joint_map.c  other transmissions, as functions of the pose
      serial.html, serial*.csv   errors, and motor limits at the joints

    \b
    Examples:
      loopcheck serial limx_hu_d04_ankle_left
      loopcheck serial leg.xml leg_serial.xml
      loopcheck serial leg.xml --make --keep-joint knee,pitch,roll
      loopcheck serial leg.xml leg_serial.xml --map knee_pin=knee
    """
    from loopcheck.robots.catalogue import is_transmission, want_targets
    from loopcheck.validation.common.targets import case_of, passive_case_of

    published = None
    _want_audit(audit)
    if is_transmission(closed):
        from loopcheck.validation.serial.making import write_closed

        published, closed = write_closed(closed, execution.out)
        make = make or serial is None
    if audit:
        joints = published.joint_names if published else names_of(options["keep"])
        return execution.run(_audit(audit, closed, joints, (mode, actuated), options))
    if make == (serial is not None):
        raise click.UsageError("Either SERIAL or --make must be given: a serial model, or the option that derives it.")
    want_targets([closed, *([serial] if serial else [])])
    limits = numbers_of(speeds, "--speed")
    same = _pairs(pairs)
    case = case_of(closed, mode=mode, actuated=actuated, leave_out=leave_out)
    keep, hold = (names_of(options.pop(name)) for name in ("keep", "hold"))
    simple = _twin_of(case, serial, same, (keep, hold), leave_out)
    from loopcheck.robots.transmission import LIGHT, without_stand_ins
    from loopcheck.validation.serial.making import outside_loops, write_stand_in
    from loopcheck.validation.serial.study import Serial

    if published:
        keep, limits = keep or published.joint_names, {**published.speed_limits, **limits}
    if make and keep:
        hold = tuple(dict.fromkeys((*hold, *outside_loops(case.mechanism, keep))))
    made = None
    if simple is None:
        made = write_stand_in(case, keep, hold, execution.out)
        simple = passive_case_of(made.path, leave_out=leave_out)
    carried = made.carried if made else None
    if published and made:
        case, simple = (replace(each, mechanism=without_stand_ins(each.mechanism)) for each in (case, simple))
        carried = {rod: mass if mass > LIGHT else 0.0 for rod, mass in (carried or {}).items()}
    study = Serial(
        closed=case,
        serial=simple,
        given=same,
        speeds=limits,
        hold=hold,
        carried=carried,
        usual=published.public_factor if published else (),
        public=published.public_armature if published else (),
        notes=(*(made.notes if made else ()), *(published.notes if published else ())),
        **options,
    )
    study.want_losses(leave_out)
    return execution.run(study)


def _want_audit(text: str) -> None:
    """Check the file of an audit, if there is one, before anything else is imported."""
    if text:
        from loopcheck.validation.serial.audited import file_and_function

        file_and_function(text)


def _twin_of(
    closed: "Case",
    target: str | None,
    given: Mapping[str, str],
    names: tuple[Sequence[str], Sequence[str]],
    leave_out: Sequence[str],
) -> "Case | None":
    """The serial model of a closed mechanism, None if it is to be derived.

    Another robot, or an unknown joint to keep or hold, is refused before anything is imported for the study.
    """
    from loopcheck.analytic.transmission.joint_space import want_known
    from loopcheck.analytic.transmission.twin import make_twin
    from loopcheck.validation.common.targets import passive_case_of

    keep, hold = names
    if target is None:
        want_known((*keep, *hold), closed.mechanism)
        return None
    simple = passive_case_of(target, leave_out=leave_out)
    make_twin(closed.mechanism, closed.guess, simple.mechanism, simple.guess, given, hold)
    return simple


def _audit(
    text: str, closed: str, joints: Sequence[str], target: tuple[str, str], options: Mapping[str, Any]
) -> "Audit":
    """The study of an audit; without CLOSED the transmission is held against itself."""
    from loopcheck.robots.catalogue import want_targets
    from loopcheck.validation.common.targets import case_of

    if closed and not joints:
        raise click.UsageError("--keep-joint must name the joints of the transmission, in the order of its function.")
    want_targets([closed] if closed else [])
    from loopcheck.validation.serial.audit import Audit
    from loopcheck.validation.serial.audited import read_audited
    from loopcheck.validation.serial.making import outside_loops

    case, hold = None, names_of(options["hold"])
    motors: tuple[str, ...] = ()
    if closed:
        case = case_of(closed, mode=target[0], actuated=target[1])
        hold = tuple(dict.fromkeys((*hold, *outside_loops(case.mechanism, joints))))
        motors = tuple(actuator.name for actuator in case.mechanism.actuators)
    audited = read_audited(text, joints, motors, len(joints) or 2)
    return Audit(
        audited=audited,
        closed=case,
        joints=tuple(joints),
        hold=hold,
        accuracy=options["accuracy"],
        seed=options["seed"],
    )


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Joints of the serial model by joints of the closed model, from texts CLOSED=SERIAL."""
    named = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise click.BadParameter(f"must be JOINT=JOINT, got '{text}'", param_hint="--map")
        named[name] = value
    return named
