"""MuJoCo's mass matrix, bias, passive forces, loop Jacobian, its rate and actuator moments at the exact state."""

import mujoco
import numpy as np

from engines.mujoco.loops import closure_bias
from engines.mujoco.model import (
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
from engines.projection import RANK_TOLERANCE, loop_motions
from robots.efforts import Deviation, EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class MujocoKkt(Source):
    """Efforts from the engine's matrices, projected on the motions that keep its loops closed."""

    name = "mujoco/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
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
                "state": "q, and rates of drives independent there; the others from J and J̇q̇ of the engine",
                "J̇q̇": "mj_objectAcceleration of the ends; curvature of polynomials added, which MuJoCo leaves out",
                "rank tolerance": f"{RANK_TOLERANCE:g} of rows of length one",
            },
            note="state given; drift is the gap the engine sees in it",
        )
