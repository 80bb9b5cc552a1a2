"""Plain `mj_inverse` at the exact state: invalid for loops, and shown because users often try it.

MuJoCo's loops are soft. At an exact acceleration of a closed loop the soft constraint sees almost no error and gives
almost no force, so the efforts are those of the cut tree, or worse.
"""

import mujoco
import numpy as np

from loopcheck.engines.mujoco.model import (
    actuator_names,
    build,
    guarded,
    own_actuators_off,
    transmission,
    wrench_forces,
)
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MujocoInverse(Source):
    """Efforts as `mj_inverse` gives them, without a thought for the loops."""

    name = "mujoco/inverse"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        model = build(case.mechanism)
        own_actuators_off(model)
        data = mujoco.MjData(model)
        effort = np.zeros((len(motion.t), case.mechanism.na))
        with guarded(self.name):
            for k in range(len(motion.t)):
                data.qpos[:] = motion.q[k, : model.nq]  # lengths of tendons follow
                data.qvel[:], data.qacc[:] = motion.qd[k, : model.nv], motion.qdd[k, : model.nv]
                mujoco.mj_inverse(model, data)
                S = transmission(model, data)
                force = data.qfrc_inverse - wrench_forces(case.mechanism, model, data)
                effort[k] = np.linalg.pinv(S.T) @ force  # rows of passive joints are left unbalanced
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(case.mechanism),
            t=motion.t,
            effort=effort,
            settings={"all": "of the MJCF"},
            note="mj_inverse is not valid for soft loops" if case.mechanism.closures else "",
        )
