"""The robot of a file in MuJoCo or in a port of it, driven by its controls, with all results in MuJoCo's data."""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.simulation import Readings, Robot, State
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities


class Stepper(Robot[Array]):
    """See `loopcheck.engines.simulation.Robot`; the command are the controls of the file's actuators."""

    source: str
    """Name of the route, for error messages."""
    clips_change = True
    """Whether an implicit step leaves out the change of a force that is at its limit."""
    reads_joints = False
    """Whether a step also reads the force of the actuators on each dof, and the reaction of its joint along it."""
    reads_wrenches = False
    """Whether a run from the first sample also reads the wrenches of the connections, `before` each step."""
    before: Any
    """MuJoCo's data before the last step, with their forces, if joints are read."""

    def __init__(self, model: Any) -> None:
        """For a model.

        Args:
            model: MuJoCo's, with the options in force.
        """
        self.model, self.data = model, mujoco.MjData(model)

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`."""
        return float(self.model.opt.timestep)

    @timestep.setter
    def timestep(self, step: float) -> None:
        self.model.opt.timestep = step

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0, act: Array | None = None) -> None:
        """See `loopcheck.engines.simulation.Robot.put`; all else is as in new data.

        Args:
            act: Activations of the actuators [-], shape (na,); by default those of new data.
        """
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = q[: self.model.nq], qd[: self.model.nv]  # lengths of tendons follow
        self.data.time = t
        if act is not None:
            self.data.act[:] = act

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return np.array(self.data.qpos), np.array(self.data.qvel)

    def step(self, command: Array, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`.

        The data then contain state, forces of actuators, constraints and iterations. External wrenches are those in
        the data.

        Args:
            command: Controls [in the unit of each actuator], shape (nu,).

        Returns:
            At the beginning of the last step, if requested, the force of the actuators on each dof, `joint`, and the
            `reaction` of its joint along it [N or N m], shape (nv,) each.
        """
        self.data.ctrl[:] = command
        readings: Readings = {}
        for _ in range(count):
            readings = self.advance()
        return readings

    def advance(self) -> Readings:
        """One step with the controls in the data."""
        mujoco.mj_step(self.model, self.data)
        return {}


class MujocoStepper(Stepper):
    """MuJoCo itself, which reads joints too."""

    source = "mujoco/as_is"

    def __init__(self, model: Any) -> None:
        """For a model.

        Args:
            model: MuJoCo's.
        """
        super().__init__(model)
        self.before = mujoco.MjData(model)

    def advance(self) -> Readings:
        """See `Stepper.advance`.

        Joints are read from a copy, which takes as long as the step: after a step MuJoCo has the forces of its
        beginning, but the velocities of its end.
        """
        readings = self._joints() if self.reads_joints else {}
        super().advance()
        return readings

    def _joints(self) -> Readings:
        scratch = self.before
        for name in ("qpos", "qvel", "act", "ctrl", "xfrc_applied", "qacc_warmstart"):
            getattr(scratch, name)[:] = getattr(self.data, name)
        mujoco.mj_forward(self.model, scratch)
        mujoco.mj_rnePostConstraint(self.model, scratch)
        reaction = (scratch.cdof * scratch.cfrc_int[self.model.dof_bodyid]).sum(axis=1)
        return {"joint": scratch.qfrc_actuator.copy(), "reaction": reaction}
