"""Arrays between zones that must not be touched: filled with a number, or protected by the processor."""

import ctypes
import itertools
import math
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import pytest

from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.motion import Drive

GUARD = 7.25
"""Content of a guard zone."""
ZONE = 4096
"""Length of a guard zone [bytes]."""
Allocate: TypeAlias = Callable[[tuple[int, ...]], Array]


class Zones:
    """Arrays between zones that are read afterwards."""

    def __init__(self, *, off: int = 0) -> None:
        """Arrays at addresses that are so many bytes off those of aligned numbers."""
        self.off = off
        self._buffers: list[tuple[AnyArray, AnyArray]] = []

    def __call__(self, shape: tuple[int, ...]) -> Array:
        """An array of zeros."""
        whole = np.frombuffer(np.full(2 * ZONE // 8 + math.prod(shape) + 1, GUARD).tobytes(), np.uint8).copy()
        inner = whole[ZONE + self.off :][: 8 * math.prod(shape)].view(np.float64)
        self._buffers.append((whole, whole.copy()))
        inner[:] = 0
        return inner.reshape(shape)

    def touched(self) -> list[int]:
        """Places of changed bytes relative to the array before which or behind which they are."""
        places = []
        for whole, before in self._buffers:
            start = ZONE + self.off
            changed = np.flatnonzero(whole != before) - start
            size = len(whole) - 2 * ZONE - 8
            places += changed[(changed < 0) | (changed >= size)].tolist()
        return places


class Fence:
    """Arrays that begin (`at_end` false) or end at a page whose reading or writing ends the process."""

    def __init__(self, *, at_end: bool) -> None:
        self.at_end = at_end
        self._protect = ctypes.CDLL(None).mprotect
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def __call__(self, shape: tuple[int, ...]) -> Array:
        """An array of zeros."""
        size, page = 8 * math.prod(shape), mmap.PAGESIZE
        inner = -(-size // page) * page
        pages = mmap.mmap(-1, inner + 2 * page)
        first = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        for place in (first, first + page + inner):
            assert self._protect(place, page, 0) == 0
        start = page + (inner - size if self.at_end else 0)
        return np.frombuffer(pages, np.float64, size // 8, start).reshape(shape)


@contextmanager
def compiled_functions_in(allocate: Allocate) -> Iterator[None]:
    """All arrays of compiled functions from an allocator, whoever calls them."""
    from loopcheck.analytic.batch import compiled

    def moved(x: Array) -> Array:
        copy = allocate(x.shape)
        copy[...] = x
        return copy

    def track(function: compiled.Function, tolerance: float, drive: Drive, records: Array) -> None:
        copy = moved(records)
        of_track(function, tolerance, Drive(*map(moved, drive)), copy)
        records[...] = copy

    def map_(function: compiled.Map, inputs: list[Array]) -> Array:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "empty", allocate)
            return of_map(function, inputs)

    of_track, of_map = compiled.Function.__call__, compiled.Map.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.Function, "__call__", track)
        patch.setattr(compiled.Map, "__call__", map_)
        yield


def _run_in_fences() -> None:
    """Call every compiled function in electric fences, with lengths around those of vectors, lanes and blocks."""
    from loopcheck.analytic.batch import compiled, forward_dynamics, inverse_dynamics
    from loopcheck.analytic.batch.trace import trace
    from loopcheck.analytic.motion.prescribe import prescribe
    from loopcheck.robots.robot import load, make_case
    from tests.analytic.test_guard_zones import NUMBERS, paths
    from tests.analytic.test_tracking import COLUMNS, TAPES, TOLERANCE

    track = compiled.load(compiled.job(*TAPES, COLUMNS))
    for at_end, lanes, samples in itertools.product((True, False), NUMBERS, NUMBERS):
        track(TOLERANCE, *paths(lanes, samples, Fence(at_end=at_end)))
    case = make_case(load("3rrr"), variant="default", mode="pmp", configuration="vertical")
    mechanism, motion = case.mechanism, prescribe(case)
    traced = trace(mechanism, motion.q[0])
    lengths = [1, 7, 9, 1025, 2049]
    for at_end, nt, each in itertools.product((True, False), lengths, (True, False)):
        t = np.arange(nt) * (motion.t[-1] / 200)
        drive = motion.law(np.minimum(t, motion.t[-1]))
        with compiled_functions_in(Fence(at_end=at_end)):
            q = inverse_dynamics(mechanism, drive, motion.q[0], traced=traced, evaluator="llvm").q
            guess = q if each else q[0]
            inverse_dynamics(mechanism, drive, guess, traced=traced, evaluator="llvm", derivatives=["q", "parameters"])
            forward_dynamics(mechanism, q, 0 * q, 0 * drive.q, evaluator="llvm")


if __name__ == "__main__":
    _run_in_fences()
