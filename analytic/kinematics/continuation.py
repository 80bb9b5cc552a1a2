"""Follows a prescribed motion with the loops closed, from state to state.

Newton's method closes the loops on the joints that are not prescribed, from the extrapolation of the last state. Steps
are halved until the correction is small beside the step, so that the robot stays in its working mode.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    closure_names,
    null_space,
    solve_dependent,
)
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries, Times, svd
from loopcheck.robots.errors import LoopClosureError, SingularityError
from loopcheck.robots.mechanism import Coordinate, CoordinateClosure, Mechanism
from loopcheck.robots.motion import Drive, Law, Motion
from loopcheck.robots.size import unit_rates

MOST_ITERATIONS = 20
"""Newton steps on a closure that does not settle."""
EXACT = 1e-14
"""Closure residual that is not improved any more [m or rad]."""
ROUND_OFF = 2 * float(np.finfo(float).eps)
"""The same over the longest link [-], if that is less, for poses that are closed one by one."""
BESIDE = (0.03, 0.1, 0.3, 1.0)
"""Distances of the starts beside a pose, as many of each [rad, or sizes of the robot]."""
CLOSED = 1e-6
"""Largest closure residual of an assembled pose [m or rad]; models that close exactly reach 1e-15."""
SOUND = 10 * RANK_TOLERANCE
"""Smallest relative singular value of Φᵘ above which a pose is certainly on its own branch [-]."""
FINEST_STEP = 2.0**-14
"""Finest step of the continuation, relative to a step of the grid [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedPose:
    """A pose with closed loops."""

    t: float
    """Time [s]."""
    q: Array
    """Joint positions [m or rad], shape (1, nq)."""
    state: State | None = None
    """Its kinematics, if computed already."""


def _still(t: Times) -> Drive:
    """The motion of no drive."""
    none = np.zeros((len(t), 0))
    return Drive(q=none, qd=none, qdd=none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """Continuation of a mechanism along a law."""

    mechanism: Mechanism
    law: Law
    drives: tuple[Coordinate, ...]
    """Prescribed coordinates, in the order of the law."""
    where: str

    @classmethod
    def free(cls, mechanism: Mechanism, where: str = "") -> Self:
        """A tracer without prescribed coordinates: every joint may give way to close the loops.

        Args:
            where: Name of the robot, for the error messages; by default the file of the model.
        """
        return cls(mechanism=mechanism, law=_still, drives=(), where=where or str(mechanism.model.path))

    @property
    def of_joints(self) -> list[int]:
        """Places in `drives` of single joints, which are set to their prescribed positions."""
        return [k for k, drive in enumerate(self.drives) if drive.is_joint]

    @property
    def of_tendons(self) -> list[int]:
        """Places in `drives` of the other coordinates, which are prescribed by further closures."""
        return [k for k, drive in enumerate(self.drives) if not drive.is_joint]

    @property
    def dofs(self) -> list[int]:
        """The dofs of prescribed joints."""
        return [self.mechanism.dof_slices[self.drives[k].joints[0]].start for k in self.of_joints]

    @property
    def passive(self) -> AnyArray:
        """Mask of the dofs that follow, shape (nv,)."""
        mask = np.ones(self.mechanism.nv, dtype=bool)
        mask[self.dofs] = False
        return mask

    def with_tendons_held(self, t: float) -> Mechanism:
        """The mechanism with a closure for each prescribed tendon that holds it at its length at a time [s]."""
        of_tendons = self.of_tendons
        if not of_tendons:
            return self.mechanism
        tendons = [self.drives[k] for k in of_tendons]
        rest = self.mechanism.values_of(tendons, self.mechanism.rest_position[None])[0]
        lengths = self.law(np.array([t])).q[0, of_tendons] - rest
        closures = [
            CoordinateClosure(name=tendon.name, follower=tendon, leader=None, coefficients=np.array([x, 0, 0, 0, 0]))
            for tendon, x in zip(tendons, lengths, strict=True)
        ]
        return replace(self.mechanism, closures=(*self.mechanism.closures, *closures))

    def undriven(self, q: Array) -> int:
        """Number of degrees of freedom that are not prescribed.

        Args:
            q: Closed pose [m or rad], shape (1, nq).
        """
        Phi, W = closure_jacobian_at(self.mechanism, q)[0], self.mechanism.rates_of(self.drives)
        return null_space(np.concatenate([Phi, W])).shape[1]

    def start(self, guess: JointPositions, t: float) -> ClosedPose:
        """Close the loops at a time.

        Args:
            t: Time [s].

        Raises:
            LoopClosureError: If they cannot be closed.
        """
        q, residual = self.close(guess[None], t)
        if residual > CLOSED:
            raise LoopClosureError(
                f"{self.where}: the loops cannot be closed at the start, t = {t:g} s: loop gap must be at "
                f"most {CLOSED:g}, got {residual:.3g} (m or rad) at closure '{self._widest(q)}'{self._conflict(q, t)}",
                residual=residual,
                tolerance=CLOSED,
                time=t,
            )
        return ClosedPose(t=t, q=q)

    def advance(self, state: ClosedPose, end: float, drive: Drive | None = None) -> ClosedPose:
        """Follow the motion to another time, in smaller steps if a single step fails.

        Args:
            drive: Values of the law at both times, if they are computed already.

        Raises:
            SingularityError: If it cannot be followed; `time` is its end.
        """
        t, finest = end, abs(end - state.t) * FINEST_STEP
        while state.t != end:
            closed = self._step(state, t, drive or self.law(np.array([state.t, t])))
            drive = None
            if closed is not None:
                state, t = closed, end
            elif abs(t - state.t) > finest:
                t = (state.t + t) / 2
            else:
                raise self._singular("leaves the workspace or meets a singularity", state)
        return state

    def rates(self, q: PositionSeries, drive: Drive) -> tuple[Array, Array]:
        """Velocities and accelerations that keep the loops closed, both of shape (nt, nv).

        Args:
            drive: Prescribed motion at the samples.
        """
        return self._rates(State.at_rest(self.with_tendons_held(0.0), q), drive)

    def _rates(self, closed: State, drive: Drive) -> tuple[Array, Array]:
        """As `rates`, with the kinematics of the poses."""
        mechanism, dofs, passive = closed.mechanism, self.dofs, self.passive
        joints, tendons = self.of_joints, self.of_tendons
        qd, qdd = np.zeros((len(closed.q), mechanism.nv)), np.zeros((len(closed.q), mechanism.nv))
        qd[:, dofs], qdd[:, dofs] = drive.qd[:, joints], drive.qdd[:, joints]
        state = closed.with_velocities(qd)
        Phi, dependent = state.Phi, state.dependent_rates(~passive)
        held = np.eye(Phi.shape[1])[:, Phi.shape[1] - len(tendons) :]  # rows that hold them
        held = held if state.resolved is None else state.resolved @ held
        right = Phi @ qd[..., None] - held @ drive.qd[:, tendons, None]
        qd[:, passive] = dependent(right)[..., 0]
        right = Phi @ qdd[..., None] + state.with_velocities(qd).Phi_dot @ qd[..., None]
        qdd[:, passive] = dependent(right - held @ drive.qdd[:, tendons, None])[..., 0]
        return qd, qdd

    def dependent_jacobian(self, q: PositionSeries) -> Array:
        """Columns of Φ of the passive dofs, Φᵘ, shape (nt, nc, nu); rows of prescribed tendons come last."""
        return closure_jacobian_at(self.with_tendons_held(0.0), q)[..., self.passive]

    def refuse_singularities(self, states: list[ClosedPose], Phi_u: Array) -> None:
        """Raise if Φᵘ changes its orientation between two samples, or is singular at a sample.

        Args:
            Phi_u: Φᵘ at the samples [m/rad or m/m], shape (nt, nc, nu).

        Raises:
            SingularityError: With the time and the smallest singular value.
        """
        if not Phi_u.shape[-1]:
            return
        ratios = conditioning(Phi_u)[0]
        sound = np.flatnonzero(ratios > SOUND)
        U = svd(Phi_u[sound], full_matrices=False)[0].swapaxes(1, 2)  # of the range of Φᵘ, turning slowly
        before, after = np.linalg.det(U[:-1] @ Phi_u[sound[:-1]]), np.linalg.det(U[:-1] @ Phi_u[sound[1:]])
        turned = np.flatnonzero(before * after < 0)
        if turned.size:
            crossings = [self._crossing(states[sound[k]], states[sound[k + 1]], U[k]) for k in turned]
            raise self._singular("meets a singularity", *crossings)
        worst = int(np.argmin(ratios))
        if ratios[worst] < RANK_TOLERANCE:
            raise self._singular("meets a singularity", states[worst])
        for k in np.flatnonzero(may_vanish(ratios)):
            deepest = self._worst_conditioned(states[k], states[k + 1])
            if conditioning(self.dependent_jacobian(deepest.q))[0][0] < RANK_TOLERANCE:
                raise self._singular("meets a singularity", deepest)

    def _worst_conditioned(self, before: ClosedPose, after: ClosedPose) -> ClosedPose:
        """Time between two states at which Φᵘ has its worst conditioning.

        At a crossing of branches, a step can end on the other branch, with the same orientation of Φᵘ.
        """
        from scipy.optimize import minimize_scalar

        def ratio(time: float) -> float:
            return float(conditioning(self.dependent_jacobian(self.advance(before, time).q))[0][0])

        span = after.t - before.t
        minimum = minimize_scalar(ratio, bounds=(before.t, after.t), method="bounded", options={"xatol": 1e-9 * span})
        return self.advance(before, float(minimum.x))

    def _crossing(self, before: ClosedPose, after: ClosedPose, U: Array) -> ClosedPose:
        """Time between two states at which the orientation of Φᵘ changes, seen through U of shape (nu, nc).

        Newton's method cannot distinguish the branches that meet there, so the positions are interpolated through it.
        """
        from scipy.interpolate import BarycentricInterpolator
        from scipy.optimize import brentq

        t = np.linspace(before.t, after.t, 9)
        q = np.concatenate([before.q, *(self.advance(before, float(time)).q for time in t[1:-1]), after.q])
        sound = conditioning(self.dependent_jacobian(q))[0] > SOUND
        path = BarycentricInterpolator(t[sound], q[sound], rng=0)  # it draws the order of its nodes

        def orientation(time: float) -> float:
            return float(np.linalg.det(U @ self.dependent_jacobian(path(np.array([time])))[0]))

        time = brentq(orientation, before.t, after.t, xtol=1e-12)
        return ClosedPose(t=time, q=path(np.array([time])))

    def _step(self, state: ClosedPose, t: float, drive: Drive) -> ClosedPose | None:
        """The pose at the new time, or None if the step is too long to trust.

        Args:
            drive: Values of the law at the time of the state and at the new time.
        """
        dt = t - state.t
        begin = Drive(*(x[:1] for x in drive))
        qd, qdd = self._rates(state.state, begin) if state.state is not None else self.rates(state.q, begin)
        move = qd * dt + qdd * dt**2 / 2
        predicted = retract(self.mechanism, state.q, move)
        closed, residual = self._closed(predicted, t, drive.q[1:])
        trusted = 1e-4 + 0.5 * np.abs(move).max()  # a larger correction may be a jump to another working mode
        is_trusted = residual <= CLOSED and np.abs(closed.q - predicted).max() <= trusted
        return ClosedPose(t=t, q=closed.q, state=closed) if is_trusted else None

    def close(self, q: Array, t: float) -> tuple[Array, float]:
        """Close the loops on the passive dofs at a time.

        Args:
            q: Joint positions nearby [m or rad], shape (1, nq).
            t: Time [s].

        Returns:
            Joint positions, shape (1, nq), and the largest residual [m or rad].
        """
        state, residual = self._closed(q, t, self.law(np.array([t])).q)
        return state.q, residual

    def _closed(self, q: Array, t: float, driven: Array) -> tuple[State, float]:
        """As `close`, with the prescribed coordinates at the time, shape (1, drives); returns the whole state."""
        q = q.copy()
        joints = self.of_joints
        if joints:
            columns = [self.mechanism.q_slices[self.drives[k].joints[0]].start for k in joints]
            q[:, columns] = driven[:, joints]
        return _closed_state(self.with_tendons_held(t), q, self.passive)

    def _singular(self, what: str, state: ClosedPose, *more: ClosedPose) -> SingularityError:
        ratios, smallest = conditioning(self.dependent_jacobian(state.q))
        again = f", again at {', '.join(f'{other.t:.6f}' for other in more)} s" if more else ""
        return SingularityError(
            f"{self.where}: the motion {what} at t = {state.t:.6f} s{again} (passive closure Jacobian: smallest "
            f"singular value {smallest[0]:.3g}, ratio to the largest {ratios[0]:.3g})",
            time=state.t,
            singular_value=float(ratios[0]),
        )

    def _conflict(self, q: Array, t: float) -> str:
        """The closures whose removal lets the remaining closures close from a pose (1, nq), as a clause, or empty."""
        closures, culprits = self.mechanism.closures, []
        for closure in closures if len(closures) > 1 else ():
            rest = tuple(other for other in closures if other is not closure)
            if replace(self, mechanism=replace(self.mechanism, closures=rest)).close(q, t)[1] <= CLOSED:
                culprits.append(f"'{closure.name}'")
        return (
            (f". The closures contradict each other: without {' or '.join(culprits)} the loops close")
            if culprits
            else ""
        )

    def _widest(self, q: Array) -> str:
        """Name of the closure that is open widest."""
        phi = np.abs(State.at_rest(self.mechanism, q).gap[0])
        return closure_names(self.mechanism)[int(np.argmax(phi))]


def may_vanish(ratios: Array) -> AnyArray:
    """Intervals in which a conditioning may reach zero: the lines from both sides meet at less than half of it.

    Args:
        ratios: Smallest singular value over the largest at samples of a path [-], shape (nt,).

    Returns:
        Mask of the intervals [-], shape (nt - 1,); the first and the last interval lack a line on a side.
    """
    mask = np.zeros(max(len(ratios) - 1, 0), np.bool_)
    if len(ratios) < 4:
        return mask
    before, after = ratios[1:-2], ratios[2:-1]
    falling, rising = before - ratios[:-3], ratios[3:] - after
    is_dip = (falling < 0) & (rising > 0)
    s = np.clip((after - rising - before) / np.where(is_dip, falling - rising, 1), 0, 1)
    mask[1:-1] = is_dip & (before + falling * s < np.minimum(before, after) / 2)
    return mask


def conditioning(Phi_u: Array, follow: int | None = None) -> tuple[Array, Array]:
    """Smallest singular value of each sample relative to the largest, and by itself; both of shape (nt,).

    Args:
        Phi_u: Passive columns of the closure Jacobian [m/rad or m/m], shape (nt, nc, nu).
        follow: How many of the passive dofs follow from the closures; by default all.
    """
    if not Phi_u.shape[2]:  # a drive on every joint
        return np.ones(len(Phi_u)), np.ones(len(Phi_u))
    values = np.asarray(np.linalg.svd(Phi_u, compute_uv=False), dtype=np.float64)
    smallest = values[:, -1 if follow is None else follow - 1]
    return smallest / values[:, 0], smallest


def close(mechanism: Mechanism, q: Array, passive: AnyArray) -> tuple[Array, float]:
    """Close the loops by Newton's method, until the residual stalls or is round-off.

    Args:
        q: Joint positions nearby [m or rad], shape (1, nq).
        passive: Mask of the dofs that may move [-], shape (nv,).

    Returns:
        Joint positions, shape (1, nq), and the largest closure residual [m or rad].
    """
    state, residual = _closed_state(mechanism, q, passive)
    return state.q, residual


def _closed_state(mechanism: Mechanism, q: Array, passive: AnyArray) -> tuple[State, float]:
    """As `close`, but returns the state at rest instead of its joint positions."""
    best, best_residual, stalled = State.at_rest(mechanism, q), np.inf, 0
    state, exact = best, min(EXACT, ROUND_OFF * mechanism.stacked.longest_link)
    while True:
        phi = state.resolved_gap
        residual = float(state.residual[0])
        stalled = 0 if residual < best_residual / 2 else stalled + 1
        if residual < best_residual:
            best, best_residual = state, residual
        if best_residual <= exact or stalled >= (1 if best_residual <= CLOSED else 3):
            return best, best_residual
        step = np.zeros((1, mechanism.nv))
        step[:, passive] = solve_dependent(state.Phi[..., passive], phi[..., None])[..., 0]
        q = retract(mechanism, state.q, step / max(1.0, float(np.abs(step).max())))  # at most 1 m or rad at once
        state = State.at_rest(mechanism, q)


def close_batch(
    mechanism: Mechanism, q: PositionSeries, passive: AnyArray, *, enough: float = EXACT
) -> tuple[Array, Array]:
    """Close the loops of many poses by Newton's method, until no residual falls.

    Args:
        passive: Mask of the dofs that may move [-], shape (nv,).
        enough: Residual that is not improved any more [m or rad].

    Returns:
        Poses [m or rad], shape (nt, nq), and their residuals [m or rad], shape (nt,).
    """
    best, least = q, np.full(len(q), np.inf)
    for _ in range(MOST_ITERATIONS):
        state = State.at_rest(mechanism, q)
        phi, residual = state.resolved_gap, state.residual
        better = residual < least
        settled = not (residual < least / 2).any()
        best, least = np.where(better[:, None], q, best), np.where(better, residual, least)
        if settled or least.max() <= enough:
            break
        step = np.zeros((len(q), mechanism.nv))
        step[:, passive] = solve_dependent(state.Phi[..., passive], phi[..., None])[..., 0]
        q = retract(mechanism, q, step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True)))
    return best, least


