"""Content of a robot's files without our `Mechanism`: the MJCF as MuJoCo compiles it, loads by their names.

A number that is converted wrongly into our `Mechanism` is wrong in the reference and in every engine built from it.
Here it comes from the compiled model. Both ways share MuJoCo's compiler, our readers of other formats, the overrides of
a variant, and the direction of gravity, which defines a configuration. `loopcheck.robots.second_reading` shares none of
the readers.
"""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mujoco.audit import inventory
from loopcheck.engines.mujoco.model import configure, guarded
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.inventory import Inventory
from loopcheck.robots.robot import Case, WrenchSpec


def read(case: Case, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.read_file`.

    Args:
        case: Case to read.
    """
    robot = case.robot
    path, overrides = robot.folder / robot.mjcf, robot.overrides(case.variant)
    model = compile_model(ModelFile(path=path, overrides=overrides, actuated=robot.actuated))
    configure(model, _turned(model, case.mechanism.gravity))
    data = mujoco.MjData(model)
    data.qpos[:] = q[: model.nq]  # lengths of tendons follow
    with guarded("model file"):
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        loads = np.zeros(model.nv)
        for load in robot.wrenches:
            loads += _applied(model, data, load)
    return inventory(model, data, data.qfrc_bias - data.qfrc_passive - loads)


def _turned(model: Any, direction: Array) -> Array:
    """Gravity as strong as the file has it, along a direction [m/s²], shape (3,)."""
    length = np.linalg.norm(direction)
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY or not length:
        return np.zeros(3)
    return np.linalg.norm(model.opt.gravity) * direction / length


def _applied(model: Any, data: Any, load: WrenchSpec) -> Array:
    """Let a load act on the body of its name; the force on each dof [N or N m], shape (nv,)."""
    body, force = model.body(load.body).id, np.array(load.force)
    point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ load.point
    data.xfrc_applied[body] += [*force, *(load.moment + np.cross(point - data.xipos[body], force))]
    on_dofs = np.zeros(model.nv)
    mujoco.mj_applyFT(model, data, force, np.array(load.moment), point, body, on_dofs)
    return on_dofs
