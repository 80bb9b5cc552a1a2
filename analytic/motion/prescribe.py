"""The motion of a case on its report grid, with the loops closed: by a law, generated, or from a file.

The actuated joints are given, the passive joints follow from the closures. A motion that leaves the workspace or meets
a singularity is refused; the message gives the time.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    closure_names,
    closure_residual,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, ClosedPose, Tracer, close, follow
from loopcheck.analytic.kinematics.redundancy import undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.actuation import refuse_lost_actuation
from loopcheck.analytic.motion.assembly import assemble, want_mobile
from loopcheck.analytic.motion.automatic import automatic_motion
from loopcheck.analytic.motion.laws import AUTOMATIC, RECORDED, prescription
from loopcheck.analytic.motion.log_rates import contradiction
from loopcheck.analytic.motion.recorded import Recording, read_recording
from loopcheck.analytic.motion.unactuated import MovingState, accelerations, integrate_unactuated, settled
from loopcheck.analytic.motion.units import with_plausible_units
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import LoopClosureError, MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.model_file import file_hash
from loopcheck.robots.motion import Drive, Motion, report_grid
from loopcheck.robots.robot import Case, Robot, want_actuators


def prescribe(case: Case, *, dt: float | None = None) -> Motion:
    """The prescribed motion of a case on the report grid, with the loops closed.

    Args:
        dt: Step of the grid [s]; by default that of `report_grid`.

    Raises:
        LoopClosureError: If the loops cannot be closed at the start.
        SingularityError: If the motion leaves the workspace or meets a singularity; `time` is its time.
        MechanismError: If there is no actuator, or the motion law does not fit the robot.
    """
    mechanism, where = case.mechanism, f"{case.mechanism.model.path}, mode {case.mode}"
    want_actuators(mechanism)
    motion = _prescribed(case, dt, where)
    refuse_lost_actuation(mechanism, motion, where)
    return motion


def _prescribed(case: Case, dt: float | None, where: str) -> Motion:
    """The motion by whatever law the robot has."""
    mechanism = case.mechanism
    if case.robot.motion.law == AUTOMATIC:
        return automatic_motion(mechanism, case.guess, dt, where)
    if case.robot.motion.law == RECORDED:
        file = _motion_file(case.robot)
        if file_hash(file) != case.motion_hash:
            raise MechanismError(f"{file}: must not change during a command. Run the command again")
        recording = read_recording(file, mechanism)
        wrong = contradiction(mechanism, recording.t, recording.law(recording.t), str(file))
        motion = with_plausible_units(
            mechanism,
            recording.law,
            recording.t,
            lambda law: _recorded(mechanism, replace(recording, law=law), case.guess, where),
            f"Convert the angles of {file} and their rates",
        )
        notes = (*motion.notes, f"the log is inconsistent: {wrong}") if wrong else motion.notes
        return replace(motion, contradiction=wrong, notes=notes)
    prescribed = prescription(case)
    return assemble(mechanism, prescribed.law, case.guess, report_grid(prescribed.span, dt=dt), where=where)


def depends_on_gravity(case: Case) -> bool:
    """Whether the motion of a case differs between configurations: it does if unactuated dofs move."""
    mechanism = case.mechanism
    q, residual = close(mechanism, case.guess[None], np.ones(mechanism.nv, dtype=bool))
    return residual <= CLOSED and undriven_dofs(mechanism, q[0]) > 0


def _motion_file(robot: Robot) -> Path:
    """The file of a recorded motion."""
    known = robot.motion.parameters
    if list(known) != ["file"] or robot.motion_file is None:
        raise MechanismError(
            f"{robot.name}: motion law '{RECORDED}' must have a single parameter 'file', got {dict(known)}"
        )
    return robot.motion_file


def _recorded(mechanism: Mechanism, recording: Recording, guess: Array, where: str) -> Motion:
    """A motion from a file; positions of a full state with closed loops, and the motion of the drives, are kept.

    The other rates follow: all sources compute them by themselves, and would differ by the rounding of a log.
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
                f"{where}: the {what} of the motion file must close the loops to {most:g}, got {widest:.3g} at "
                f"t = {t[k]:g} s, closure '{closure_names(mechanism)[row]}'",
                residual=widest,
                tolerance=most,
                time=float(t[k]),
            )
    tracer = Tracer(mechanism=mechanism, law=law, drives=mechanism.drives, where=where)
    if tracer.undriven(q[[0]]):
        want_mobile(tracer, q[0])
        return _logged_coasting(tracer, t, recording.states)
    known = [ClosedPose(t=float(time), q=q[[k]]) for k, time in enumerate(t)]
    tracer.refuse_singularities(known, tracer.dependent_jacobian(q))
    W_T = mechanism.rates_of(mechanism.drives).T
    qd, qdd = tracer.rates(q, Drive(q=mechanism.values_of(mechanism.drives, q), qd=qd @ W_T, qdd=qdd @ W_T))
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=law, assemble=partial(follow, tracer, known))


def _logged_coasting(tracer: Tracer, t: Array, states: tuple[Array, Array, Array]) -> Motion:
    """A logged motion with unactuated dofs: their accelerations follow from the dynamics, not from the log."""
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
