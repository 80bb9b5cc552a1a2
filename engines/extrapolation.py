"""Limits at size zero: Richardson's extrapolation of efforts at several steps or compliances, and derivatives."""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.efforts import Rung

IDLE = 1e-3
"""Fraction of the largest peak below which an actuator counts as idle; its changes are compared with that peak [-]."""
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the differences between one to four steps ahead and as many behind [-]."""


def without_step(ladder: Sequence[Rung]) -> Array:
    """Efforts at step zero, if the efforts have a power series in the step [N or N m], shape (nt, na).

    Args:
        ladder: Simulations at several steps.
    """
    return value_at_zero([rung.dt for rung in ladder], [rung.effort for rung in ladder])


def readings_at_zero(sizes: Sequence[float], readings: Sequence[Mapping[str, Array]]) -> Mapping[str, Array]:
    """`value_at_zero` of each reading of forces in the joints [N m, N], shape (nt, connections, 6)."""
    return {name: value_at_zero(sizes, [each[name] for each in readings]) for name in readings[-1]}


def value_at_zero(sizes: Sequence[float], values: Sequence[Array]) -> Array:
    """Value at size zero of the polynomial through the values of some sizes, each an array of the same shape."""
    h = np.array(sizes)
    weights = [np.prod(others / (others - own)) for own, others in ((h[i], np.delete(h, i)) for i in range(len(h)))]
    return np.tensordot(weights, np.array(values), axes=1)


def unsettled(ladder: Sequence[Rung]) -> float:
    """Remaining error of extrapolated efforts [-], if their last two changes continue as a geometric series.

    Zero, as finer steps would not remove it, for efforts that no longer settle; infinite for fewer than three.

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

    It measures the convergence of an extrapolation, if the second answer has an additional step size. Newtons and
    newton metres are compared only to detect idle actuators.

    Args:
        others: Efforts of the better answer [N or N m], shape (nt, na).
    """
    peaks = np.abs(others).max(axis=0, initial=0.0)
    size = np.maximum(peaks, IDLE * peaks.max(initial=0.0))
    change = np.abs(efforts - others).max(axis=0, initial=0.0)
    return float(np.divide(change, size, out=np.zeros_like(change), where=size > 0).max(initial=0.0))


def slope_at_zero(function: Callable[[float], Array], step: float) -> Array:
    """Derivative at zero by the central difference of order eight.

    Args:
        function: Function of a number.
        step: From one point to the next [the unit of the number].
    """
    ahead = [function(n * step) - function(-n * step) for n in range(1, len(WEIGHTS) + 1)]
    return sum((weight / step * difference for weight, difference in zip(WEIGHTS, ahead, strict=True)), 0 * ahead[0])


def slope_along(function: Callable[[Array], Array], velocity: Array, step: float) -> Array:
    """Rate of change of values along a velocity, as J̇ q̇ of J q̇.

    Args:
        function: Function of a small motion, linear in `velocity`: its values at this rate.
        velocity: The velocity [m/s or rad/s], shape (nv,); if its square overflows, it has no effect.
        step: Displacement of its fastest component from one point to the next [m or rad].
    """
    fastest = float(np.abs(velocity).max(initial=0.0))
    if not (fastest**2):
        return 0 * function(0 * velocity)
    return slope_at_zero(lambda t: function(t * velocity), step / fastest)
