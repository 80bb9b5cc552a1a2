"""The motion of a case on its report grid, with the loops closed: by a law, made automatically, or from a file.

The actuated joints are given, the passive ones follow from the closures; a motion that leaves the workspace or meets a
singularity is refused, with the time at which it does.
"""

from functools import partial
from pathlib import Path

import numpy as np

from analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    closure_names,
    closure_residual,
    null_space,
)
from analytic.kinematics.redundancy import independent_drives, undriven_dofs
from analytic.kinematics.state import State
from analytic.kinematics.tree import position_rate, retract
from analytic.motion.automatic import SHORT_SPAN, SPAN, WELL_AWAY, swing, within_limits
from analytic.motion.continuation import CLOSED, ClosedPose, Tracer, close, conditioning, follow
from analytic.motion.laws import AUTOMATIC, RECORDED, prescription
from analytic.motion.recorded import Recording, read_recording
from analytic.motion.unactuated import MovingState, accelerations, at_rest, integrate_unactuated, settled
from robots.arrays import Array
from robots.errors import LoopClosureError, MechanismError, SingularityError
from robots.mechanism import Coordinate, Mechanism
from robots.motion import Drive, Law, Motion, report_grid
from robots.robot import Case, Robot

SIDESTEPS = (1e-3, 1e-2, 3e-2)
"""How far joints are moved to find a regular pose beside a singular one [m or rad]."""
NUDGE = 1e-3
"""How far a dof of a closed pose must be able to move, or the loops lock it [m or rad]."""
MOST_HALVINGS = 10
"""How often the automatic motion is halved before giving up."""


def prescribe(case: Case, *, dt: float | None = None) -> Motion:
    """The prescribed motion of a case on the report grid, with the loops closed.

    Args:
        case: Robot, variant, mode and configuration.
        dt: Step of the grid [s]; by default that of `report_grid`.

    Raises:
        LoopClosureError: If the loops cannot be closed at the start.
        SingularityError: If the motion leaves the workspace or meets a singularity; it says when.
        MechanismError: If there is no actuator, or the motion law does not fit the robot.
    """
    mechanism = case.mechanism
    if not mechanism.actuators:
        raise MechanismError(f"{mechanism.model.path}: no actuators, so no joint to prescribe a motion for")
    where = f"{mechanism.model.path}, mode {case.mode}"
    if case.robot.motion.law == AUTOMATIC:
        return _largest_swing(mechanism, case.guess, dt, where)
    if case.robot.motion.law == RECORDED:
        recording = read_recording(_motion_file(case.robot), mechanism)
        return _recorded(mechanism, recording, case.guess, where)
    wanted = prescription(case)
    return assemble(mechanism, wanted.law, case.guess, report_grid(wanted.span, dt=dt), where=where)


def depends_on_gravity(case: Case) -> bool:
    """Whether the motion of a case is its own in each configuration: where something moves that nothing drives."""
    mechanism = case.mechanism
    q, residual = close(mechanism, case.guess[None], np.ones(mechanism.nv, dtype=bool))
    return residual <= CLOSED and undriven_dofs(mechanism, q[0]) > 0


def _motion_file(robot: Robot) -> Path:
    """The file of a recorded motion, which lies in the robot's folder unless its path says otherwise."""
    known = robot.motion.parameters
    if list(known) != ["file"] or not isinstance(known["file"], str):
        raise MechanismError(f"{robot.name}: motion law '{RECORDED}': want one parameter, file, got {dict(known)}")
    return robot.folder / known["file"]


