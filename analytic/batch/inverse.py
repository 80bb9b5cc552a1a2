"""Closed-loop inverse dynamics of a batch of samples, from the actuated joints alone.

A mechanism is traced once; the tapes run over the samples. A sample that they cannot vouch for, because its loops do
not close, a pivot has become small or the mechanism has something that is not traced, is left to the plain version.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.util import find_spec

import numpy as np

from loopcheck.analytic.batch import compiled, tracking
from loopcheck.analytic.batch.derivatives import Evaluation, is_compiled, of_efforts, want_blocks
from loopcheck.analytic.batch.gradient import BLOCKS, Gradient, gradient
from loopcheck.analytic.batch.lanes import Equations
from loopcheck.analytic.batch.plain import misfit, path_tracer, plain_efforts, plain_poses, redo, want_driven
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.batch.tracking import TRUSTED, Columns, Track, columns_of
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries, PositionSeries
from loopcheck.robots.errors import LoopClosureError, MechanismError, ShapeError
from loopcheck.robots.mechanism import CoordinateClosure, Mechanism
from loopcheck.robots.motion import Drive

CLOSED_EXACTLY = 3e-14
"""Largest closure residual of a sample, over the size of the mechanism in m if above 1 [m or rad]."""
FEWEST = 64
"""Number of samples below which a trace costs more than the plain version."""
LANES = {"numpy": 1024, "llvm": 256}
"""Lanes of a path at most [-]: the more, the less a call from Python counts, but the more starts must be found."""
SHORTEST = 8
"""Samples of a lane at least."""
FEW = {"numpy": 16, "llvm": 1024}
"""Largest number of samples of a path for a single lane; longer paths are split into lanes."""
STARTING, COMPILING, DISPATCHING = 0.15, 1.1e-4, 2.2e-9
"""Time to start LLVM, to compile an instruction, and that numpy takes for an instruction and a sample [s], measured on
a busy core."""
CALL = 500
"""Samples of a call at least, for numpy: it takes as long for fewer [-]."""
MOST_REGISTERS = 16_000
"""Values of a sample that machine code may keep [-]; each takes a vector on the (short) stack of a thread."""
FAR = 0.1
"""Distance of the first sample from its guess from which on the plain version looks for it too [m or rad]."""
SAME = 1e-6
"""Largest distance of two closed poses on a branch [m or rad]."""
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
    """Number of samples computed by the plain version."""
    extrapolated: int = 0
    """Number of samples that extrapolation from preceding samples closes without a Newton step."""
    derivatives: Mapping[str, Array] = field(default_factory=dict)
    """Requested derivatives of the efforts, along motions that keep the loops closed: `q`, `qd` and `qdd` along the
    drives, shape (nt, na, drives), zero for redundant drives, which follow from others; `parameters` along the mass,
    the first moments and the inertia (xx, xy, xz, yy, yz, zz) of each body about its origin in its axes, shape
    (nt, na, bodies, 10). The samples of an entry lie side by side in memory."""


def inverse_dynamics(
    mechanism: Mechanism,
    drive: Drive,
    guess: Array,
    *,
    traced: Trace | None = None,
    evaluator: str = "auto",
    derivatives: Collection[str] = (),
) -> Batch:
    """Efforts of a closed-loop robot with prescribed drives, and their derivatives.

    Args:
        drive: Positions, velocities and accelerations of `Mechanism.drives`.
        guess: Joint positions [m or rad]: near the first sample, shape (nq,), for samples that follow each other on a
            path; or near each sample, shape (nt, nq).
        traced: Trace of the mechanism, if it exists already.
        evaluator: `plain`, `numpy` or `llvm`; `auto` compiles as soon as all calls with a `traced` have taken as long
            as a compilation.
        derivatives: Any of `q`, `qd`, `qdd` and `parameters`, see `Batch.derivatives`. They are traced and compiled
            once for a `traced`, otherwise at each call.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        NotFoundError: If a derivative is unknown.
        LoopClosureError: If loops cannot be closed; `time` is the number of the sample.
        SingularityError: If the path meets a singularity or leaves the workspace, or, for derivatives, comes near a
            singularity; `time` is the number of the sample.
        MechanismError: If the actuators do not determine the motion (see `accelerations.hybrid_dynamics`), or
            derivatives are requested of a mechanism with an element that is not traced.
    """
    want_blocks(derivatives, BLOCKS)
    columns = columns_of(mechanism) if traced is None else traced.columns
    drive, guess = _arrays(columns, drive, guess)
    if traced is None and evaluator != "plain" and len(drive.q) >= FEWEST:
        _want_finite(drive, guess)
        traced = _trace(mechanism, _start(mechanism, drive, guess if guess.ndim == 1 else guess[0]))
    records = np.zeros((len(drive.q), columns.marks.stop))
    records[: guess.ndim == 1 or None, columns.q] = guess
    if traced is not None and evaluator != "plain":
        _track(traced, drive, records, guess.ndim == 1, evaluator)
        if guess.ndim == 1 and np.abs(records[0, columns.q] - guess).max(initial=0.0) > FAR:
            _track_from_start(traced, drive, guess, records, evaluator)
    rest, (states, extrapolated) = 0, _sums(records[:, columns.marks])
    if abs(states) != TRUSTED * len(records):
        _want_finite(drive, guess)
        rest = _complete(mechanism, drive, guess, columns, records)
        extrapolated = np.add.reduce(records[:, columns.marks.stop - 1])
    effort, q = records[:, columns.effort], records[:, columns.q]
    found: Mapping[str, Array] = {}
    if derivatives:
        traced = traced or trace(mechanism, q[0])
        found = _differentiated(traced, drive, q, effort, frozenset(derivatives), evaluator)
    return Batch(effort=effort, q=q, plain=rest, extrapolated=int(extrapolated), derivatives=found)


def _track_from_start(traced: Trace, drive: Drive, guess: Array, records: Array, evaluator: str) -> None:
    """Follow the path again if the plain version starts it in another pose.

    From a guess far away the Newton steps of the tapes may end on another branch than its smaller steps.
    """
    q = traced.columns.q
    _want_finite(drive, guess)
    start = _start(traced.mechanism, drive, guess)
    if np.abs(records[0, q] - start).max() > SAME:
        records[:] = 0
        records[0, q] = start
        _track(traced, drive, records, True, evaluator)


def _sums(marks: Array) -> Array:
    """Sums of columns of small whole numbers, exact in any order; a product is five times as fast for many rows."""
    return np.ones(len(marks)) @ marks if len(marks) > FEWEST else np.add.reduce(marks)


def _differentiated(
    traced: Trace, drive: Drive, q: PositionSeries, effort: EffortSeries, wanted: frozenset[str], evaluator: str
) -> Mapping[str, Array]:
    """Derivatives of the efforts at closed samples."""
    mechanism, shape = traced.mechanism, traced.shape
    slopes = _gradient(traced, "parameters" in wanted)
    joints = mechanism.actuated_joints
    dofs = [mechanism.dof_slices[j].start for j in joints]
    places = [dofs.index(dof) for dof in shape.independent]
    evaluation = Evaluation(slopes, q, is_compiled=runs_compiled(slopes, len(q), evaluator))
    if places == list(range(len(joints))):
        found = of_efforts(evaluation, drive.qd, drive.qdd, effort)
        return {name: found[name] for name in BLOCKS if name in wanted}
    found = of_efforts(evaluation, drive.qd[:, places], drive.qdd[:, places], effort)
    return {
        name: found[name] if name == "parameters" else _of_drives(found[name], places, len(joints)) for name in wanted
    }


def _of_drives(block: Array, places: list[int], drives: int) -> Array:
    """Derivatives along all drives, shape (nt, na, drives).

    Args:
        block: Derivatives along the independent drives [any unit], shape (nt, na, n).
        places: Numbers of the independent drives.
        drives: Number of the drives.
    """
    of_drives = np.zeros((*block.shape[:2], drives))
    of_drives[..., places] = block
    return of_drives


@lru_cache(maxsize=8)
def _gradient(traced: Trace, parameters: bool) -> Gradient:
    """The traced derivatives of a trace."""
    return gradient(traced.shape, ("parameters",) if parameters else ())


def runs_compiled(slopes: Gradient, samples: int, evaluator: str) -> bool:
    """Whether to run the derivatives in machine code."""
    if evaluator == "numpy" or slopes.tape.registers > MOST_REGISTERS:
        return False
    if evaluator == "auto":
        return find_spec("llvmlite") is not None and (
            is_compiled(slopes) or _saves(len(slopes.tape.code), _requested(slopes, samples))
        )
    return evaluator == "llvm"


def _requested(traced: Trace | Gradient, samples: int) -> int:
    """Samples requested of a trace so far, in all calls: machine code pays as soon as numpy has taken as long."""
    count = _count(traced)
    count[0] += max(samples, CALL)
    return count[0]


@lru_cache(maxsize=16)
def _count(_: Trace | Gradient) -> list[int]:
    return [0]


def _complete(mechanism: Mechanism, drive: Drive, guess: PositionSeries, columns: Columns, records: Array) -> int:
    """Compute the untrusted samples by the plain version; returns their number.

    Args:
        drive: Motion of the actuated joints [m or rad, per s, per s²], each of shape (nt, drives).
        guess: Joint positions near the first sample, shape (nq,), or near each [m or rad], shape (nt, nq).
        columns: Columns of a record.
        records: To be filled in [m or rad, N or N m, -], shape (nt, columns).
    """
    q, state = records[:, columns.q], records[:, columns.marks.start]
    if guess.ndim == 2:
        failed = np.flatnonzero(state == 0)
        q[failed] = plain_poses(mechanism, drive.q, guess, failed)
    else:
        if not state[0]:
            q[0] = _start(mechanism, drive, guess)
        state[redo(mechanism, drive.q, q, _trusted(state))] = 0
    rest = np.flatnonzero(np.abs(state) < TRUSTED)
    for part in np.split(rest, range(CHUNK, len(rest), CHUNK)):
        if part.size:
            given = Drive(*(x[part] for x in drive))
            records[part, columns.effort] = plain_efforts(mechanism, q[part], given, part)
    records[rest, columns.marks] = 0
    return len(rest)


def _trusted(state: Array) -> AnyArray:
    """Mask of the sound samples of a path with the same sign of det Φᵘ as their neighbours, shape (nt,)."""
    turned = np.diff(np.sign(state)) != 0
    trusted = np.abs(state) >= TRUSTED
    trusted[1:] &= ~turned
    trusted[:-1] &= ~turned
    return trusted


def _start(mechanism: Mechanism, drive: Drive, guess: Array) -> Array:
    """The first sample with closed loops, by the plain version [m or rad], shape (nq,)."""
    tracer = path_tracer(mechanism, drive.q)
    try:
        first = tracer.start(guess, 0.0).q
    except LoopClosureError as error:
        raise misfit(mechanism, drive.q[0], guess, 0) or error from None
    want_driven(tracer, first)
    return first[0]


def _trace(mechanism: Mechanism, q: Array) -> Trace | None:
    """The trace of a mechanism, or None if it has something that is not traced."""
    try:
        return trace(mechanism, q)
    except MechanismError:
        return None


def _track(traced: Trace, drive: Drive, records: Array, is_path: bool, evaluator: str) -> None:
    """Fill in records by the tapes; the state of samples that they cannot vouch for is less than `TRUSTED`."""
    nt = len(records)
    if evaluator == "auto":
        evaluator = "llvm" if _is_compiled(traced) or _pays(traced, _requested(traced, nt)) else "numpy"
    equations = _equations(traced, evaluator)
    if not is_path:
        equations.settle(drive, records)
    else:
        span = nt if nt <= FEW[evaluator] else max(-(-nt // LANES[evaluator]), SHORTEST)
        equations.follow(drive, records, span)


@lru_cache(maxsize=8)
def _equations(traced: Trace, evaluator: str) -> Equations:
    """The tapes of a trace, ready to run; cached, as compiled tapes must be loaded."""
    mechanism = traced.mechanism
    tapes = (traced.newton, traced.efforts)
    if evaluator == "numpy" or any(tape.registers > MOST_REGISTERS for tape in tapes):
        track: Track = partial(tracking.track, *tapes, traced.columns)
    else:
        track = compiled.load(_job(traced))
    size = _size(mechanism) or 1.0
    is_periodic = not any(isinstance(closure, CoordinateClosure) for closure in mechanism.closures)
    hinges = np.zeros(mechanism.nq, np.bool_)
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        hinges[columns] = is_periodic and joint.kind == "hinge"
    return Equations(
        track=track,
        tolerance=CLOSED_EXACTLY * max(1.0, size),
        columns=traced.columns,
        lengths=np.array([1.0 if mechanism.joints[j].kind == "hinge" else size for j in mechanism.actuated_joints]),
        turning=hinges[traced.shape.places],
        hinges=hinges,
        quaternions=tuple(slice(x.stop - 4, x.stop) for x in mechanism.q_slices if x.stop - x.start >= 4),
    )


@lru_cache(maxsize=8)
def _is_compiled(traced: Trace) -> bool:
    """Whether machine code was there when a trace was first used."""
    return find_spec("llvmlite") is not None and _job(traced).is_compiled


def _pays(traced: Trace, samples: int) -> bool:
    """Whether machine code is soon worth the time of its compilation."""
    return _saves(len(traced.newton.code) + len(traced.efforts.code), samples) and find_spec("llvmlite") is not None


def _saves(instructions: int, samples: int) -> bool:
    """Whether the run of a tape in numpy takes longer than its compilation."""
    return instructions * (samples * DISPATCHING - COMPILING) > STARTING


@lru_cache(maxsize=8)
def _job(traced: Trace) -> compiled.Job:
    """Module to compile; cached for a trace, as its tapes are long."""
    return compiled.job(traced.newton, traced.efforts, traced.columns)


def _size(mechanism: Mechanism) -> float:
    """A length that no point of the mechanism goes far beyond [m]."""
    return float(sum(np.linalg.norm(body.position) for body in mechanism.bodies)) / max(len(mechanism.bodies), 1)


def _arrays(columns: Columns, drive: Drive, guess: Array) -> tuple[Drive, Array]:
    """Drives and guess as arrays of the right shape."""
    try:
        q, qd, qdd, guess = [np.ascontiguousarray(x, dtype=np.float64) for x in (*drive, guess)]
    except (TypeError, ValueError) as error:
        raise ShapeError(f"drives and guess must be arrays of numbers: {error}") from error
    nt, nq = len(q), columns.q.stop
    if not nt:
        raise ShapeError("drives must have at least 1 sample, got 0")
    drive = Drive(q, qd, qdd)
    if not q.shape == qd.shape == qdd.shape == (nt, columns.drives):
        shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(Drive._fields, drive, strict=True))
        raise ShapeError(f"drives: shape of q, qd and qdd must be ({nt}, {columns.drives}), got {shapes}")
    if guess.shape not in ((nq,), (nt, nq)):
        raise ShapeError(f"guess: shape must be ({nq},) or ({nt}, {nq}), got {guess.shape}")
    return drive, guess


def _want_finite(drive: Drive, guess: Array) -> None:
    """Raise if a number is not finite; the tapes only leave such a sample to the plain version."""
    for name, x in zip((*(f"{name} of the drives" for name in Drive._fields), "guess"), (*drive, guess), strict=True):
        places = np.argwhere(~np.isfinite(x))
        if places.size:
            place = tuple(places[0].tolist())
            raise ShapeError(f"{name}: numbers must be finite, got {x[place]} at {list(place)}")
