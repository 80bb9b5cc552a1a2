"""A robot in MuJoCo: as `mj_step` moves it, or with constraints as hard as they get."""

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco

from loopcheck.engines.mujoco._stepping import stepping
from loopcheck.engines.mujoco.model import configure, driven
from loopcheck.engines.mujoco.routes.forward import OWN, at_compliance, prepared
from loopcheck.engines.mujoco.stepper import Stepper
from loopcheck.engines.mujoco.tendons import want_no_slides
from loopcheck.engines.simulation import Free, Readings
from loopcheck.robots.arrays import Efforts
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.formats.model_file import captured_warnings
from loopcheck.robots.mechanism import Mechanism

SETTINGS = "default: mj_step with the step of the file; tight: nearly rigid constraints, Runge-Kutta 4"
"""See `loopcheck.engines.contract.Simulation`."""


class MujocoRobot(Stepper):
    """See `loopcheck.engines.simulation.Robot`; loops are as soft as in the file, unless tight."""

    def __init__(self, mechanism: Mechanism, tight: bool) -> None:
        """Make its model, without actuators."""
        if tight:
            model = driven(mechanism, ())
            model = prepared(model, mechanism.nv, model.opt.timestep, at_compliance(OWN, min(OWN.compliances)))
        else:
            model = compile_model(mechanism.model)
            configure(model, mechanism.gravity)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        super().__init__(model)
        self._mechanism, self._tight = mechanism, tight

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        model, data = self.model, self.data
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
    want_no_slides(mechanism)
    with captured_warnings():
        yield MujocoRobot(mechanism, tight)


free_motion = Free(simulate=simulate)
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
