"""Runs the tapes of a mechanism over the samples of a path, many lanes at once.

A lane is a stretch of consecutive samples; one sample of each lane makes a block. Every lane follows the path from a
state that `walk` finds, so that it keeps the working mode, and must arrive where the next one starts. Numba compiles
these functions as they are (`compiled`); without it they run in numpy.
"""

import numpy as np

from analytic.batch.interpreter import run
from robots.arrays import AnyArray, Array

CLOSE = 1e-8
"""A Newton step this small is the last [m or rad]: the next would be of the order of its square."""
CONTRACTION = 0.25
"""Largest ratio of two Newton steps (Deuflhard 2011, section 2.1): above it they may lead to another working mode."""
MOST_STEPS = 12
"""Newton steps at most."""
SMALLEST_PIVOT = 1e-3
"""Smallest pivot relative to that at the pose of the trace [-]; below it round-off may grow too much."""
CONSISTENT = 1e-9
"""Largest relative difference between what is given for an actuated joint and what follows from the others [-]."""
MEETING = 1e-6
"""Largest distance of a lane from where the next one starts [m or rad]."""


def close(code: AnyArray, constants: Array, outputs: AnyArray, registers: Array, sound: AnyArray) -> None:
    """Close the loops of a block from the positions in its first registers, which it replaces.

    Args:
        code: Instructions of the Newton tape [-], shape (n, 6).
        constants: Their constants [any unit], shape (n,).
        outputs: Registers of its outputs [-], shape (nf + 2,): positions, size of the step, residual.
        registers: Values [any unit], shape (registers, lanes).
        sound: Which lanes are still right [-], shape (lanes,); unset where Newton's method does not contract.
    """
    nf = len(outputs) - 2
    before = np.full(registers.shape[1], np.inf)
    for _ in range(MOST_STEPS):
        run(code, constants, registers)
        for k in range(nf):
            registers[k] = registers[outputs[k]]
        size = registers[outputs[nf]]
        sound[:] = sound & ((size <= CONTRACTION * before) | (size <= CLOSE))
        before[:] = size
        if np.where(sound, size, 0.0).max() <= CLOSE:
            break
    sound[:] = sound & (before <= CLOSE)


def walk(  # noqa: PLR0913 - Numba wants plain arrays
    code: AnyArray, constants: Array, outputs: AnyArray, q: Array, span: int, registers: Array, starts: Array
) -> int:
    """Follow the path with one lane in steps as long as Newton's method contracts, to where each lane starts.

    Args:
        code: Instructions of the Newton tape [-], shape (n, 6).
        constants: Their constants [any unit], shape (n,).
        outputs: Registers of its outputs [-], shape (nf + 2,).
        q: Positions of the actuated joints [m or rad], shape (nt, joints).
        span: Samples of a lane.
        registers: Values [any unit], shape (registers, 1).
        starts: Positions of the joints that follow where each lane starts [m or rad], shape (lanes, nf); the first is
            given, the others are filled in.

    Returns:
        How many lanes have a start: the walk ends where two samples are too far apart.
    """
    nf, na = starts.shape[1], q.shape[1]
    x, past = starts[0].copy(), starts[0].copy()
    sound = np.ones(1, np.bool_)
    at, since, stride = 0, 1, span
    for lane in range(1, len(starts)):
        while at < lane * span:
            to = min(at + stride, lane * span)
            registers[:nf, 0] = x + (x - past) * ((to - at) / since)
            registers[nf : nf + na, 0] = q[to]
            sound[0] = True
            close(code, constants, outputs, registers, sound)
            if sound[0]:
                past[:] = x
                since = to - at
                x[:] = registers[:nf, 0]
                at, stride = to, min(2 * stride, span)
            elif to == at + 1:
                return lane
            else:
                stride = (to - at) // 2
        starts[lane] = x
    return len(starts)


def march(  # noqa: PLR0913 - Numba wants plain arrays, and one loop
    newton: tuple[AnyArray, Array, AnyArray],
    efforts: tuple[AnyArray, Array, AnyArray],
    path: tuple[Array, Array, Array],
    starts: Array,
    guess: Array,
    tolerance: float,
    registers: Array,
    result: tuple[Array, Array, Array],
    following: AnyArray,
) -> AnyArray:
    """Efforts along a path.

    Args:
        newton: Instructions, constants and outputs of the Newton tape.
        efforts: Those of the tape of the efforts.
        path: Positions, velocities and accelerations of the actuated joints, each of shape (nt, joints).
        starts: Positions of the joints that follow where each lane starts [m or rad], shape (lanes, nf).
        guess: The same for every sample, shape (nt, nf) [m or rad]; empty for lanes that follow the path.
        tolerance: Largest closure residual [m or rad].
        registers: Values [any unit], shape (registers, lanes).
        result: To be filled: efforts (nt, na), joint positions (nt, nq), and the state of each sample (nt,): 0 if its
            loops are not closed, 1 if they are but a pivot is small, 2 if all is well; with the sign of det Φᵘ.
        following: Places in q of the joints that follow [-], shape (nf,).

    Returns:
        Which lanes arrive where the next one starts, shape (lanes,).
    """
    q, qd, qdd = path
    effort, positions, state = result
    (nt, joints), (lanes, nf), na = q.shape, starts.shape, effort.shape[1]
    span = -(-nt // lanes)
    sound = np.ones(lanes, np.bool_)
    x, past, old = starts.T.copy(), starts.T.copy(), starts.T.copy()
    for s in range(span + 1):
        n = len(range(s, nt, span))  # the last lane may be shorter
        for k in range(joints):
            registers[nf + k, :n] = q[s::span, k]
            registers[nf + joints + k, :n] = qd[s::span, k]
            registers[nf + 2 * joints + k, :n] = qdd[s::span, k]
        if len(guess):
            registers[:nf, :n] = guess[s::span].T
            sound[:] = True
        else:
            registers[:nf] = 3 * (x - past) + old
        close(newton[0], newton[1], newton[2], registers, sound)
        old[:], past[:], x[:] = past, x, registers[:nf]
        if s == span:
            break
        run(efforts[0], efforts[1], registers)
        if np.where(sound, registers[efforts[2][na]], 0.0).max() > tolerance:  # a step more than its size asked for
            close(newton[0], newton[1], newton[2], registers, sound)
            run(efforts[0], efforts[1], registers)
        checks = registers[efforts[2][na:]]
        residual, pivot, orientation, apart = checks[0], checks[1], checks[2], checks[3]
        closed = sound & (residual <= tolerance) & (apart <= CONSISTENT)
        trusted = np.where(pivot >= SMALLEST_PIVOT, 2.0, 1.0)
        state[s::span] = np.where(closed, trusted * np.sign(orientation), 0.0)[:n]
        for k in range(na):
            effort[s::span, k] = registers[efforts[2][k], :n]
        for k in range(nf):
            positions[s::span, following[k]] = registers[k, :n]
    return arrivals(x, starts, len(range(span, nt, span)))


def arrivals(x: Array, starts: Array, n: int) -> AnyArray:
    """Which lanes arrive where the next one starts.

    Args:
        x: Where they are [m or rad], shape (nf, lanes).
        starts: Where each starts [m or rad], shape (lanes, nf).
        n: How many of them arrive.
    """
    met = np.ones(len(starts), np.bool_)
    for k in range(len(x)):
        met[:n] = met[:n] & (np.abs(x[k, :n] - starts[1 : n + 1, k]) <= MEETING)
    return met
