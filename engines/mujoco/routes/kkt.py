"""MuJoCo's mass matrix, bias, passive forces, loop Jacobian, its rate and actuator moments at the exact state."""

import mujoco
import numpy as np

from loopcheck.engines.mujoco.loops import closure_bias
from loopcheck.engines.mujoco.model import (
    actuator_names,
    build,
    equality_rows,
    guarded,
    loop_jacobian,
    opening,
    own_actuators_off,
    transmission,
    tree_terms,
)
from loopcheck.engines.projection import RANK_TOLERANCE, loop_motions
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MujocoKkt(Source):
    """Efforts from the engine's matrices, projected on the motions that keep its loops closed."""

    name = "mujoco/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        model = build(case.mechanism)
        own_actuators_off(model)
        data, scale = mujoco.MjData(model), case.mechanism.effort_scales
        effort, gap = np.zeros((len(motion.t), model.nu)), Deviation()
        with guarded(self.name):
            W = case.mechanism.rates_of(case.mechanism.drives)
            for k in range(len(motion.t)):
                loop = loop_motions(loop_jacobian(model, data, motion.q[k]), W)
                data.qvel[:] = loop.velocities(motion.qd[k])
                M, bias, passive = tree_terms(case.mechanism, model, data)
                qdd = loop.accelerations(motion.qdd[k], closure_bias(model, data))
                effort[k] = loop.efforts(M, M @ qdd + bias - passive, transmission(model, data), scale)
                gap = gap.or_worse(opening(model, data, equality_rows(data)))
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(case.mechanism),
            t=motion.t,
            effort=effort,
            closure_drift=gap,
            settings={
                "state": "q and rates of independent drives; passive rates from J and J̇q̇ of the engine",
                "J̇q̇": "mj_objectAcceleration of the ends, plus the curvature of polynomials (missing in MuJoCo)",
                "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length",
            },
            note="prescribed state; closure drift is the loop gap computed by the engine in this state",
        )
