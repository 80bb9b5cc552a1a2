"""MuJoCo as a careful user meets it: everything at its documented default.

The actuated joints are held to the motion by joint equalities, as in `forward`, but they and the loops are as soft as
MuJoCo makes them by default (solref 0.02 1, solimp 0.9 0.95 0.001 0.5 2), and `mj_step` steps with the options of the
file. A joint equality knows a target position and no target velocity, so the joints lag behind the motion.
"""

import mujoco
import numpy as np

from engines.mujoco._model import actuator_efforts, actuator_names, apply_wrenches, driven, guarded, rows_of_drives
from robots.efforts import EffortHistory
from robots.errors import EngineError
from robots.motion import Motion
from robots.robot import Case


class MujocoDefault:
    """Efforts of default joint equalities in `mj_step`."""

    name = "mujoco/default"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        model = driven(mechanism, mechanism.actuated_joints)
        every = int(np.ceil(motion.dt / model.opt.timestep - 1e-9))
        model.opt.timestep = dt = motion.dt / every  # at most the file's own, and a divisor of the grid
        columns = [mechanism.q_slices[j].start for j in mechanism.actuated_joints]
        steps = (len(motion.t) - 1) * every
        target = motion.law(motion.t[0] + np.arange(steps + 2) * dt).q
        data = mujoco.MjData(model)
        start = motion.assemble(motion.t[:1])
        data.qpos[:], data.qvel[:] = start.q[0], start.qd[0]
        on_joints, drift, tracking = np.zeros((len(motion.t), len(columns))), 0.0, 0.0
        with guarded(self.name):
            for k in range(steps + 1):
                tracking = max(tracking, float(np.abs(data.qpos[columns] - target[k]).max()))
                model.eq_data[model.neq - len(columns) :, 0] = target[k + 1] - model.qpos0[columns]
                apply_wrenches(mechanism, model, data)
                mujoco.mj_step(model, data)
                of_drives, of_loops = rows_of_drives(model, data, len(columns))
                drift = max(drift, float(np.abs(data.efc_pos[of_loops]).max(initial=0.0)))
                if k % every == 0:
                    on_joints[k // every] = data.efc_force[of_drives]
        if not np.isfinite(on_joints).all():
            raise EngineError(f"{self.name}: the simulation with dt = {dt:g} s diverged")
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(mechanism),
            t=motion.t,
            effort=actuator_efforts(mechanism, on_joints),
            closure_drift=drift,
            tracking_error=tracking,
            settings={
                "step": f"{1e3 * dt:g} ms",
                "integrator": mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_"),
                "solver and loops": "those of the MJCF (solref, solimp, iterations, tolerance)",
                "actuators": "a default joint equality each, moved to the next target before every step",
            },
            note="soft loops and soft drives that lag behind",
        )
