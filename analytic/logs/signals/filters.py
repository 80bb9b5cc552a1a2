"""Linear filters that make positions, velocities, accelerations and efforts of a log consistent with each other.

Each is a polynomial through, or nearly through, the samples of a window (Savitzky and Golay 1964). Accelerations are a
kernel of velocities or positions; written as a kernel of the accelerations that acted between the samples, the same
filter is applied to the efforts, so that both sides lose the same frequencies. For held efforts this is exact.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from loopcheck.robots.arrays import Array, frozen

SMOOTHING_DEGREE = 5
"""Degree of the polynomial through noisy samples [-]."""
NODES = 8
"""Weights of instantaneous efforts, averaged between two samples [-]."""
SECOND_DIFFERENCE = np.array([-1, 16, -30, 16, -1]) / 12
"""Second derivative by five samples, to fourth order [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Weights of samples beside a base sample."""

    begin: int
    """Place of the first, from the base sample on [samples]."""
    weights: Array
    """Weights [-, per s or per s²], shape (any,)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, (None,), name="kernel"))

    @property
    def end(self) -> int:
        """Place of the last, from the base sample on [samples]."""
        return self.begin + len(self.weights) - 1

    def applied(self, values: Array, bases: Array) -> Array:
        """The weighted sums.

        Args:
            values: Samples [any unit], shape (nt, columns).
            bases: Numbers of the base samples, as far from the ends as the kernel reaches [-], shape (n,).

        Returns:
            Sums, shape (n, columns).
        """
        windows = np.lib.stride_tricks.sliding_window_view(values, len(self.weights), axis=0)
        return windows[bases.astype(int) + self.begin] @ self.weights

    def spread(self, reach: int, shifts: tuple[int, ...]) -> Array:
        """The weights of all samples up to some distance on both sides, on average over shifts of the base sample.

        Args:
            reach: The distance, at least the reach of the shifted kernels [samples].
            shifts: Shifts of the base sample [samples].

        Returns:
            Weights [as those of the kernel], shape (2 reach + 1,).
        """
        every = np.zeros(2 * reach + 1)
        for shift in shifts:
            every[reach + shift + self.begin : reach + shift + self.end + 1] += self.weights / len(shifts)
        return every


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Kernels of the quantities at a common time."""

    name: str
    """Description of the filter."""
    late: float
    """Time of the filtered values, after the time of the base sample [steps of the log]."""
    position: Kernel
    """Of positions."""
    velocity: Kernel
    """Of velocities, or of positions without velocities."""
    acceleration: Kernel
    """Of velocities, or of positions without velocities."""
    effort: Kernel
    """Of efforts."""
    uses_velocities: bool
    """Whether logged velocities are used, or positions alone."""

    @property
    def kernels(self) -> tuple[Kernel, Kernel, Kernel, Kernel]:
        """Of positions, velocities, accelerations and efforts."""
        return self.position, self.velocity, self.acceleration, self.effort

    @property
    def is_of_steps(self) -> bool:
        """Whether it takes differences of neighbouring samples, without a polynomial."""
        return len(self.position.weights) <= 2

    @property
    def reach(self) -> int:
        """Distance of the farthest used sample from the base sample [samples]."""
        return max(max(-kernel.begin, kernel.end) for kernel in self.kernels)

    def bases(self, samples: int) -> Array:
        """Numbers of the base samples of a log with so many samples [-], shape (n,); possibly empty."""
        first, last = max(-kernel.begin for kernel in self.kernels), max(kernel.end for kernel in self.kernels)
        return np.arange(first, samples - last, 1.0)

    def spread(self, reach: int, shifts: tuple[int, ...] = (0,)) -> Array:
        """All four kernels over the samples up to some distance, as `Kernel.spread`, shape (4, 2 reach + 1)."""
        return np.stack([kernel.spread(reach, shifts) for kernel in self.kernels])

    def motion(self, q: Array, qd: Array | None, bases: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations.

        Args:
            q: Positions [any unit], shape (nt, any).
            qd: Velocities [per s], shape (nt, any); not used by filters of positions.
            bases: Numbers of the base samples [-], shape (n,).

        Returns:
            The three, each of shape (n, any).
        """
        rates = qd if self.uses_velocities and qd is not None else q
        x = self.position.applied(q, bases)
        return x, self.velocity.applied(rates, bases), self.acceleration.applied(rates, bases)


def step_filter(dt: float, *, stride: int = 1, uses_velocities: bool) -> Filter:
    """The filter of held efforts with every step logged: exact for a plant of constant acceleration in each step.

    Over one step, or, without velocities, over two.

    Args:
        dt: Step of the log [s].
        stride: Steps of the log per step of the filter [-].
        uses_velocities: Whether velocities are logged.
    """
    span = stride * dt
    if uses_velocities:
        mean, change = _apart([0.5, 0.5], stride), _apart([-1 / span, 1 / span], stride)
        return Filter(
            name="means and differences of each step",
            late=stride / 2,
            position=Kernel(begin=0, weights=mean),
            velocity=Kernel(begin=0, weights=mean),
            acceleration=Kernel(begin=0, weights=change),
            effort=_acting(dt * change, 0, None, is_of_velocities=True),
            uses_velocities=True,
        )
    second = _apart([1 / span**2, -2 / span**2, 1 / span**2], stride)
    return Filter(
        name="differences of positions over two steps",
        late=0.0,
        position=Kernel(begin=0, weights=np.ones(1)),
        velocity=Kernel(begin=-stride, weights=_apart([-0.5 / span, 0, 0.5 / span], stride)),
        acceleration=Kernel(begin=-stride, weights=second),
        effort=_acting(dt**2 * second, -stride, None, is_of_velocities=False),
        uses_velocities=False,
    )