def closed_beside(mechanism: Mechanism, q: JointPositions) -> PositionSeries:
    """Closed poses beside a pose from which Newton's method stalls, as in a linkage that is stretched in line.

    Returns:
        Poses from seeded starts, the nearest first [m or rad], shape (found, nq).
    """
    reach = np.repeat(BESIDE, len(BESIDE))[:, None] * unit_rates(mechanism)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind == "free":
            reach[:, dofs] = 0.0  # no loop depends on the place of a base that floats
    starts = retract(mechanism, np.repeat(q[None], len(reach), axis=0), np.random.default_rng(0).uniform(-reach, reach))
    found, residual = close_batch(mechanism, starts, np.ones(mechanism.nv, dtype=np.bool_))
    closed = found[residual <= CLOSED]
    return closed[np.abs(closed - q).max(axis=1).argsort()]


def follow(tracer: Tracer, known: list[ClosedPose], t: Times) -> Motion:
    """The motion at increasing times, followed from the nearest computed state, so that it keeps its mode.

    Args:
        tracer: Mechanism and law.

    Raises:
        SingularityError: If the motion leaves the workspace or meets a singularity; `time` is its time.
    """
    q = _poses_between(tracer, known, t)
    if q is None:
        q = poses_along(tracer, min(known, key=lambda state: abs(state.t - t[0])), t)
    return motion_through(tracer, q, t)


