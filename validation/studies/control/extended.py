"""Extended computed torque of Zubizarreta et al. (59): all six joints measured, all six controlled by three motors."""

from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.validation.studies.control.controller import Gains, Reference, angle_between, times


class ExtendedCtc:
    """Computed torque with the redundant model (58): τ = D (Kp e + Kv ė) + (D q̈_ref + C q̇ + G), D 3×6."""

    name = "extended"

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
        p, gains = self._nominal, self._gains
        model = paper.redundant_model(p, paper.direct_position(p, q), q, qd, g=self._g)
        error, error_rate = angle_between(reference.q, q), reference.qd - qd
        return times(model.D, reference.qdd + gains.Kv * error_rate + gains.Kp * error) + times(model.C, qd) + model.G
