"""Computed torque in the task coordinates, on the pose averaged over all sensors."""

import numpy as np

from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.validation.studies.control.controller import Gains, Reference, times


class TaskSpaceCtc:
    """Computed torque in x: the pose is estimated from all six joints by (31) to (34), its rate by J_C.

    Not in the paper: it uses the same sensors as Extended CTC without its redundant model, and so separates the effect
    of
    the sensors from the effect of the model.
    """

    name = "task space"

    def __init__(self, nominal: paper.Parameters, gains: Gains, *, g: float) -> None:
        """See `Controller.__init__`."""
        self._nominal, self._gains, self._g = nominal, gains, g

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """See `Controller.torque`.

        Args:
            reference: Reference at this time.
            q: Measured joints q_a, q_p [rad], shape (n, 6).
            qd: Their measured rates [rad/s], shape (n, 6).
        """
        p, gains, qad = self._nominal, self._gains, qd[:, :3]
        x = paper.direct_position(p, q)
        kinematics = paper.kinematics_of(p, x, q, qd)
        xdd = reference.xdd + gains.Kv * (reference.xd - times(kinematics.J_C, qd)) + gains.Kp * (reference.x - x)
        bias = times(kinematics.J_C, times(kinematics.T_dot, qad)) + times(kinematics.J_C_dot, times(kinematics.T, qad))
        qadd = np.linalg.solve(kinematics.J_C @ kinematics.T, (xdd - bias)[..., None])[..., 0]
        model = paper.active_model(p, x, q, qd, g=self._g)
        return times(model.D, qadd) + times(model.C, qad) + model.G
