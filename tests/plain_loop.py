"""What a user writes: `mj_step` in a loop, with a controller of his own. Nothing of the routes takes part."""

from typing import Any

import numpy as np
import pytest

from robots.arrays import Array
from robots.log import Held, Log
from robots.mechanism import Mechanism
from robots.motion import Motion

mujoco = pytest.importorskip("mujoco")


def plain_loop(mechanism: Mechanism, model: Any, motion: Motion, effort: Array, *, late: int = 2) -> Log:
    """A log of every step: servos are sent to the motion, motors get the efforts known beforehand and a constant PD.

    Args:
        mechanism: Robot.
        model: Its model, stepped as it is.
        motion: The motion to follow.
        effort: Efforts that it is known to need [N or N m], shape (nt, na).
        late: Number of the sample from which it starts.
    """
    data, h, servo = mujoco.MjData(model), model.opt.timestep, model.actuator_biasprm[:, 1] != 0
    data.qpos[:], data.qvel[:] = motion.q[late], motion.qd[late]
    A = mechanism.values_of(mechanism.drives, np.eye(mechanism.nq)).T
    W, G = mechanism.rates_of(mechanism.drives), mechanism.gearing
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    mass, w = np.diag(np.linalg.inv(W @ np.linalg.inv(M) @ W.T)), 0.04 / h
    rows = []
    for k in range(int((motion.t[-1] - motion.t[late]) / h)):
        t = np.array([motion.t[late] + k * h])
        wanted = motion.law(t)
        x, v = A @ data.qpos, W @ data.qvel
        push = mass * (w**2 * (wanted.q[0] - x) + 1.4 * w * (wanted.qd[0] - v))
        known = np.array([np.interp(t[0], motion.t, column) for column in effort.T])
        by_force = (known + np.linalg.pinv(G).T @ push) / model.actuator_gainprm[:, 0]
        by_place = -(model.actuator_biasprm[:, 0] + model.actuator_biasprm[:, 1] * (G @ wanted.q[0]))
        data.ctrl[:] = np.where(servo, by_place / model.actuator_gainprm[:, 0], by_force)
        state = data.qpos.copy(), data.qvel.copy()
        data.qfrc_applied[:] = 0
        for load in mechanism.wrenches:
            mujoco.mj_kinematics(model, data)
            point = data.xpos[load.body + 1] + data.xmat[load.body + 1].reshape(3, 3) @ load.point
            mujoco.mj_comPos(model, data)
            mujoco.mj_applyFT(model, data, load.force, load.moment, point, load.body + 1, data.qfrc_applied)
        mujoco.mj_step(model, data)
        rows.append((t[0], *state, data.actuator_force.copy()))
    times, q, qd, acted = (np.array(column) for column in zip(*rows, strict=True))
    return Log(
        name="plain",
        t=times,
        joints=tuple(joint.name for joint in mechanism.joints),
        kinds=tuple(joint.kind for joint in mechanism.joints),
        q=q,
        qd=qd,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        effort=acted,
        effort_time=Held(h),
    )
