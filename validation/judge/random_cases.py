"""Repeats of cases on a seeded random motion, with the mode `MODE-random`.

A controller may follow one smooth motion well by chance; unmodified simulations are measured on both motions.
"""

from dataclasses import replace

from loopcheck.analytic.motion.laws import RECORDED
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, modes

RANDOM = "random"


def random_case(case: Case) -> Case:
    """The case on its random motion, with a mode name that no other mode of the robot has."""
    mode = f"{case.mode}-{RANDOM}"
    while mode in modes(case.mechanism):
        mode = f"{mode}-{RANDOM}"
    robot = case.robot.model_copy(update={"motion": MotionSpec(law=RECORDED)})  # it has no law, so no task coordinates
    return replace(case, mode=mode, robot=robot)


def random_motion_or_error(case: Case, motion: Motion) -> Motion | HarnessError:
    """The random motion of a case, or the error with the reason for its absence.

    Args:
        case: The case.
        motion: Its own motion, at least as large.
    """
    try:
        return random_motion(case.mechanism, motion)
    except HarnessError as error:
        return error
