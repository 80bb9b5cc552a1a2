"""MJX's mass matrix, bias, passive forces, loop Jacobian, its rate and actuator moments at the exact state."""

import numpy as np

from loopcheck.engines.equations import state_in_words
from loopcheck.engines.mjx._model import compiled, guarded, opening, terms
from loopcheck.engines.mujoco.model import actuator_names
from loopcheck.engines.projection import RANK_TOLERANCE, loop_motions_along
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import resolved_part, units_of_closures


class MjxKkt(Source):
    """Efforts from the matrices of MuJoCo's port to JAX, projected on the motions that keep its loops closed."""

    name = "mjx/kkt"

    def __init__(self, *, double: bool = True) -> None:
        """With MJX in double or single precision; operations on its matrices are in double precision."""
        self.double = double
        self.name = "mjx/kkt" if double else "mjx/kkt_single"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, model = case.mechanism, compiled(case.mechanism)
        W = mechanism.rates_of(mechanism.drives)
        with guarded(self.name, double=self.double):
            J = terms(mechanism, model, motion.q, 0 * motion.qd).J
            P = resolved_part(mechanism, J, units_of_closures(mechanism, mechanism.closures, turn=0.5))
            loops = list(loop_motions_along(J if P is None else P @ J, W))
            qd = np.zeros_like(motion.qd)
            for k, loop in loops:
                qd[k] = loop.velocities(motion.qd[k])
            engine_terms = terms(mechanism, model, motion.q, qd)
        effort = np.zeros((len(motion.t), mechanism.na))
        for k, loop in loops:
            M, S, bias = engine_terms.M[k], engine_terms.transmission[k], engine_terms.closure_bias[k]
            bias = bias if P is None else (P[k] @ bias[..., None])[..., 0]
            inertia_force = M @ loop.accelerations(motion.qdd[k], bias)[..., None]
            forces = inertia_force + (engine_terms.bias[k] - engine_terms.passive[k])[..., None]
            effort[k] = loop.efforts(M, forces, S, mechanism.effort_scales)[..., 0]
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(mechanism),
            t=motion.t,
            effort=effort,
            closure_drift=Deviation().or_worse(*(opening(model, residual) for residual in engine_terms.opening)),
            settings={
                "precision": f"{'double' if self.double else 'single'}, on the CPU",
                "state": "q and rates of independent drives; passive rates from J and J̇q̇ of the engine",
                "J̇q̇": "derivative of MJX's J q̇ along q̇, by JAX",
                "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length",
            },
            note=state_in_words(mechanism),
        )


SINGLE = MjxKkt(double=False)
"""The route `kkt_single`, in the precision of MJX out of the box and on a GPU."""
