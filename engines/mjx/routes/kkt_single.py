"""The same as `mjx/kkt` in single precision, as MJX computes out of the box and on a GPU."""

from loopcheck.engines.mjx.routes.kkt import MjxKkt


class MjxKktSingle(MjxKkt):
    """Efforts from MJX's matrices in single precision, projected on the motions that keep its loops closed."""

    name = "mjx/kkt_single"
    double = False
