"""Motions with unactuated degrees of freedom: rods that spin, links held by springs, a floating base.

The driven coordinates s = W q are prescribed, the others follow from the dynamics: of all accelerations that keep the
loops closed and give the drives s̈, those without a remaining generalized force along the motions that no actuator
moves. They are integrated in time by LSODA (Petzold 1983), which changes from Adams' method to backward differences
where the equations are stiff, and every sample is projected back on the closures.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from loopcheck.analytic.dynamics.noc import tree_model
from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    row_factors,
    solve_dependent,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, Tracer, law_of_drives
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import position_rate, retract
from loopcheck.robots.arrays import AccelerationSeries, Array, PositionSeries, Times, VelocitySeries, svd
from loopcheck.robots.errors import MechanismError, SingularityError
from loopcheck.robots.motion import Motion

if TYPE_CHECKING:
    from scipy.integrate import OdeSolution

ACCURACY, ROUGH = 1e-9, 1e-4
"""Relative error of the integration in a step, and of a rough one with a quarter of the evaluations [-]."""
FRESH = 0.05
"""Time after which the Jacobian of the integration is computed again [s]: dampers on light bodies make it stiff."""
NEARBY = 1e-6
"""Step of the differences for the Jacobian of the integration, relative to the state if above 1 [-]."""
AT_ONCE = 2**24
"""Numbers in the twist matrices of the states that are evaluated together [-]: 128 MB, and as much a few times more."""
MOST_EVALUATIONS = (20_000, 200_000.0)
"""Limit of evaluations of accelerations: in any case [-], and besides for each second of the motion [1/s]."""
STALLED = (2000, 1e-4)
"""Evaluations between two checks of progress [-], and the least progress, relative to the motion [-]."""
MOST_SECONDS = (60.0, 240.0)
"""Limit of the CPU time of an integration: in any case [s], and besides for each second of the motion [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingState:
    """A pose with closed loops, and how it moves."""

    t: float
    """Time [s]."""
    q: Array
    """Joint positions [m or rad], shape (1, nq)."""
    qd: Array
    """Joint velocities [m/s or rad/s], shape (1, nv)."""
    onward: "OdeSolution | None" = None
    """Positions and velocities as functions of time from here on, as far as they have been integrated."""


def integrate_unactuated(tracer: Tracer, known: list[MovingState], t: Times, *, rough: bool = False) -> Motion:
    """The motion at increasing times, each integrated from the latest known state.

    The motion keeps the integration: at other times it is evaluated, and integrated only beyond its end. There is no
    integration before the first state: backwards in time, damped motions grow without bound. There the motion is one
    of constant acceleration that leads to the first state.

    Args:
        tracer: Mechanism and law of the driven coordinates.
        known: States on the motion, in time.
        rough: Whether the size of the motion is all that matters.

    Raises:
        SingularityError: If the motion meets a singularity; `time` is its time.
    """
    latest = np.searchsorted([state.t for state in known], t, side="right") - 1
    states = [_before(tracer, known[0], float(time)) for time in t[latest < 0]]
    known = list(known)
    for k in np.unique(latest[latest >= 0]):
        times = t[latest == k]
        known[k] = _integrated(tracer, known[k], float(times[-1]), rough=rough)
        states += [_at(tracer, known[k], float(time)) for time in times]
    q, qd = np.concatenate([state.q for state in states]), np.concatenate([state.qd for state in states])
    again = partial(integrate_unactuated, tracer, known, rough=rough)
    qdd = accelerations(tracer, t, q, qd)
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=law_of_drives(tracer, again), assemble=again)


def at_rest(tracer: Tracer, q: Array, t: float) -> MovingState:
    """The state with the prescribed motion of the drives and otherwise as little motion as possible.

    Args:
        tracer: Mechanism and law.
        q: Closed pose [m or rad], shape (1, nq).
        t: Time [s].
    """
    return MovingState(t=t, q=q, qd=settled(tracer, q, np.zeros((1, tracer.mechanism.nv)), t))


