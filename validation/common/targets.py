"""Targets of the commands: catalogue robots, model files, and folders with a `robot.toml`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from loopcheck.analytic.kinematics.offsets import with_closed_loops
from loopcheck.analytic.motion.configurations import with_configurations
from loopcheck.analytic.motion.laws import AUTOMATIC, RECORDED
from loopcheck.analytic.motion.recorded import read_samples
from loopcheck.robots import catalogue
from loopcheck.robots.catalogue import names, want_targets
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.probe import want_readable
from loopcheck.robots.robot import (
    DEFAULT,
    Case,
    MotionSpec,
    Robot,
    load,
    load_folder,
    make_case,
    regular_modes,
    want_actuators,
)
from loopcheck.robots.robot import configurations as gravities_of
from loopcheck.robots.robot import modes as modes_of
from loopcheck.validation.execution.forkserver import quick_context


class Changes(TypedDict, total=False):
    """Changes of a robot by the user."""

    actuated: str
    """Names of the actuated joints, or of the acting actuators of the model, as J1,J2."""
    motion: Path | None
    """CSV file with the motion of the actuated joints, instead of the robot's own motion."""
    leave_out: Sequence[str]
    """Losses of the model file that are accepted, TAG or TAG:NAME."""


def robot_of(target: str | Path, **changes: Unpack[Changes]) -> Robot:
    """The robot of a target, with its configurations.

    Args:
        target: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        **changes: See `Changes`.

    Raises:
        NotFoundError: If there is no such target.
        MechanismError: If the model or `robot.toml` is bad.
    """
    want_targets([target])
    robot = _loaded(target)
    actuated, motion, leave_out = changes.get("actuated", ""), changes.get("motion"), changes.get("leave_out", ())
    joints = tuple(name.strip() for name in actuated.split(",") if name.strip())
    if actuated and not joints:
        raise MechanismError(f"--actuated must name joints or actuators, for example J1,J2, got '{actuated}'")
    update = {
        **({"actuated": joints} if joints else {}),
        **({"leave_out": tuple(leave_out)} if leave_out else {}),
        **({"motion": MotionSpec(law=RECORDED, parameters={"file": str(motion.absolute())})} if motion else {}),
    }
    robot = robot.model_copy(update=update)
    if robot.folder.parent == catalogue.CATALOGUE:
        return robot  # its gravity lies along the axes of its paper
    want_readable(robot.folder / robot.mjcf, robot.actuated, context=quick_context())
    return with_configurations(robot_with_closed_loops(robot))


def cases_of(
    targets: Sequence[str | Path],
    *,
    variants: Sequence[str] = (),
    modes: Sequence[str] = (),
    configurations: Sequence[str] = (),
    **changes: Unpack[Changes],
) -> list[Case]:
    """The cases of some targets; an empty selection means all, of a model file its first mode.

    Args:
        targets: See `robot_of`.
        **changes: See `Changes`.

    Raises:
        NotFoundError: If a name is unknown to all targets; the message lists the known names.
        MechanismError: If a model is bad or has no actuators, or two targets have the same name.
    """
    robots = {target: robot_of(target, **changes) for target in dict.fromkeys(targets)}
    _want_different_names(robots.values())
    every = [
        (robot, variant, mode, configuration)
        for target, robot in robots.items()
        for variant in robot.variant_names
        for mode in _modes(target, robot, variant, modes)
        for configuration in _configurations(robot, variant)
    ]
    selections = {"variant": variants, "mode": modes, "configuration": configurations}
    for column, (kind, selected) in enumerate(selections.items(), start=1):
        known = tuple(dict.fromkeys(str(combination[column]) for combination in every))
        for name in selected:
            if name not in known:
                raise NotFoundError(f"{kind} of {', '.join(robot.name for robot in robots.values())}", name, known)
    cases = [
        make_case(robot, variant=variant, mode=mode, configuration=configuration)
        for robot, variant, mode, configuration in every
        if all(
            not selected or name in selected
            for selected, name in zip(selections.values(), (variant, mode, configuration), strict=True)
        )
    ]
    for case in cases:
        _want_movable(case)
    return cases


def case_of(
    target: str | Path,
    *,
    variant: str = DEFAULT,
    mode: str = "",
    configuration: str = "",
    **changes: Unpack[Changes],
) -> Case:
    """One case of a target: by default its first regular mode, in the gravity of its file.

    Args:
        target: See `robot_of`.
        **changes: See `Changes`.

    Raises:
        NotFoundError: If a name is unknown; the message lists the known names.
        MechanismError: If the model is bad, or has no actuators.
    """
    robot = robot_of(target, **changes)
    case = _case(robot, variant=variant, mode=mode, configuration=configuration)
    _want_movable(case)
    return case


def passive_case_of(target: str | Path, *, mode: str = "", configuration: str = "", **changes: Unpack[Changes]) -> Case:
    """One case of a target that may have no actuators, see `case_of`.

    Args:
        target: See `robot_of`.
        **changes: See `Changes`.

    Raises:
        NotFoundError: If a name is unknown; the message lists the known names.
        MechanismError: If the model is bad.
    """
    return _case(robot_of(target, **changes), mode=mode, configuration=configuration)


def _want_movable(case: Case) -> None:
    """Check that a case has actuators, and a readable motion file if it has any."""
    want_actuators(case.mechanism)
    if case.robot.motion.law == RECORDED and case.robot.motion_file is not None:
        read_samples(case.robot.motion_file, case.mechanism)


def _case(robot: Robot, *, variant: str = DEFAULT, mode: str = "", configuration: str = "") -> Case:
    return make_case(
        robot,
        variant=variant,
        mode=mode or regular_modes(robot, variant)[0],
        configuration=configuration or _configurations(robot, variant)[0],
    )


def _loaded(target: str | Path) -> Robot:
    if str(target) in names():
        return load(str(target))
    path = Path(target)
    if path.is_dir():
        return load_folder(path)
    return Robot(
        name=path.stem,
        folder=path.absolute().parent,  # workers have another working directory
        title=path.name,
        mjcf=path.name,
        motion=MotionSpec(law=AUTOMATIC),
        source=f"the file {path.name}",
    )


def robot_with_closed_loops(robot: Robot) -> Robot:
    """The robot with the accuracy of its loops, and without the offsets along pins that keep them open."""
    closed = {variant: with_closed_loops(robot.mechanism(variant)) for variant in robot.variant_names}
    offsets = {variant: mechanism.offsets for variant, mechanism in closed.items() if mechanism.offsets}
    closing = {variant: mechanism.closing for variant, mechanism in closed.items()}
    return robot.model_copy(update={"offsets": offsets, "closing": closing})


def _modes(target: str | Path, robot: Robot, variant: str, selected: Sequence[str]) -> Sequence[str]:
    """Modes to choose from: all; of a model file only the first, unless modes are selected."""
    every = tuple(modes_of(robot.mechanism(variant)))
    is_file = str(target) not in names() and not Path(target).is_dir()
    return every[:1] if is_file and not selected else every


def _configurations(robot: Robot, variant: str) -> tuple[str, ...]:
    return tuple(gravities_of(robot, robot.mechanism(variant)))


def _want_different_names(robots: Iterable[Robot]) -> None:
    places: dict[str, Path] = {}
    for robot in robots:
        place = robot.folder / robot.mjcf
        if places.setdefault(robot.name, place) != place:
            raise MechanismError(
                f"targets must have different names, got '{robot.name}' twice: {places[robot.name]}, {place}"
            )
