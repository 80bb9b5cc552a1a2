"""Closes the loops along a prescribed motion: positions by Newton's method, velocities and accelerations exactly.

The actuated joints are given, the passive ones follow from the closures. Each sample starts from the one before, so
that the robot stays in its working mode; a motion that leaves the workspace or meets a singularity is refused, with the
time at which it does.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq

from analytic.closures import (
    RANK_TOLERANCE,
    closure_jacobian,
    closure_jacobian_rate,
    closure_names,
    closure_residual,
    solve_dependent,
)
from analytic.kinematics import poses, retract, twist_matrices, twists
from analytic.laws import prescription
from robots.arrays import AnyArray, Array
from robots.errors import LoopClosureError, MechanismError, SingularityError
from robots.mechanism import Mechanism
from robots.motion import Drive, Law, Motion, report_grid
from robots.robot import Case

CLOSED = 1e-6
"""Largest closure residual of an assembled pose [m or rad]; models that close exactly reach 1e-15."""
FINEST_STEP = 2.0**-14
"""Fraction of a step of the grid down to which the continuation is refined [-]."""


def prescribe(case: Case, *, dt: float | None = None) -> Motion:
    """The prescribed motion of a case on the report grid, with the loops closed.

    Args:
        case: Robot, variant, mode and configuration.
        dt: Step of the grid [s]; by default that of `report_grid`.

    Raises:
        LoopClosureError: If the loops cannot be closed at the start.
        SingularityError: If the motion leaves the workspace or meets a singularity; it says when.
        MechanismError: If the actuators do not determine the motion, or the motion law does not fit the robot.
    """
    mechanism = case.mechanism
    if not mechanism.actuators:
        raise MechanismError(f"{mechanism.model.path}: no actuators, so no joint to prescribe a motion for")
    wanted = prescription(case)
    where = f"{mechanism.model.path}, mode {case.mode}"
    return assemble(mechanism, wanted.law, case.guess, report_grid(wanted.span, dt=dt), where=where)


def assemble(mechanism: Mechanism, law: Law, guess: Array, t: Array, *, where: str = "") -> Motion:
    """Close the loops along a motion law.

    Args:
        mechanism: Robot.
        law: What is prescribed for the actuated joints.
        guess: Joint positions near those at the first time [m or rad], shape (nq,).
        t: Increasing times [s], shape (nt,).
        where: What is assembled, for the error messages; by default the file of the model.

    Raises:
        LoopClosureError: If the loops cannot be closed at the first time.
        SingularityError: If the motion leaves the workspace or meets a singularity; it says when.
        MechanismError: If the actuators do not determine the motion.
    """
    where = where or str(mechanism.model.path)
    tracer = _Tracer(mechanism=mechanism, law=law, actuated=_actuated_dofs(mechanism), where=where)
    return _follow(tracer, [tracer.start(guess, float(t[0]))], t)


def _follow(tracer: "_Tracer", known: "list[_State]", t: Array) -> Motion:
    """The motion at increasing times, followed from the nearest state that is known, so that it keeps its mode."""
    state = min(known, key=lambda state: abs(state.t - t[0]))
    states = [state := tracer.advance(state, float(time)) for time in t]
    q = np.concatenate([state.q for state in states])
    tracer.refuse_singularities(states, tracer.dependent_jacobian(q))
    qd, qdd = tracer.rates(q, tracer.law(t))
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=tracer.law, assemble=partial(_follow, tracer, states))


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    t: float
    q: Array  # (1, nq)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tracer:
    """Continuation of one mechanism along one law."""

    mechanism: Mechanism
    law: Law
    actuated: AnyArray
    """Mask of the actuated dofs, shape (nv,)."""
    where: str

    def start(self, guess: Array, t: float) -> _State:
        """Close the loops near a guess of shape (nq,)."""
        q, residual = self._close(guess[None], t)
        if residual > CLOSED:
            raise LoopClosureError(
                f"{self.where}: the loops cannot be closed at the start, t = {t:g} s: want a gap of at "
                f"most {CLOSED:g}, got {residual:.3g} (m or rad) at closure '{self._widest(q)}'",
                residual=residual,
                tolerance=CLOSED,
                time=t,
            )
        self._want_enough_actuators(q)
        return _State(t=t, q=q)

    def advance(self, state: _State, end: float) -> _State:
        """Follow the motion to another time, in smaller steps where one does not do."""
        t, finest = end, abs(end - state.t) * FINEST_STEP
        while state.t != end:
            q = self._step(state, t)
            if q is not None:
                state, t = _State(t=t, q=q), end
            elif abs(t - state.t) > finest:
                t = (state.t + t) / 2
            else:
                raise self._singular("leaves the workspace or meets a singularity", state)
        return state

    def rates(self, q: Array, drive: Drive) -> tuple[Array, Array]:
        """Velocities and accelerations that keep the loops closed, both of shape (nt, nv)."""
        mechanism, actuated = self.mechanism, self.actuated
        dofs = [mechanism.dof_slices[j].start for j in mechanism.actuated_joints]
        at = poses(mechanism, q)
        Phi = closure_jacobian(mechanism, at, twist_matrices(mechanism, at), q)
        qd, qdd = np.zeros((len(q), mechanism.nv)), np.zeros((len(q), mechanism.nv))
        qd[:, dofs], qdd[:, dofs] = drive.qd, drive.qdd
        right = Phi @ qd[..., None]
        qd[:, ~actuated] = solve_dependent(Phi[..., ~actuated], right)[..., 0]
        Phi_dot = closure_jacobian_rate(mechanism, at, twists(mechanism, at, qd), q, qd)
        right = Phi @ qdd[..., None] + Phi_dot @ qd[..., None]
        qdd[:, ~actuated] = solve_dependent(Phi[..., ~actuated], right)[..., 0]
        return qd, qdd

    def dependent_jacobian(self, q: Array) -> Array:
        """Columns of Φ of the passive dofs, Φᵘ, shape (nt, nc, nu)."""
        at = poses(self.mechanism, q)
        return closure_jacobian(self.mechanism, at, twist_matrices(self.mechanism, at), q)[..., ~self.actuated]

    def refuse_singularities(self, states: list[_State], Phi_u: Array) -> None:
        """Raise if Φᵘ is singular at a sample, or changes its orientation between two."""
        if not Phi_u.shape[-1]:
            return
        ratios = _conditioning(Phi_u)[0]
        worst = int(np.argmin(ratios))
        if ratios[worst] < RANK_TOLERANCE:
            raise self._singular("meets a singularity", states[worst])
        U = np.linalg.svd(Phi_u, full_matrices=False)[0].swapaxes(1, 2)  # of the range of Φᵘ, which turns slowly
        turned = np.linalg.det(U[:-1] @ Phi_u[:-1]) * np.linalg.det(U[:-1] @ Phi_u[1:]) < 0
        for k in np.flatnonzero(turned):

            def orientation(t: float, k: int = int(k)) -> float:
                return float(np.linalg.det(U[k] @ self.dependent_jacobian(self.advance(states[k], t).q)[0]))

            crossing = brentq(orientation, states[k].t, states[k + 1].t, xtol=1e-12)
            raise self._singular("meets a singularity", self.advance(states[k], crossing))

    def _step(self, state: _State, t: float) -> Array | None:
        """Joint positions at the new time, shape (1, nq), or None if the step is too long to trust."""
        dt = t - state.t
        qd, qdd = self.rates(state.q, self.law(np.array([state.t])))
        move = qd * dt + qdd * dt**2 / 2
        predicted = retract(self.mechanism, state.q, move)
        q, residual = self._close(predicted, t)
        trusted = 1e-4 + 0.5 * np.abs(move).max()  # a larger correction may be a jump to another working mode
        return q if residual <= CLOSED and np.abs(q - predicted).max() <= trusted else None

    def _close(self, q: Array, t: float) -> tuple[Array, float]:
        """Newton's method on the passive joints until the residual stalls; positions (1, nq) and largest residual."""
        q = q.copy()
        q[:, [self.mechanism.q_slices[j].start for j in self.mechanism.actuated_joints]] = self.law(np.array([t])).q
        best, best_residual, stalled = q, np.inf, 0
        while best_residual > 0 and stalled < (1 if best_residual <= CLOSED else 3):
            at = poses(self.mechanism, q)
            phi = closure_residual(self.mechanism, at, q)
            residual = float(np.abs(phi).max(initial=0.0))
            stalled = 0 if residual < best_residual / 2 else stalled + 1
            if residual < best_residual:
                best, best_residual = q, residual
            Phi = closure_jacobian(self.mechanism, at, twist_matrices(self.mechanism, at), q)
            step = np.zeros((1, self.mechanism.nv))
            step[:, ~self.actuated] = solve_dependent(Phi[..., ~self.actuated], phi[..., None])[..., 0]
            q = retract(self.mechanism, q, step / max(1.0, float(np.abs(step).max())))  # at most 1 m or rad at once
        return best, best_residual

    def _want_enough_actuators(self, q: Array) -> None:
        at = poses(self.mechanism, q)
        Phi = closure_jacobian(self.mechanism, at, twist_matrices(self.mechanism, at), q)[0]
        dof = self.mechanism.nv - (int(np.linalg.matrix_rank(Phi, rtol=RANK_TOLERANCE)) if Phi.size else 0)
        if dof > self.actuated.sum():
            raise MechanismError(
                f"{self.where}: want an actuated joint for each of the {dof} degrees of freedom at the "
                f"start, got {self.actuated.sum()}: dofs that nothing drives are not supported"
            )

    def _singular(self, what: str, state: _State) -> SingularityError:
        ratios, smallest = _conditioning(self.dependent_jacobian(state.q))
        return SingularityError(
            f"{self.where}: the motion {what} at t = {state.t:.6f} s: smallest singular value of the "
            f"passive closure Jacobian {smallest[0]:.3g}, {ratios[0]:.3g} of the largest",
            time=state.t,
            singular_value=float(ratios[0]),
        )

    def _widest(self, q: Array) -> str:
        """Name of the closure that is open widest."""
        phi = np.abs(closure_residual(self.mechanism, poses(self.mechanism, q), q)[0])
        return closure_names(self.mechanism)[int(np.argmax(phi))]


def _actuated_dofs(mechanism: Mechanism) -> AnyArray:
    mask = np.zeros(mechanism.nv, dtype=bool)
    mask[[mechanism.dof_slices[j].start for j in mechanism.actuated_joints]] = True
    return mask


def _conditioning(Phi_u: Array) -> tuple[Array, Array]:
    """Smallest singular value of each sample relative to the largest, and by itself; both of shape (nt,)."""
    values = np.asarray(np.linalg.svd(Phi_u, compute_uv=False), dtype=np.float64)
    return values[:, -1] / values[:, 0], values[:, -1]
