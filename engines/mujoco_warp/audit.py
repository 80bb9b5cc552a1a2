"""MuJoCo Warp's model and terms on its device, in single precision: read from its own model and data."""

from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.engines.mujoco.audit import inventory
from loopcheck.engines.mujoco.loops import bias_of_rows
from loopcheck.engines.mujoco.model import (
    apply_wrenches,
    build,
    constraint_jacobian,
    equality_rows,
    inertia_matrix,
    own_actuators_off,
    wrench_forces,
)
from loopcheck.engines.mujoco_warp._model import NAME, placed, put, read_back
from loopcheck.engines.mujoco_warp._warp import guarded, mujoco_warp
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism

AUTO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
"""Required by MuJoCo's own routes; MuJoCo Warp never resets a state and has no such flag."""


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    model = _compiled(mechanism)
    on_device = put(model)
    with guarded(NAME):
        data = _computed(mechanism, model, on_device, (q, np.zeros(mechanism.nv)))
    rest_force = data.qfrc_bias - data.qfrc_passive - wrench_forces(mechanism, model, data)
    return inventory(read_back(model, on_device), data, rest_force)


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    model = _compiled(mechanism)
    own_actuators_off(model)
    model.eq_solref[:] = 0  # what is left of the reference acceleration is −J̇q̇
    on_device, of_states = put(model), []
    with guarded(NAME):
        for state in zip(q, qd, strict=True):
            of_states.append(_at_state(mechanism, model, on_device, state))
    names = ("M", "bias", "passive", "J", "closure_bias", "solver_bias")
    return Matrices(
        **{name: np.array(values) for name, values in zip(names, zip(*of_states, strict=True), strict=True)}
    )


def _compiled(mechanism: Mechanism) -> Any:
    want_representable(NAME, of_paths(mechanism))
    model = build(mechanism)
    model.opt.disableflags &= ~AUTO_RESET
    return model


def _computed(mechanism: Mechanism, model: Any, on_device: Any, state: tuple[Array, Array]) -> Any:
    """MuJoCo's data with the device's results at a state."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = state
    apply_wrenches(mechanism, model, data)
    on_board = placed(model, data)
    mujoco_warp.forward(on_device, on_board)
    mujoco_warp.get_data_into(data, model, on_board)
    return data


def _at_state(mechanism: Mechanism, model: Any, on_device: Any, state: tuple[Array, Array]) -> tuple[Array, ...]:
    """The entries of `Matrices` at a state."""
    data = _computed(mechanism, model, on_device, state)
    M, passive = inertia_matrix(model, data), data.qfrc_passive + wrench_forces(mechanism, model, data)
    terms = (M, data.qfrc_bias.copy(), passive)
    rows = equality_rows(data)
    loops = (constraint_jacobian(model, data)[rows], _closure_bias(model, on_device, data), -data.efc_aref[rows])
    return (*terms, *(np.array(values) for values in loops))


def _closure_bias(model: Any, on_device: Any, data: Any) -> Array:
    """J̇ q̇ in the rows of the equalities, by the motions of the device's bodies at zero joint accelerations, (rows,)."""
    at_state = placed(model, data)
    mujoco_warp.fwd_position(on_device, at_state)
    mujoco_warp.fwd_velocity(on_device, at_state)
    at_state.qacc.zero_()
    gravity = on_device.opt.gravity.numpy().copy()
    on_device.opt.gravity.assign(0 * gravity)
    mujoco_warp.rne_postconstraint(on_device, at_state)
    on_device.opt.gravity.assign(gravity)
    without = mujoco.MjData(model)
    mujoco_warp.get_data_into(without, model, at_state)
    return bias_of_rows(model, without)
