"""Quantities with their first and second time derivative, so that a formula for a position brings its rates along.

A `Jet` is the Taylor polynomial of second order of a function of time; sums, products and elementary functions of jets
follow the rules of Leibniz and of Faà di Bruno exactly.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.motion import Drive


@dataclass(frozen=True, slots=True)
class Jet:
    """A function of time at some instants."""

    x: Array
    """Value [any unit], shape (nt,) or any that broadcasts with it."""
    d: Array
    """First time derivative [unit of the value per s], the shape of the value."""
    dd: Array
    """Second time derivative [unit of the value per s²], the shape of the value."""

    def __add__(self, other: "Jet | Array | float") -> "Jet":
        b = _as_jet(other)
        return Jet(self.x + b.x, self.d + b.d, self.dd + b.dd)

    def __mul__(self, other: "Jet | Array | float") -> "Jet":
        b = _as_jet(other)
        return Jet(self.x * b.x, self.d * b.x + self.x * b.d, self.dd * b.x + 2 * self.d * b.d + self.x * b.dd)

    def __neg__(self) -> "Jet":
        return Jet(-self.x, -self.d, -self.dd)

    def __sub__(self, other: "Jet | Array | float") -> "Jet":
        return self + -_as_jet(other)

    def __rsub__(self, other: float) -> "Jet":
        return -self + other

    def __truediv__(self, other: "Jet | Array | float") -> "Jet":
        b = _as_jet(other)
        return self * b.through(1 / b.x, -1 / b.x**2, 2 / b.x**3)

    __radd__ = __add__
    __rmul__ = __mul__

    def through(self, f: Array, f1: Array, f2: Array) -> "Jet":
        """A function of this jet, from its value and its first two derivatives at `x`.

        Args:
            f: The function [any unit], shape (nt,) as `x`.
            f1: Its derivative [unit of the function per that of `x`], shape (nt,) as `x`.
            f2: Its second derivative [the same, per unit of `x`], shape (nt,) as `x`.
        """
        return Jet(f, f1 * self.d, f1 * self.dd + f2 * self.d**2)

    @classmethod
    def of_time(cls, t: Times) -> Self:
        """Time itself."""
        return cls(t, np.ones_like(t), np.zeros_like(t))


def sin(a: Jet) -> Jet:
    """Sine of an angle [rad]."""
    s, c = np.sin(a.x), np.cos(a.x)
    return a.through(s, c, -s)


def cos(a: Jet) -> Jet:
    """Cosine of an angle [rad]."""
    s, c = np.sin(a.x), np.cos(a.x)
    return a.through(c, -s, -c)


def sqrt(a: Jet) -> Jet:
    """Square root of a positive quantity."""
    root = np.sqrt(a.x)
    return a.through(root, 1 / (2 * root), -1 / (4 * root**3))


def arcsin(a: Jet) -> Jet:
    """Angle in [−π/2, π/2] of a sine [-]."""
    rest = 1 - a.x**2
    return a.through(np.arcsin(a.x), rest**-0.5, a.x * rest**-1.5)


def arccos(a: Jet) -> Jet:
    """Angle in [0, π] of a cosine [-]."""
    return np.pi / 2 - arcsin(a)


def arctan(a: Jet) -> Jet:
    """Angle in [−π/2, π/2] of a tangent [-]."""
    slope = 1 / (1 + a.x**2)
    return a.through(np.arctan(a.x), slope, -2 * a.x * slope**2)


def drive(coordinates: list[Jet]) -> Drive:
    """Prescribed coordinates of the actuated joints, from a jet each."""
    x, d, dd = (np.stack([getattr(jet, part) for jet in coordinates], axis=-1) for part in ("x", "d", "dd"))
    return Drive(q=x, qd=d, qdd=dd)


def _as_jet(value: Jet | Array | float) -> Jet:
    if isinstance(value, Jet):
        return value
    zero = np.zeros(())
    return Jet(np.asarray(value, dtype=np.float64), zero, zero)