def _largest_swing(mechanism: Mechanism, guess: Array, dt: float | None, where: str) -> Motion:
    """The automatic motion, halved until it closes, keeps inside the limits and well away from singularities."""
    still = swing(mechanism, guess, (), 0.0, span=SPAN)
    free = Tracer(mechanism=mechanism, law=still, drives=(), where=where)
    start = _regular(free, free.start(guess, 0.0).q)[0]  # every joint may give way to close the loops
    drives = _want_drives(mechanism, start, where)
    _want_mobile(free, start)
    span = SHORT_SPAN if undriven_dofs(mechanism, start) else SPAN
    t = report_grid(span, dt=dt)
    for halvings in range(MOST_HALVINGS):
        law = swing(mechanism, start, drives, 2.0**-halvings, span=span)
        tracer = Tracer(mechanism=mechanism, law=law, drives=drives, where=where)
        try:
            motion = _assembled(tracer, start, t)
        except SingularityError:
            continue
        if within_limits(mechanism, drives, motion) and _is_well_away(tracer, motion):
            return motion
    raise SingularityError(
        f"{where}: no motion found: the starting pose is singular or at a limit of the workspace, even a swing of "
        f"{2.0**-halvings:.2g} of the largest leads to a singularity",
        time=float(t[0]),
        singular_value=float("nan"),
    )


def _regular(free: Tracer, q: Array) -> Array:
    """The closed pose itself, or where it is singular one nearby that is not, both of shape (1, nq).

    A singular pose has more degrees of freedom than its neighbours; which one is taken is the same in every run.
    """
    mechanism, random = free.mechanism, np.random.default_rng(0)
    nearby = [q]
    for step in SIDESTEPS:
        moved, residual = free.close(retract(mechanism, q, random.uniform(-step, step, (1, mechanism.nv))), 0.0)
        nearby += [moved] if residual <= CLOSED else []
    dofs = [null_space(closure_jacobian_at(mechanism, pose)[0]).shape[1] for pose in nearby]
    return nearby[int(np.argmin(dofs))]


def _want_drives(mechanism: Mechanism, q: Array, where: str) -> tuple[Coordinate, ...]:
    """The independent drives in a closed pose (nq,), or an error if nothing can move or nothing is driven."""
    drives = independent_drives(mechanism, q)
    if drives:
        return drives
    dof = null_space(closure_jacobian_at(mechanism, q[None])[0]).shape[1]
    if not dof:
        raise MechanismError(f"{where}: the loops lock it: {mechanism.nv} dofs of the tree, none is left to move")
    names = ", ".join(actuator.name for actuator in mechanism.actuators)
    raise MechanismError(
        f"{where}: want an actuator that moves one of the {dof} dofs, got {names}, whose joints are locked"
    )


