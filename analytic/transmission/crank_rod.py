"""Joints that motors move by cranks and rods, in closed form: positions, rates, accelerations and efforts.

This needs NumPy alone: `loopcheck serial` writes it beside the numbers of a mechanism, so that the two together are a
module of its own. The equations are elementwise and hold for arrays of NumPy (`xp=numpy`), PyTorch (`xp=torch`) and JAX
(`xp=jax.numpy`), which differentiate them.

A rod of length L joins a point p of the chain of joints to the pin c of a crank, |p − c| = L. With d = p − c along the
rod and v = ∂c/∂y the velocity of the pin per rate of the motor, d · (ṗ − v ẏ) = 0 gives the transmission
T = ∂y/∂x = d · ∂p/∂x / (d · v). The denominator is zero where crank and rod are in line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

Vector = tuple[float, float, float]
"""In the axes of the base, with all joints and motors at zero."""
Point = Sequence[Any]
"""Three coordinates, each a number, an array or a symbol."""
EARTH: Vector = (0.0, 0.0, -9.81)
"""Gravity [m/s²]."""
ITERATIONS = 8
"""Steps of Newton's method from motors to joints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A hinge or a slide of the chain, from the base outwards."""

    name: str
    axis: Vector
    """Of length one [-]."""
    anchor: Vector = (0.0, 0.0, 0.0)
    """A point of the axis [m]."""
    slides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A motor on the base, its crank, and the rod from the crank to a link of the chain."""

    motor: str
    axis: Vector
    """Of length one [-]."""
    pin: Vector
    """End of the rod on the crank [m]."""
    end: Vector
    """End of the rod on the chain [m]."""
    length: float
    """Of the rod [m]."""
    elbow: int
    """Sign of d · v, which tells the two assemblies apart [-]."""
    link: int
    """Index of the joint that moves the link with the end."""
    anchor: Vector = (0.0, 0.0, 0.0)
    """A point of the motor's axis [m]."""
    slides: bool = False
    middle: float = 0.0
    """Motor angles are given within π of this angle [rad]."""
    inertia: float = 0.0
    """Of rotor and crank about the motor's axis, or along it [kg m² or kg]."""
    damping: float = 0.0
    """Of the motor [N m s/rad or N s/m]."""
    mass: float = 0.0
    """Of the crank [kg]."""
    moment: Vector = (0.0, 0.0, 0.0)
    """Mass of the crank times its centre from `anchor` [kg m]."""
    rod: Vector = (0.0, 0.0, 0.0)
    """∫(1 − s)² dm, ∫s(1 − s) dm and ∫s² dm of the rod, s from 0 at the crank to 1 at the chain: the mass matrix of a
    thin rod at its two ends [kg]. Of a rod that stays in a plane, the mass matrix with its width: less ∫ε² dm in the
    second, more in the others, ε from its line in units of its length."""
    skew: Vector = (0.0, 0.0, 0.0)
    """Of a rod that stays in a plane, ∫ε dm along the normal: a mass centre beside its line [kg]."""

    @property
    def arms(self) -> tuple[Point, Point, Point]:
        """The crank at the angle `middle`: its parts along the axis, across it, and a right angle further on [m]."""
        return _arms(self)

    @property
    def middle_turn(self) -> tuple[float, float]:
        """Cosine and sine of the angle `middle` [-]."""
        return float(np.cos(self.middle)), float(np.sin(self.middle))

    @property
    def reach(self) -> float:
        """Length of the crank, or 1 of a slide [m or -]."""
        return 1.0 if self.slides else float(np.linalg.norm(self.arms[1]))

    def position(self, turn: tuple[Any, Any], xp: Any) -> Any:
        """Position of the motor.

        Args:
            turn: As in `LegState`.
            xp: Module with `arctan2`.

        Returns:
            [rad or m].
        """
        cosine, sine = turn
        return cosine if self.slides else self.middle + xp.arctan2(sine, cosine)

    def moved_pin(self, y: Any, xp: Any) -> Point:
        """End of the rod on the crank.

        Args:
            y: Position of the motor [rad or m].
            xp: Module with `sin` and `cos`.

        Returns:
            [m].
        """
        if self.slides:
            return plus(self.pin, times(y, self.axis))
        along, across, ahead = self.arms
        angle = y - self.middle
        return plus(plus(self.anchor, along), plus(times(xp.cos(angle), across), times(xp.sin(angle), ahead)))

    def held(self, p: Point, xp: Any) -> "Rod":
        """The rod held to a point, of two solutions that of `elbow`.

        Args:
            p: End of the rod on the chain [m].
            xp: Module with `sqrt`.
        """
        return self._on_slide(p, xp) if self.slides else self._on_crank(p, xp)

    def _on_crank(self, p: Point, xp: Any) -> "Rod":
        """A crank: r · f = K with f the part of p across the axis, solved by r = (K f − (d · v) a × f) / f²."""
        along, across, _ = self.arms
        away = minus(p, self.anchor)
        height = dot(away, self.axis)
        f = minus(away, times(height, self.axis))
        turned, f_square = cross(self.axis, f), dot(f, f)
        height = height - dot(along, self.axis)
        radius_square = dot(across, across)
        K = (f_square + height * height + (radius_square - self.length**2)) * 0.5
        square = radius_square * f_square - K * K
        lever = self.elbow * root(square, xp)
        part, part_ahead = K / f_square, lever / f_square
        r = minus(times(part, f), times(part_ahead, turned))
        pin, d = plus(plus(self.anchor, along), r), plus(times(height, self.axis), minus(f, r))
        return Rod(square=square, lever=lever, pin=pin, d=d, r=r, parts=((part, turned), (part_ahead, f)))

    def _on_slide(self, p: Point, xp: Any) -> "Rod":
        away = minus(p, self.pin)
        along = dot(away, self.axis)
        square = along * along - dot(away, away) + self.length**2
        lever = self.elbow * root(square, xp)
        r = times(along - lever, self.axis)
        return Rod(
            square=square,
            lever=lever,
            pin=plus(self.pin, r),
            d=minus(away, r),
            r=r,
            parts=((along - lever, self.axis),),
        )

    def assembled(self, p: Point, xp: Any) -> "Assembly":
        """The motor with its rod held to a point.

        Args:
            p: End of the rod on the chain [m].
            xp: Module with `sqrt`.
        """
        rod = self.held(p, xp)
        if self.slides:
            (y, v), *_ = rod.parts
            return Assembly(rod=rod, turn=(y, 0.0), v=v, w=(0.0, 0.0, 0.0), crank=times(self.mass, self.axis))
        _, across, ahead = self.arms
        cosine, sine = (dot(rod.r, arm) * (1 / dot(across, across)) for arm in (across, ahead))
        moment = rotated(self.moment, self.axis, *self.middle_turn)
        (part, turned), (part_ahead, f) = rod.parts
        v = plus(times(part, turned), times(part_ahead, f))
        crank = cross(self.axis, rotated(moment, self.axis, cosine, sine))
        return Assembly(rod=rod, turn=(cosine, sine), v=v, w=times(-1.0, rod.r), crank=crank)


