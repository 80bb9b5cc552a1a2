"""A robot left to constant efforts in MuJoCo: as `mj_step` moves it, or with constraints as hard as they get."""

import mujoco
import numpy as np

from loopcheck.engines.contract import State
from loopcheck.engines.mujoco._stepping import stepping
from loopcheck.engines.mujoco.model import build
from loopcheck.engines.mujoco.routes.forward import OWN, at_compliance, prepared
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.model_file import captured_warnings

SETTINGS = "default: mj_step with the step of the file; tight: nearly rigid constraints, Runge-Kutta 4"
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Array, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        t: Times [s], shape (nt,); steps are at most as long as the file says and divide the distances.
        tight: Nearly rigid constraints and a Runge-Kutta method of fourth order, instead of MuJoCo's defaults.
    """
    model = build(mechanism)
    longest = model.opt.timestep
    if tight:
        model = prepared(mechanism, (), longest, at_compliance(OWN, min(OWN.compliances)))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = state
    data.qfrc_applied[:] = mechanism.selection.T @ effort
    states = [(np.array(data.qpos), np.array(data.qvel))]

    with captured_warnings():
        for length in np.diff(t):
            steps = int(np.ceil(length / longest - 1e-9))
            model.opt.timestep = length / steps
            step = stepping(model, data)
            for _ in range(steps):
                if tight:
                    mujoco.mj_forward(model, data)
                    step()
                else:
                    mujoco.mj_step(model, data)
            states.append((np.array(data.qpos), np.array(data.qvel)))
    return np.array([q for q, _ in states]), np.array([qd for _, qd in states])
