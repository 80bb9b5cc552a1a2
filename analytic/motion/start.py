"""The start of a generated motion.

It closes the loops, is inside the joint limits, and is regular: neither the loops nor the actuators are singular in it.
If the pose of the file violates a condition, a pose nearby is taken, the same in every run, and a note reports it.
"""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    null_space,
    row_factors,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, Tracer, closed_beside
from loopcheck.analytic.kinematics.redundancy import drive_motions, independent_drives
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.limits import beyond_limits, inside_limits, limits_in_words
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Coordinate, Mechanism

SIDESTEPS = (1e-3, 1e-2, 3e-2, 1e-1, 1e-1, 2e-1, 2e-1, 3e-1, 3e-1)
"""Distances of the joints in the search for a regular pose beside a singular pose [m or rad]."""
REGULAR = 0.5
"""Fraction of the best conditioning nearby that a regular pose has [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A pose to start from."""

    q: Array
    """Joint positions that close the loops [m or rad], shape (nq,)."""
    drives: tuple[Coordinate, ...]
    """The driven coordinates that determine the motion of all joints."""
    limited: bool
    """Whether it is inside all joint limits."""
    notes: tuple[str, ...] = ()
    """Differences to the pose of the file, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Regularity:
    """Regularity of a closed pose."""

    dof: int
    driven: int
    """Number of degrees of freedom moved by the actuators."""
    closures: float
    """Smallest singular value of the closures that counts [-]."""
    actuation: float
    """Smallest of the actuators' [-]."""


def regular_start(free: Tracer, guess: JointPositions) -> Start:
    """The pose to start from.

    Args:
        free: The mechanism without prescribed coordinates: every joint may give way to close the loops.

    Raises:
        LoopClosureError: If the loops cannot be closed.
        MechanismError: If the robot cannot move, or no actuator has an effect.
    """
    q, notes = _closed_inside(free, guess)
    start = _aside(free, q)
    if start is not q:
        notes = (*notes, _stepped_aside(free, q, start))
    return Start(
        q=start[0],
        drives=_want_drives(free, start[0]),
        limited=not beyond_limits(free.mechanism, start),
        notes=notes,
    )


def closed_pose(mechanism: Mechanism, guess: JointPositions) -> JointPositions:
    """A regular pose with closed loops near a pose, also without actuators.

    Raises:
        LoopClosureError: If the loops cannot be closed.
    """
    free = Tracer.free(mechanism)
    return np.asarray(_aside(free, free.start(guess, 0.0).q)[0])


def _closed_inside(free: Tracer, guess: Array) -> tuple[Array, tuple[str, ...]]:
    """A closed pose (1, nq), inside the joint limits if one is found, and notes on it."""
    mechanism = free.mechanism
    q, residual = free.close(guess[None], 0.0)
    if residual > CLOSED:
        beside = closed_beside(mechanism, guess)
        guess = next((pose for pose in beside if not beyond_limits(mechanism, pose[None])), [*beside, guess][0])
        q, residual = free.close(guess[None], 0.0)
    outside = beyond_limits(mechanism, q if residual <= CLOSED else guess[None])
    if not outside:
        return free.start(guess, 0.0).q, ()
    names = ", ".join(limits_in_words(mechanism, j) for j in outside)
    for near in (guess[None], q):
        inside, gap = free.close(inside_limits(mechanism, near), 0.0)
        if gap <= CLOSED and not beyond_limits(mechanism, inside):
            return inside, (f"the pose of the file is outside joint limits; the motion starts inside: {names}",)
    outside_note = (
        f"the motion starts outside joint limits, because no closed pose inside all limits was found: {names}"
    )
    return free.start(guess, 0.0).q, (outside_note,)


def _aside(free: Tracer, q: Array) -> Array:
    """The closed pose itself, or a regular pose near a singular pose, both of shape (1, nq).

    A pose with singular loops has more degrees of freedom than its neighbours, a pose with singular actuation fewer
    driven ones. Of the poses with least freedom and most of it driven, the nearest well conditioned pose is taken.
    """
    mechanism, random = free.mechanism, np.random.default_rng(0)
    allowed, nearby = set(beyond_limits(mechanism, q)), [q]
    for step in SIDESTEPS:
        moved, residual = free.close(retract(mechanism, q, random.uniform(-step, step, (1, mechanism.nv))), 0.0)
        if residual <= CLOSED and allowed.issuperset(beyond_limits(mechanism, moved)):
            nearby.append(moved)
    regularities = [_regularity(free, pose) for pose in nearby]
    best = max((-regularity.dof, regularity.driven) for regularity in regularities)
    alike = [k for k, regularity in enumerate(regularities) if (-regularity.dof, regularity.driven) == best]
    closures = REGULAR * max(regularities[k].closures for k in alike)
    actuation = REGULAR * max(regularities[k].actuation for k in alike)
    sound = [k for k in alike if regularities[k].closures >= closures and regularities[k].actuation >= actuation]
    return nearby[(sound or alike)[0]]


def _regularity(free: Tracer, q: Array) -> _Regularity:
    mechanism = free.mechanism
    Phi = closure_jacobian_at(mechanism, q)[0]
    values = np.linalg.svd(row_factors(Phi) * Phi, compute_uv=False)
    driving = np.linalg.svd(drive_motions(mechanism, q)[0], compute_uv=False)
    values, driving = values[values > RANK_TOLERANCE], driving[driving > RANK_TOLERANCE]
    return _Regularity(
        dof=mechanism.nv - len(values),
        driven=len(driving),
        closures=float(values.min(initial=1.0)),
        actuation=float(driving.min(initial=1.0)),
    )


def _stepped_aside(free: Tracer, q: Array, start: Array) -> str:
    """Changes made by a step away from a singular pose, as a sentence."""
    before, after = _regularity(free, q), _regularity(free, start)
    moved = float(np.abs(start - q).max())
    if after.dof < before.dof:
        what = f"{before.dof} degrees of freedom there, {after.dof} nearby"
    else:
        independent = independent_drives(free.mechanism, q[0])
        idle = [drive.name for drive in independent_drives(free.mechanism, start[0]) if drive not in independent]
        what = f"{', '.join(idle)} cannot move the mechanism there" if idle else "it is close to a singularity"
    return f"the motion starts {moved:.2g} (m or rad) beside the singular pose of the file: {what}"


def _want_drives(free: Tracer, q: Array) -> tuple[Coordinate, ...]:
    """The independent drives in a closed pose (nq,), or an error if there is no mobility or no driven dof."""
    mechanism = free.mechanism
    drives = independent_drives(mechanism, q)
    if drives:
        return drives
    dof = null_space(closure_jacobian_at(mechanism, q[None])[0]).shape[1]
    if not dof:
        raise MechanismError(
            f"{free.where}: the loops lock the mechanism: 0 of {mechanism.nv} degrees of freedom of the tree remain"
        )
    names = ", ".join(actuator.name for actuator in mechanism.actuators)
    raise MechanismError(
        f"{free.where}: must have an actuator that moves any of the {dof} degrees of freedom, got {names} on locked "
        "joints"
    )
