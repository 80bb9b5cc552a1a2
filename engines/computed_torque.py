"""A controller that lets a robot follow a motion in an engine's own steps: computed torque, held for a step each.

Feed-forward and gains come from matrices of the engine that is driven, at the exact states of the motion. Neither is
judged: an effort is judged by the motion that it makes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loopcheck.engines.projection import LoopMotions
from loopcheck.robots.arrays import Array, Efforts, Times, frozen
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Law, Motion

if TYPE_CHECKING:
    from scipy.interpolate import BPoly

PER_STEP = 0.1
"""Largest bandwidth of the controller times the step [-]."""
PER_TIMECONST = 5.0
"""Largest bandwidth of the controller times the time constant of the softest loops it is to wait for [-]."""
ROUNDING = 64
"""Most that polynomials between equal samples move, over the last digit of these [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Demands of a motion at a sample, by the matrices of an engine."""

    effort: Array
    """Efforts of the actuators [N or N m], shape (na,)."""
    per_acceleration: Array
    """Efforts per acceleration of independent drives [kg, kg m or kg m²], shape (na, drives)."""
    of_friction: Array
    """Efforts that overcome each dry friction at its full size [N or N m], shape (na, frictions)."""


class Friction(NamedTuple):
    """Dry friction of joints and tendons in the user's file."""

    W: Array
    """Rates along each per joint velocity [-, or m per rad], shape (frictions, nv)."""
    force: Array
    """Sizes [N or N m], shape (frictions,)."""


def no_friction(nv: int) -> Friction:
    """Dry friction of a robot without any."""
    return Friction(np.zeros((0, nv)), np.zeros(0))


def demands(loop: LoopMotions, M: Array, force: Array, S: Array, scale: Efforts, friction: Friction) -> list[Demand]:
    """Demands of a motion at samples.

    Args:
        loop: Possible motions of the loops there.
        M: Mass matrix [kg, kg m or kg m²], shape (n, nv, nv).
        force: Generalized force of the motion on the joints [N or N m], shape (n, nv).
        S: Actuator velocities per joint velocity [-], shape (n, na, nv).
        scale: Reference effort of each actuator [N or N m], shape (na,).
        friction: Dry friction to overcome.
    """
    rubbing = np.broadcast_to(friction.W.T * friction.force, (len(force), *friction.W.T.shape))
    efforts = loop.efforts(M, np.concatenate([force[..., None], M @ loop.D, rubbing], axis=-1), S, scale)
    last = 1 + loop.D.shape[-1]
    return [Demand(effort=each[:, 0], per_acceleration=each[:, 1:last], of_friction=each[:, last:]) for each in efforts]


def bandwidth(step: float, timeconst: float = np.inf) -> float:
    """Bandwidth of the controller [rad/s]: well below the limits of the step and of the loops of a model.

    Args:
        step: Step of the engine, by the user's own settings [s].
        timeconst: Smallest time constant of the loops, by the same settings [s]; infinite for rigid loops.
    """
    return min(PER_STEP / step, PER_TIMECONST / timeconst if math.isfinite(timeconst) else math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedTorque:
    """The controller on the steps of a run: held efforts from the positions of the drives."""

    t: Array
    """Times of the beginnings of steps [s], shape (nt,)."""
    q: Array
    """Target positions of the independent drives at these times [m or rad], shape (nt, drives)."""
    qd: Array
    """Their velocities [m/s or rad/s], shape (nt, drives)."""
    effort: Array
    """Feed-forward, at the middle of each step [N or N m], shape (nt, na)."""
    per_acceleration: Array
    """Effort per acceleration of the drives there [kg, kg m or kg m²], shape (nt, na, drives)."""
    bandwidth: float
    """Of the feedback, critically damped [rad/s]."""

    def __post_init__(self) -> None:
        (nt, drives), na = np.shape(self.q), np.shape(self.effort)[1]
        shapes = {"t": (nt,), "q": (nt, drives), "qd": (nt, drives), "effort": (nt, na)}
        for name, shape in {**shapes, "per_acceleration": (nt, na, drives)}.items():
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"computed torque, {name}"))

    @property
    def description(self) -> str:
        """Description in words."""
        return f"{self.bandwidth:.4g} rad/s; feed-forward from the engine's own matrices"

    def efforts(self, k: int, q: Array, qd: Array) -> Array:
        """Efforts to hold for a step [N or N m], shape (na,).

        Args:
            k: Number of the step.
            q: Positions of the drives at its beginning [m or rad], shape (drives,).
            qd: Their velocities [m/s or rad/s], shape (drives,).
        """
        w = self.bandwidth
        return self.effort[k] + self.per_acceleration[k] @ (w * w * (self.q[k] - q) + 2 * w * (self.qd[k] - qd))


