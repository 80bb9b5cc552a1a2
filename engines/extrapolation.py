"""Limits at size zero: Richardson's extrapolation of efforts at several steps or compliances, and derivatives."""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.efforts import Rung

IDLE = 1e-3
"""Fraction of the largest peak below which an actuator counts as idle; its changes are compared with that peak [-]."""
LONGEST = 0.05
"""Longest time that is divided into equal steps [s]: a sample of the motion, or an equal part of a longer sample."""
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the differences between one to four steps ahead and as many behind [-]."""


def divided(report: float) -> float:
    """The time that is divided into equal steps [s].

    Args:
        report: Time between two samples of the motion [s].
    """
    return float(report / np.ceil(report / LONGEST - 1e-9))


def settled_rungs(
    rung: Callable[[int], Rung],
    counts: Sequence[int],
    *,
    settled: float,
    more: int,
    beyond: int,
    kept: int | None = None,
) -> list[Rung]:
    """Simulations, coarsest step first; finer ones are added until their extrapolated efforts are settled.

    Args:
        rung: Simulates with so many steps in the time that is divided.
        counts: How many there are to be, fewest first.
        settled: Most that may be left in the efforts, over their peak [-]; if infinite, none is added.
        more: Most that are added, each twice as fine as the last.
        beyond: How many finer ones are taken then, instead of as many of the coarsest.
        kept: How many of the finest are extrapolated; None for all.
    """
    ladder, finest = [rung(count) for count in counts], counts[-1]
    for _ in range(more if settled < inf else 0):
        if unsettled(ladder[-kept:] if kept else ladder) <= settled:
            break
        finest *= 2
        ladder.append(rung(finest))
    return [*ladder[beyond:], *(rung(finest * 2**k) for k in range(1, beyond + 1))]


def without_step(ladder: Sequence[Rung]) -> Array:
    """Efforts at step zero, if those of a step have a power series in it [N or N m], shape (nt, na).

    Args:
        ladder: Simulations at several steps.
    """
    return value_at_zero([rung.dt for rung in ladder], [rung.effort for rung in ladder])


def value_at_zero(sizes: Sequence[float], efforts: Sequence[Array]) -> Array:
    """Value at size zero of the polynomial through the efforts [N or N m], shape (nt, na)."""
    h = np.array(sizes)
    weights = [np.prod(others / (others - own)) for own, others in ((h[i], np.delete(h, i)) for i in range(len(h)))]
    return np.tensordot(weights, np.array(efforts), axes=1)


def unsettled(ladder: Sequence[Rung]) -> float:
    """What is left in extrapolated efforts [-]: they go on to change in the ratio of their last two changes.

    Nothing that finer steps would take away, where they have ceased to settle; infinite for fewer than three.

    Args:
        ladder: Simulations at several steps, coarsest first.
    """
    if len(ladder) < 3:
        return inf
    *_, a, b, c = (without_step(ladder[:count]) for count in range(1, len(ladder) + 1))
    before, last = relative_change(a, c), relative_change(b, c)
    return last**2 / before if last < before else 0.0


def relative_change(efforts: EffortSeries, others: EffortSeries) -> float:
    """Largest distance between two answers, over the peak of its actuator in the second [-].

    It tells how far an extrapolation is settled where it comes from one more size than the other. Newtons and newton
    metres are compared only to tell what is idle.

    Args:
        others: Those of the better answer [N or N m], shape (nt, na).
    """
    peaks = np.abs(others).max(axis=0, initial=0.0)
    size = np.maximum(peaks, IDLE * peaks.max(initial=0.0))
    change = np.abs(efforts - others).max(axis=0, initial=0.0)
    return float(np.divide(change, size, out=np.zeros_like(change), where=size > 0).max(initial=0.0))


def slope_at_zero(function: Callable[[float], Array], step: float) -> Array:
    """Derivative at zero by the central difference of order eight.

    Args:
        function: Of a number, and its values.
        step: From one point to the next [the unit of the number].
    """
    ahead = [function(n * step) - function(-n * step) for n in range(1, len(WEIGHTS) + 1)]
    return sum((weight / step * difference for weight, difference in zip(WEIGHTS, ahead, strict=True)), 0 * ahead[0])


def slope_along(function: Callable[[Array], Array], velocity: Array, step: float) -> Array:
    """How fast values change along a velocity, as J̇ q̇ of J q̇.

    Args:
        function: Of a small motion, and its values at rate `velocity`, in which they are linear.
        velocity: The velocity [m/s or rad/s], shape (nv,); one whose square is no number any more changes nothing.
        step: How far its fastest component moves from one point to the next [m or rad].
    """
    fastest = float(np.abs(velocity).max(initial=0.0))
    if not (fastest**2):
        return 0 * function(0 * velocity)
    return slope_at_zero(lambda t: function(t * velocity), step / fastest)
