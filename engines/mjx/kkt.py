"""MJX's mass matrix, bias, passive forces, loop Jacobian and actuator moments at the exact state."""

import numpy as np

from engines.mjx._model import compiled, guarded, terms
from engines.mujoco._model import actuator_names
from engines.projection import RANK_TOLERANCE, projected_efforts
from robots.efforts import EffortHistory
from robots.motion import Motion
from robots.robot import Case


class MjxKkt:
    """Efforts from the matrices of MuJoCo's port to JAX, projected on the motions that keep its loops closed."""

    name = "mjx/kkt"
    double = True
    """Whether MJX computes in double precision; what is done with its matrices always is."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        scale = case.mechanism.effort_scales
        with guarded(self.name, double=self.double):
            found = terms(case.mechanism, compiled(case.mechanism), motion.q, motion.qd)
        force = (found.M @ motion.qdd[..., None])[..., 0] + found.bias - found.passive
        at_states = zip(found.M, force, found.J, found.transmission, strict=True)
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(case.mechanism),
            t=motion.t,
            effort=np.array([projected_efforts(*at_state, scale) for at_state in at_states]),
            closure_drift=float(np.abs(found.opening).max(initial=0.0)),
            settings={
                "precision": f"{'double' if self.double else 'single'}, on the CPU",
                "rank tolerance": f"{RANK_TOLERANCE:g} of the largest singular value",
            },
            note="state given; drift is the gap the engine sees in it",
        )
