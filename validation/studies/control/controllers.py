"""The controllers: laws of computed torque on a nominal robot, with the reference that they follow."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from loopcheck.analytic.papers import zubizarreta2010 as paper
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


@dataclass(frozen=True, slots=True)
class Controller(ABC):
    """A control law; it sees measured joints and never the true pose."""

    name: ClassVar[str]
    nominal: paper.Parameters
    gains: Gains
    g: float
    """Gravity along −Y [m/s²]."""

    @abstractmethod
    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """Torques of the motors for many robots at once.

        Args:
            reference: Reference at this time.
            q: Measured joints q_a, q_p [rad], shape (n, 6).
            qd: Their measured rates [rad/s], shape (n, 6).

        Returns:
            Torques [N m], shape (n, 3).
        """


class ClassicalCtc(Controller):
    """Computed torque in the active joints: τ = D (q̈_ref + Kv ė + Kp e) + C q̇ + G with q = q_a and D 3×3.

    It uses the motors' encoders alone: passive joints and pose follow from the motors' angles by the nominal closures
    (30) and (31) to (34).
    """

    name = "classical"

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """See `loopcheck.validation.studies.control.controllers.Controller.torque`."""
        p, gains = self.nominal, self.gains
        qa, qad = q[:, :3], qd[:, :3]
        near = reference.q[3:] + 0 * qa
        closed = paper.passive_joints(p, qa, near)
        x = paper.direct_position(p, closed)
        rates = times(paper.transformation(p, closed), qad)
        model = paper.active_model(p, x, closed, rates, g=self.g)
        error, error_rate = angle_between(reference.q[:3], qa), reference.qd[:3] - qad
        return (
            times(model.D, reference.qdd[:3] + gains.Kv * error_rate + gains.Kp * error) + times(model.C, qad) + model.G
        )


class ExtendedCtc(Controller):
    """Computed torque with the redundant model (58): τ = D (Kp e + Kv ė) + (D q̈_ref + C q̇ + G), D 3×6.

    Equation (59) of Zubizarreta et al.: all six joints are measured, and three motors control all six.
    """

    name = "extended"

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """See `loopcheck.validation.studies.control.controllers.Controller.torque`."""
        p, gains = self.nominal, self.gains
        model = paper.redundant_model(p, paper.direct_position(p, q), q, qd, g=self.g)
        error, error_rate = angle_between(reference.q, q), reference.qd - qd
        return times(model.D, reference.qdd + gains.Kv * error_rate + gains.Kp * error) + times(model.C, qd) + model.G


class TaskSpaceCtc(Controller):
    """Computed torque in x: the pose is estimated from all six joints by (31) to (34), its rate by J_C.

    Not in the paper: it uses the same sensors as Extended CTC without its redundant model, and so separates the effect
    of the sensors from the effect of the model.
    """

    name = "task space"

    def torque(self, reference: Reference, q: Array, qd: Array) -> Array:
        """See `loopcheck.validation.studies.control.controllers.Controller.torque`."""
        p, gains, qad = self.nominal, self.gains, qd[:, :3]
        x = paper.direct_position(p, q)
        kinematics = paper.kinematics_of(p, x, q, qd)
        xdd = reference.xdd + gains.Kv * (reference.xd - times(kinematics.J_C, qd)) + gains.Kp * (reference.x - x)
        bias = times(kinematics.J_C, times(kinematics.T_dot, qad)) + times(kinematics.J_C_dot, times(kinematics.T, qad))
        qadd = np.linalg.solve(kinematics.J_C @ kinematics.T, (xdd - bias)[..., None])[..., 0]
        model = paper.active_model(p, x, q, qd, g=self.g)
        return times(model.D, qadd) + times(model.C, qad) + model.G
