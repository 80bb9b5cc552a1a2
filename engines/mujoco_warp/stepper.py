"""A step of MuJoCo Warp, from MuJoCo's data and back into them."""

from typing import Any

import numpy as np

from loopcheck.engines.mujoco.acted_effort import RUNGE_KUTTA
from loopcheck.engines.mujoco.stepper import Stepper
from loopcheck.engines.mujoco_warp._model import placed, put
from loopcheck.engines.mujoco_warp._warp import guarded, mujoco_warp
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, JointVelocities
from loopcheck.robots.errors import EngineError

WRITTEN, WRITTEN_OF_ROWS = ("qpos", "qvel", "act", "actuator_force"), ("id", "pos", "force")
"""Fields read after each step: of the data, and of their rows of constraints."""


class WarpStepper(Stepper):
    """A model on the device with a single stepped world."""

    source = "mujoco_warp/as_is"

    def __init__(self, model: Any) -> None:
        """Put a model on the device.

        Args:
            model: MuJoCo's.

        Raises:
            NotRepresentableError: If MuJoCo Warp refuses something of it, or would drop it in silence.
        """
        super().__init__(model)
        self.on_device = put(model)
        self.on_device.opt.run_rne_postconstraint = True  # for the reactions of joints
        self._placed: Any = None

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0, act: Array | None = None) -> None:
        """See `loopcheck.engines.mujoco.stepper.Stepper.put`; the state is rounded to the precision of the device."""
        super().put(q, qd, t, act)
        with guarded(self.source):
            self._placed = placed(self.model, self.data)
        for name in ("qpos", "qvel", "act"):
            getattr(self.data, name)[:] = self._read(name)

    def advance(self) -> Readings:
        """See `loopcheck.engines.mujoco.stepper.Stepper.advance`.

        Except with Runge-Kutta, the device keeps the values of joints at the beginning of the step.
        """
        with guarded(self.source):
            for name in ("ctrl", "xfrc_applied"):
                field = getattr(self._placed, name)
                field.assign(getattr(self.data, name).astype(np.float32).reshape(field.numpy().shape))
            at_first = self.reads_joints and self.model.opt.integrator == RUNGE_KUTTA
            if at_first:
                mujoco_warp.forward(self.on_device, self._placed)
                readings = self._joints()
            mujoco_warp.step(self.on_device, self._placed)
            rows, room = int(self._read("nefc")), self._placed.njmax
            if rows > room:
                raise EngineError(
                    f"{self.source}: must have at most {room} rows of constraints (allocated size), got {rows}"
                )
            self._write(self.data, rows)
            if not self.reads_joints:
                return {}
            return readings if at_first else self._joints()

    def _write(self, data: Any, rows: int) -> None:
        """Copy the result of a step into MuJoCo's data; all of it if there are other rows than those of equalities.

        To copy all data takes as long as the step of a small robot.
        """
        if not rows == data.nefc == data.ne == int(self._read("ne")):
            mujoco_warp.get_data_into(data, self.model, self._placed)
            return
        data.time, data.solver_niter[0] = float(self._read("time")), int(self._read("solver_niter"))
        for name in WRITTEN:
            getattr(data, name)[:] = self._read(name)
        for name in WRITTEN_OF_ROWS:
            getattr(data, f"efc_{name}")[:rows] = getattr(self._placed.efc, name).numpy()[0, :rows]

    def _joints(self) -> Readings:
        forces = self._read("cfrc_int")[self.model.dof_bodyid]
        reaction = (self._read("cdof") * forces).sum(axis=1)
        return {"joint": self._read("qfrc_actuator").astype(float), "reaction": reaction.astype(float)}

    def _read(self, name: str) -> AnyArray:
        """A field of the only world."""
        values: AnyArray = getattr(self._placed, name).numpy()[0]
        return values
