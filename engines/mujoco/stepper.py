"""Steps of a run by MuJoCo or its ports, with all results in MuJoCo's data."""

from typing import Any, Protocol

import mujoco

from loopcheck.robots.arrays import Array


class Stepper(Protocol):
    """A model and its stepping function."""

    source: str
    """Name of the route, for error messages."""
    model: Any
    """MuJoCo's model, with the options in force."""

    def begin(self, data: Any) -> None:
        """Start from a state.

        Args:
            data: MuJoCo's, with positions, velocities and activations; they are rounded to the precision of the port.
        """
        ...

    def step(self, data: Any, *, reads_joints: bool) -> tuple[Array, Array] | None:
        """Advance by a step with the controls and external wrenches in the data.

        The data then contain state, forces of actuators, constraints and iterations.

        Args:
            data: MuJoCo's.
            reads_joints: Whether to read the joints' own reports at the beginning of the step.

        Returns:
            Force of the actuators on each dof, and reaction of its joint along it [N or N m], shape (nv,) each; None
            if they are not read.

        Raises:
            EngineError: If the port fails.
        """
        ...


class MujocoStepper:
    """MuJoCo itself."""

    source = "mujoco/as_is"

    def __init__(self, model: Any) -> None:
        """For a model.

        Args:
            model: MuJoCo's.
        """
        self.model = model
        self._scratch = mujoco.MjData(model)

    def begin(self, data: Any) -> None:
        """See `Stepper.begin`; MuJoCo's state is in the data already."""

    def step(self, data: Any, *, reads_joints: bool) -> tuple[Array, Array] | None:
        """See `Stepper.step`.

        Args:
            data: MuJoCo's.
            reads_joints: Whether to read joints, which takes as long as the step: from a copy, because after a step
                MuJoCo has the forces of its beginning, but the velocities of its end.
        """
        readings = self._joints(data) if reads_joints else None
        mujoco.mj_step(self.model, data)
        return readings

    def _joints(self, data: Any) -> tuple[Array, Array]:
        scratch = self._scratch
        for name in ("qpos", "qvel", "act", "ctrl", "xfrc_applied", "qacc_warmstart"):
            getattr(scratch, name)[:] = getattr(data, name)
        mujoco.mj_forward(self.model, scratch)
        mujoco.mj_rnePostConstraint(self.model, scratch)
        reaction = (scratch.cdof * scratch.cfrc_int[self.model.dof_bodyid]).sum(axis=1)
        return scratch.qfrc_actuator.copy(), reaction
