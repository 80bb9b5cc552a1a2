"""MuJoCo's mass matrix, bias, passive forces, loop Jacobian and actuator moments at the exact state."""

import mujoco
import numpy as np

from engines.mujoco._model import (
    actuator_names,
    build,
    constraint_jacobian,
    equality_rows,
    guarded,
    own_actuators_off,
    transmission,
    tree_terms,
)
from engines.projection import RANK_TOLERANCE, projected_efforts
from robots.efforts import EffortHistory
from robots.motion import Motion
from robots.robot import Case


class MujocoKkt:
    """Efforts from the engine's matrices, projected on the motions that keep its loops closed."""

    name = "mujoco/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        model = build(case.mechanism)
        own_actuators_off(model)
        data, scale = mujoco.MjData(model), case.mechanism.effort_scales
        effort, gap = np.zeros((len(motion.t), model.nu)), 0.0
        with guarded(self.name):
            for k in range(len(motion.t)):
                data.qpos[:], data.qvel[:], data.qacc[:] = motion.q[k], motion.qd[k], motion.qdd[k]
                M, bias, passive = tree_terms(case.mechanism, model, data)
                rows = equality_rows(data)
                J, S = constraint_jacobian(model, data)[rows], transmission(model, data)
                effort[k] = projected_efforts(M, M @ data.qacc + bias - passive, J, S, scale)
                gap = max(gap, float(np.abs(data.efc_pos[rows]).max(initial=0.0)))
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(case.mechanism),
            t=motion.t,
            effort=effort,
            closure_drift=gap,
            settings={"rank tolerance": f"{RANK_TOLERANCE:g} of the largest singular value"},
            note="state given; drift is the gap the engine sees in it",
        )
