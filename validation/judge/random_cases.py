"""Cases beside those that are asked for: the same robot on a motion that nobody chose, its mode `MODE-random`.

A controller that follows one smooth motion well may do so by chance; what a simulation as it is gets wrong is measured
on both.
"""

from dataclasses import replace

from loopcheck.analytic.motion.laws import RECORDED
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, modes

RANDOM = "random"


def random_case(case: Case) -> Case:
    """The case on its random motion, whose mode is no other of the robot.

    Args:
        case: The case.
    """
    mode = f"{case.mode}-{RANDOM}"
    while mode in modes(case.mechanism):
        mode = f"{mode}-{RANDOM}"
    robot = case.robot.model_copy(update={"motion": MotionSpec(law=RECORDED)})  # it has no law, so no task coordinates
    return replace(case, mode=mode, robot=robot)


def random_motion_or_error(case: Case, motion: Motion) -> Motion | HarnessError:
    """The random motion of a case, or the error that says why there is none.

    Args:
        case: The case.
        motion: Its own motion, which is no smaller.
    """
    try:
        return random_motion(case.mechanism, motion)
    except HarnessError as error:
        return error