def targets(motion: Motion, t: Times) -> Drive:
    """Desired motion of all drives, by polynomials between the samples of a motion.

    Args:
        motion: The motion to follow.
    """
    return interpolated(motion)(t)


def interpolated(motion: Motion) -> Law:
    """Polynomials between the samples of a motion, with the rates of its law at them.

    The law itself may have to close the loops at every time, and a run needs thousands of times.
    """
    from scipy.interpolate import BPoly

    at_samples, h = motion.law(motion.t), np.diff(motion.t)[:, None]
    q, v, a = at_samples.q, at_samples.qd, at_samples.qdd
    early = [q[:-1], q[:-1] + h * v[:-1] / 5, q[:-1] + 2 * h * v[:-1] / 5 + h**2 * a[:-1] / 20]
    late = [q[1:] - 2 * h * v[1:] / 5 + h**2 * a[1:] / 20, q[1:] - h * v[1:] / 5, q[1:]]
    curve = BPoly(np.stack([*early, *late]), motion.t)
    return partial(_along, curve)


def _along(curve: "BPoly", t: Array) -> Drive:
    return Drive(*(curve(t, order) for order in range(3)))


def computed_torque(
    motion: Motion,
    demands: Sequence[Demand],
    independent: Sequence[int],
    steps: tuple[float, float, int],
    bandwidth: float,
    friction: Callable[[Times], Array] | None = None,
) -> ComputedTorque:
    """The controller of a run.

    Args:
        motion: The motion to follow.
        demands: Demands of the motion at its samples.
        independent: Places of the independent drives among `Mechanism.drives`.
        steps: Beginning of the first step [s], length of each step [s], and number of steps.
        bandwidth: Of the feedback [rad/s].
        friction: Part of each dry friction that acts against the prescribed motion at some times, -1 to 1 [-], shape
            (nt, frictions): the measured velocity, or a smoothed sign, would not be followed.

    Raises:
        NotRepresentableError: If the drives lose a degree of freedom on the way.
    """
    begin, step, count = steps
    for t_of_sample, of_sample in zip(motion.t, demands, strict=False):
        moved = of_sample.per_acceleration.shape[1]
        if moved < len(independent):
            raise NotRepresentableError(
                f"computed torque: held drives must move {len(independent)} degrees of freedom during the whole "
                "motion, "
                f"got {moved} at {t_of_sample:g} s"
            )
    t: Array = begin + step * np.arange(count, dtype=float)
    middle = np.minimum(t + step / 2, motion.t[-1])
    target = targets(motion, t)
    spline = _between(motion.t)

    def between(name: str) -> Array:
        return spline(np.array([getattr(demand, name) for demand in demands]))(middle)

    effort = between("effort")
    if friction is not None:
        effort = effort + (between("of_friction") @ friction(middle)[..., None])[..., 0]
    return ComputedTorque(
        t=t,
        q=target.q[:, list(independent)],
        qd=target.qd[:, list(independent)],
        effort=effort,
        per_acceleration=between("per_acceleration"),
        bandwidth=bandwidth,
    )


def _between(t: Array) -> Callable[[Array], Callable[[Array], Array]]:
    """Splines through values at times; of the third degree, or less for few samples."""
    from scipy.interpolate import make_interp_spline

    degree = min(3, len(t) - 1)
    return lambda values: make_interp_spline(t, values, k=degree)


def drive_matrices(mechanism: Mechanism, independent: Sequence[int]) -> tuple[Array, Array]:
    """Maps from positions and velocities of the joints to those of independent drives.

    Args:
        independent: Places of the drives among `Mechanism.drives`.

    Returns:
        Values of the drives per joint position [-, or m per rad], shape (drives, nq), and rates per joint velocity,
        shape (drives, nv).
    """
    drives = [mechanism.drives[k] for k in independent]
    A = np.zeros((len(drives), mechanism.nq))
    for row, drive in enumerate(drives):
        for j, weight in zip(drive.joints, drive.weights, strict=True):
            A[row, mechanism.q_slices[j].start] += weight
    return A, mechanism.rates_of(drives)


def following(aim: Array, q: Array) -> tuple[Array, Array]:
    """Tracking error of drives.

    Args:
        aim: Desired positions of the drives at the steps of a run [m or rad], shape (nt, drives).
        q: Their positions [m or rad], shape (nt, drives).

    Returns:
        Largest distance of each from the motion [m or rad], shape (drives,), and the same over its stroke [-]; for a
        drive
        without a stroke, over the largest stroke.
    """
    distance, stroke = np.abs(q - aim).max(axis=0), np.ptp(aim, axis=0)
    last_digits = ROUNDING * np.finfo(float).eps * np.abs(aim).max(axis=0)
    stroke = np.where(stroke > last_digits, stroke, 0.0)
    stroke = np.where(stroke > 0, stroke, stroke.max())
    return distance, np.divide(distance, stroke, out=np.zeros_like(distance), where=stroke > 0)
