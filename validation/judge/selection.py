"""Which cases of the catalogue, or of folders of one's own, are meant."""

from dataclasses import dataclass
from pathlib import Path

from analytic.motion.configurations import load_configured
from robots.errors import NotFoundError
from robots.robot import Case, Robot, configurations, make_case, modes, own_names
from robots.robot import names as robot_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases of the catalogue to run; an empty tuple means all there are."""

    robots: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    """Folders of robots besides the catalogue; without names, they alone are run."""


def plan(selection: Selection) -> list[Case]:
    """The cases of a selection.

    Raises:
        NotFoundError: If a name is not known to any robot selected; the message lists the known ones.
        MechanismError: If the model of a robot is bad.
    """
    every_robot = own_names(selection.folders) if selection.folders else robot_names()
    robots = [load_configured(name, selection.folders) for name in selection.robots or every_robot]
    every: list[tuple[Robot, str, str, str]] = [
        (robot, variant, mode, configuration)
        for robot in robots
        for variant in robot.variant_names
        for mechanism in [robot.mechanism(variant)]
        for mode in modes(mechanism)
        for configuration in configurations(robot, mechanism)
    ]
    wanted_names = (selection.variants, selection.modes, selection.configurations)
    for column, (kind, names) in enumerate(
        zip(("variant", "mode", "configuration"), wanted_names, strict=True), start=1
    ):
        known_names = tuple(dict.fromkeys(str(combination[column]) for combination in every))
        for name in names:
            if name not in known_names:
                raise NotFoundError(f"{kind} of {', '.join(robot.name for robot in robots)}", name, known_names)
    return [
        make_case(robot, variant=variant, mode=mode, configuration=configuration)
        for robot, variant, mode, configuration in every
        if all(
            not names or name in names for names, name in zip(wanted_names, (variant, mode, configuration), strict=True)
        )
    ]
