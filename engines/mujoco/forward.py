"""MuJoCo's own constraint solver on the closed loop, the driven joints and tendons held to the motion by equalities.

Each driven joint or tendon gets an equality whose force is the effort. MuJoCo knows no moving target, so the
equality's constant is set such that the reference acceleration of its row equals the prescribed one, plus feedback on
what has drifted. Two things would spoil the reading, and both are removed by running more than once:

- the step: `mj_step` freezes targets over a step, so the classical Runge-Kutta method of fourth order is written here
  on `mj_forward`, and run on a ladder of steps;
- the softness: MuJoCo lets no constraint be rigid. The error is proportional to the compliance (the inverse weights of
  bodies and dofs), so the efforts at two compliances are extrapolated to none.

Of a redundantly actuated robot only as many joints are driven as it has degrees of freedom: more drives would answer
the smallest mismatch of their targets with internal efforts. The others follow at zero effort, which leaves the part of
the efforts that moves the robot as it is.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mujoco
import numpy as np

from engines.mujoco._model import (
    actuator_efforts,
    actuator_names,
    apply_wrenches,
    build,
    constraint_jacobian,
    driven,
    equality_rows,
    guarded,
    rows_of_drives,
)
from engines.projection import independent_drives, null_space
from robots.arrays import AnyArray, Array
from robots.efforts import EffortHistory, Rung
from robots.errors import EngineError
from robots.mechanism import Coordinate, Mechanism
from robots.motion import Motion
from robots.robot import Case

FINEST = 1.25e-3
"""Upper bound of the finest step [s]; the ladder doubles it three times."""
FINEST_FREE = FINEST / 8
"""The same where something moves that nothing drives: it may vibrate on its springs."""
RUNGS = 4
COMPLIANCES = (0.001, 0.002)
"""Factors on the model's inverse weights."""
IMPEDANCE = 0.9999
"""The largest MuJoCo accepts, and constant over the violation."""
SOLREF = (-100.0, -20.0)
"""Stiffness [1/s²] and damping [1/s] of the feedback on drift; stiffer ruins the Runge-Kutta method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    effort: Array  # on the driven coordinates, (nt, drives)
    closure_drift: float
    tracking_error: float


class MujocoForward:
    """Efforts from a simulation of the closed loop, extrapolated to rigid constraints."""

    name = "mujoco/forward"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        drives, undriven = _drives(case.mechanism, motion)
        steps = _steps(motion.dt, FINEST_FREE if undriven else FINEST)
        ladder, diverged = [], []
        for dt in steps:
            try:
                ladder.append(self._rung(case.mechanism, motion, drives, dt))
            except EngineError:
                if dt == steps[-1]:
                    raise
                diverged.append(f"{1e3 * dt:g}")
        in_ms = ", ".join(f"{1e3 * dt:g}" for dt in steps)
        return EffortHistory(
            source=self.name,
            actuators=actuator_names(case.mechanism),
            t=motion.t,
            effort=ladder[-1].effort,
            closure_drift=ladder[-1].closure_drift,
            tracking_error=ladder[-1].tracking_error,
            settings={
                "integrator": "classical Runge-Kutta, 4th order, on mj_forward",
                "steps": f"{in_ms} ms; the finest is reported",
                "solver": "Newton, dense, tolerance 0, at most 100 iterations",
                "impedance": f"{IMPEDANCE} constant (solimp)",
                "drift feedback": f"solref {SOLREF[0]:g} {SOLREF[1]:g}",
                "compliance": "body and dof inverse weights times {:g} and {:g}, extrapolated to 0".format(
                    *COMPLIANCES
                ),
                "actuators": "a joint equality each, its constraint force is the effort",
            },
            ladder=tuple(ladder),
            note=_note(case.mechanism, drives, diverged),
        )

    def _rung(self, mechanism: Mechanism, motion: Motion, drives: list[int], dt: float) -> Rung:
        start = time.perf_counter()
        with guarded(self.name):
            soft = [_simulate(mechanism, motion, drives, dt, compliance) for compliance in COMPLIANCES]
        a, b = COMPLIANCES
        on_drives = (b * soft[0].effort - a * soft[1].effort) / (b - a)
        if not np.isfinite(on_drives).all():
            raise EngineError(f"{self.name}: the simulation with dt = {dt:g} s diverged")
        return Rung(
            dt=dt,
            effort=actuator_efforts(mechanism, on_drives),
            closure_drift=max(run.closure_drift for run in soft),
            tracking_error=max(run.tracking_error for run in soft),
            wall_time=time.perf_counter() - start,
        )


def _steps(report: float, finest: float) -> list[float]:
    """Steps that divide the report grid, coarsest first [s]."""
    halvings = max(0, int(np.ceil(np.log2(report / finest) - 1e-9)))
    return [report / 2**k for k in range(max(0, halvings - RUNGS + 1), halvings + 1)]


def _drives(mechanism: Mechanism, motion: Motion) -> tuple[list[int], int]:
    """Which driven coordinates get a drive, all unless redundantly actuated; and how many dofs nothing drives."""
    model = build(mechanism)
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[len(motion.t) // 2]
    mujoco.mj_fwdPosition(model, data)
    J = constraint_jacobian(model, data)[equality_rows(data)]
    drives = independent_drives(J, mechanism.rates_of(mechanism.drives))
    return drives, null_space(J).shape[1] - len(drives)


def _note(mechanism: Mechanism, drives: list[int], diverged: list[str]) -> str:
    names = [drive.name for k, drive in enumerate(mechanism.drives) if k not in drives]
    note = "extrapolated to rigid constraints from two compliances"
    if names:
        note += f"; redundantly actuated: {', '.join(names)} not driven, so only the projected effort compares"
    if diverged:
        note += f"; at steps of {', '.join(diverged)} ms the simulation diverged"
    return note


def _simulate(mechanism: Mechanism, motion: Motion, drives: list[int], dt: float, compliance: float) -> _Run:
    """Simulate the whole motion and read the drives on the report grid."""
    model = _nearly_rigid(mechanism, tuple(mechanism.drives[k] for k in drives), compliance)
    data = mujoco.MjData(model)
    first_drive = model.neq - len(drives)
    rest = mechanism.values_of(mechanism.drives, np.array([model.qpos0]))
    steps = round((motion.t[-1] - motion.t[0]) / dt)
    target = motion.law(motion.t[0] + np.arange(2 * steps + 1) * dt / 2)
    start = motion.assemble(motion.t[:1])
    data.qpos[:], data.qvel[:] = start.q[0], start.qd[0]
    mujoco.mj_forward(model, data)
    of_drives, of_loops = rows_of_drives(model, data, len(drives))
    K, B, impedance, _ = data.efc_KBIP.reshape(-1, 4)[of_drives[0]]
    # A row accelerates by −B v − K·imp·(q − qpos0 − constant); this makes it q̈ − B (v − q̇) − K·imp (q − x).
    constants = (target.q - rest + (B * target.qd + target.qdd) / (K * impedance))[:, drives]

    def acceleration(half_steps: int, more: int = 0) -> Array:
        model.eq_data[first_drive:, 0] = constants[half_steps + more]
        apply_wrenches(mechanism, model, data)
        mujoco.mj_forward(model, data)
        return np.array(data.qacc)

    effort, drift, positions = np.zeros((len(motion.t), len(mechanism.drives))), 0.0, []
    every = round(motion.dt / dt)
    for k in range(steps + 1):
        a1 = acceleration(2 * k)
        if not np.isfinite(a1).all():
            return _Run(effort=np.full_like(effort, np.nan), closure_drift=np.inf, tracking_error=np.inf)
        drift = max(drift, float(np.abs(data.efc_pos[of_loops]).max(initial=0.0)))
        positions.append(np.array(data.qpos))
        if k % every == 0:
            effort[k // every, drives] = data.efc_force[of_drives]
        if k < steps:
            _runge_kutta(model, data, dt, partial(acceleration, 2 * k), a1)
    miss = mechanism.values_of(mechanism.drives, np.array(positions)) - target.q[::2]
    return _Run(effort=effort, closure_drift=drift, tracking_error=float(np.abs(miss).max()))


def _nearly_rigid(mechanism: Mechanism, drives: tuple[Coordinate, ...], compliance: float) -> Any:
    """The driven model with the hardest constraints MuJoCo allows, of the given compliance."""
    model = driven(mechanism, drives)
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.tolerance, model.opt.iterations = 0.0, 100
    model.eq_solref[:] = SOLREF
    model.eq_solimp[:] = (IMPEDANCE, IMPEDANCE, 0.001, 0.5, 1.0)
    model.body_invweight0[:] *= compliance
    model.dof_invweight0[:] *= compliance
    model.tendon_invweight0[:] *= compliance
    return model


def _runge_kutta(model: Any, data: Any, dt: float, acceleration: Callable[[int], Array], a1: Array) -> None:
    """One step of the classical method; `acceleration(c)` is at the state in `data` and c half steps into the step.

    Positions are integrated in the coordinates of the displacement since the beginning of the step, because the
    angular velocities of ball and free joints at different stages belong to different poses (Munthe-Kaas 1999).
    """
    q, v1 = np.array(data.qpos), np.array(data.qvel)
    turns = _turning_dofs(model)

    def move(displacement: AnyArray, velocity: AnyArray) -> None:
        data.qpos[:] = q
        mujoco.mj_integratePos(model, data.qpos, displacement, 1.0)
        data.qvel[:] = velocity

    u1, v2 = v1, v1 + dt / 2 * a1
    move(dt / 2 * u1, v2)
    a2 = acceleration(1)
    u2, v3 = _rate_of_displacement(dt / 2 * u1, v2, turns), v1 + dt / 2 * a2
    move(dt / 2 * u2, v3)
    a3 = acceleration(1)
    u3, v4 = _rate_of_displacement(dt / 2 * u2, v3, turns), v1 + dt * a3
    move(dt * u3, v4)
    a4 = acceleration(2)
    u4 = _rate_of_displacement(dt * u3, v4, turns)
    move(dt / 6 * (u1 + 2 * u2 + 2 * u3 + u4), v1 + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4))


def _turning_dofs(model: Any) -> list[slice]:
    """Where in qvel the angular velocities of ball and free joints stand."""
    offsets = {int(mujoco.mjtJoint.mjJNT_BALL): 0, int(mujoco.mjtJoint.mjJNT_FREE): 3}
    starts = [
        int(dof) + offsets[int(kind)]
        for dof, kind in zip(model.jnt_dofadr, model.jnt_type, strict=True)
        if int(kind) in offsets
    ]
    return [slice(start, start + 3) for start in starts]


def _rate_of_displacement(displacement: AnyArray, velocity: AnyArray, turns: list[slice]) -> AnyArray:
    """Rate at which a displacement grows, θ̇ = ω + θ × ω / 2 + θ × (θ × ω) / 12 for turns in body axes, (nv,)."""
    rate = velocity.copy()
    for turn in turns:
        theta, omega = displacement[turn], velocity[turn]
        once = np.cross(theta, omega)
        rate[turn] += once / 2 + np.cross(theta, once) / 12
    return rate
