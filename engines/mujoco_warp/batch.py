"""Robots of a file in a batch of MuJoCo Warp."""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.declarations import Settings
from loopcheck.engines.mujoco.batch import controls, loaded
from loopcheck.engines.mujoco_warp._model import placed, put
from loopcheck.engines.mujoco_warp._warp import device, guarded, mujoco_warp, warp
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.mechanism import Mechanism

__all__ = ["PRECISIONS", "device", "worlds"]

PRECISIONS = ("single",)
SOURCE = "mujoco_warp/as_is"


class WarpWorlds:
    """Worlds of a batch on the device; on a GPU a step is captured once and launched as a whole."""

    def __init__(self, mechanism: Mechanism, model: tuple[Any, Array], state: State) -> None:
        """Put a robot into each state.

        Args:
            model: MuJoCo's, as `loaded` returns it.
            state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
        """
        self._mechanism, (self._model, wrenches), self._begin = mechanism, model, state
        self._on_device = put(self._model)
        first = mujoco.MjData(self._model)
        first.qpos[:], first.qvel[:] = state[0][0], state[1][0]
        with guarded(SOURCE):
            self._data = placed(self._model, first, worlds=len(state[0]))
            self._data.qpos.assign(state[0].astype(np.float32))
            self._data.qvel.assign(state[1].astype(np.float32))
            self._data.xfrc_applied.assign(np.tile(wrenches.astype(np.float32), (len(state[0]), 1, 1)))
            mujoco_warp.step(
                self._on_device, mujoco_warp.put_data(self._model, first)
            )  # compiled before anything is timed
            self._graph = self._captured() if warp.get_device().is_cuda else None

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self._data.qpos.numpy().astype(float), self._data.qvel.numpy().astype(float)

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        with guarded(SOURCE):
            self._data.ctrl.assign(controls(self._mechanism, self._model, self._begin, command).astype(np.float32))
            for _ in range(count):
                if self._graph is None:
                    mujoco_warp.step(self._on_device, self._data)
                else:
                    warp.capture_launch(self._graph)
            warp.synchronize()
        return {}

    def _captured(self) -> Any:
        state = self.state()
        mujoco_warp.step(self._on_device, self._data)
        with warp.ScopedCapture() as capture:
            mujoco_warp.step(self._on_device, self._data)
        self._data.qpos.assign(state[0].astype(np.float32))
        self._data.qvel.assign(state[1].astype(np.float32))
        self._data.qacc_warmstart.zero_()
        return capture.graph


def worlds(mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
    """See `loopcheck.engines.contract.Batch.worlds`."""
    return WarpWorlds(mechanism, loaded(mechanism, settings), state)
