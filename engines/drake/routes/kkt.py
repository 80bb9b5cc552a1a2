"""Drake's mass matrix, bias, Jacobians of the loops' points and bias accelerations at the exact state; no solver."""

import numpy as np

from engines.drake._equations import closure_bias, closure_jacobian, opening, tree_terms
from engines.drake._plant import build, guarded
from engines.projection import RANK_TOLERANCE, loop_motions
from robots.efforts import Deviation, EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class DrakeKkt(Source):
    """Efforts from Drake's matrices, projected on the motions that keep its loops closed."""

    name = "drake/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism, gap, efforts = case.mechanism, Deviation(), []
        S, scale, W = mechanism.selection, mechanism.effort_scales, mechanism.rates_of(mechanism.drives)
        with guarded(self.name):
            drake = build(mechanism)
            for k, q in enumerate(motion.q):
                drake.put(q, np.zeros(mechanism.nv))
                gap = gap.or_worse(opening(drake, drake.context))
                loop = loop_motions(closure_jacobian(drake, q), W)
                qd = loop.velocities(motion.qd[k])
                qdd = loop.accelerations(motion.qdd[k], closure_bias(drake, q, qd))
                M, bias, passive = tree_terms(drake, q, qd)
                efforts.append(loop.efforts(M, M @ qdd + bias - passive, S, scale))
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            closure_drift=gap,
            settings={
                "tree": "CalcMassMatrix, CalcBiasTerm and CalcForceElementsContribution at the exact state",
                "loop Jacobian": "CalcJacobianSpatialVelocity of both ends of each closure",
                "state": "q, and rates of drives independent there; the others from J and J̇q̇ of the engine",
                "J̇q̇": "CalcBiasSpatialAcceleration of both ends",
                "rank tolerance": f"{RANK_TOLERANCE:g} of rows of length one",
            },
            note="state given; drift is the gap the engine sees in it",
        )
