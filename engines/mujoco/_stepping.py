"""A step of fourth order in MuJoCo: its own Runge-Kutta method, or where bodies turn freely one on `mj_forward`."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.runge_kutta import RungeKutta
from loopcheck.robots.arrays import AnyArray


def stepping(model: Any, data: Any, forward: Callable[[Any, Any], None] | None = None) -> Callable[[], None]:
    """What follows `mj_forward` in a step of fourth order: MuJoCo's own method, unless a ball or a free body turns.

    Args:
        model: MuJoCo's.
        data: Its data.
        forward: Called in place of `mj_forward`, also at the stages of the step.
    """
    if forward is None and not _turning_dofs(model):
        return lambda: mujoco.mj_RungeKutta(model, data, 4)
    return Stepping(model, data, forward)


class Stepping:
    """The classical method, written on `mj_forward`: MuJoCo's own had order two before 4.0 where a ball turns."""

    def __init__(self, model: Any, data: Any, forward: Callable[[Any, Any], None] | None = None) -> None:
        """For a model and its data, with `mj_forward` or another function in its place."""
        self._model, self._data, self._begin = model, data, np.array(data.qpos)
        self._forward = forward
        self._method = RungeKutta(model.opt.timestep, model.nv, _turning_dofs(model))

    def __call__(self) -> None:
        """One step, from the state whose accelerations have been computed."""
        data = self._data
        self._begin[:] = data.qpos
        self._method.step(self._move, self._acceleration, (data.qvel, data.qacc))
        data.qacc_warmstart[:] = data.qacc

    def _acceleration(self, _: int) -> AnyArray:
        (self._forward or mujoco.mj_forward)(self._model, self._data)
        return self._data.qacc

    def _move(self, displacement: AnyArray, velocity: AnyArray) -> None:
        self._data.qpos[:], self._data.qvel[:] = self._begin, velocity
        mujoco.mj_integratePos(self._model, self._data.qpos, displacement, 1.0)


def _turning_dofs(model: Any) -> list[slice]:
    """Where in qvel the angular velocities of ball and free joints stand."""
    offsets = {int(mujoco.mjtJoint.mjJNT_BALL): 0, int(mujoco.mjtJoint.mjJNT_FREE): 3}
    starts = [
        int(dof) + offsets[int(kind)]
        for dof, kind in zip(model.jnt_dofadr, model.jnt_type, strict=True)
        if int(kind) in offsets
    ]
    return [slice(start, start + 3) for start in starts]
