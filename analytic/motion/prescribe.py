"""The motion of a case on its report grid, with the loops closed: by a law, generated, or from a file.

The actuated joints are given, the passive joints follow from the closures. A motion that leaves the workspace or meets
a singularity is refused; the message gives the time.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.closures import (
    closure_names,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, SOUND, ClosedPose, Tracer, close, closed_beside, follow
from loopcheck.analytic.kinematics.redundancy import drive_motions, independent_rows, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.assembly import assemble, want_mobile
from loopcheck.analytic.motion.automatic import automatic_motion, halved
from loopcheck.analytic.motion.laws import AUTOMATIC, RECORDED, prescription
from loopcheck.analytic.motion.recorded import Recording, read_recording
from loopcheck.analytic.motion.unactuated import MovingState, accelerations, integrate_unactuated, settled
from loopcheck.analytic.motion.units import with_plausible_units
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.errors import LoopClosureError, MechanismError, SingularityError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion, report_grid
from loopcheck.robots.robot import Case, Robot, want_actuators
from loopcheck.robots.size import size

CONTRADICTION = 1e-3
"""Largest deviation of a rate from the derivative, relative to the largest rate, that is no contradiction [-]."""
PROPORTIONAL = 1e-2
"""The same of a rate from a multiple of the derivative: it has another unit or sign [-]."""
TRUNCATION = 8.0
"""Ratio of the deviations over double and single steps, if finite steps cause them; 16 for short steps [-]."""


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
    try:
        refuse_lost_actuation(mechanism, motion, where)
    except SingularityError as error:
        if case.robot.motion.law != AUTOMATIC:
            raise
        motion = halved(mechanism, motion, str(error))
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
    q = q if residual <= CLOSED else closed_beside(mechanism, case.guess)
    return len(q) > 0 and undriven_dofs(mechanism, q[0]) > 0


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
    closed = CLOSED + allowed(0.0, mechanism) * max(1.0, size(mechanism))
    gaps = {
        "positions": (state.gap, closed),
        "velocities": ((state.Phi @ qd[..., None])[..., 0], closed * max(1.0, float(np.abs(qd).max()))),
        "accelerations": (acceleration[..., 0], closed * max(1.0, float(np.abs(qdd).max()))),
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


def refuse_lost_actuation(mechanism: Mechanism, motion: Motion, where: str) -> None:
    """Refuse a motion along which the rank of the actuation changes: there efforts are not determined.

    Args:
        where: Name of the motion, for the error message.

    Raises:
        SingularityError: If it changes; names the actuators and the time.
    """
    A = drive_motions(mechanism, motion.q)
    values = np.linalg.svd(A, compute_uv=False)
    rank = int((values > SOUND).sum(axis=1).max())
    smallest = values[:, rank - 1] if rank else np.ones(len(values))
    worst, best = int(smallest.argmin()), int(smallest.argmax())
    if smallest[worst] > SOUND:
        return
    idle = sorted(set(independent_rows(A[best], SOUND)) - set(independent_rows(A[worst], SOUND)))
    names = ", ".join(f"'{name}'" for name in _actuators_of(mechanism, idle))
    times = motion.t[smallest <= SOUND]
    until = f" to {times[-1]:.6f}" if len(times) > 1 else ""
    raise SingularityError(
        f"{where}: the actuation is singular at t = {times[0]:.6f}{until} s, so the efforts are not determined there: "
        f"{names} cannot move a further degree of freedom (the actuators move {rank} at other times; smallest singular "
        f"value must be above {SOUND:g}, got {smallest[worst]:.3g})",
        time=float(times[0]),
        singular_value=float(smallest[worst]),
    )


def _actuators_of(mechanism: Mechanism, drives: list[int]) -> list[str]:
    """Names of the actuators of some drives."""
    coordinates = [mechanism.drives[k].name for k in drives]
    return [actuator.name for actuator in mechanism.actuators if actuator.coordinate.name in coordinates]


def contradiction(mechanism: Mechanism, t: Times, drive: Drive, where: str) -> str:
    """Contradictions between rates and positions in a log of the drives, as a sentence; empty if there are none.

    Between samples a motion is a polynomial through positions, velocities and accelerations. If these contradict each
    other, no simulation can follow the motion, whatever the efforts of the samples are.

    Args:
        drive: Positions, velocities and accelerations at the times.
        where: Name of the log, for the error message.

    Raises:
        MechanismError: If a rate is a multiple of the derivative: it has another unit or another sign.
    """
    if len(t) < 5:
        return ""
    sentences = []
    for (rate, integral), x, v in ((("qd", "q"), drive.q, drive.qd), (("qdd", "qd"), drive.qd, drive.qdd)):
        off, coarse = _deviation(t, x, v, 1), _deviation(t, x, v, 2)
        relative = np.abs(off).max(0) / np.maximum(np.abs(v).max(0), np.finfo(float).tiny)
        for k in np.flatnonzero(relative > CONTRADICTION):
            name, column = f"'{mechanism.drives[k].name}.{rate}'", off[:, k]
            _refuse_multiple(f"{where}: column {name}", f"'{mechanism.drives[k].name}.{integral}'", t, x[:, k], v[:, k])
            if np.abs(coarse[:, k]).max() < TRUNCATION * np.abs(column).max():
                worst = int(np.abs(column).argmax())
                sentences.append(
                    f"{name} is not the derivative of '{mechanism.drives[k].name}.{integral}': difference "
                    f"{abs(column[worst]):.2g} at t = {t[worst + 1]:g} s ({relative[k]:.2g} of the largest value)"
                )
    return "; ".join(sentences)


def _deviation(t: Array, x: Array, v: Array, step: int) -> Array:
    """Distance of mean rates over two steps from the differences over them, by Simpson's rule (nt − 2 step, drives)."""
    mean = (v[: -2 * step] + 4 * v[step:-step] + v[2 * step :]) / 6
    return mean - (x[2 * step :] - x[: -2 * step]) / (2 * step * (t[1] - t[0]))


def _refuse_multiple(name: str, integral: str, t: Array, x: Array, v: Array) -> None:
    derivative, mean = (x[2:] - x[:-2]) / (2 * (t[1] - t[0])), (v[:-2] + 4 * v[1:-1] + v[2:]) / 6
    if not np.any(derivative):
        return
    factor = float(derivative @ mean / (derivative @ derivative))
    proportional = np.abs(mean - factor * derivative).max() <= PROPORTIONAL * np.abs(mean).max()
    if proportional and abs(factor - 1) > 10 * PROPORTIONAL:
        unit = ". Angles must be in radians, not degrees" if abs(abs(factor) - np.rad2deg(1)) < 1 else ""
        raise MechanismError(f"{name}: must be the derivative of {integral}, got {factor:.4g} times it{unit}")
