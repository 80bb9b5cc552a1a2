"""Slope of what an engine computes at points only."""

from collections.abc import Callable

import numpy as np

from loopcheck.robots.arrays import Array

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the differences between one to four steps ahead and as many behind [-]."""


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
