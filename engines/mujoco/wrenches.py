"""Forces in the joints as MuJoCo reports them: `cfrc_int` of bodies, and `efc_force` of connects and welds."""

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.mujoco.model import TORQUE_SCALE, equality_rows
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import Mechanism

READINGS = (
    WrenchReading(
        name="cfrc_int",
        carriers="bodies",
        point="subtree_com of the root of the tree",
        axes="world; moment first",
        sign="on the child",
        code="""
mujoco.mj_rnePostConstraint(model, data)  # not part of mj_step without a sensor that needs it
M, F = np.split(data.cfrc_int[body], 2)
R, arm = data.xmat[body].reshape(3, 3), data.subtree_com[model.body_rootid[body]] - data.xanchor[joint]
force, moment = R.T @ F, R.T @ (M + np.cross(arm, F))
""",
        fault="without gravity compensation; before 3.14 without the pulls of spatial tendons, and with multipliers of "
        "a weld's rotation as its moment",
    ),
    WrenchReading(
        name="efc_force",
        carriers="closures",
        point="first point of the equality",
        axes="world; of a weld's rotation half a quaternion times torquescale",
        sign="on body 1",
        code="""
rows = (data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (data.efc_id == equality)
R, f = data.xmat[body1].reshape(3, 3), data.efc_force[rows]
force = R.T @ f[:3]
q1, product, turned = np.zeros((3, 4))  # a weld of bodies; of sites both frames are xquat of the body * site_quat
mujoco.mju_mulQuat(q1, data.xquat[body1], model.eq_data[equality, 6:10])
mujoco.mju_mulQuat(product, data.xquat[body2], np.append(0, f[3:]))
mujoco.mju_mulQuat(turned, product, q1 * [1, -1, -1, -1])
moment = R.T @ turned[1:] * model.eq_data[equality, 10] / 2
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(mechanism: Mechanism, model: Any, data: Any) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), at a state after `mj_forward`."""
    mujoco.mj_rnePostConstraint(model, data)
    rows = equality_rows(data)
    return converted(mechanism, model, data, [data.efc_force[rows[data.efc_id[rows] == k]] for k in range(model.neq)])


def converted(mechanism: Mechanism, model: Any, data: Any, multipliers: Sequence[Array]) -> Mapping[str, Array]:
    """The same from readings.

    Args:
        data: With `cfrc_int`, and what follows from the positions.
        multipliers: Those of the rows of each equality, none if it does not act [N, N m].
    """
    carriers = connections(mechanism)
    of_bodies, of_closures = np.full((2, len(carriers), 6), np.nan)
    rigid = {int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)}
    found = [i for i in range(model.neq) if model.eq_active0[i] and int(model.eq_type[i]) in rigid]
    equalities = iter(found if len(found) == len(mechanism.rigid_closures) else [])
    bodies = np.array([connection.body + 1 for connection in carriers], int)  # MuJoCo counts the world as body 0
    R = data.xmat[bodies].reshape(-1, 3, 3)
    M, F = data.cfrc_int[bodies, :3], data.cfrc_int[bodies, 3:]
    of_points = np.reshape([connection.point for connection in carriers], (-1, 3, 1))
    points = data.xpos[bodies] + (R @ of_points)[..., 0]
    moments = M + np.cross(data.subtree_com[model.body_rootid[bodies]] - points, F)
    turned = (np.stack([moments, F], axis=1) @ R).reshape(-1, 6)
    for k, connection in enumerate(carriers):
        if connection.closure is None:
            of_bodies[k] = turned[k]
            continue
        equality = next(equalities, -1)
        force, rotational = np.split(np.zeros(0) if equality < 0 else multipliers[equality], [3])
        if len(force):
            moment = _moment(model, data, equality, rotational) if len(rotational) else np.zeros(3)
            of_closures[k] = np.concatenate([moment @ R[k], force @ R[k]])
    return {"cfrc_int": of_bodies, "efc_force": of_closures}


def _moment(model: Any, data: Any, weld: int, multipliers: Array) -> Array:
    """Moment on body 1 of the multipliers of a weld's rotation, in world axes [N m], shape (3,).

    The rows are those of torquescale vec(q̄₂ ω q₁) / 2, by the quaternions of its frames on both bodies, and the angular
    velocity ω of body 1 relative to body 2; the moment is that of the same power.
    """
    ids = [int(model.eq_obj1id[weld]), int(model.eq_obj2id[weld])]
    bodies, turns = ids, [model.eq_data[weld, 6:TORQUE_SCALE], np.eye(4)[0]]
    if model.eq_objtype[weld] == mujoco.mjtObj.mjOBJ_SITE:
        bodies, turns = model.site_bodyid[ids], model.site_quat[ids]
    q_1, q_2, product, moment = np.zeros((4, 4))
    for quaternion, body, turn in zip((q_1, q_2), bodies, turns, strict=True):
        mujoco.mju_mulQuat(quaternion, data.xquat[body], turn)
    mujoco.mju_mulQuat(product, q_2, np.append(0.0, multipliers))
    mujoco.mju_mulQuat(moment, product, q_1 * [1, -1, -1, -1])
    return np.asarray(moment[1:] * model.eq_data[weld, TORQUE_SCALE] / 2)


def merged(readings: Mapping[str, Array]) -> Array:
    """All readings in one array [N m, N], shape (connections, 6)."""
    of_bodies, of_closures = readings.values()
    return np.where(np.isnan(of_bodies), of_closures, of_bodies)
