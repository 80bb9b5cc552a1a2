"""Reference and common knowledge of the controllers: the nominal robot and the gains."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from loopcheck.analytic.papers.zubizarreta2010 import Parameters
from loopcheck.robots.arrays import AnyArray, Array


class Reference(NamedTuple):
    """Reference at one time: task coordinates, and the corresponding joints of the nominal robot."""

    x: Array
    """Task coordinates [m, m, rad], shape (3,)."""
    xd: Array
    """Their rates [m/s, m/s, rad/s], shape (3,)."""
    xdd: Array
    """Their accelerations [m/s², m/s², rad/s²], shape (3,)."""
    q: Array
    """Joints q_a, q_p [rad], shape (6,)."""
    qd: Array
    """Their rates [rad/s], shape (6,)."""
    qdd: Array
    """Their accelerations [rad/s²], shape (6,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """Gains of the error dynamics ë + Kv ė + Kp e = 0."""

    Kp: float
    """Position gain [1/s²]."""
    Kv: float
    """Velocity gain [1/s]."""

    @classmethod
    def from_response(cls, *, overshoot: float, peak_time: float) -> "Gains":
        """Gains of a second-order system that answers a step with this overshoot [-] after this time [s]."""
        damping = -np.log(overshoot) / np.hypot(np.pi, np.log(overshoot))
        natural = np.pi / (peak_time * np.sqrt(1 - damping**2))
        return cls(Kp=float(natural**2), Kv=float(2 * damping * natural))


class Controller(Protocol):
    """A control law; it sees measured joints and never the true pose."""

    def __init__(self, nominal: Parameters, gains: Gains, *, g: float) -> None:
        """Take the nominal parameters, the gains and gravity along −Y [m/s²]."""
        ...

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """Torques of the motors for many robots at once.

        Args:
            reference: Reference at this time.
            q: Measured joints q_a, q_p [rad], shape (n, 6).
            qd: Their measured rates [rad/s], shape (n, 6).

        Returns:
            Torques [N m], shape (n, 3).
        """
        ...


def angle_between(reference: Array, measured: Array) -> Array:
    """Difference of angles, whatever turn they are counted from.

    Args:
        reference: Angles [rad], any shape (..., any).
        measured: Angles [rad], a shape (..., any) that broadcasts with it.

    Returns:
        The difference, between −π and π [rad].
    """
    return np.remainder(reference - measured + np.pi, 2 * np.pi) - np.pi


def times(matrices: AnyArray, vectors: AnyArray) -> Array:
    """A matrix times a vector for each robot.

    Args:
        matrices: Matrices [any unit], shape (n, rows, columns).
        vectors: Vectors [any unit], shape (n, columns).

    Returns:
        Products, shape (n, rows).
    """
    return (matrices @ vectors[..., None])[..., 0]