@cache
def _arms(leg: Leg) -> tuple[Point, Point, Point]:
    r = minus(leg.pin, leg.anchor)
    along = times(dot(r, leg.axis), leg.axis)
    across = rotated(minus(r, along), leg.axis, *leg.middle_turn)
    return along, across, cross(leg.axis, across)


class Rod(NamedTuple):
    """A rod with its end at a given point."""

    square: Any
    lever: Any
    """d · v [m² or m]."""
    pin: Point
    """End of the rod on the crank [m]."""
    d: Point
    """Along the rod, from the crank [m]."""
    r: Point
    """From the centre of the crank to its pin, or along the slide [m]."""
    parts: Sequence[tuple[Any, Point]]
    """Factors and vectors whose sum is v [m or -]; of a slide its position and axis."""


class Assembly(NamedTuple):
    """A motor and its rod, with the end of the rod at a given point."""

    rod: Rod
    turn: tuple[Any, Any]
    v: Point
    """Velocity of the pin per rate of the motor [m or -]."""
    w: Point
    """Acceleration of the pin per square of that rate [m]."""
    crank: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorState:
    """Motors at given joints; NaN where a rod does not reach."""

    y: Any
    """Positions [rad or m], shape (..., n)."""
    yd: Any
    """Rates, T ẋ [rad/s or m/s], shape (..., n)."""
    ydd: Any
    """Accelerations, T ẍ + Ṫ ẋ [rad/s² or m/s²], shape (..., n)."""
    efforts: Any
    """Efforts [N m or N], shape (..., n)."""
    transmission: Any
    """T, a row for each motor [-, or ratios of the units], shape (..., n, n)."""
    leverage: Any
    """d · v over the product of their lengths: zero with crank and rod in line. Figures lose as many digits as its
    square has zeros [-], shape (..., n)."""
    reached: Any
    """Whether every rod reaches, boolean, shape (...,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointState:
    """Joints at given motors; NaN where `reached` is false."""

    x: Any
    """Positions [rad or m], shape (..., n)."""
    xd: Any
    """Rates [rad/s or m/s], shape (..., n)."""
    xdd: Any
    """Accelerations [rad/s² or m/s²], shape (..., n)."""
    efforts: Any
    """Efforts left for a serial model, without rotors, cranks and rods [N m or N], shape (..., n)."""
    reached: Any
    """Whether the search ended in this assembly, boolean, shape (...,)."""


class LegState(NamedTuple):
    """A leg at given joints; vectors as three coordinates."""

    square: Any
    """(d · v)² of the leg if it closes; a rod does not reach where this is not positive [m⁴ or m²]."""
    turn: tuple[Any, Any]
    """Cosine and sine of the motor's angle from `middle`; of a slide its position and zero [- or m]."""
    row: list[Any]
    """Row of T [-, or ratios of the units]."""
    rate: Any
    acceleration: Any
    leverage: Any
    lever: Point
    """v [m or -]."""
    columns: list[Point]
    """∂p/∂x for each joint [m or -]."""
    pin: Point
    """Acceleration of the pin [m/s²]."""
    end: Point
    """Acceleration of the end on the chain [m/s²]."""
    crank: Point
    """Mass of the crank times the velocity of its centre per rate of the motor [kg m or kg]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrankRod:
    """A chain of one to three joints, and as many motors that move it by cranks and rods."""

    joints: tuple[Joint, ...]
    legs: tuple[Leg, ...]
    gravity: Vector = EARTH
    """Less the acceleration of the base [m/s²]."""

    def motor_state(self, x: Any, xd: Any = None, xdd: Any = None, efforts: Any = None, xp: Any = np) -> MotorState:
        """Motors that give the joints a motion and efforts.

        Args:
            x: Joint positions [rad or m], shape (..., n).
            xd: Joint rates, by default zero [rad/s or m/s], shape (..., n).
            xdd: Joint accelerations, by default zero [rad/s² or m/s²], shape (..., n).
            efforts: Efforts that a serial model without rotors, cranks and rods needs at its joints, by default zero
                [N m or N], shape (..., n).
            xp: Module of the arrays: `numpy`, `torch` or `jax.numpy`.
        """
        zero = 0.0 * x
        x, xd, xdd, efforts = (_parts(zero if part is None else part) for part in (x, xd, xdd, efforts))
        legs, forces = self.equations(x, xd, xdd, efforts, xp)
        reached = legs[0].square > 0
        for leg in legs[1:]:
            reached = reached & (leg.square > 0)
        nowhere = xp.where(reached, 0.0 * x[0], xp.nan)[..., None]
        return MotorState(
            y=_joined([own.position(leg.turn, xp) for own, leg in zip(self.legs, legs, strict=True)], xp) + nowhere,
            yd=_joined([leg.rate for leg in legs], xp) + nowhere,
            ydd=_joined([leg.acceleration for leg in legs], xp) + nowhere,
            efforts=_joined(forces, xp) + nowhere,
            transmission=xp.stack([_joined(leg.row, xp) for leg in legs], -2) + nowhere[..., None],
            leverage=_joined([leg.leverage for leg in legs], xp) + nowhere,
            reached=reached,
        )

    def joint_state(
        self, y: Any, yd: Any = None, ydd: Any = None, efforts: Any = None, guess: Any = None, xp: Any = np
    ) -> JointState:
        """Joints that motors move, by Newton's method.

        Args:
            y: Motor positions [rad or m], shape (..., n).
            yd: Motor rates, by default zero [rad/s or m/s], shape (..., n).
            ydd: Motor accelerations, by default zero [rad/s² or m/s²], shape (..., n).
            efforts: Of the motors, by default zero [N m or N], shape (..., n).
            guess: Joint positions near the result, by default zero [rad or m], shape (..., n).
            xp: Module of the arrays.
        """
        yd, ydd, efforts, guess = (0.0 * y if part is None else part for part in (yd, ydd, efforts, guess))
        pins, parts = self.pins(_parts(y), xp), _parts(guess)
        for _ in range(ITERATIONS):
            parts = [value - step for value, step in zip(parts, self.newton_step(parts, pins, xp), strict=True)]
        x = _joined(parts, xp)
        state = self.motor_state(x, xp=xp)
        reached = state.reached & (abs(state.y - y) < float(xp.finfo(x.dtype).eps) ** 0.5).all(-1)
        x = x + xp.where(reached, 0.0, xp.nan)[..., None]
        T = [_parts(state.transmission[..., k, :]) for k in range(len(self.legs))]
        xd = _joined(solved(T, _parts(yd)), xp)
        xdd = _joined(solved(T, _parts(ydd - self.motor_state(x, xd, xp=xp).ydd)), xp)
        own = self.motor_state(x, xd, xdd, xp=xp).efforts
        left = (state.transmission * (efforts - own)[..., None]).sum(-2)
        return JointState(x=x, xd=xd, xdd=xdd, efforts=left, reached=reached)

    def reflected_inertia(self, x: Any, xp: Any = np) -> Any:
        """Inertia of rotors, cranks and rods at the joints: what a serial model lacks.

        Args:
            x: Joint positions [rad or m], shape (..., n).
            xp: Module of the arrays.

        Returns:
            Matrix to add to the mass matrix [kg m², kg m or kg], shape (..., n, n).
        """
        still = self.motor_state(x, xp=xp)
        columns = []
        for k in range(len(self.joints)):
            unit = [float(j == k) + 0.0 * part for j, part in enumerate(_parts(x))]
            own = self.motor_state(x, xdd=_joined(unit, xp), xp=xp).efforts - still.efforts
            columns.append((still.transmission * own[..., None]).sum(-2))
        return xp.stack(columns, -1)

    def effort_corners(self, x: Any, limits: Sequence[float], xp: Any = np) -> Any:
        """Corners of the joint efforts that motors within limits can exert: of two joints a polygon, in order.

        Rotors, cranks and rods count as massless.

        Args:
            x: Joint positions [rad or m], shape (..., n).
            limits: Largest effort of each motor [N m or N].
            xp: Module of the arrays.

        Returns:
            [N m or N], shape (..., 2^n, n).
        """
        T = self.motor_state(x, xp=xp).transmission
        corners: list[tuple[float, ...]] = [()]
        for limit in limits:
            corners = [(*corner, limit) for corner in corners] + [(*corner, -limit) for corner in reversed(corners)]
        return xp.stack([sum(effort * T[..., k, :] for k, effort in enumerate(corner)) for corner in corners], -2)

    def equations(
        self, x: Sequence[Any], xd: Sequence[Any], xdd: Sequence[Any], efforts: Sequence[Any], xp: Any
    ) -> tuple[list[LegState], list[Any]]:
        """The closed form, on scalars: arrays of any shape, or symbols.

        Args:
            x: Position of each joint [rad or m].
            xd: Rates [rad/s or m/s].
            xdd: Accelerations [rad/s² or m/s²].
            efforts: Efforts at the joints [N m or N].
            xp: Module with `sin`, `cos` and `sqrt`.

        Returns:
            State of each leg, and the effort of each motor [N m or N].
        """
        chain = self._chain(x, xp)
        legs = [self._leg(leg, chain, xd, xdd, xp) for leg in self.legs]
        total, own = list(efforts), []
        for leg, state in zip(self.legs, legs, strict=True):
            near, shared, far = leg.rod
            pin, end = minus(state.pin, self.gravity), minus(state.end, self.gravity)
            at_end = plus(times(shared, pin), times(far, end))
            at_pin = plus(times(near, pin), times(shared, end))
            if any(leg.skew):
                at_end, at_pin = minus(at_end, cross(leg.skew, pin)), plus(at_pin, cross(leg.skew, end))
            total = [force + dot(column, at_end) for force, column in zip(total, state.columns, strict=True)]
            weight = dot(state.crank, self.gravity)
            own.append(leg.inertia * state.acceleration + leg.damping * state.rate + dot(state.lever, at_pin) - weight)
        columns = [list(column) for column in zip(*(state.row for state in legs), strict=True)]
        return legs, [force + load for force, load in zip(solved(columns, total), own, strict=True)]

    def rows(self, x: Sequence[Any], xp: Any) -> list[tuple[Any, Any, list[Any]]]:
        """(d · v)² and d · v of each leg, and d · ∂p/∂x, which over d · v is its row of T; on scalars.

        Args:
            x: Position of each joint [rad or m].
            xp: Module with `sin`, `cos` and `sqrt`.
        """
        chain, rows = self._chain(x, xp), []
        for leg in self.legs:
            p, columns = self._end(leg, chain)
            rod = leg.held(p, xp)
            # d · (a × (p − o)) = (o − c) · (a × (p − o)): p counts once, which keeps intervals narrow
            arms = [rod.d if link.joint.slides else minus(link.anchor, rod.pin) for link in chain]
            row = [dot(arm, column) for arm, column in zip(arms, columns, strict=True)]
            rows.append((rod.square, rod.lever, row))
        return rows

    def pins(self, y: Sequence[Any], xp: Any) -> list[Point]:
        """Ends of the rods on the cranks [m]."""
        return [leg.moved_pin(value, xp) for leg, value in zip(self.legs, y, strict=True)]

    def newton_step(self, x: Sequence[Any], pins: Sequence[Point], xp: Any) -> list[Any]:
        """Distance of the joints from those that close all rods, to first order [rad or m]."""
        chain, rows, errors = self._chain(x, xp), [], []
        for leg, pin in zip(self.legs, pins, strict=True):
            p, columns = self._end(leg, chain)
            d = minus(p, pin)
            rows.append([dot(d, column) for column in columns])
            errors.append((dot(d, d) - leg.length**2) / 2)
        return solved(rows, errors)

    def _chain(self, x: Sequence[Any], xp: Any) -> list["Link"]:
        """Motion of each joint, and its axis as the joints before it move it."""
        links: list[Link] = []
        for joint, value in zip(self.joints, x, strict=True):
            axis: Point = joint.axis
            anchor: Point = joint.anchor
            for before in reversed(links):
                axis, anchor = before.turned(axis), before.moved(anchor)
            turn = (1.0, 0.0) if joint.slides else (xp.cos(value), xp.sin(value))
            links.append(Link(joint=joint, value=value, turn=turn, axis=axis, anchor=anchor))
        return links

    def _end(self, leg: Leg, chain: "Sequence[Link]") -> tuple[Point, list[Point]]:
        """End of a rod on the chain, and its derivative by each joint."""
        p: Point = leg.end
        for link in reversed(chain[: leg.link + 1]):
            p = link.moved(p)
        moving = [link.axis if link.joint.slides else cross(link.axis, minus(p, link.anchor)) for link in chain]
        return p, [column if k <= leg.link else (0.0, 0.0, 0.0) for k, column in enumerate(moving)]

    def _leg(self, leg: Leg, chain: "Sequence[Link]", xd: Sequence[Any], xdd: Sequence[Any], xp: Any) -> LegState:
        p, columns = self._end(leg, chain)
        assembly = leg.assembled(p, xp)
        d, v, w, lever = assembly.rod.d, assembly.v, assembly.w, assembly.rod.lever
        p_dot = combined(xd, columns)
        p_ddot = combined(xdd, columns)
        for k, column in enumerate(columns):
            for j in range(k + 1):
                if not chain[j].joint.slides:
                    factor = (1 if j == k else 2) * (xd[j] * xd[k])
                    p_ddot = plus(p_ddot, times(factor, cross(chain[j].axis, column)))
        rate = dot(d, p_dot) / lever
        slip = minus(p_dot, times(rate, v))
        acceleration = (dot(d, minus(p_ddot, times(rate * rate, w))) + dot(slip, slip)) / lever
        return LegState(
            square=assembly.rod.square,
            turn=assembly.turn,
            row=[dot(d, column) / lever for column in columns],
            rate=rate,
            acceleration=acceleration,
            leverage=lever * (1 / (leg.length * leg.reach)),
            lever=v,
            columns=columns,
            pin=plus(times(acceleration, v), times(rate * rate, w)),
            end=p_ddot,
            crank=assembly.crank,
        )


class Link(NamedTuple):
    """A joint in motion."""

    joint: Joint
    value: Any
    """Its position [rad or m]."""
    turn: tuple[Any, Any]
    """Cosine and sine of it [-]."""
    axis: Point
    """Of length one [-]."""
    anchor: Point
    """A point of the axis [m]."""

    def turned(self, direction: Point) -> Point:
        """A direction on the link, moved by this joint alone."""
        return direction if self.joint.slides else rotated(direction, self.joint.axis, *self.turn)

    def moved(self, point: Point) -> Point:
        """A point on the link, moved by this joint alone."""
        if self.joint.slides:
            return plus(point, times(self.value, self.joint.axis))
        return plus(self.joint.anchor, self.turned(minus(point, self.joint.anchor)))


def plus(one: Point, other: Point) -> Point:
    """Sum of two vectors."""
    return [one[0] + other[0], one[1] + other[1], one[2] + other[2]]


def minus(one: Point, other: Point) -> Point:
    """Difference of two vectors."""
    return [one[0] - other[0], one[1] - other[1], one[2] - other[2]]


def times(factor: Any, vector: Point) -> Point:
    """Multiple of a vector."""
    return [factor * vector[0], factor * vector[1], factor * vector[2]]


def dot(one: Point, other: Point) -> Any:
    """Scalar product."""
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def cross(a: Point, b: Point) -> Point:
    """Vector product."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def combined(factors: Sequence[Any], vectors: Sequence[Point]) -> Point:
    """Sum of multiples of vectors."""
    total: Point = (0.0, 0.0, 0.0)
    for factor, vector in zip(factors, vectors, strict=True):
        total = plus(total, times(factor, vector))
    return total


