"""Simbody's mass matrix, residual forces, constraint matrix and its rate at the exact state; no solver takes part."""

import numpy as np

from engines.projection import RANK_TOLERANCE, loop_motions
from engines.simbody._equations import closure_bias, closure_jacobian, opening, tree_terms
from engines.simbody._model import build
from engines.simbody._opensim import guarded
from robots.efforts import Deviation, EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class SimbodyKkt(Source):
    """Efforts from Simbody's matrices, projected on the motions that keep its loops closed."""

    name = "simbody/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism, gap, efforts = case.mechanism, Deviation(), []
        S, scale, W = mechanism.selection, mechanism.effort_scales, mechanism.rates_of(mechanism.drives)
        with guarded(self.name):
            model = build(mechanism)
            for k, q in enumerate(motion.q):
                model.put(q, np.zeros(mechanism.nv))
                model.model.realizePosition(model.state)
                gap = gap.or_worse(opening(model, model.state))
                loop = loop_motions(closure_jacobian(model, q), W)
                qd = loop.velocities(motion.qd[k])
                qdd = loop.accelerations(motion.qdd[k], closure_bias(model, q, qd))
                M, bias, passive = tree_terms(model, q, qd)
                efforts.append(loop.efforts(M, M @ qdd + bias - passive, S, scale))
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            closure_drift=gap,
            settings={
                "tree": "calcM and InverseDynamicsSolver at the exact state",
                "loop Jacobian": "calcG of its own PointConstraint, WeldConstraint and CoordinateCouplerConstraint",
                "state": "q, and rates of drives independent there; the others from J and J̇q̇ of the engine",
                "J̇q̇": "calcBiasForAccelerationConstraints",
                "rank tolerance": f"{RANK_TOLERANCE:g} of rows of length one",
            },
            note="state given; drift is the gap the engine sees in it",
        )
