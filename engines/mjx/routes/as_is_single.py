"""The same as `mjx/as_is` in single precision, as MJX computes out of the box and on a GPU."""

from loopcheck.engines.mjx.routes.as_is import MjxAsIs


class MjxAsIsSingle(MjxAsIs):
    """Efforts that acted, in single precision, while a controller moved the robot through the actuators of its file."""

    name = "mjx/as_is_single"
    double = False
