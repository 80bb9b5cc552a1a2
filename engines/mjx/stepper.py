"""A step of MJX, from MuJoCo's data and back into them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.mjx._mjx import jax, mjx, on_device
from loopcheck.engines.mjx._model import dropped, dropped_options, rows_of
from loopcheck.engines.mujoco.model import EQUALITY_ROW
from loopcheck.engines.mujoco.stepper import Stepper
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, JointVelocities
from loopcheck.robots.errors import EngineError

STATE = ("qpos", "qvel", "act")
READ = (*STATE, "actuator_force")
"""Fields read after each step besides rows of constraints, in MJX's data or in `_impl`."""


class MjxStepper(Stepper):
    """A model on the device, in double or single precision, with a single stepped world.

    Data stay there as a list of arrays: to take MJX's own classes apart and to read all of them takes ten times the
    step of a small robot.
    """

    clips_change = False

    def __init__(self, source: str, model: Any, *, double: bool) -> None:
        """Put a model on the device.

        Args:
            model: MuJoCo's.
            double: Whether it computes in double precision.

        Raises:
            NotRepresentableError: If MJX refuses something of it, or would drop it in silence.
        """
        super().__init__(model)
        self.source, self.double = source, double
        refusals = [*dropped(model), *dropped_options(model)]
        with on_device(double=double):
            try:
                self.on_device = mjx.put_model(model, impl="jax")
            except NotImplementedError as error:
                refusals.append(str(error))
        want_representable("mjx", refusals)
        self._equality = _equality_of_rows(model)
        self._robot, self._robot_structure = jax.tree.flatten(self.on_device)
        self._leaves: list[Any] = []
        self._structure: Any = None
        self._steps: dict[bool, Callable[..., Any]] = {}

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0, act: Array | None = None) -> None:
        """See `loopcheck.engines.mujoco.stepper.Stepper.put`; the state is rounded to the precision of the device."""
        super().put(q, qd, t, act)
        with on_device(double=self.double):
            empty = mjx.make_data(self.model, impl="jax")
            kind = empty.qpos.dtype
            for name in STATE:
                getattr(self.data, name)[:] = getattr(self.data, name).astype(kind)
            state = {name: jax.numpy.asarray(getattr(self.data, name), kind) for name in STATE}
            # bound to the device as what a step returns, or the second step would be compiled anew
            began = jax.device_put(empty.replace(**state), jax.devices()[0])
            self._leaves, self._structure = jax.tree.flatten(began)
        self._steps = {reads: _step_of(self._robot_structure, self._structure, reads) for reads in (False, True)}

    def advance(self) -> Readings:
        """See `loopcheck.engines.mujoco.stepper.Stepper.advance`."""
        stepped = self._steps[self.reads_joints]
        try:
            with on_device(double=self.double):
                kind = np.float64 if self.double else np.float32
                inputs = [getattr(self.data, name).astype(kind) for name in ("ctrl", "xfrc_applied")]
                self._leaves, read, joints = stepped(self._robot, self._leaves, *inputs)
                read, joints = jax.device_get((read, joints))
                self._write(self.data, read)
        except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
            raise EngineError(f"{self.source}: {error}") from error
        if joints is None:
            return {}
        force, cdof, cfrc_int = (np.asarray(values, float) for values in joints)
        return {"joint": force, "reaction": (cdof * cfrc_int[self.model.dof_bodyid]).sum(axis=1)}

    def _write(self, data: Any, read: Any) -> None:
        """Copy the result of a step into MuJoCo's data; all of MJX's data if the rows have changed."""
        every = (read["efc_J"] != 0).any(axis=1)
        in_use = every[: len(self._equality)]
        count = int(in_use.sum())
        if len(every) > len(in_use) or data.nefc != count:
            mjx.get_data_into(data, self.model, jax.tree.unflatten(self._structure, self._leaves))
        else:
            data.time = float(read["time"])
            for name in READ:
                getattr(data, name)[:] = read[name]
            for name in ("efc_pos", "efc_force"):
                getattr(data, name)[:] = read[name][in_use]
        # say which equality each row is of, which MJX does not; rows without rates are left out
        data.ne, data.efc_id[:count] = count, self._equality[in_use]
        data.efc_type[:count] = EQUALITY_ROW
        data.solver_niter[0] = int(read["solver_niter"])


@cache
def _step_of(robot: Any, data: Any, reads_joints: bool) -> Callable[..., Any]:
    """A compiled step of all robots with the same structure, from lists of arrays to lists of arrays.

    Args:
        robot: Structure of MJX's model.
        data: Structure of its data.
        reads_joints: Whether to read joints.
    """

    @jax.jit
    def stepped(robot_leaves: Any, leaves: Any, ctrl: Any, wrenches: Any) -> tuple[Any, Any, Any]:
        model = jax.tree.unflatten(robot, robot_leaves)
        began = jax.tree.unflatten(data, leaves).replace(ctrl=ctrl, xfrc_applied=wrenches)
        after, joints = _stepped(model, began, reads_joints=reads_joints)
        inner = after._impl  # where MJX keeps rows of constraints, with no public way to them
        names = ("efc_J", "efc_pos", "efc_force", "solver_niter")
        read = {name: getattr(inner, name) for name in names} | {name: getattr(after, name) for name in (*READ, "time")}
        return jax.tree.leaves(after), read, joints

    return stepped


def _stepped(model: Any, data: Any, *, reads_joints: bool) -> tuple[Any, Any]:
    """The state after a step, and of its beginning forces of actuators, axes of dofs and forces between bodies."""
    if not reads_joints:
        return mjx.step(model, data), None
    before = mjx.rne_postconstraint(model, mjx.forward(model, data))
    return mjx.step(model, data), (before.qfrc_actuator, before.cdof, before._impl.cfrc_int)


def _equality_of_rows(model: Any) -> AnyArray:
    """Equality of each of MJX's rows of equalities [-], shape (rows,); −1 for an inactive row."""
    rows = rows_of(model)
    count = 1 + max((row for of_one in rows for row in of_one), default=-1)
    equality = np.full(count, -1)
    for k, of_one in enumerate(rows):
        equality[of_one] = k
    return equality
