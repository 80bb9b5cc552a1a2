"""Cases of the papers' robots with their motions, each prescribed once."""

from functools import cache

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.evaluate import motion_key
from loopcheck.validation.common.targets import case_of


@cache
def prescribed(robot: str, *, configuration: str = "", mode: str = "") -> tuple[Case, Motion]:
    """A case of the catalogue and its motion."""
    case = case_of(robot, configuration=configuration, mode=mode)
    _, _, of_motion, needed = motion_key(case)
    return case, _motion(robot, of_motion, needed)


@cache
def _motion(robot: str, mode: str, configuration: str) -> Motion:
    return prescribe(case_of(robot, configuration=configuration, mode=mode))