def _poses_between(tracer: Tracer, known: list[ClosedPose], t: Times) -> PositionSeries | None:
    """The closed poses at times between computed states, or a step beside them, each from the nearest and all at once.

    None where a state is missing, or a pose may belong to another mode, as in `Tracer.advance`.
    """
    of_known = np.array([state.t for state in known])
    if len(known) < 2 or tracer.of_tendons or not len(t):
        return None
    beside = np.diff(of_known).max()
    if t[0] < of_known[0] - beside or t[-1] > of_known[-1] + beside:
        return None
    nearest = _nearest(of_known, t)
    some, place = np.unique(nearest, return_inverse=True)
    start, mechanism = np.concatenate([known[k].q for k in some]), tracer.mechanism
    qd, qdd = tracer.rates(start, tracer.law(of_known[some]))
    dt = (t - of_known[nearest])[:, None]
    move = qd[place] * dt + qdd[place] * dt**2 / 2
    q = retract(mechanism, start[place], move)
    columns = [mechanism.q_slices[tracer.drives[k].joints[0]].start for k in tracer.of_joints]
    q[:, columns] = tracer.law(t).q[:, tracer.of_joints]
    exact = min(EXACT, ROUND_OFF * mechanism.stacked.longest_link)
    closed, residual = close_batch(mechanism, q, tracer.passive, enough=exact)
    is_trusted = np.abs(closed - q).max(axis=1) <= 1e-4 + 0.5 * np.abs(move).max(axis=1)
    return closed if (is_trusted & (residual <= CLOSED)).all() else None


