"""Forces in the joints as MuJoCo reports them: `cfrc_int` of bodies, and `efc_force` of connects and welds."""

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.mujoco.model import equality_rows
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import Mechanism, WeldClosure

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
        fault="without gravity compensation, and before 3.14 without the pulls of spatial tendons",
    ),
    WrenchReading(
        name="efc_force",
        carriers="closures",
        point="first point of the equality",
        axes="world",
        sign="on body 1",
        code="""
rows = (data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (data.efc_id == equality)
force = data.xmat[body1].reshape(3, 3).T @ data.efc_force[rows][:3]
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(mechanism: Mechanism, model: Any, data: Any) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), at a state after `mj_forward`."""
    mujoco.mj_rnePostConstraint(model, data)
    carriers, rows = connections(mechanism), equality_rows(data)
    of_bodies, of_closures = np.full((2, len(carriers), 6), np.nan)
    rigid = {int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)}
    found = [i for i in range(model.neq) if model.eq_active0[i] and int(model.eq_type[i]) in rigid]
    equalities = iter(found if len(found) == len(mechanism.rigid_closures) else [-1] * len(carriers))
    for k, connection in enumerate(carriers):
        body = connection.body + 1  # MuJoCo counts the world as body 0
        R = data.xmat[body].reshape(3, 3)
        if connection.closure is None:
            M, F = np.split(data.cfrc_int[body], 2)
            arm = data.subtree_com[model.body_rootid[body]] - data.xpos[body] - R @ connection.point
            of_bodies[k] = np.concatenate([(M + np.cross(arm, F)) @ R, F @ R])
        else:
            force = data.efc_force[rows[data.efc_id[rows] == next(equalities)]][:3]
            if len(force) == 3:
                of_closures[k, 3:] = force @ R
                if not isinstance(connection.closure, WeldClosure):  # rows of a weld's turn are no moments
                    of_closures[k, :3] = 0.0
    return {"cfrc_int": of_bodies, "efc_force": of_closures}


def merged(readings: Mapping[str, Array]) -> Array:
    """All readings in one array [N m, N], shape (connections, 6)."""
    of_bodies, of_closures = readings.values()
    return np.where(np.isnan(of_bodies), of_closures, of_bodies)