def _want_mobile(tracer: Tracer, q: Array) -> None:
    """Refuse a closed pose (nq,) with dofs that are free to first order only, as those of a stretched linkage.

    Each is nudged, and the loops are closed again: what can move stays where it was moved to, what cannot comes back.

    Raises:
        MechanismError: If one comes back; it names the joints.
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
    _, fractions, directions = np.linalg.svd(kept)
    locked = N @ directions[fractions < 0.5].T
    if locked.size:
        moved = np.abs(locked).max(axis=1) > RANK_TOLERANCE
        names = [
            joint.name for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True) if moved[dofs].any()
        ]
        part = "" if len(locked.T) == len(N.T) else "part of "
        raise MechanismError(
            f"{tracer.where}: the loops lock {part}it: of {len(N.T)} dofs that are free to first order, "
            f"{len(locked.T)} cannot move by {NUDGE:g} (m or rad), those of {', '.join(names)}"
        )


def _recorded(mechanism: Mechanism, recording: Recording, guess: Array, where: str) -> Motion:
    """A motion from a file; of a full state that closes the loops, positions and what the drives do are as given.

    The other rates follow: all sources find them by themselves, and would differ by what a log is rounded to.
    """
    t, law = recording.t, recording.law
    if recording.states is None:
        return assemble(mechanism, law, guess, t, where=where)
    q, qd, qdd = recording.states
    state = State(mechanism=mechanism, q=q, qd=qd)
    acceleration = state.Phi @ qdd[..., None] + state.Phi_dot @ qd[..., None]
    gaps = {
        "positions": (closure_residual(mechanism, state.poses, q), CLOSED),
        "velocities": ((state.Phi @ qd[..., None])[..., 0], CLOSED * max(1.0, float(np.abs(qd).max()))),
        "accelerations": (acceleration[..., 0], CLOSED * max(1.0, float(np.abs(qdd).max()))),
    }
    for what, (gap, most) in gaps.items():
        widest = float(np.abs(gap).max(initial=0.0))
        if widest > most:
            k, row = np.unravel_index(int(np.abs(gap).argmax()), gap.shape)
            raise LoopClosureError(
                f"{where}: the {what} of the motion file do not close the loops: want at most {most:g}, got "
                f"{widest:.3g} at t = {t[k]:g} s, closure '{closure_names(mechanism)[row]}'",
                residual=widest,
                tolerance=most,
                time=float(t[k]),
            )
    tracer = Tracer(mechanism=mechanism, law=law, drives=mechanism.drives, where=where)
    if tracer.undriven(q[[0]]):
        _want_mobile(tracer, q[0])
        return _logged_coasting(tracer, t, recording.states)
    known = [ClosedPose(t=float(time), q=q[[k]]) for k, time in enumerate(t)]
    tracer.refuse_singularities(known, tracer.dependent_jacobian(q))
    W_T = mechanism.rates_of(mechanism.drives).T
    qd, qdd = tracer.rates(q, Drive(q=mechanism.values_of(mechanism.drives, q), qd=qd @ W_T, qdd=qdd @ W_T))
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=law, assemble=partial(follow, tracer, known))


def _logged_coasting(tracer: Tracer, t: Array, states: tuple[Array, Array, Array]) -> Motion:
    """A logged motion with dofs that nothing drives: their accelerations follow from the dynamics, whatever the log."""
    q, given, logged = states
    qd = np.concatenate([settled(tracer, q[[k]], given[[k]], float(time)) for k, time in enumerate(t)])
    qdd = accelerations(tracer, t, q, qd)
    known = [MovingState(t=float(time), q=q[[k]], qd=qd[[k]]) for k, time in enumerate(t)]
    return Motion(
        t=t,
        q=q,
        qd=qd,
        qdd=qdd,
        law=tracer.law,
        assemble=partial(integrate_unactuated, tracer, known),
        unforced=float(np.abs(qdd - logged).max() / max(np.abs(qdd).max(), np.abs(logged).max(), np.finfo(float).tiny)),
    )


def assemble(
    mechanism: Mechanism,
    law: Law,
    guess: Array,
    t: Array,
    *,
    drives: tuple[Coordinate, ...] | None = None,
    where: str = "",
) -> Motion:
    """Close the loops along a motion law.

    Args:
        mechanism: Robot.
        law: What is prescribed for the driven coordinates.
        guess: Joint positions near those at the first time [m or rad], shape (nq,).
        t: Increasing times [s], shape (nt,).
        drives: Prescribed coordinates in the order of the law; by default all that are driven.
        where: What is assembled, for the error messages; by default the file of the model.

    Raises:
        LoopClosureError: If the loops cannot be closed at the first time.
        SingularityError: If the motion leaves the workspace or meets a singularity; it says when.
    """
    drives = mechanism.drives if drives is None else drives
    tracer = Tracer(mechanism=mechanism, law=law, drives=drives, where=where or str(mechanism.model.path))
    return _assembled(tracer, guess, t)


def _assembled(tracer: Tracer, guess: Array, t: Array) -> Motion:
    """The motion from a guess; what nothing drives starts at rest."""
    start = tracer.start(guess, float(t[0]))
    if tracer.undriven(start.q):
        _want_mobile(tracer, start.q[0])
        return integrate_unactuated(tracer, [at_rest(tracer, start.q, start.t)], t)
    return follow(tracer, [start], t)


def _is_well_away(tracer: Tracer, motion: Motion) -> bool:
    """Whether the conditioning of Φᵘ stays near that of the start all along a motion."""
    Phi_u = tracer.dependent_jacobian(motion.q)
    follow = Phi_u.shape[-1] - tracer.undriven(motion.q[:1])
    ratios = conditioning(Phi_u, follow)[0] if Phi_u.size and follow else np.ones(1)
    return bool(ratios.min() >= WELL_AWAY * ratios[0])
