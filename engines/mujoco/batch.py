"""Robots of a file in a batch: models for MuJoCo and its ports, and MuJoCo's own rollouts."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

from loopcheck.engines.computed_torque import drive_matrices
from loopcheck.engines.declarations import Settings, best_seconds
from loopcheck.engines.mujoco._clock import add_points, push
from loopcheck.engines.mujoco.actuators import actuators
from loopcheck.engines.mujoco.model import guarded
from loopcheck.engines.mujoco.tendons import want_no_slides
from loopcheck.engines.mujoco.tuning import configured, model_with
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.robots.arrays import Array, EffortSeries, JointPositions
from loopcheck.robots.formats.mjcf import load_spec
from loopcheck.robots.mechanism import Mechanism

PRECISIONS = ("double",)
THREADS = os.cpu_count() or 1
AT_ONCE = 10
"""Steps of all worlds that are kept at once."""


def device() -> str:
    """See `loopcheck.engines.contract.Batch.device`."""
    return "CPU"


def loaded(mechanism: Mechanism, settings: Settings) -> tuple[Any, Array]:
    """MuJoCo's model of a file with other settings, with external wrenches that stay constant while its bodies turn.

    Returns:
        The model, with a massless body at the point of application of each wrench, and its `xfrc_applied` [N and N m],
        shape (bodies, 6).
    """
    want_no_slides(mechanism)
    if not mechanism.wrenches:
        model = model_with(mechanism, settings)
        return model, np.zeros((model.nbody, 6))
    spec = load_spec(mechanism.model)
    add_points(spec, mechanism)
    model = spec.compile()
    model.opt.gravity[:] = mechanism.gravity
    data = mujoco.MjData(model)
    push(mechanism, model, data)
    return configured(model, settings), data.xfrc_applied.copy()


def controls(mechanism: Mechanism, model: Any, state: State, tau: EffortSeries) -> Array:
    """Controls at the start for given efforts of a file's actuators, shape (n, na).

    Args:
        model: MuJoCo's.
        state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
        tau: The efforts [N or N m], shape (n, na).
    """
    known = actuators(model)
    matrices = drive_matrices(mechanism, range(len(mechanism.drives)))
    positions, rates = (mechanism.gearing @ of_drives for of_drives in matrices)
    lengths = (state[0] @ positions.T, state[1] @ rates.T)
    inputs = [known.input_for(*row) for row in zip(tau, *lengths, strict=True)]
    return np.array([known.control_for(force, np.zeros(len(force))) for force in inputs])


class MujocoWorlds:
    """Data of MuJoCo's, stepped by its own threads."""

    def __init__(self, mechanism: Mechanism, model: tuple[Any, Array], state: State) -> None:
        """Put a robot into each state.

        Args:
            model: As `loaded` returns it.
            state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
        """
        self._mechanism, (self._model, self._wrenches), self._begin = mechanism, model, state
        self._scratch = [mujoco.MjData(self._model) for _ in range(THREADS)]
        self._state = np.array([_full_state(self._model, *one) for one in zip(*state, strict=True)])

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        q = self._state[:, 1 : 1 + self._model.nq]  # after the time
        return q.copy(), self._state[:, 1 + self._model.nq : 1 + self._model.nq + self._model.nv].copy()

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        orders, kind = controls(self._mechanism, self._model, self._begin, command), mujoco.mjtState.mjSTATE_CTRL.value
        if self._wrenches.any():
            kind |= mujoco.mjtState.mjSTATE_XFRC_APPLIED.value
            orders = np.hstack([orders, np.tile(self._wrenches.ravel(), (len(orders), 1))])
        with guarded("mujoco"), rollout.Rollout(nthread=THREADS) as pool:
            for first in range(0, count, AT_ONCE):
                repeated = np.repeat(orders[:, None], min(AT_ONCE, count - first), axis=1)
                states, _ = pool.rollout(self._model, self._scratch, self._state, repeated, control_spec=kind)
                self._state = states[:, -1]
        return {}


def seconds_per_step(
    worlds: Callable[[Mechanism, State, Settings, str], Robots[EffortSeries]],
    mechanism: Mechanism,
    q: JointPositions,
    settings: Settings,
) -> float:
    """Wall time of a step of a single robot in single precision on the device [s], the best of several.

    Args:
        worlds: Makes robots of a batch.
    """
    one = worlds(mechanism, (q[None], np.zeros((1, mechanism.nv))), settings, "single")
    return best_seconds(lambda: None, partial(one.step, np.zeros((1, mechanism.na))))


def _full_state(model: Any, q: Array, qd: Array) -> Array:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def worlds(mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
    """See `loopcheck.engines.contract.Batch.worlds`."""
    return MujocoWorlds(mechanism, loaded(mechanism, settings), state)
