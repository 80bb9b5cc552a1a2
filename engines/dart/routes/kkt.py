"""DART's mass matrix, bias, Jacobians of the loops' points and their rates at the exact state; no solver takes part."""

import numpy as np

from engines.dart._equations import tree_terms
from engines.dart._loops import closure_bias, closure_jacobian, opening
from engines.dart._skeleton import build, guarded
from engines.projection import RANK_TOLERANCE, loop_motions
from robots.efforts import Deviation, EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class DartKkt(Source):
    """Efforts from DART's matrices, projected on the motions that keep its loops closed."""

    name = "dart/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism, gap, efforts = case.mechanism, Deviation(), []
        S, scale, W = mechanism.selection, mechanism.effort_scales, mechanism.rates_of(mechanism.drives)
        with guarded(self.name):
            tree = build(mechanism)
            for k, q in enumerate(motion.q):
                tree.put(q, np.zeros(mechanism.nv))
                gap = gap.or_worse(opening(tree))
                loop = loop_motions(closure_jacobian(tree), W)
                qd = loop.velocities(motion.qd[k])
                tree.put(q, qd)
                qdd = loop.accelerations(motion.qdd[k], closure_bias(tree))
                M, bias, passive = tree_terms(tree)
                efforts.append(loop.efforts(M, M @ qdd + bias - passive, S, scale))
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            closure_drift=gap,
            settings={
                "tree": "getMassMatrix, getCoriolisAndGravityForces and getExternalForces at the exact state",
                "springs and dampers": "of joints, written here from DART's own values; of rotors that are driven too",
                "loop Jacobian": "getLinearJacobian and getAngularJacobian of both ends of each closure",
                "state": "q, and rates of drives independent there; the others from J and J̇q̇ of the engine",
                "J̇q̇": "getLinearJacobianDeriv and getAngularJacobianDeriv of both ends",
                "rank tolerance": f"{RANK_TOLERANCE:g} of rows of length one",
            },
            note="state given; drift is the gap the engine sees in it",
        )