def accelerations(
    tracer: Tracer, t: Times, q: PositionSeries, qd: VelocitySeries, *, rank: int | None = None
) -> AccelerationSeries:
    """Accelerations of all joints: prescribed for the drives, by the dynamics for all others.

    Args:
        tracer: Mechanism and law.
        rank: Rank of the constraints of closures and drives: between closed poses redundant closures are only nearly
            redundant. By default it is judged.

    Raises:
        SingularityError: If the closures do not keep the driven coordinates independent; `time` is the time.
    """
    state = State(mechanism=tracer.mechanism, q=q, qd=qd)
    right = np.concatenate([-(state.Phi_dot @ qd[..., None])[..., 0], tracer.law(t).qdd], axis=1)
    constraints = _held(tracer, state.Phi)
    factors = row_factors(constraints)
    U, values, V_T = svd(factors * constraints)
    rank = _rank(tracer, t, values) if rank is None else rank
    inverse = (V_T[:, :rank].swapaxes(1, 2) / values[:, None, :rank]) @ U[..., :rank].swapaxes(1, 2)
    qdd = inverse @ (factors * right[..., None])
    qdd = (qdd - inverse @ (factors * (constraints @ qdd - right[..., None])))[..., 0]  # less round-off of the SVD
    tree, Z_T = tree_model(state), V_T[:, rank:]
    try:
        mobility = np.linalg.inv(Z_T @ tree.M @ Z_T.swapaxes(1, 2))
    except np.linalg.LinAlgError as error:
        raise _stuck(tracer, float(t[0]), "no mass moves with them, so their acceleration is not determined") from error
    for _ in range(2):  # the second time less round-off, which is much where a heavy base floats and light links swing
        force = Z_T @ tree.force(qdd, qd)[..., None]
        qdd = qdd - (Z_T.swapaxes(1, 2) @ (mobility @ force))[..., 0]
    return qdd


def _before(tracer: Tracer, first: MovingState, t: float) -> MovingState:
    qdd = accelerations(tracer, np.array([first.t]), first.q, first.qd)
    dt = t - first.t
    q = retract(tracer.mechanism, first.q, first.qd * dt + qdd * dt**2 / 2)
    return _on_closures(tracer, t, q, first.qd + qdd * dt)


