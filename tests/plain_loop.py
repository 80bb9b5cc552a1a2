"""A user's program: `mj_step` in a loop, with its own controller. It shares no code with the routes."""

from typing import Any

import numpy as np
import pytest
from packaging.version import Version
from scipy.linalg import lstsq, null_space

from loopcheck.robots.arrays import Array
from loopcheck.robots.log import UNMODELLED, Held, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

mujoco = pytest.importorskip("mujoco")
TAKES_DATA = Version(mujoco.__version__) >= Version("3.10")


def plain_loop(mechanism: Mechanism, model: Any, motion: Motion, effort: Array, *, late: int = 2) -> Log:
    """A log of every step: servos get the motion as target, motors get precomputed efforts and a constant PD.

    Args:
        mechanism: Robot.
        model: Its model, stepped unmodified.
        motion: The motion to follow.
        effort: Efforts required by the motion [N or N m], shape (nt, na).
        late: Number of the sample from which it starts.
    """
    data, h, servo = mujoco.MjData(model), model.opt.timestep, model.actuator_biasprm[:, 1] != 0
    data.qpos[:], data.qvel[:] = motion.q[late], motion.qd[late]
    A = mechanism.values_of(mechanism.drives, np.eye(mechanism.nq)).T
    W, G = mechanism.rates_of(mechanism.drives), mechanism.gearing
    mujoco.mj_forward(model, data)
    mass, w, rows = _moving(model, data, W)[0], 0.04 / h, []
    for k in range(int((motion.t[-1] - motion.t[late]) / h)):
        t = np.array([motion.t[late] + k * h])
        wanted = motion.law(t)
        x, v = A @ data.qpos, W @ data.qvel
        push = mass @ (w**2 * (wanted.q[0] - x) + 1.4 * w * (wanted.qd[0] - v))
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
        acted = lstsq((G @ W).T, data.qfrc_actuator)[0]  # what the joints let through of the actuators' forces
        rows.append((t[0], *state, acted, _left_out(model, data, G, W)))
    times, q, qd, acted, left_out = (np.array(column) for column in zip(*rows, strict=True))
    return Log(
        name="plain",
        t=times,
        joints=tuple(joint.name for joint in mechanism.joints),
        kinds=tuple(joint.kind for joint in mechanism.joints),
        q=q,
        qd=qd,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        effort=acted,
        readings={UNMODELLED: left_out} if left_out.any() else {},
        effort_time=Held(h),
    )


def _rows(model: Any, data: Any, *, of_loops: bool) -> tuple[Array, Array]:
    """Rows of MuJoCo's constraints, those of the loops or all others, and their forces."""
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        J = data.efc_J[: data.nefc * model.nv].reshape(data.nefc, model.nv)
    of_kind = (data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)) == of_loops
    return J[of_kind], data.efc_force[: data.nefc][of_kind]


def _moving(model: Any, data: Any, W: Array) -> tuple[Array, Array]:
    """Mass that drives feel (drives, drives), and how joints move with each of them, the rest free (nv, drives)."""
    M, loops = np.zeros((model.nv, model.nv)), _rows(model, data, of_loops=True)[0]
    mujoco.mj_fullM(*((model, data, M) if TAKES_DATA else (model, M, data.qM)))
    N = null_space(loops, rcond=1e-6) if len(loops) else np.eye(model.nv)
    pushed = N @ np.linalg.solve(N.T @ M @ N, N.T @ W.T)
    mass = lstsq(W @ pushed, np.eye(len(W)), cond=1e-6)[0]
    return mass, pushed @ mass


def _left_out(model: Any, data: Any, G: Array, W: Array) -> Array:
    """Efforts that move the drives as dry friction, limits and contacts did."""
    J, force = _rows(model, data, of_loops=False)
    if not force.any():
        return np.zeros(model.nu)
    X = _moving(model, data, W)[1]
    return lstsq((G @ W @ X).T, X.T @ (J.T @ force), cond=1e-6)[0]
