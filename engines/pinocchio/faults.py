"""Faults of `pinocchio/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from loopcheck.engines.pinocchio._simulation import Simulation, Solver
from loopcheck.engines.pinocchio.routes.forward import PinocchioForward, Settings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Fault

REGULARISED = Solver(mu=1e-3, iterations=1)
"""A single proximal iteration, Pinocchio's default, with a regularization that remains in the answer."""


class _WithoutVelocityTerm(Simulation):
    """Constraints without J̇v: Pinocchio's value of it at the same state is subtracted."""

    def solve(self, force: Array) -> Array:
        every = zip(self.constraints.models, self.constraints.datas, strict=True)
        targets = [np.array(data.contact_acceleration_desired.vector) for data in self.constraints.datas]
        super().solve(force)
        for (model, data), motion in zip(every, targets, strict=True):
            drift = data.contact1_acceleration_drift.vector - data.contact2_acceleration_drift.vector
            if model.type == pin.ContactType.CONTACT_3D:
                drift[3:] = 0
            data.contact_acceleration_desired = pin.Motion(motion + drift)
        a = np.array(super().solve(force))
        for data, motion in zip(self.constraints.datas, targets, strict=True):
            data.contact_acceleration_desired = pin.Motion(motion)
        return a


class _ForwardWithoutVelocityTerm(PinocchioForward):
    simulation = _WithoutVelocityTerm


FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: PinocchioForward(Settings(solver=REGULARISED)),
        "velocity term dropped": lambda peak: _ForwardWithoutVelocityTerm(),
    }
}
"""By route and kind of fault."""