def rotated(vector: Point, axis: Point, cosine: Any, sine: Any) -> Point:
    """A vector turned about an axis."""
    along = times(dot(axis, vector), axis)
    return plus(along, plus(times(cosine, minus(vector, along)), times(sine, cross(axis, vector))))


def root(square: Any, xp: Any) -> Any:
    """Square root; NaN without a warning where there is none, and with derivatives elsewhere."""
    return xp.sqrt(xp.where(square > 0, square, xp.nan)) if hasattr(xp, "where") else xp.sqrt(square)


def solved(A: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Any]:
    """Solution of up to three linear equations by Cramer's rule."""
    total = determinant(A)
    return [
        determinant([[*row[:k], right, *row[k + 1 :]] for row, right in zip(A, b, strict=True)]) / total
        for k in range(len(b))
    ]


def determinant(A: Sequence[Sequence[Any]]) -> Any:
    """Of one to three rows."""
    if len(A) == 1:
        return A[0][0]
    if len(A) == 2:
        return A[0][0] * A[1][1] - A[0][1] * A[1][0]
    return dot(A[0], cross(A[1], A[2]))


def _parts(values: Any) -> list[Any]:
    return [values[..., k] for k in range(values.shape[-1])]


def _joined(parts: Sequence[Any], xp: Any) -> Any:
    like = next(part for part in parts if hasattr(part, "shape"))
    return xp.stack([part if hasattr(part, "shape") else part + 0.0 * like for part in parts], -1)
