"""Robots that a controller drives in MuJoCo, stepped together as `mj_step` does out of the box."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mujoco.model import build
from loopcheck.robots.arrays import Array, EffortSeries, PositionSeries, VelocitySeries
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.model_file import captured_warnings


class MujocoRobots:
    """One model and its state for each mechanism; loops are as soft as the file has them."""

    def __init__(self, mechanisms: Sequence[Mechanism], q: PositionSeries, qd: VelocitySeries) -> None:
        """Put every robot into its state."""
        self._models = [build(mechanism) for mechanism in mechanisms]
        self._data: list[Any] = [mujoco.MjData(model) for model in self._models]
        for data, positions, velocities in zip(self._data, q, qd, strict=True):
            data.qpos[:], data.qvel[:] = positions, velocities

    def state(self) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (n, nq), and velocities, shape (n, nv); not finite where one has failed."""
        return np.array([data.qpos for data in self._data]), np.array([data.qvel for data in self._data])

    def step(self, tau: EffortSeries, dt: float) -> None:
        """Hold the efforts for one step.

        Args:
            dt: Length of the step [s].
        """
        for model, data, efforts in zip(self._models, self._data, tau, strict=True):
            model.opt.timestep = dt
            data.ctrl[:] = efforts
            mujoco.mj_step(model, data)


@contextmanager
def robots(mechanisms: Sequence[Mechanism], q: PositionSeries, qd: VelocitySeries) -> Iterator[MujocoRobots]:
    """Robots in MuJoCo; its warnings of a state that is not finite are left to whoever reads the state."""
    with captured_warnings():
        yield MujocoRobots(mechanisms, q, qd)
