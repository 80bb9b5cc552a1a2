"""The same as `mjx/forward` in single precision, as MJX computes out of the box and on a GPU.

Single precision knows no nearly rigid constraint: the force of one is the product of its stiffness and a difference of
accelerations, of which round-off is left where the constraint is hard. So the constraints are softer than the model's
own by as much as the extrapolation to none allows.
"""

from loopcheck.engines.mjx.routes.forward import MjxForward, Settings

OWN = Settings(double=False, compliances=(3.0, 6.0))
"""Settings of the route."""


class MjxForwardSingle(MjxForward):
    """Efforts from a simulation of the closed loop in single precision, extrapolated to rigid constraints."""

    name = "mjx/forward_single"
    own = OWN