def _nearest(known: Times, t: Times) -> AnyArray:
    """Numbers of the nearest of some increasing times."""
    after = np.clip(np.searchsorted(known, t), 1, len(known) - 1)
    return np.where(t - known[after - 1] <= known[after] - t, after - 1, after)


def poses_along(tracer: Tracer, start: ClosedPose, t: Times) -> PositionSeries:
    """The closed poses at increasing times, each followed from the one before.

    Raises:
        SingularityError: If the motion leaves the workspace or meets a singularity.
    """
    drive = tracer.law(np.array([start.t, *t]))
    return np.concatenate(
        [
            (start := tracer.advance(start, float(time), Drive(*(x[k : k + 2] for x in drive)))).q
            for k, time in enumerate(t)
        ]
    )


def motion_through(tracer: Tracer, q: PositionSeries, t: Times) -> Motion:
    """The motion through closed poses.

    Args:
        tracer: Mechanism and law.
        q: Joint positions that close the loops at the values of the law.

    Raises:
        SingularityError: If the motion meets a singularity; `time` is its time.
    """
    states = [ClosedPose(t=float(time), q=q[[k]]) for k, time in enumerate(t)]
    tracer.refuse_singularities(states, tracer.dependent_jacobian(q))
    qd, qdd = tracer.rates(q, tracer.law(t))
    again = partial(follow, tracer, states)
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=law_of_drives(tracer, again), assemble=again)


def law_of_drives(tracer: Tracer, again: Callable[[Array], Motion]) -> Law:
    """Motion of all driven coordinates, also if only some of them are prescribed and the others follow."""
    prescribed = [(drive.name, drive.joints) for drive in tracer.drives]
    every = [(drive.name, drive.joints) for drive in tracer.mechanism.drives]
    return tracer.law if prescribed == every else partial(_drive_of_motion, tracer.mechanism, again)


def _drive_of_motion(mechanism: Mechanism, again: Callable[[Array], Motion], t: Array) -> Drive:
    motion, W_T = again(t), mechanism.rates_of(mechanism.drives).T
    return Drive(q=mechanism.values_of(mechanism.drives, motion.q), qd=motion.qd @ W_T, qdd=motion.qdd @ W_T)
