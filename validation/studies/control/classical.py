"""Classical computed torque: the model in active joints, and the motors' encoders alone."""

from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.validation.studies.control.controller import Gains, Reference, angle_between, times


class ClassicalCtc:
    """Computed torque in the active joints: τ = D (q̈_ref + Kv ė + Kp e) + C q̇ + G with q = q_a and D 3×3.

    Passive joints and pose follow from the motors' angles by the nominal closures (30) and (31) to (34).
    """

    name = "classical"

    def __init__(self, nominal: paper.Parameters, gains: Gains, *, g: float) -> None:
        """See `Controller.__init__`."""
        self._nominal, self._gains, self._g = nominal, gains, g

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """See `Controller.torque`; uses the measured active joints only.

        Args:
            reference: Reference at this time.
            q: Measured joints q_a, q_p [rad], shape (n, 6).
            qd: Their measured rates [rad/s], shape (n, 6).
        """
        p, gains = self._nominal, self._gains
        qa, qad = q[:, :3], qd[:, :3]
        near = reference.q[3:] + 0 * qa
        closed = paper.passive_joints(p, qa, near)
        x = paper.direct_position(p, closed)
        rates = times(paper.transformation(p, closed), qad)
        model = paper.active_model(p, x, closed, rates, g=self._g)
        error, error_rate = angle_between(reference.q[:3], qa), reference.qd[:3] - qad
        return (
            times(model.D, reference.qdd[:3] + gains.Kv * error_rate + gains.Kp * error) + times(model.C, qad) + model.G
        )
