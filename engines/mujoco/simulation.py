"""A robot in MuJoCo: as `mj_step` moves it, or with constraints as hard as they get."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.mujoco._stepping import stepping
from loopcheck.engines.mujoco.model import build
from loopcheck.engines.mujoco.routes.forward import OWN, at_compliance, prepared
from loopcheck.engines.simulation import Free, Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.model_file import captured_warnings

SETTINGS = "default: mj_step with the step of the file; tight: nearly rigid constraints, Runge-Kutta 4"
"""See `loopcheck.engines.contract.Simulation`."""


class MujocoRobot:
    """See `loopcheck.engines.simulation.Robot`; loops are as soft as in the file, unless tight."""

    def __init__(self, mechanism: Mechanism, tight: bool) -> None:
        """Make its model, without actuators."""
        self._mechanism, self._tight, self._model = mechanism, tight, build(mechanism)
        if tight:
            step = self._model.opt.timestep
            self._model = prepared(mechanism, (), step, at_compliance(OWN, min(OWN.compliances)))
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        self._data: Any = mujoco.MjData(self._model)

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`."""
        return float(self._model.opt.timestep)

    @timestep.setter
    def timestep(self, step: float) -> None:
        self._model.opt.timestep = step

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`."""
        self._data.qpos[:], self._data.qvel[:] = q, qd

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return np.array(self._data.qpos), np.array(self._data.qvel)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        model, data = self._model, self._data
        data.qfrc_applied[:] = command @ self._mechanism.selection
        if not self._tight:
            mujoco.mj_step(model, data, nstep=count)
            return {}
        step = stepping(model, data)
        for _ in range(count):
            mujoco.mj_forward(model, data)
            step()
        return {}


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[MujocoRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`; the state shows a failure, not a warning."""
    with captured_warnings():
        yield MujocoRobot(mechanism, tight)


free_motion = Free(simulate=simulate)
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
