"""Forward dynamics: accelerations from efforts, in two independent ways, and motions integrated from them.

`noc` solves M q̈ᵃ = Aᵀτ − C q̇ᵃ − G for the independent coordinates. `multipliers` solves the equations of the cut tree
together with the closures differentiated twice, Φ q̈ = −Φ̇ q̇, for accelerations and multipliers; redundant closures are
handled by rank in both.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from loopcheck.analytic.dynamics.lagrange import lagrange_model
from loopcheck.analytic.dynamics.noc import noc_model
from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    solve_dependent,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, close, conditioning
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import position_rate
from loopcheck.robots.arrays import (
    AccelerationSeries,
    AnyArray,
    Array,
    EffortSeries,
    JointPositions,
    JointVelocities,
    PositionSeries,
    Times,
    VelocitySeries,
)
from loopcheck.robots.errors import LoopClosureError, SingularityError
from loopcheck.robots.mechanism import Mechanism

EffortLaw: TypeAlias = Callable[[float], Array]
"""Efforts of the actuators [N or N m] at a time [s], shape (na,)."""

ACCURACY: Mapping[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
"""Error of the integration in a step, relative [-] and absolute [m or rad, per s]."""
BESIDE = 5e-3
"""Fraction of the initial conditioning below which the closures do not determine the velocities reliably [-]."""
AHEAD = 0.45
"""Position of the singularity in a leap; no stage of the method (c = …, 0.33, 0.6, …) is near [-]."""
LEAPS = 1.25 ** np.arange(-6, 12)
"""Distances for trial steps over a singularity, relative to the last good step [-]."""
STEP = 1e-40
"""Imaginary step in time [s]: its square vanishes beside 1, so the derivative has no truncation error."""


def accelerations_by_noc(
    mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries, effort: EffortSeries, independent: AnyArray
) -> AccelerationSeries:
    """Joint accelerations by the natural orthogonal complement (Kordjazi and Akbarzadeh 2011, (12) solved for q̈ᵃ).

    Args:
        q: Joint positions with closed loops.
        qd: Joint velocities that keep them closed.
        independent: Mask of the independent dofs [-], shape (nv,).
    """
    state = State(mechanism=mechanism, q=q, qd=qd)
    model = noc_model(state, independent)
    A = mechanism.selection @ model.L
    driving = (A.swapaxes(1, 2) @ effort[..., None])[..., 0]
    velocity = qd[:, independent]
    free = np.linalg.solve(model.M, (driving - model.force(np.zeros_like(velocity), velocity))[..., None])
    qdd = np.zeros_like(qd)
    qdd[:, independent] = free[..., 0]
    right = state.Phi @ qdd[..., None] + state.Phi_dot @ qd[..., None]
    qdd[:, ~independent] = solve_dependent(state.Phi[..., ~independent], right)[..., 0]
    return qdd


def accelerations_by_multipliers(
    mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries, effort: EffortSeries
) -> tuple[Array, Array]:
    """Joint accelerations and multipliers of M q̈ + h = Sᵀτ + Φᵀλ + f with Φ q̈ = −Φ̇ q̇, f from external wrenches.

    Args:
        mechanism: Robot with inertia at each dof of its spanning tree.
        q: Joint positions with closed loops.
        qd: Joint velocities that keep them closed.

    Returns:
        Accelerations [m/s² or rad/s²], shape (nt, nv), and the multipliers of least norm [N or N m], shape (nt, nc).
    """
    model = lagrange_model(mechanism, q, qd)
    force = effort @ mechanism.selection + model.load - model.coriolis - model.gravity - model.dissipation
    Phi, Phi_T = model.Phi, model.Phi.swapaxes(1, 2)
    unconstrained = np.linalg.solve(model.M, force[..., None])
    compliance = Phi @ np.linalg.solve(model.M, Phi_T)
    right = Phi @ unconstrained + model.closure_bias[..., None]
    lam = -np.linalg.pinv(compliance, rcond=RANK_TOLERANCE**2, hermitian=True) @ right
    qdd = unconstrained + np.linalg.solve(model.M, Phi_T @ lam)
    return qdd[..., 0], lam[..., 0]


def simulate(
    mechanism: Mechanism, effort: EffortLaw, q: JointPositions, qd: JointVelocities, t: Times, *, independent: AnyArray
) -> tuple[Array, Array]:
    """Integrate the motion caused by given efforts, with the loops closed at every evaluation.

    The independent velocities and all positions are integrated (Dormand and Prince, order 8); dependent positions are
    corrected by Newton's method and dependent velocities follow from the closures. At a crossing of branches of the
    motion they do not follow, and no evaluation is made there: a step from well before to well after continues the
    smooth branch, and counts only if its error estimate is as small as everywhere.

    Args:
        effort: Efforts over time.
        q: Joint positions at the first time, loops closed.
        qd: Joint velocities there.
        independent: Mask of the independent dofs [-], shape (nv,).

    Returns:
        Joint positions, shape (nt, nq), and velocities, shape (nt, nv).

    Raises:
        LoopClosureError: If the loops open.
        SingularityError: If a singularity cannot be stepped over; `time` is its time.
    """
    nearest = BESIDE * conditioning(closure_jacobian_at(mechanism, q[None])[..., ~independent])[0][0]

    def state(time: float, y: Array) -> tuple[Array, Array]:
        closed, residual = close(mechanism, y[None, : mechanism.nq], ~independent)
        if residual > CLOSED:
            raise LoopClosureError(
                f"{mechanism.model.path}: the simulation cannot keep the loops closed at t = {time:g} s: loop gap must "
                f"be at most {CLOSED:g}, got {residual:.3g} (m or rad)",
                residual=residual,
                tolerance=CLOSED,
                time=time,
            )
        ratio = conditioning(closure_jacobian_at(mechanism, closed)[..., ~independent])[0][0]
        if ratio < nearest:
            raise SingularityError(
                f"{mechanism.model.path}: the simulation meets a singularity near t = {time:.4f} s (dependent closure "
                f"Jacobian: ratio of smallest to largest singular value {ratio:.3g})",
                time=time,
                singular_value=ratio,
            )
        return closed, dependent_velocities(mechanism, closed, y[None, mechanism.nq :], independent)

    def rate(time: float, y: Array) -> Array:
        q, qd = state(time, y)
        qdd = accelerations_by_noc(mechanism, q, qd, effort(time)[None], independent)
        return np.concatenate([position_rate(mechanism, q, qd)[0], qdd[0, independent]])

    path = _integrated(rate, np.concatenate([q, qd[independent]]), float(t[0]), float(t[-1]))
    states = [state(float(time), path(float(time))) for time in t]
    return np.concatenate([q for q, _ in states]), np.concatenate([qd for _, qd in states])


@dataclass(frozen=True, slots=True)
class _Path:
    """The computed part of a solution of ẏ = rate(t, y)."""

    rate: Callable[[float, Array], Array]
    solution: list[tuple[float, Array]]
    """Times [s] and values at the ends of the steps."""
    pieces: list[Any] = field(default_factory=list)
    """Interpolants of the steps."""

    def go(self, end: float, first: float | None = None) -> None:
        """Steps to an end [s]; or a single step towards it, if possible of a given length [s]."""
        from scipy.integrate import DOP853

        solver = DOP853(self.rate, *self.solution[-1], end, first_step=first, **ACCURACY)
        while self.solution[-1][0] < end:
            solver.step()
            if solver.status == "failed":
                raise _too_small_steps(solver.t)
            self.pieces.append(solver.dense_output())
            self.solution.append((solver.t, solver.y))
            if first is not None:
                return

    def leap(self, over: SingularityError, end: float) -> None:
        """A step over a singularity, from the shortest sufficient distance; nearer steps are computed again."""
        for distance in (over.time - self.solution[-1][0]) * LEAPS:
            while self.pieces and self.solution[-1][0] > over.time - distance:
                del self.solution[-1], self.pieces[-1]
            if self.solution[-1][0] > over.time - distance:
                break
            with suppress(SingularityError):
                self.go(over.time - distance)
                self.go(end, min(distance / AHEAD, end - self.solution[-1][0]))
                if self.solution[-1][0] > over.time:
                    return
        raise over


def _too_small_steps(time: float) -> SingularityError:
    return SingularityError(
        f"the simulation stopped at t = {time:.4f} s: its steps became too small", time=time, singular_value=np.nan
    )


def _integrated(
    rate: Callable[[float, Array], Array], y: Array, start: float, end: float
) -> Callable[[float], AnyArray]:
    """The solution from a value at the start, as a function of time; singularities are leapt over."""
    from scipy.integrate import OdeSolution

    path = _Path(rate, [(start, y)])
    while path.solution[-1][0] < end:
        try:
            path.go(end)
        except SingularityError as error:
            path.leap(error, end)
    return OdeSolution([time for time, _ in path.solution], path.pieces)


def dependent_velocities(mechanism: Mechanism, q: PositionSeries, free: Array, independent: AnyArray) -> VelocitySeries:
    """All joint velocities from the independent velocities.

    Args:
        q: Joint positions with closed loops.
        free: Independent velocities [m/s or rad/s], shape (nt, n).
        independent: Mask of the independent dofs [-], shape (nv,).
    """
    qd = np.zeros((len(q), mechanism.nv))
    qd[:, independent] = free
    Phi = closure_jacobian_at(mechanism, q)
    qd[:, ~independent] = solve_dependent(Phi[..., ~independent], Phi @ qd[..., None])[..., 0]
    return qd
