"""Forces in the joints as MJX reports them, by the conversion of MuJoCo's."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mujoco

from loopcheck.engines.forward import over_time
from loopcheck.engines.mjx._model import rows_of
from loopcheck.engines.mujoco import wrenches as of_mujoco
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism

_CFRC_INT, _EFC_FORCE = of_mujoco.READINGS
READINGS = (
    replace(
        _CFRC_INT,
        code=_CFRC_INT.code.replace("mujoco.mj_rnePostConstraint(", "data = mjx.rne_postconstraint(").replace(
            "data.cfrc_int", "data._impl.cfrc_int"
        ),
        fault="without gravity compensation and the pulls of spatial tendons",
    ),
    replace(
        _EFC_FORCE,
        code="""
f = data._impl.efc_force[rows]  # its rows are sorted by kind: three of each connect, then six of each weld
# further as of MuJoCo, whose functions take the arrays of MJX
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(mechanism: Mechanism, model: Any, q: AnyArray, of_bodies: AnyArray, force: Array) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (nt, connections, 6).

    Args:
        model: MuJoCo's, of which MJX's is made.
        q: Joint positions [m or rad], shape (nt, nq).
        of_bodies: MJX's `cfrc_int` [N m, N], shape (nt, bodies, 6).
        force: Multipliers of its constraints [N or N m], shape (nt, rows).
    """
    data, rows, read = mujoco.MjData(model), rows_of(model), []
    for positions, wrenches_of_bodies, multipliers in zip(q, of_bodies, force, strict=True):
        data.qpos[:] = positions
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        data.cfrc_int[:] = wrenches_of_bodies
        read.append(of_mujoco.converted(mechanism, model, data, [multipliers[each] for each in rows]))
    return over_time(read)
