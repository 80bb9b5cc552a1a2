"""MuJoCo as a careful user meets it: everything at its documented default.

What the actuators drive is held to the motion by equalities, as in `forward`, but they and the loops are as soft as
MuJoCo makes them by default (solref 0.02 1, solimp 0.9 0.95 0.001 0.5 2), and `mj_step` steps with the options of the
file. A joint equality knows a target position and no target velocity, so the joints lag behind the motion.
"""

import mujoco
import numpy as np

from engines.mujoco.model import actuator_names, apply_wrenches, driven, gearing, guarded, opening, rows_of_drives
from robots.efforts import EffortHistory, Source
from robots.errors import EngineError
from robots.motion import Motion
from robots.robot import Case


class MujocoDefault(Source):
    """Efforts of default joint equalities in `mj_step`."""

    name = "mujoco/default"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        drives = mechanism.drives
        model = driven(mechanism, drives)
        rest = mechanism.values_of(drives, np.array([model.qpos0]))[0]
        every = int(np.ceil(motion.dt / model.opt.timestep - 1e-9))
        model.opt.timestep = dt = motion.dt / every  # at most the file's own, and a divisor of the grid
        steps = (len(motion.t) - 1) * every
        target = motion.law(motion.t[0] + np.arange(steps + 2) * dt).q
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = motion.q[0], motion.qd[0]
        on_drives, drift, positions = np.zeros((len(motion.t), len(drives))), 0.0, []
        with guarded(self.name):
            for k in range(steps + 1):
                positions.append(np.array(data.qpos))
                model.eq_data[model.neq - len(drives) :, 0] = target[k + 1] - rest
                apply_wrenches(mechanism, model, data)
                mujoco.mj_step(model, data)
                of_drives, of_loops = rows_of_drives(model, data, len(drives))
                drift = max(drift, opening(model, data, of_loops))
                if k % every == 0:
                    on_drives[k // every] = data.efc_force[of_drives]
        if not np.isfinite(on_drives).all():
            raise EngineError(f"{self.name}: the simulation with dt = {dt:g} s diverged")
        miss = mechanism.values_of(drives, np.array(positions)) - target[:-1]
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(mechanism),
            t=motion.t,
            effort=on_drives @ np.linalg.pinv(gearing(model, len(drives))),  # least norm where two share a drive
            closure_drift=drift,
            tracking_error=float(np.abs(miss).max()),
            settings={
                "step": f"{1e3 * dt:g} ms",
                "integrator": mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_"),
                "solver and loops": "those of the MJCF (solref, solimp, iterations, tolerance)",
                "actuators": "a default joint or tendon equality each, moved to the next target before every step",
            },
            note="soft loops and soft drives that lag behind",
        )
