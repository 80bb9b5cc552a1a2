"""The effort that acted in a step of `mj_step`, which is not always the reported `actuator_force`.

Implicit integrators add the change of an actuator's force during the step to the matrix that they invert, so the
reported force of the beginning is only a part of the effort. Sources: MuJoCo's documentation, chapter Computation,
"Numerical integration" (implicit and discrete updates); Butcher's tableau of Runge-Kutta 4.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from loopcheck.engines.mujoco.model import DISCRETE, transmission
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError, ShapeError
from loopcheck.robots.formats.model_file import captured_warnings
from loopcheck.robots.formats.mujoco_compat import CompatibleModel

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
"""State from which a step can be repeated exactly."""
FAST = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
IMPLICIT = {int(mujoco.mjtIntegrator.mjINT_IMPLICIT), FAST}
RUNGE_KUTTA = int(mujoco.mjtIntegrator.mjINT_RK4)
BAD = {
    "position": mujoco.mjtWarning.mjWARN_BADQPOS,
    "velocity": mujoco.mjtWarning.mjWARN_BADQVEL,
    "acceleration": mujoco.mjtWarning.mjWARN_BADQACC,
}
"""Warnings after which MuJoCo resets the state."""
TURNING = {int(mujoco.mjtJoint.mjJNT_FREE): 3, int(mujoco.mjtJoint.mjJNT_BALL): 0}
"""First rotational dof of a joint, by its type [-]."""
CORRECTED = mujoco.mj_version() >= 4000000
"""Whether Runge-Kutta 4 is of fourth order for orientations (changelog of MuJoCo 4.0.0)."""
SAME = 1e-8
"""Largest difference of two computations of the same step, relative to its accelerations [-]; round-off is 1e-14."""
ROUNDING = 4 * np.finfo(float).eps
"""Round-off of the change of a velocity, relative to the velocity [-]."""
STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))
"""Stages of Runge-Kutta 4: part of the step from the stage before [-], and weight [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActedEffort:
    """Efforts of the actuators that acted during a step."""

    effort: Array
    """Force of each force output of the actuators, before its gear [N or N m], shape (nout,)."""
    joint_force: Array
    """Generalized force of all actuators [N or N m], shape (nv,)."""
    off_transmission: Array
    """Part of `joint_force` that no efforts of the actuators produce [N or N m], shape (nv,)."""
    reported: Array
    """MuJoCo's `actuator_force` after the same step [N or N m], shape (nout,)."""


def acted_effort(
    model: Any,
    state_before: ArrayLike,
    ctrl: ArrayLike | None = None,
    applied: ArrayLike | None = None,
    scratch: Any = None,
) -> ActedEffort:
    """Repeat a step of `mj_step`, and return the efforts that moved the robot during it.

    The sum of joint forces of a step times its duration is the impulse of the actuators: `M (v₊ − v)/h` equals
    `joint_force` plus all other terms of the step. Several actuators on a joint share an implicit change equally.
    A call changes `model.opt` and restores it; threads need a model each.

    Args:
        model: MuJoCo's `MjModel`, with the options of the simulation.
        state_before: State before the step by `mj_getState` with `mjSTATE_INTEGRATION`.
        ctrl: Controls of the step, shape (nu,); by default those of the state.
        applied: `qfrc_applied` of the step [N or N m], shape (nv,); by default that of the state.
        scratch: An `MjData` of the model to compute in, other than that of the simulation; by default a new one, which
            takes most of the time of a call.

    Raises:
        ShapeError: If an array has a wrong size, or a number is not finite.
        EngineError: If MuJoCo resets the state during the step.

    Example:
        >>> import mujoco, numpy
        >>> from loopcheck import acted_effort
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco>
        ... <option integrator="implicitfast" timestep=".01" gravity="0 0 0"/>
        ... <worldbody><body><joint name="x" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
        ... <actuator><velocity joint="x" kv="100"/></actuator></mujoco>''')
        >>> data = mujoco.MjData(model)
        >>> state = numpy.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
        >>> mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        >>> step = acted_effort(model, state, ctrl=[1.0])
        >>> print(f"{step.effort[0]:.6g} N acted, {step.reported[0]:.6g} N reported")
        50 N acted, 100 N reported
    """
    data = mujoco.MjData(model) if scratch is None else scratch
    state = _vector(state_before, mujoco.mj_stateSize(model, STATE), "state_before (mj_getState, mjSTATE_INTEGRATION)")

    def put() -> None:
        mujoco.mj_setState(model, data, state, STATE)
        if ctrl is not None:
            data.ctrl[:] = _vector(ctrl, len(data.ctrl), "ctrl")
        if applied is not None:
            data.qfrc_applied[:] = _vector(applied, model.nv, "applied")

    with captured_warnings():
        put()
        velocity = np.array(data.qvel)
        _step(model, data)
        acceleration = (data.qvel - velocity) / model.opt.timestep
        if model.opt.integrator == RUNGE_KUTTA:
            put()
            return _mean(list(_stages(model, data)), acceleration, ROUNDING * abs(velocity).max() / model.opt.timestep)
        acted = _of(model, data)
        if model.opt.integrator == DISCRETE:
            return _with(acted, transmission(model, data), -_implicit_part(model, data, velocity, acceleration))
        if model.opt.integrator in IMPLICIT:
            moment, derivative = transmission(model, data), np.array(data.qDeriv)
            put()
            with _actuators_off(model):
                _step(model, data)
            derivative -= data.qDeriv
            return _with(acted, moment, model.opt.timestep * _product(model, derivative, acceleration))
        return acted


def integration_state(model: Any, data: Any) -> Array:
    """State from which `mj_step` repeats the next step."""
    state = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state


def _vector(values: ArrayLike, size: int, name: str) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        found = f"shape {vector.shape}" if vector.shape != (size,) else "NaN or an infinite number"
        raise ShapeError(f"{name} must be finite, with shape ({size},), got {found}")
    return vector


def _step(model: Any, data: Any) -> None:
    """One step; the quantities of its beginning remain in `data`."""
    known = {kind: data.warning[number].number for kind, number in BAD.items()}
    mujoco.mj_step(model, data)
    for kind, number in BAD.items():
        if data.warning[number].number > known[kind]:
            raise EngineError(
                f"the step must have a finite {kind}, got a bad {kind} of dof {data.warning[number].lastinfo}, after "
                "which MuJoCo resets the state. No effort belongs to this step"
            )


@contextmanager
def _actuators_off(model: Any) -> Iterator[None]:
    flags = model.opt.disableflags
    model.opt.disableflags = flags | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    try:
        yield
    finally:
        model.opt.disableflags = flags


def _of(model: Any, data: Any) -> ActedEffort:
    """Efforts at the evaluated state, clamps of joints included."""
    reported, moment = np.array(data.actuator_force), transmission(model, data)
    acted = ActedEffort(
        effort=reported, joint_force=moment.T @ reported, off_transmission=np.zeros(model.nv), reported=reported
    )
    return _with(acted, moment, data.qfrc_actuator - acted.joint_force)


def _with(acted: ActedEffort, moment: Array, change: Array) -> ActedEffort:
    """Efforts after a change of the joint forces, shared by least squares."""
    if not change.any():
        return acted
    effort = acted.effort + np.linalg.lstsq(moment.T, change, rcond=None)[0]
    force = acted.joint_force + change
    return replace(acted, effort=effort, joint_force=force, off_transmission=force - moment.T @ effort)


def _product(model: Any, values: Array, vector: Array) -> Array:
    """Product of a matrix in the sparsity of `qDeriv` with a vector, as the integrator uses it, shape (nv,)."""
    product, rows = np.zeros(model.nv), np.repeat(np.arange(model.nv), model.D_rownnz)
    if model.opt.integrator == FAST:  # it keeps the elements of M, which is diagonal for the dofs of a simple body
        values = values * ((rows == model.D_colind) | (model.dof_simplenum[rows] == 0))
    np.add.at(product, rows, values * vector[model.D_colind])
    return product


def _implicit_part(model: Any, data: Any, velocity: Array, acceleration: Array) -> Array:
    """Joint forces of the actuators in the matrix and in the right-hand side of a discrete step, shape (nv,)."""
    known, numbers = slice(data.nefmA), CompatibleModel(model)
    actuators = data.efm_aid[known]
    first, count = numbers.actuator_outadr[actuators], numbers.actuator_outnum[actuators]
    outputs = [k for start, size in zip(first, count, strict=True) for k in range(start, start + size)]
    rows = transmission(model, data)[outputs]
    scale, stiffness = (np.repeat(values[known], count) for values in (data.efm_as, data.efm_ak))
    return np.asarray(rows.T @ (scale * (rows @ acceleration) + stiffness * (rows @ velocity)))


def _stages(model: Any, data: Any) -> Iterator[tuple[ActedEffort, Array]]:
    """Efforts and accelerations at the stages of Runge-Kutta 4; `data` ends at the last stage."""
    start, time, h, turning = np.array(data.qpos), data.time, model.opt.timestep, list(_turning(model))
    state = np.concatenate([data.qvel, data.act])
    rate, along = np.zeros(model.nv + model.na), np.zeros(model.nv)
    for part, _ in STAGES:
        data.qpos[:] = start
        mujoco.mj_integratePos(model, data.qpos, along, part * h)
        data.qvel[:], data.act[:] = np.split(state + part * h * rate, [model.nv])
        data.time = time + part * h
        mujoco.mj_forward(model, data)
        along = _rates(turning, data.qvel, part * h * along)
        rate = np.concatenate([data.qacc, data.act_dot])
        yield _of(model, data), rate[: model.nv]


def _turning(model: Any) -> Iterator[slice]:
    """Rotational dofs of each free or ball joint whose rotation vector MuJoCo corrects."""
    for kind, first in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if CORRECTED and int(kind) in TURNING:
            yield slice(first + TURNING[int(kind)], first + TURNING[int(kind)] + 3)


def _rates(turning: Sequence[slice], velocity: Array, turn: Array) -> Array:
    """Rates of the rotation vectors from the beginning of a step, to third order (Munthe-Kaas), shape (nv,)."""
    rates = np.array(velocity)
    for dofs in turning:
        bracket = np.cross(turn[dofs], velocity[dofs])
        rates[dofs] += bracket / 2 + np.cross(turn[dofs], bracket) / 12
    return rates


def _mean(stages: Sequence[tuple[ActedEffort, Array]], acceleration: Array, rounding: float) -> ActedEffort:
    """Weighted mean of the stages; the report is that of the last one, as after `mj_step`."""
    weights, rates = np.array([weight for _, weight in STAGES]), np.array([rate for _, rate in stages])
    repeated, limit = weights @ rates, SAME * abs(rates).max() + rounding
    if not np.allclose(repeated, acceleration, rtol=0, atol=limit):
        raise EngineError(
            "the stages of the step must end at the state of mj_step, got another acceleration "
            f"({abs(repeated - acceleration).max():.1e} apart). Does a plugin or a callback have a state of its own?"
        )
    mean = {
        name: weights @ np.array([getattr(stage, name) for stage, _ in stages])
        for name in ("effort", "joint_force", "off_transmission")
    }
    return ActedEffort(**mean, reported=stages[-1][0].reported)