def interpolating_filter(dt: float, half: int, late: float, *, uses_velocities: bool) -> Filter:
    """A polynomial through all samples of a window, evaluated at the time of action of its middle effort.

    Args:
        dt: Step of the log [s].
        half: Samples on each side of the middle.
        late: Time of action of a row's effort, after the time of the row [steps of the log].
        uses_velocities: Whether velocities are logged.
    """
    value, rate, second = _polynomial_kernels(half, 2 * half, late)
    _, _, curvature = _polynomial_kernels(half, 2 * half, 0.0)
    return Filter(
        name=f"polynomial through {2 * half + 1} samples",
        late=late,
        position=Kernel(begin=-half, weights=value),
        velocity=Kernel(begin=-half, weights=value if uses_velocities else rate / dt),
        acceleration=Kernel(begin=-half, weights=rate / dt if uses_velocities else second / dt**2),
        effort=Kernel(begin=-half, weights=np.eye(2 * half + 1)[half] - _held(late, uses_velocities) * curvature),
        uses_velocities=uses_velocities,
    )


def smoothing_filter(dt: float, half: int, late: float | None, *, uses_velocities: bool) -> Filter:
    """A polynomial of fifth degree nearly through the samples of a window, and the same filter for the efforts.

    Args:
        dt: Step of the log [s].
        half: Samples on each side of the middle.
        late: When the effort of a row acted, after the time of the row [steps of the log]; None if throughout the step.
        uses_velocities: Whether velocities are logged.
    """
    value, rate, second = _polynomial_kernels(half, SMOOTHING_DEGREE, 0.0)
    return Filter(
        name=f"polynomial of degree {SMOOTHING_DEGREE} over {2 * half + 1} samples, {2 * half * dt:.3g} s",
        late=0.0,
        position=Kernel(begin=-half, weights=value),
        velocity=Kernel(begin=-half, weights=value if uses_velocities else rate / dt),
        acceleration=Kernel(begin=-half, weights=rate / dt if uses_velocities else second / dt**2),
        effort=_acting(rate if uses_velocities else second, -half, late, is_of_velocities=uses_velocities),
        uses_velocities=uses_velocities,
    )


def _apart(weights: list[float], stride: int) -> Array:
    """Weights with zeros between them."""
    every = np.zeros(stride * (len(weights) - 1) + 1)
    every[::stride] = weights
    return every


@lru_cache(256)
def _polynomial_kernels(half: int, degree: int, place: float) -> tuple[Array, Array, Array]:
    """Value, slope and second derivative at a place of the polynomial nearest to 2 half + 1 samples."""
    x = np.arange(-half, half + 1) / half
    fit = np.linalg.pinv(np.polynomial.legendre.legvander(x, degree))
    kernels = []
    for order in range(3):
        basis = [np.polynomial.Legendre.basis(k).deriv(order)(place / half) for k in range(degree + 1)]
        kernels.append(np.array(basis) @ fit / half**order)
    value, rate, second = kernels
    return value, rate, second


def _acting(weights: Array, begin: int, late: float | None, *, is_of_velocities: bool) -> Kernel:
    """A kernel of velocities or positions, for steps of length one, as a kernel of the causing efforts.

    The velocity j is the sum of the accelerations in the steps before it. The position j contains (j − i − 1) times the
    acceleration in the step i before it, besides the motion within that step.
    """
    j, i = np.arange(len(weights))[:, None], np.arange(len(weights) - 1)[None]
    gained = weights @ np.where(j > i, 1.0, 0.0)
    (average, moved), lead = (
        ((np.ones(1), np.full(1, 0.5)), 0) if late is None else _step_integrals(late, is_of_velocities)
    )
    if is_of_velocities:
        return Kernel(begin=begin - lead, weights=np.convolve(gained, average))
    far = weights @ np.where(j > i, j - i - 1.0, 0.0)
    return Kernel(begin=begin - lead, weights=np.convolve(far, average) + np.convolve(gained, moved))


def _held(late: float, of_velocities: bool) -> float:
    """Difference between held efforts and smooth efforts, per second derivative of the efforts [-].

    For a hold h, the curve through velocities at its ends accelerates in its middle by h²/24 of the second derivative
    less than the effort there causes, the curve through positions by as much more. An instantaneous effort has no hold.
    """
    return (2 * late) ** 2 / 24 * (1 if of_velocities else -1)


def _step_integrals(late: float, of_velocities: bool) -> tuple[tuple[Array, Array], int]:
    """Kernels of instantaneous efforts that integrate them over a step, once and twice, and their first samples.

    By the polynomial through the nodes nearest to the step; each effort acted `late` after its row.
    """
    lead = NODES // 2 - 1
    nodes, n = np.arange(NODES) - lead + late, np.arange(NODES)
    powers = np.vander(nodes, NODES, increasing=True).T
    once, twice = 1 / (n + 1), 1 / ((n + 1) * (n + 2))  # of sⁿ and of (1 − s) sⁿ, over the step from 0 to 1
    acting = -_held(late, of_velocities) * SECOND_DIFFERENCE
    acting[len(acting) // 2] += 1
    average, moved = (np.convolve(np.linalg.solve(powers, moments), acting) for moments in (once, twice))
    return (average, moved), lead + len(acting) // 2
