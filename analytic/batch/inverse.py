"""Closed-loop inverse dynamics of a batch of samples, from the actuated joints alone.

A mechanism is traced once; the tapes run over the samples. A sample that they cannot vouch for, because its loops do
not close, a pivot has become small or the mechanism has something that is not traced, is left to the plain version.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from analytic.batch import cache, march
from analytic.batch.plain import path_tracer, plain_efforts, plain_poses, redo
from analytic.batch.trace import Trace, trace
from robots.arrays import Array
from robots.errors import MechanismError, ShapeError
from robots.mechanism import Mechanism
from robots.motion import Drive

CLOSED_EXACTLY = 3e-14
"""Largest closure residual of a sample, over the size of the mechanism in m where that is more than 1 [m or rad]."""
FEWEST = 64
"""Samples below which a trace costs more than the plain version."""
LANES = {"numpy": 256, "numba": 128}
"""Samples of a block [-]: the registers should stay in the cache; an operation should outweigh its dispatch."""
COMPILING_PAYS = 1e10
"""Operations from which the seconds that compiling takes are won back [-]."""
TRUSTED = 2
"""State of a sample whose efforts need no second computation; see `march`."""
CHUNK = 1000
"""Samples that the plain version computes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Efforts of a batch."""

    effort: Array
    """Efforts of the actuators [N or N m], shape (nt, na)."""
    q: Array
    """Joint positions with closed loops [m or rad], shape (nt, nq)."""
    plain: int
    """How many samples the plain version has computed."""


def inverse_dynamics(
    mechanism: Mechanism, drive: Drive, guess: Array, *, traced: Trace | None = None, evaluator: str = "auto"
) -> Batch:
    """Efforts of a closed-loop robot whose drives move as given.

    Args:
        mechanism: Robot.
        drive: Positions, velocities and accelerations of `Mechanism.drives`.
        guess: Joint positions [m or rad]: near the first sample, shape (nq,), for samples that follow each other on a
            path; or near each sample, shape (nt, nq).
        traced: Trace of the mechanism, if there is one already.
        evaluator: `plain`, `numpy` or `numba`; `auto` takes what is fastest without waiting for a compiler.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        LoopClosureError: If loops cannot be closed; `time` is the number of the sample.
        SingularityError: If the path meets a singularity or leaves the workspace; `time` is the number of the sample.
        MechanismError: If the actuators do not determine the motion.
    """
    drive = _checked(mechanism, drive, guess)
    state = np.zeros(len(drive.q))
    q = np.zeros((len(drive.q), mechanism.nq))
    effort = np.zeros((len(drive.q), mechanism.na))
    tracer = path_tracer(mechanism, drive.q)
    first = tracer.start(guess if guess.ndim == 1 else guess[0], 0.0).q[0]
    if tracer.undriven(first[None]):
        raise MechanismError(f"{mechanism.model.path}: a batch wants an actuator for each degree of freedom")
    if evaluator != "plain" and (len(state) >= FEWEST or traced is not None):
        traced = traced or _trace(mechanism, first)
        if traced is not None:
            state = _run(traced, drive, first, guess if guess.ndim == 2 else None, evaluator, (effort, q))
    if guess.ndim == 2:
        lost = np.flatnonzero(state == 0)
        q[lost] = plain_poses(mechanism, drive.q, guess, lost)
    else:
        q[0] = first
        redo(mechanism, drive.q, q, (state != 0) | (np.arange(len(q)) == 0))
    rest = np.flatnonzero(np.abs(state) < TRUSTED)
    for part in np.split(rest, range(CHUNK, len(rest), CHUNK)):
        if part.size:
            effort[part] = plain_efforts(mechanism, q[part], Drive(*(x[part] for x in drive)))
    return Batch(effort=effort, q=q, plain=len(rest))


def _trace(mechanism: Mechanism, q: Array) -> Trace | None:
    """The trace of a mechanism, or None if it has something that is not traced."""
    try:
        return trace(mechanism, q)
    except MechanismError:
        return None


def _run(
    traced: Trace, drive: Drive, first: Array, guess: Array | None, evaluator: str, result: tuple[Array, Array]
) -> Array:
    """Fill in efforts and positions by the tapes; returns the state of each sample, see `march`, shape (nt,)."""
    effort, q = result
    nt, following = len(drive.q), traced.following
    operations = nt * (len(traced.newton.code) + len(traced.efforts.code))
    module, lanes = _functions(evaluator, operations)
    span = -(-nt // lanes)
    lanes = -(-nt // span)
    q[:, traced.actuated] = drive.q
    starts = np.zeros((lanes, len(following)))
    starts[0] = first[following]
    newton, efforts = ((tape.code, tape.constants, tape.outputs) for tape in (traced.newton, traced.efforts))
    reached = lanes
    if guess is None:
        reached = module.walk(*newton, drive.q, span, np.zeros((traced.newton.registers, 1)), starts)
    end = min(nt, reached * span)
    registers = np.zeros((max(traced.newton.registers, traced.efforts.registers), reached))
    state = np.zeros(nt)
    near = np.zeros((0, len(following))) if guess is None else np.ascontiguousarray(guess[:, following])
    tolerance = CLOSED_EXACTLY * max(1.0, float(np.abs(first).max(initial=0.0)), _size(traced.mechanism))
    path, filled = (drive.q[:end], drive.qd[:end], drive.qdd[:end]), (effort[:end], q[:end], state[:end])
    with np.errstate(all="ignore"):  # a lane that is lost may hold anything
        met = module.march(newton, efforts, path, starts[:reached], near[:end], tolerance, registers, filled, following)
    if guess is None:
        lost = np.flatnonzero(~met)
        state[(int(lost[0]) * span if lost.size else nt) :] = 0
        turned = np.flatnonzero(state[1:] * state[:-1] < 0)
        state[turned + 1] = 0
    return state


def _functions(evaluator: str, operations: int) -> tuple[Any, int]:
    """The module with `walk` and `march`, and how many lanes suit it."""
    if evaluator == "auto":
        ready = find_spec("numba") is not None and (cache.is_compiled() or operations > COMPILING_PAYS)
        evaluator = "numba" if ready else "numpy"
    if evaluator == "numba":
        from analytic.batch import compiled

        return compiled, LANES[evaluator]
    return march, LANES[evaluator]


def _size(mechanism: Mechanism) -> float:
    """A length that no point of the mechanism goes far beyond [m]."""
    return float(sum(np.linalg.norm(body.position) for body in mechanism.bodies)) / max(len(mechanism.bodies), 1)


def _checked(mechanism: Mechanism, drive: Drive, guess: Array) -> Drive:
    shape = (len(drive.q), len(mechanism.drives))
    for name, x in zip(Drive._fields, drive, strict=True):
        if x.shape != shape or not np.isfinite(x).all():
            raise ShapeError(f"{name} of the drives: want finite numbers of shape {shape}, got {x.shape}")
    if guess.shape not in ((mechanism.nq,), (shape[0], mechanism.nq)) or not np.isfinite(guess).all():
        raise ShapeError(f"guess: want finite numbers of shape ({mechanism.nq},) or (nt, nq), got {guess.shape}")
    return Drive(*(np.ascontiguousarray(x, dtype=np.float64) for x in drive))
