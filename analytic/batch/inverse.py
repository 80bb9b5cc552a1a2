"""Closed-loop inverse dynamics of a batch of samples, from the actuated joints alone.

A mechanism is traced once; the tapes run over the samples. A sample that they cannot vouch for, because its loops do
not close, a pivot has become small or the mechanism has something that is not traced, is left to the plain version.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from analytic.batch import interpreter, march
from analytic.batch.plain import path_tracer, plain_efforts, plain_poses, redo
from analytic.batch.trace import Trace, trace
from robots.arrays import AnyArray, Array
from robots.errors import MechanismError, ShapeError
from robots.mechanism import Mechanism
from robots.motion import Drive

if TYPE_CHECKING:
    from analytic.batch import compiled

CLOSED_EXACTLY = 3e-14
"""Largest closure residual of a sample, over the size of the mechanism in m where that is more than 1 [m or rad]."""
FEWEST = 64
"""Samples below which a trace costs more than the plain version."""
LANES = {"numpy": 1024, "llvm": 256}
"""Lanes of a path at most [-]: the more, the less a call from Python counts, but the more starts must be found."""
SHORTEST = 8
"""Samples of a lane at least."""
STARTING, COMPILING, DISPATCHING = 0.15, 2e-4, 4.5e-9
"""Time to start LLVM, to compile an instruction, and that numpy takes for an instruction and a sample [s], measured on
a busy core."""
MOST_REGISTERS = 16_000
"""Values of a sample that machine code may keep [-]: each takes a vector on the stack, which is short in threads."""
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
    extrapolated: int = 0
    """How many follow on a path so densely that positions extrapolated from those before close the loops."""


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
        evaluator: `plain`, `numpy` or `llvm`; `auto` takes what is fastest without waiting for a compiler.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        LoopClosureError: If loops cannot be closed; `time` is the number of the sample.
        SingularityError: If the path meets a singularity or leaves the workspace; `time` is the number of the sample.
        MechanismError: If the actuators do not determine the motion.
    """
    drive, guess = _checked(mechanism, drive, guess)
    state, extrapolated = np.zeros(len(drive.q)), 0
    q, effort = (np.empty((len(drive.q), n)) for n in (mechanism.nq, mechanism.na))
    near = guess if guess.ndim == 1 else guess[0]
    if traced is None or evaluator == "plain":
        near = _start(mechanism, drive, near)
        traced = _trace(mechanism, near) if evaluator != "plain" and len(state) >= FEWEST else None
    if traced is not None:
        found = march.Found(effort=effort, q=q, state=state)
        extrapolated = _run(traced, drive, near if guess.ndim == 1 else guess, evaluator, found)
    if guess.ndim == 2:
        lost = np.flatnonzero(state == 0)
        q[lost] = plain_poses(mechanism, drive.q, guess, lost)
    else:
        if not state[0]:
            q[0] = _start(mechanism, drive, near)
        state[redo(mechanism, drive.q, q, _trusted(state))] = 0
    rest = np.flatnonzero(np.abs(state) < TRUSTED)
    for part in np.split(rest, range(CHUNK, len(rest), CHUNK)):
        if part.size:
            effort[part] = plain_efforts(mechanism, q[part], Drive(*(x[part] for x in drive)))
    return Batch(effort=effort, q=q, plain=len(rest), extrapolated=extrapolated)


def _trusted(state: Array) -> AnyArray:
    """Which samples of a path are sound and have the sign of det Φᵘ in common with those beside them, shape (nt,)."""
    turned = np.diff(np.sign(state)) != 0
    trusted = np.abs(state) >= TRUSTED
    trusted[1:] &= ~turned
    trusted[:-1] &= ~turned
    return trusted


def _start(mechanism: Mechanism, drive: Drive, guess: Array) -> Array:
    """The first sample with closed loops, by the plain version [m or rad], shape (nq,)."""
    tracer = path_tracer(mechanism, drive.q)
    first = tracer.start(guess, 0.0).q
    if tracer.undriven(first):
        raise MechanismError(f"{mechanism.model.path}: a batch wants an actuator for each degree of freedom")
    return first[0]


def _trace(mechanism: Mechanism, q: Array) -> Trace | None:
    """The trace of a mechanism, or None if it has something that is not traced."""
    try:
        return trace(mechanism, q)
    except MechanismError:
        return None