@dataclass(slots=True, kw_only=True)
class _Integrand:
    """Rates of positions and velocities during an integration with limited effort."""

    tracer: Tracer
    rank: int
    """Rank of closures and drives in the initial state."""
    span: tuple[float, float]
    """First and last time [s]."""
    began: float
    """CPU time of the process when it began [s]: a loaded machine decides no motion."""
    evaluations: int = 0
    """Number of evaluations of the accelerations so far."""
    reached: float = 0.0
    """Time at the last check of progress [s]."""
    computed: tuple[float, Array] = (-np.inf, np.zeros((0, 0)))
    """Time and values of the last Jacobian."""

    def __call__(self, t: float, y: Array) -> Array:
        """Rates at a time [s] of positions and velocities y, both of shape (nq + nv,)."""
        self.evaluations += 1
        self._want_end(t)
        self._want_progress(t, y)
        if not np.isfinite(y).all():
            return np.full_like(y, np.nan)  # the step is too long, and is taken again
        return self._rates(t, y[None])[0]

    def jacobian(self, t: float, y: Array) -> Array:
        """Derivatives of the rates with respect to y, by differences, shape (nq + nv, nq + nv); they may be a bit old.

        A solver that needs them anew at every change of its step converges as well with those of a moment before.
        """
        if t - self.computed[0] > FRESH:
            self.computed = (t, self._jacobian(t, y))
        return self.computed[1]

    def _jacobian(self, t: float, y: Array) -> Array:
        self.evaluations += 1  # one call for all
        mechanism, step = self.tracer.mechanism, NEARBY * np.maximum(1.0, np.abs(y))
        together = max(1, AT_ONCE // (6 * len(mechanism.bodies) * mechanism.nv))
        here, derivatives = self._rates(t, y[None]), []
        for first in range(0, len(y), together):
            self._want_end(t)
            derivatives.append(self._rates(t, y + np.eye(len(y))[first : first + together] * step) - here)
        return np.concatenate(derivatives).T / step

    def _rates(self, t: float, y: Array) -> Array:
        mechanism = self.tracer.mechanism
        q, qd = y[:, : mechanism.nq], y[:, mechanism.nq :]
        qdd = accelerations(self.tracer, np.full(len(y), t), q, qd, rank=self.rank)
        return np.concatenate([position_rate(mechanism, q, qd), qdd], axis=1)

    def _want_progress(self, t: float, y: Array) -> None:
        evaluations, least = STALLED
        if self.evaluations % evaluations:
            return
        if self.evaluations > evaluations and t - self.reached < least * (self.span[1] - self.span[0]):
            mechanism = self.tracer.mechanism
            speeds = np.abs(y[mechanism.nq :])
            places = zip(mechanism.joints, mechanism.dof_slices, strict=True)
            joint = next(joint for joint, dofs in places if speeds.argmax() < dofs.stop)
            why = f"the integration steps become too small, '{joint.name}' moves at {speeds.max():.3g} {joint.unit}/s"
            raise _stuck(self.tracer, t, why)
        self.reached = t

    def _want_end(self, t: float) -> None:
        length, seconds = self.span[1] - self.span[0], time.process_time() - self.began
        most = MOST_EVALUATIONS[0] + round(MOST_EVALUATIONS[1] * length)
        longest = MOST_SECONDS[0] + MOST_SECONDS[1] * length
        if self.evaluations > most or seconds > longest:
            raise MechanismError(
                f"{self.tracer.where}: the integration of the unactuated degrees of freedom takes too long: at "
                f"t = {t:.6f} s of {self.span[1]:g} s after {self.evaluations} evaluations (limit {most}) and "
                f"{seconds:.3g} s (limit {longest:g} s). Does a spring or damper act on a body with almost no mass?"
            )


def _integrated(tracer: Tracer, start: MovingState, until: float, *, rough: bool) -> MovingState:
    """A state with its motion up to a time [s] at least."""
    from scipy.integrate import OdeSolution, solve_ivp

    known = start.onward
    begin = start if known is None else _at(tracer, start, float(known.t_max))
    if until <= begin.t:
        return start
    span = (begin.t, until)
    constraints = _held(tracer, closure_jacobian_at(tracer.mechanism, begin.q))
    values = np.asarray(np.linalg.svd(row_factors(constraints) * constraints, compute_uv=False), dtype=np.float64)
    rank = _rank(tracer, np.array(span[:1]), values)
    integrand = _Integrand(tracer=tracer, rank=rank, span=span, began=time.process_time())
    accuracy = ROUGH if rough else ACCURACY
    how: dict[str, Any] = {"method": "LSODA", "jac": integrand.jacobian, "rtol": accuracy, "atol": accuracy}
    found = solve_ivp(integrand, span, np.concatenate([begin.q[0], begin.qd[0]]), dense_output=True, **how)
    if not found.success:
        raise _stuck(tracer, float(found.t[-1]), found.message)
    onward = cast("OdeSolution", found.sol)
    if known is not None:
        steps = np.concatenate([known.ts, onward.ts[1:]])
        onward = OdeSolution(steps, known.interpolants + onward.interpolants, alt_segment=True)
    return replace(start, onward=onward)


def _at(tracer: Tracer, start: MovingState, t: float) -> MovingState:
    """A state on the computed motion from another."""
    if start.onward is None or t == start.t:
        return start
    y, nq = start.onward(t)[None], tracer.mechanism.nq
    return _on_closures(tracer, t, y[:, :nq], y[:, nq:])


def _on_closures(tracer: Tracer, t: float, q: Array, qd: Array) -> MovingState:
    q, residual = tracer.close(q, t)
    if residual > CLOSED:
        raise _stuck(tracer, t, f"the loops open by {residual:.3g} (m or rad)")
    return MovingState(t=t, q=q, qd=settled(tracer, q, qd, t))


def settled(tracer: Tracer, q: Array, qd: Array, t: float) -> Array:
    """The velocities nearest to some that keep the loops closed and move the drives as prescribed.

    Args:
        tracer: Mechanism and law.
        q: Closed pose [m or rad], shape (1, nq).
        qd: Joint velocities [m/s or rad/s], shape (1, nv).
        t: Time [s].

    Returns:
        Joint velocities [m/s or rad/s], shape (1, nv).
    """
    constraints = _held(tracer, closure_jacobian_at(tracer.mechanism, q))
    rates = np.concatenate([np.zeros(constraints.shape[1] - len(tracer.drives)), tracer.law(np.array([t])).qd[0]])
    miss = rates - (constraints @ qd[..., None])[0, :, 0]
    return qd + solve_dependent(constraints, -miss[None, :, None])[..., 0]


def _held(tracer: Tracer, Phi: Array) -> Array:
    """Constraints of closures and drives: Φ above the rates of the prescribed coordinates, (nt, nc + drives, nv)."""
    W = tracer.mechanism.rates_of(tracer.drives)
    return np.concatenate([Phi, np.broadcast_to(W, (len(Phi), *W.shape))], axis=1)


def _rank(tracer: Tracer, t: Array, values: Array) -> int:
    """Rank of the constraints, the same at all samples, from the singular values (nt, any)."""
    ranks = (values > RANK_TOLERANCE).sum(axis=1)
    if np.any(ranks != ranks[0]):
        raise _stuck(tracer, float(t[np.argmax(ranks != ranks[0])]), "the rank of the closures changes")
    return int(ranks[0])


def _stuck(tracer: Tracer, t: float, why: str) -> SingularityError:
    return SingularityError(
        f"{tracer.where}: the motion of the unactuated degrees of freedom cannot be computed at t = {t:.6f} s: {why}",
        time=t,
        singular_value=float("nan"),
    )
