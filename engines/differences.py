"""Slope of what an engine computes at points only."""

from collections.abc import Callable

from robots.arrays import Array

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Of the differences between one to four steps ahead and as many behind [-]."""


def slope_at_zero(function: Callable[[float], Array], step: float) -> Array:
    """Derivative at zero by the central difference of order eight.

    Args:
        function: Of a number, and its values.
        step: From one point to the next [the unit of the number].
    """
    ahead = [function(n * step) - function(-n * step) for n in range(1, len(WEIGHTS) + 1)]
    return sum((weight / step * difference for weight, difference in zip(WEIGHTS, ahead, strict=True)), 0 * ahead[0])
