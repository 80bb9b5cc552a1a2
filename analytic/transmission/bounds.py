"""Largest value of a function of the pose, and a bound that no pose exceeds, by interval arithmetic on small cells.

Balls of FLINT enclose the values of the equations of a `CrankRod` over a cell of joint positions, and by power series
of length two their slopes, so that f(X) ⊂ f(c) + f'(X)(X − c) is tight on small cells. The cell with the largest bound
is halved until the bound is close to a value found at a pose (branch and bound; Neumaier 1990, section 2.3).
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import arb, arb_series

from loopcheck.analytic.transmission.crank_rod import CrankRod
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError

BALLS = SimpleNamespace(
    sin=lambda x: x.sin(), cos=lambda x: x.cos(), sqrt=lambda x: (x.nonnegative_part() if x.rad() > 0 else x).sqrt()
)
"""Functions that the equations need, of balls; the root is that of the part of a ball that has one."""
LEAST_LEVERAGE = 0.3123
"""Sine of the smallest angle between crank and rod of poses that count, |cos| ≤ 0.95 [-]."""
CLOSE = 5e-3
"""Largest distance of the bound from a value that was found, over that value [-]."""
MOST_CELLS = 30_000
POINTS = {1: 2001, 2: 61, 3: 21}
"""Of a grid along each joint, by the number of joints."""


SERIES = SimpleNamespace(sin=lambda x: x.sin(), cos=lambda x: x.cos(), sqrt=lambda x: x.sqrt())
Value = Callable[[Sequence[Any], Sequence[Any], Sequence[Sequence[Any]]], Sequence[Any]]
"""Smooth functions of the pose, of which the largest counts; see `Domain.largest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Largest value of a function over a domain."""

    found: float
    """At `pose` [any unit]; -inf if the domain has no pose."""
    certified: float
    """No pose of the domain has more [any unit]."""
    pose: Array
    """Joint positions [rad or m], shape (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Poses of a transmission within ranges of its joints where all rods reach with leverage to spare."""

    transmission: CrankRod
    low: Array
    """[rad or m], shape (n,)."""
    high: Array
    """[rad or m], shape (n,)."""
    leverage: float = LEAST_LEVERAGE
    """Least leverage [-]."""

    def contains(self, x: Array) -> Array:
        """Whether poses belong to it.

        Args:
            x: Joint positions [rad or m], shape (nt, n).

        Returns:
            Boolean, shape (nt,).
        """
        rows = self.transmission.rows(list(x.T), np)
        inside = [
            (square > 0) & (np.abs(lever) >= least)
            for (square, lever, _), least in zip(rows, self._levers, strict=True)
        ]
        return np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*inside)), len(x))

    @property
    def _levers(self) -> list[float]:
        """Least d · v of each leg [m² or m]."""
        return [self.leverage * leg.length * leg.reach for leg in self.transmission.legs]

    def grid(self, points: int) -> Array:
        """Poses of a regular grid that belong to it.

        Args:
            points: Along each joint.

        Returns:
            [rad or m], shape (nt, n).
        """
        axes = [np.linspace(low, high, points) for low, high in zip(self.low, self.high, strict=True)]
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        return x[self.contains(x)]

    def inner_box(self) -> Array:
        """The largest box inside, of the shape of the joint ranges, about zero or else the middle of the poses.

        Returns:
            Lowest and highest position of each joint [rad or m], shape (n, 2).

        Raises:
            MechanismError: If there is none.
        """
        points, zero = POINTS[len(self.low)], np.zeros(len(self.low))
        middle = zero if self.contains(zero[None])[0] else np.median(self.grid(points), axis=0)
        for size in np.linspace(1, 0.02, 50):
            low, high = middle + size * (self.low - middle), middle + size * (self.high - middle)
            if len(replace(self, low=low, high=high).grid(points)) == points ** len(low):
                return np.stack([low, high], axis=1)
        raise MechanismError("a transmission must reach all poses of a box within the joint ranges, found none")

    def largest(self, value: Value, x: Array) -> Bound:
        """The largest value of a function of the transmission.

        Args:
            value: Smooth functions, of which the largest counts, of the joint positions, the levers s = d · v of the
                legs and their rows N = d · ∂p/∂x, where T is N over s; elementwise, of arrays, balls or series.
            x: Poses of the domain that the search starts from [rad or m], shape (nt, n).
        """
        values = self.values(value, x)
        best = int(values.argmax()) if len(values) else -1
        found, pose = (float(values[best]), x[best]) if len(values) else (-np.inf, self.low)
        bounded, order = partial(self._bound, value), count()
        cells = [(-bounded(self.low, self.high), next(order), self.low, self.high)]
        while cells and -cells[0][0] > found + CLOSE * abs(found) and next(order) < MOST_CELLS:
            _, _, low, high = heapq.heappop(cells)
            middle, widest = (low + high) / 2, ((high - low) / (self.high - self.low)).argmax()
            here = self._value(value, middle)
            found, pose = (here, middle) if here > found else (found, pose)
            below, above = high.copy(), low.copy()
            below[widest] = above[widest] = middle[widest]
            for ends in ((low, below), (above, high)):
                bound = bounded(*ends)
                if bound > found:
                    heapq.heappush(cells, (-bound, next(order), *ends))
        return Bound(found=found, certified=max(found, -cells[0][0]) if cells else found, pose=pose)

    def _bound(self, value: Value, low: Array, high: Array) -> float:
        """A bound of a value over a cell; -inf of a cell outside the domain, inf of one with a singular pose."""
        middle, half = ((high + low) / 2).tolist(), ((high - low) / 2 * (1 + 1e-15)).tolist()
        cell = [arb(c, h) for c, h in zip(middle, half, strict=True)]
        rows = self.transmission.rows(cell, BALLS)
        if any(square < least**2 for (square, _, _), least in zip(rows, self._levers, strict=True)):
            return -np.inf
        plain = _upper(_called(value, cell, rows))
        if not np.isfinite(plain):
            return np.inf
        try:
            return min(plain, self._mean_value(value, cell, middle, half))
        except ValueError:  # a series over one that may be zero
            return plain

    def _mean_value(self, value: Value, cell: Sequence[arb], middle: Sequence[float], half: Sequence[float]) -> float:
        """The bound from the values at the middle of a cell and the slopes over all of it."""
        here = [arb(c) for c in middle]
        total = _called(value, here, self.transmission.rows(here, BALLS))
        for k, own in enumerate(half):
            moving = [arb_series([x, float(j == k)], prec=2) for j, x in enumerate(cell)]
            slopes = _called(value, moving, self.transmission.rows(moving, SERIES))
            total = [one + slope[1] * arb(0, own) for one, slope in zip(total, slopes, strict=True)]
        return _upper(total)

    def _value(self, value: Value, x: Array) -> float:
        """Value at a pose; -inf outside the domain."""
        try:
            rows = self.transmission.rows(x.tolist(), math)
        except (ValueError, ZeroDivisionError):  # a rod does not reach
            return -np.inf
        inside = all(abs(lever) >= least for (_, lever, _), least in zip(rows, self._levers, strict=True))
        return float(max(_called(value, x.tolist(), rows))) if inside else -np.inf

    def values(self, value: Value, x: Array) -> Array:
        """Values at poses.

        Args:
            value: See `largest`.
            x: Joint positions [rad or m], shape (nt, n).

        Returns:
            [any unit], shape (nt,).
        """
        functions = _called(value, list(x.T), self.transmission.rows(list(x.T), np))
        return np.max(np.broadcast_arrays(*functions), axis=0) if len(x) else np.zeros(0)


def _called(value: Value, x: Sequence[Any], rows: Sequence[tuple[Any, Any, Sequence[Any]]]) -> Sequence[Any]:
    return value(x, [lever for _, lever, _ in rows], [row for _, _, row in rows])


def _upper(values: Sequence[Any]) -> float:
    """Upper end of the largest ball, inf if one has none."""
    ends = [value.upper() for value in values]
    return max(float(end) for end in ends) * (1 + 1e-15) if all(end.is_finite() for end in ends) else np.inf
