"""Drives: rheonomic constraints on joints, on the level of velocities, with efforts as multipliers.

Exudyn's joints in redundant coordinates cannot be moved on that level, and the joint's position is no coordinate.
The motion of a joint is therefore given to Exudyn as a user-defined constraint on the coordinates of the two bodies:
its rate by their velocities, minus the prescribed rate. Its derivative is dual to an effort on the joint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Self, TypeAlias

import numpy as np

from loopcheck.engines.exudyn._frames import COORDINATES, Frame
from loopcheck.robots.mechanism import WORLD, Mechanism

Vector: TypeAlias = tuple[float, float, float]
"""World axes; plain numbers, as these functions are called in every step."""
NOWHERE = (0.0, 0.0, 0.0)
AT_REST = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
"""Coordinates of the world, in the place of a body's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRate:
    """The rate of a hinge or slide, by the velocities of the two bodies that it connects."""

    slide: bool
    grounded: bool
    """Whether the joint is on the world (without coordinates)."""
    axis: Vector
    """Its axis in the axes of the body before it [-]."""
    after: Vector
    """A point of it in the body after it [m]."""

    @classmethod
    def of_joint(cls, mechanism: Mechanism, chain: Sequence[Frame], j: int) -> Self:
        """That of a joint.

        Args:
            j: Index of the joint.
        """
        joint = mechanism.joints[j]
        frame = next(frame for frame in chain if frame.joint == j)
        return cls(
            slide=joint.kind == "slide",
            grounded=frame.before == WORLD,
            axis=tuple((frame.rotation @ joint.axis).tolist()),
            after=tuple((joint.anchor - frame.center).tolist()),
        )

    @property
    def coordinates(self) -> int:
        """Number of coordinates of both bodies; the world has none."""
        return COORDINATES * (1 if self.grounded else 2)

    def row(self, q: Any) -> list[float]:
        """Rate of the joint per velocity of the coordinates [-, m or rad], shape (coordinates,).

        Args:
            q: Coordinates of the body before the joint, unless it is the world, and of the body after it [m or -].
        """
        before, after = (AT_REST, q) if self.grounded else (q[:COORDINATES], q[COORDINATES:])
        e0, e1 = before[3:], after[3:]
        n = self.axis if self.grounded else _turned(e0, self.axis)
        r1 = _turned(e1, self.after) if self.slide else NOWHERE
        own = [*n, *_spin(_cross(r1, n), e1)] if self.slide else [*NOWHERE, *_spin(n, e1)]
        if self.grounded:
            return own
        if not self.slide:
            return [*NOWHERE, *(-x for x in _spin(n, e0)), *own]
        # from the origin of the body before
        way = (after[0] + r1[0] - before[0], after[1] + r1[1] - before[1], after[2] + r1[2] - before[2])
        return [-n[0], -n[1], -n[2], *_spin(_cross(n, way), e0), *own]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """The constraint of a hinge or slide."""

    rate: JointRate
    dt: float
    """Step [s]."""
    rates: Sequence[float]
    """Prescribed velocity at the end of each step, the first at time zero [m/s or rad/s]."""

    def residual(self, mbs: Any, t: float, item: int, q: Any, q_t: Any, on_velocities: bool) -> list[float]:
        """Rate of the joint less the prescribed rate [m/s or rad/s], as Exudyn's `constraintUserFunction`."""
        prescribed = self.rates[round(t / self.dt)]
        return [sum(map(mul, self.rate.row(q), q_t)) - prescribed]

    def jacobian(self, mbs: Any, t: float, item: int, q: Any, q_t: Any, on_velocities: bool) -> Any:
        """Rate of the joint per velocity of the coordinates [-, m or rad], as Exudyn's `jacobianUserFunction`."""
        return np.array([self.rate.row(q)])


def _spin(m: Sequence[float], e: Sequence[float]) -> list[float]:
    """Factor of e' in m · w, with the angular velocity w of the Euler parameters e, (4,)."""
    mx, my, mz = m
    e0, ex, ey, ez = e
    return [
        -2 * (mx * ex + my * ey + mz * ez),
        2 * (e0 * mx + my * ez - mz * ey),
        2 * (e0 * my + mz * ex - mx * ez),
        2 * (e0 * mz + mx * ey - my * ex),
    ]


def _turned(e: Sequence[float], vector: Vector) -> Vector:
    """A vector of the body in world axes, (3,)."""
    e0, ex, ey, ez = e
    vx, vy, vz = vector
    x, y, z = ey * vz - ez * vy + e0 * vx, ez * vx - ex * vz + e0 * vy, ex * vy - ey * vx + e0 * vz
    return vx + 2 * (ey * z - ez * y), vy + 2 * (ez * x - ex * z), vz + 2 * (ex * y - ey * x)


def _cross(a: Sequence[float], b: Sequence[float]) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
