"""Closes the loops along a motion law, and refuses poses that can move to first order only."""

from dataclasses import replace

import numpy as np

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE, closure_jacobian_at, null_space
from loopcheck.analytic.kinematics.continuation import Tracer, close, follow
from loopcheck.analytic.kinematics.redundancy import undriven_dofs
from loopcheck.analytic.kinematics.tree import position_rate, retract
from loopcheck.analytic.motion.unactuated import at_rest, integrate_unactuated
from loopcheck.robots.arrays import JointPositions, Times, svd
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Law, Motion

BETWEEN = 2.5e-3
"""Longest time between samples of a motion with unactuated dofs for a controller [s]."""
ROUNDING = 1e-6
"""Rounding of a quotient of times [-]."""
NUDGE = 1e-3
"""Required range of a dof of a closed pose; below it the loops lock the dof [m or rad]."""


def assemble(
    mechanism: Mechanism,
    law: Law,
    guess: JointPositions,
    t: Times,
    *,
    drives: tuple[Coordinate, ...] | None = None,
    where: str = "",
) -> Motion:
    """Close the loops along a motion law.

    Args:
        law: Motion of the driven coordinates.
        guess: Joint positions near those at the first time.
        drives: Prescribed coordinates in the order of the law; by default all driven coordinates.
        where: Name of the robot, for the error messages; by default the file of the model.

    Raises:
        LoopClosureError: If the loops cannot be closed at the first time.
        SingularityError: If the motion leaves the workspace or meets a singularity; `time` is its time.
    """
    drives = mechanism.drives if drives is None else drives
    tracer = Tracer(mechanism=mechanism, law=law, drives=drives, where=where or str(mechanism.model.path))
    return assembled(tracer, guess, t)


def assembled(
    tracer: Tracer, guess: JointPositions, t: Times, *, is_mobile: bool = False, rough: bool = False
) -> Motion:
    """The motion of a tracer; unactuated dofs start at rest.

    Args:
        tracer: Mechanism and law.
        guess: Joint positions near those at the first time.
        is_mobile: Whether `want_mobile` has accepted the first pose: it closes the loops for each dof.
        rough: Whether unactuated dofs are integrated for the size of their motion only.

    Raises:
        LoopClosureError: If the loops cannot be closed at the first time.
        SingularityError: If the motion leaves the workspace or meets a singularity; `time` is its time.
    """
    start = tracer.start(guess, float(t[0]))
    if tracer.undriven(start.q):
        if not is_mobile:
            want_mobile(tracer, start.q[0])
        return integrate_unactuated(tracer, [at_rest(tracer, start.q, start.t)], t, rough=rough)
    return follow(tracer, [start], t)


def finely_sampled(mechanism: Mechanism, motion: Motion) -> Motion:
    """The motion with samples so close that a controller can interpolate the efforts between them.

    Unactuated dofs swing at frequencies of their own: between samples of 10 ms, splines miss up to 0.37 of the peak
    effort of a Cassie, whose legs are held by springs.

    Args:
        motion: A motion; it stays as it is without unactuated dofs, and with a single sample.
    """
    if len(motion.t) == 1 or not undriven_dofs(mechanism, motion.q[0]):
        return motion
    parts = int(np.ceil(motion.dt / BETWEEN - ROUNDING))
    if parts <= 1:
        return motion
    t = np.linspace(motion.t[0], motion.t[-1], parts * (len(motion.t) - 1) + 1)
    return replace(motion.assemble(t), unforced=motion.unforced, contradiction=motion.contradiction, notes=motion.notes)


def want_mobile(tracer: Tracer, q: JointPositions) -> None:
    """Refuse a closed pose with dofs that are free to first order only, as those of a stretched linkage.

    Each dof is displaced slightly, and the loops are closed again: a free dof keeps its displacement, a locked dof
    returns.

    Args:
        tracer: Mechanism and its name.

    Raises:
        MechanismError: If a dof returns; it names the joints.
    """
    mechanism = tracer.mechanism
    N = null_space(closure_jacobian_at(mechanism, q[None])[0])
    if not mechanism.closures or not N.size:
        return
    every_dof = np.ones(mechanism.nv, dtype=bool)
    nudged = np.concatenate([retract(mechanism, q[None], NUDGE * direction[None]) for direction in N.T])
    closed = np.concatenate([close(mechanism, pose[None], every_dof)[0] for pose in nudged])
    rates = position_rate(mechanism, np.repeat(q[None], len(closed), axis=0), N.T)
    kept = np.linalg.lstsq(rates.T, (closed - q).T / NUDGE)[0]  # [-], shape (dof, dof): 1 where free, 0 where locked
    _, fractions, directions = svd(kept)
    locked = N @ directions[fractions < 0.5].T
    if locked.size:
        moved = np.abs(locked).max(axis=1) > RANK_TOLERANCE
        names = [
            joint.name for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True) if moved[dofs].any()
        ]
        part = "" if len(locked.T) == len(N.T) else "part of "
        raise MechanismError(
            f"{tracer.where}: the loops lock {part}the mechanism: of {len(N.T)} degrees of freedom of the linearized "
            f"closures, {len(locked.T)} cannot move by {NUDGE:g} (m or rad), at joints {', '.join(names)}"
        )
