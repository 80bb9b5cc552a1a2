"""The controlled robot: exact closed-loop dynamics of many 3-RRRs at once, each with its own parameters.

The state is the pose of the platform; the legs follow in closed form in their working mode, so that loops cannot open
and a singularity of the motors needs no special treatment. The legs are written in absolute angles, independent of the
paper's equations in the controllers. Planar vectors are complex numbers x + iy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from loopcheck.analytic.papers.zubizarreta2010 import PHI, Parameters
from loopcheck.robots.arrays import AnyArray, Array, PlanarPoses


class Plant(Protocol):
    """Robots that are controlled, stepped together."""

    def pose(self) -> Array:
        """True task coordinates of P [m, m, rad], shape (n, 3)."""
        ...

    def joints(self) -> tuple[Array, Array]:
        """Measured joints q_a, q_p [rad] and their rates [rad/s], both of shape (n, 6)."""
        ...

    def step(self, tau: Array, dt: float) -> None:
        """Hold the torques for a time.

        Args:
            tau: Torques of the motors [N m], shape (n, 3).
            dt: How long [s].
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Legs:
    """The legs of all robots in one state, entries (n, 3)."""

    near: AnyArray  # unit vectors of A_iB_i
    far: AnyArray  # unit vectors of B_iC_i
    cos: Array  # of the passive joints
    sin: Array
    rate: Array  # of the active joints [rad/s]
    spin: Array  # of the distal links, absolute [rad/s]
    per_twist: AnyArray  # velocity of C_i per rate of x, y, θ, (n, 3, 3)
    J_a: Array  # rates of the active joints per rate of x, (n, 3, 3)
    J_w: Array  # spins of the distal links per rate of x, (n, 3, 3)


