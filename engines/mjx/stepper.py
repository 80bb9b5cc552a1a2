"""A step of MJX, from MuJoCo's data and back into them."""

from functools import partial
from typing import Any

import numpy as np

from engines.mjx._mjx import jax, mjx, on_device
from engines.mjx._model import dropped, dropped_options, rows_of
from engines.mujoco.model import EQUALITY_ROW
from engines.refusal import want_representable
from robots.arrays import AnyArray, Array
from robots.errors import EngineError


class MjxStepper:
    """A model on the device, in double or single precision, of which one world is stepped."""

    def __init__(self, source: str, model: Any, *, double: bool) -> None:
        """Put a model on the device.

        Args:
            source: Name of the route.
            model: MuJoCo's.
            double: Whether it computes in double precision.

        Raises:
            NotRepresentableError: If MJX refuses something of it, or would drop it in silence.
        """
        self.source, self.model, self.double = source, model, double
        refusals = [*dropped(model), *dropped_options(model)]
        with on_device(double=double):
            try:
                self.on_device = mjx.put_model(model, impl="jax")
            except NotImplementedError as error:
                refusals.append(str(error))
        want_representable("mjx", refusals)
        self._equality = _equality_of_rows(model)
        self._data: Any = None

    def begin(self, data: Any) -> None:
        """See `engines.mujoco.stepper.Stepper.begin`."""
        with on_device(double=self.double):
            empty = mjx.make_data(self.model, impl="jax")
            kind = empty.qpos.dtype
            for name in ("qpos", "qvel", "act"):
                getattr(data, name)[:] = getattr(data, name).astype(kind)
            state = {name: jax.numpy.asarray(getattr(data, name), kind) for name in ("qpos", "qvel", "act")}
            # bound to the device as what a step returns, or the second step would be compiled anew
            self._data = jax.device_put(empty.replace(**state), jax.devices()[0])

    def step(self, data: Any, *, reads_joints: bool) -> tuple[Array, Array] | None:
        """See `engines.mujoco.stepper.Stepper.step`.

        Args:
            data: MuJoCo's.
            reads_joints: Whether to read joints.
        """
        try:
            with on_device(double=self.double):
                kind = self._data.qpos.dtype
                inputs = {name: jax.numpy.asarray(getattr(data, name), kind) for name in ("ctrl", "xfrc_applied")}
                began = self._data.replace(**inputs)
                self._data, joints = _stepped(self.on_device, began, reads_joints=reads_joints)
                mjx.get_data_into(data, self.model, self._data)
        except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
            raise EngineError(f"{self.source}: {error}") from error
        self._name_rows(data)
        if joints is None:
            return None
        force, cdof, cfrc_int = (np.asarray(values, float) for values in joints)
        return force, (cdof * cfrc_int[self.model.dof_bodyid]).sum(axis=1)

    def _name_rows(self, data: Any) -> None:
        """Say which equality each row is of, which MJX does not; rows without rates are left out."""
        inner = self._data._impl  # where MJX keeps them, with no public way to them
        in_use = (np.asarray(inner.efc_J)[: len(self._equality)] != 0).any(axis=1)
        names = self._equality[in_use]
        data.ne, data.efc_id[: len(names)] = len(names), names
        data.efc_type[: len(names)] = EQUALITY_ROW
        data.solver_niter[0] = int(inner.solver_niter)


@partial(jax.jit, static_argnames="reads_joints")
def _stepped(model: Any, data: Any, *, reads_joints: bool) -> tuple[Any, Any]:
    """The state after a step, and of its beginning forces of actuators, axes of dofs and forces between bodies."""
    if not reads_joints:
        return mjx.step(model, data), None
    before = mjx.rne_postconstraint(model, mjx.forward(model, data))
    return mjx.step(model, data), (before.qfrc_actuator, before.cdof, before._impl.cfrc_int)


def _equality_of_rows(model: Any) -> AnyArray:
    """Which equality each of MJX's rows of equalities belongs to [-], shape (rows,); −1 where it is not active."""
    rows = rows_of(model)
    count = 1 + max((row for of_one in rows for row in of_one), default=-1)
    equality = np.full(count, -1)
    for k, of_one in enumerate(rows):
        equality[of_one] = k
    return equality