def _run(traced: Trace, drive: Drive, guess: Array, evaluator: str, found: march.Found) -> int:
    """Fill in efforts, positions and states by the tapes; returns how many samples needed no Newton step."""
    nt = len(drive.q)
    if evaluator == "auto":
        evaluator = "llvm" if _pays(traced, nt) else "numpy"
    scale = max(1.0, float(np.abs(guess).max(initial=0.0)), _size(traced.mechanism))
    newton, efforts = _followers(traced, evaluator)
    tapes = march.Tapes(newton=newton, efforts=efforts, tolerance=CLOSED_EXACTLY * scale)
    with np.errstate(all="ignore"):  # a lane that is lost may hold anything
        if guess.ndim == 1:
            return _follow_path(tapes, drive, guess, max(-(-nt // LANES[evaluator]), SHORTEST), found)
        for part in np.split(np.arange(nt), range(march.MOST, nt, march.MOST)):
            march.settle(tapes, drive, part, guess[part], found)
    return 0


def _follow_path(tapes: march.Tapes, drive: Drive, guess: Array, span: int, found: march.Found) -> int:
    """Follow a path from its first sample; what comes after a lane that did not meet the next one is not known.

    Returns:
        How many samples needed no Newton step.
    """
    nt = len(drive.q)
    first = guess[None].copy()
    sound, _ = march.close(tapes.newton, drive.q[:1], first)
    if not sound[0]:
        return 0
    starts = march.walk(tapes.newton, drive.q, first[0], span)
    end = min(nt, len(starts) * span)
    reached = march.Found(effort=found.effort[:end], q=found.q[:end], state=found.state[:end])
    met, extrapolated = march.march(tapes, Drive(*(x[:end] for x in drive)), starts, span, reached)
    lost = np.flatnonzero(~met)
    found.state[(int(lost[0]) * span if lost.size else nt) :] = 0
    return extrapolated


def _pays(traced: Trace, samples: int) -> bool:
    """Whether machine code is there, or is soon worth the time that compiling takes."""
    instructions = len(traced.newton.code) + len(traced.efforts.code)
    saved = samples * instructions * DISPATCHING - STARTING
    if saved < 0 or find_spec("llvmlite") is None:
        return False
    return saved > instructions * COMPILING or all(job.is_compiled for job in _jobs(traced))


def _followers(traced: Trace, evaluator: str) -> list[march.Follow]:
    """What runs the Newton tape and that of the efforts."""
    tapes = (traced.newton, traced.efforts)
    if evaluator == "numpy" or any(tape.registers > MOST_REGISTERS for tape in tapes):
        return [partial(interpreter.follow, tape) for tape in tapes]
    from analytic.batch import compiled

    return [compiled.load(job) for job in _jobs(traced)]


@lru_cache(maxsize=8)
def _jobs(traced: Trace) -> "list[compiled.Job]":
    """What to compile; found once for a trace, as its tapes are long."""
    from analytic.batch import compiled

    nq, drives, na = traced.mechanism.nq, len(traced.mechanism.drives), traced.mechanism.na
    return [
        compiled.job(traced.newton, (nq, drives), (nq, 2)),
        compiled.job(traced.efforts, (nq, drives, drives, drives), (nq, na, march.CHECKS)),
    ]


def _size(mechanism: Mechanism) -> float:
    """A length that no point of the mechanism goes far beyond [m]."""
    return float(sum(np.linalg.norm(body.position) for body in mechanism.bodies)) / max(len(mechanism.bodies), 1)


def _checked(mechanism: Mechanism, drive: Drive, guess: Array) -> tuple[Drive, Array]:
    shape = (len(drive.q), len(mechanism.drives))
    for name, x in zip(Drive._fields, drive, strict=True):
        if x.shape != shape or not np.isfinite(x).all():
            raise ShapeError(f"{name} of the drives: want finite numbers of shape {shape}, got {x.shape}")
    if guess.shape not in ((mechanism.nq,), (shape[0], mechanism.nq)) or not np.isfinite(guess).all():
        raise ShapeError(f"guess: want finite numbers of shape ({mechanism.nq},) or (nt, nq), got {guess.shape}")
    drive = Drive(*(np.ascontiguousarray(x, dtype=np.float64) for x in drive))
    return drive, np.ascontiguousarray(guess, dtype=np.float64)