class ExactPlant:
    """Closed-loop dynamics in the task coordinates, stepped by the classical Runge-Kutta method of fourth order."""

    def __init__(self, robots: Sequence[Parameters], elbow: Array, x: PlanarPoses, xd: Array, *, g: float) -> None:
        """Put every robot into a state.

        Args:
            elbow: Sign of sin q_p of each leg: the working mode [-], shape (3,).
            x: Task coordinates at the start [m, m, rad], shape (n, 3).
            xd: Their rates [m/s, m/s, rad/s], shape (n, 3).
            g: Gravity along −Y [m/s²].
        """
        p = {name: np.array([getattr(robot, name) for robot in robots]) for name in Parameters.__slots__}
        self._x, self._xd, self._elbow = np.array(x), np.array(xd), elbow
        self._A, self._d = p["OA"][..., 0] + 1j * p["OA"][..., 1], p["d"]
        self._L, self._l = p["L"], p["l"]
        beyond = p["ms"] + p["ml"]  # what the end of a proximal link carries
        self._about_A = p["mL"] * p["lcL"] ** 2 + p["IL"] + p["Is"] + beyond * p["L"] ** 2
        self._about_B = p["ml"] * p["lcl"] ** 2 + p["Il"]
        self._coupling = p["ml"] * p["L"] * p["lcl"]
        self._weights = g * (p["mL"] * p["lcL"] + beyond * p["L"]), g * p["ml"] * p["lcl"]
        mass, inertia = p["mp"] + p["mc"], p["Ip"] + p["Ic"]
        self._platform = np.stack([mass, mass, inertia], axis=-1)
        self._lift = np.stack([0 * mass, mass * g, 0 * mass], axis=-1)

    def pose(self) -> Array:
        """See `Plant.pose`."""
        return self._x.copy()

    def rates(self) -> Array:
        """Rates of the true task coordinates [m/s, m/s, rad/s], shape (n, 3)."""
        return self._xd.copy()

    def joints(self) -> tuple[Array, Array]:
        """See `Plant.joints`."""
        legs = self._legs(self._x, self._xd)
        q = np.concatenate([np.angle(legs.near), np.angle(legs.far * np.conj(legs.near))], axis=1)
        return q, np.concatenate([legs.rate, legs.spin - legs.rate], axis=1)

    def step(self, tau: Array, dt: float) -> None:
        """See `Plant.step`.

        Args:
            tau: Torques of the motors [N m], shape (n, 3).
            dt: How long [s].
        """
        x, v = self._x, self._xd
        a1 = self.acceleration(x, v, tau)
        v2 = v + dt / 2 * a1
        a2 = self.acceleration(x + dt / 2 * v, v2, tau)
        v3 = v + dt / 2 * a2
        a3 = self.acceleration(x + dt / 2 * v2, v3, tau)
        v4 = v + dt * a3
        a4 = self.acceleration(x + dt * v3, v4, tau)
        self._x, self._xd = x + dt / 6 * (v + 2 * v2 + 2 * v3 + v4), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def acceleration(self, x: PlanarPoses, xd: Array, tau: Array) -> Array:
        """Accelerations of the task coordinates.

        Args:
            xd: Their rates [m/s, m/s, rad/s], shape (n, 3).
            tau: Torques of the motors [N m], shape (n, 3).

        Returns:
            Accelerations [m/s², m/s², rad/s²], shape (n, 3); NaN if a leg does not reach.
        """
        legs = self._legs(x, xd)
        free = legs.per_twist[..., 2] * 1j * xd[:, 2:] ** 2  # acceleration of C_i if the twist is constant
        a0 = (_dot(legs.far, free) + self._L * legs.rate**2 * legs.cos + self._l * legs.spin**2) / (self._L * legs.sin)
        w0 = -(_dot(legs.near, free) + self._L * legs.rate**2 + self._l * legs.spin**2 * legs.cos) / (
            self._l * legs.sin
        )
        k, c = self._coupling * legs.cos, self._coupling * legs.sin
        at_A = self._about_A * a0 + k * w0 - c * legs.spin**2 + self._weights[0] * legs.near.real
        at_B = self._about_B * w0 + k * a0 + c * legs.rate**2 + self._weights[1] * legs.far.real
        J_a_T, J_w_T = legs.J_a.swapaxes(1, 2), legs.J_w.swapaxes(1, 2)
        momenta = self._about_A[..., None] * legs.J_a + k[..., None] * legs.J_w
        spins = self._about_B[..., None] * legs.J_w + k[..., None] * legs.J_a
        M = J_a_T @ momenta + J_w_T @ spins + self._platform[:, None] * np.eye(3)
        force = J_a_T @ (tau - at_A)[..., None] - J_w_T @ at_B[..., None]
        return np.linalg.solve(M, force - self._lift[..., None])[..., 0]

    def _legs(self, x: Array, xd: Array) -> _Legs:
        arm = self._d * np.exp(1j * (x[:, 2:] + PHI))  # from C_i to P
        r = (x[:, 0] + 1j * x[:, 1])[:, None] - arm - self._A
        L, l = self._L, self._l
        cos = (r.real**2 + r.imag**2 - L**2 - l**2) / (2 * L * l)
        sin = self._elbow * np.sqrt(1 - cos**2)
        bend = cos + 1j * sin
        near = r / (L + l * bend)
        far = near * bend
        per_twist = np.stack([np.ones_like(arm), np.full_like(arm, 1j), -1j * arm], axis=-1)
        J_a = _dot(far[..., None], per_twist) / (L * sin)[..., None]
        J_w = -_dot(near[..., None], per_twist) / (l * sin)[..., None]
        return _Legs(
            near=near,
            far=far,
            cos=cos,
            sin=sin,
            rate=(J_a @ xd[..., None])[..., 0],
            spin=(J_w @ xd[..., None])[..., 0],
            per_twist=per_twist,
            J_a=J_a,
            J_w=J_w,
        )


def _dot(a: AnyArray, b: AnyArray) -> Array:
    """Scalar product of planar vectors."""
    return a.real * b.real + a.imag * b.imag
