"""Robots of a file in a batch of MJX."""

from functools import partial
from typing import Any

import numpy as np

from loopcheck.engines.declarations import Settings
from loopcheck.engines.mjx._mjx import device, jax, mjx, on_device
from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco.batch import controls, loaded
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism

__all__ = ["PRECISIONS", "device", "worlds"]

PRECISIONS = ("single", "double")
SOURCES = {"single": "mjx/as_is_single", "double": "mjx/as_is"}


class MjxWorlds:
    """Worlds of a batch on the device."""

    def __init__(self, mechanism: Mechanism, stepper: MjxStepper, wrenches: Array, state: State) -> None:
        """Put a robot into each state.

        Args:
            stepper: Its model on the device.
            wrenches: Its `xfrc_applied` [N and N m], shape (bodies, 6).
            state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
        """
        self._mechanism, self._stepper, self._begin = mechanism, stepper, state
        with on_device(double=stepper.double):
            one = mjx.make_data(stepper.model, impl="jax")
            kind, n = one.qpos.dtype, len(state[0])
            every = jax.tree.map(lambda leaf: jax.numpy.broadcast_to(leaf, (n, *np.shape(leaf))), one)
            q, qd = (jax.numpy.asarray(values, kind) for values in state)
            loads = jax.numpy.broadcast_to(jax.numpy.asarray(wrenches, kind), every.xfrc_applied.shape)
            self._data = jax.device_put(every.replace(qpos=q, qvel=qd, xfrc_applied=loads), jax.devices()[0])
        self._advance(0)  # compiled before anything is timed

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return np.asarray(self._data.qpos, float), np.asarray(self._data.qvel, float)

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        ctrl = controls(self._mechanism, self._stepper.model, self._begin, command)
        with on_device(double=self._stepper.double):
            self._data = self._data.replace(ctrl=jax.device_put(ctrl.astype(self._data.ctrl.dtype), jax.devices()[0]))
        self._advance(count)
        return {}

    def _advance(self, steps: int) -> None:
        try:
            with on_device(double=self._stepper.double):
                self._data = _advanced(self._stepper.on_device, self._data, steps)
                self._data.qpos.block_until_ready()
        except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
            raise EngineError(f"{self._stepper.source}: {error}") from error


@jax.jit
def _advanced(model: Any, data: Any, steps: Any) -> Any:
    step = jax.vmap(partial(mjx.step, model))
    return jax.lax.fori_loop(0, steps, lambda _, now: step(now), data)


def worlds(mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
    """See `loopcheck.engines.contract.Batch.worlds`."""
    model, wrenches = loaded(mechanism, settings)
    return MjxWorlds(mechanism, MjxStepper(SOURCES[precision], model, double=precision == "double"), wrenches, state)
