"""A motion for a robot without a prescribed motion: smooth, bounded, periodic, from rest, inside the joint limits.

Every drive takes the largest swing that fits; a swing that does not fit is halved, for the responsible drives alone.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from loopcheck.analytic.kinematics.continuation import Tracer, conditioning
from loopcheck.analytic.kinematics.redundancy import drive_motions, undriven_dofs
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.assembly import assembled, want_mobile
from loopcheck.analytic.motion.limits import TOUCHED, joints_moved, left_limits, limits_in_words
from loopcheck.analytic.motion.start import Start, regular_start
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.errors import MechanismError, SingularityError
from loopcheck.robots.mechanism import Coordinate, Joint, Mechanism
from loopcheck.robots.motion import Drive, Law, Motion, report_grid

SPAN = (0.0, 2.0)
"""First and last time [s]."""
SPANS = ((0.5, 2.0), (0.125, 1.0), (0.0, 0.5))
"""Last time [s] by the fraction of the largest swing [-] that a motion has at least: accelerations stay alike."""
SHORT_SPAN = (0.0, 0.5)
"""The same for robots with unactuated motions, which may spin up, fall or swing without bound."""
SWING = 0.3
"""Half of the largest swing of a hinge [rad], and of a slide relative to the robot's size [-]."""
SKEWS = (0.0, 0.8, -0.8, 0.4, -0.4)
"""Skew of the swings, different for every three drives [-]."""
ROOM = 0.9
"""Fraction of the way to a joint limit that a swing may take [-]."""
WELL_AWAY = 0.25
"""Fraction of the starting pose's conditioning that must be left all along the motion [-].

At 0.19 the efforts of a 3-RRR already have a peak at which no engine has a verdict.
"""
LEAST_SWING = 2.0**-9
"""Fraction of the largest swing at which the search ends [-]."""
LEAST_FOR_LIMITS = 2.0**-5
"""The same for the sake of a joint limit alone; below it, the limit is ignored [-]."""
MOST_SECONDS = 300.0
"""Time limit of the search [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """Result of an attempt."""

    motion: Motion | None = None
    """The motion, if it can be followed well away from singularities."""
    beyond: tuple[int, ...] = ()
    """Joints that leave their limits in it, the farthest first."""
    reason: str = ""
    """Reason for the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Constant data of all attempts of a search."""

    mechanism: Mechanism
    start: Start
    where: str
    dt: float | None
    undriven: bool
    """Whether the robot has unactuated motions."""

    def attempts(self, scale: Array) -> Iterator[_Attempt]:
        """Result of swings of some scale: towards the sides with more room, to the others, and half to each.

        Args:
            scale: Fraction of the largest swing of each drive [-], shape (drives,).
        """
        wide, narrow = (room(self.mechanism, self.start.q, self.start.drives, side=side) for side in (1, -1))
        every_other = np.arange(len(scale)) % 2 == 1
        yield self._attempt(scale * wide)
        if self.undriven:
            return  # what moves undriven takes long, and to which side the drives swing matters little to it
        for to_the_other in ((every_other, ~every_other) if len(scale) > 1 else ()) + (every_other | True,):
            amplitude = np.where(to_the_other, narrow, wide)
            if (np.abs(amplitude) >= LEAST_FOR_LIMITS * np.abs(wide)).all():
                yield self._attempt(scale * amplitude)

    def _attempt(self, amplitude: Array) -> _Attempt:
        drives, span = self.start.drives, self._span(amplitude)
        law = swing(self.mechanism, self.start.q, drives, amplitude, span=span)
        tracer = Tracer(mechanism=self.mechanism, law=law, drives=drives, where=self.where)
        try:
            motion = assembled(tracer, self.start.q, report_grid(span, dt=self.dt))
        except SingularityError as error:
            return _Attempt(reason=str(error))
        if remaining_conditioning(tracer, motion) < WELL_AWAY:
            return _Attempt(reason="the motion comes near a singularity")
        return _Attempt(motion=motion, beyond=left_limits(self.mechanism, drives, motion))

    def _span(self, amplitude: Array) -> tuple[float, float]:
        """First and last time [s]: small swings are fast, so that not only weights and springs act."""
        if self.undriven:
            return SHORT_SPAN
        full = room(replace(self.mechanism, joints=_unlimited(self.mechanism)), self.start.q, self.start.drives)
        largest = float((np.abs(amplitude) / np.abs(full)).max())
        last = next(last for least, last in SPANS if largest >= least)
        return (0.0, last) if self.dt is None else SPAN


def automatic_motion(mechanism: Mechanism, guess: JointPositions, dt: float | None, where: str) -> Motion:
    """The largest motion that closes the loops, keeps inside the limits and well away from singularities.

    Args:
        guess: Joint positions near those at the start [m or rad], shape (nq,).
        dt: Step of the report grid [s]; by default that of `report_grid`.
        where: Name of the robot, for the error messages.

    Raises:
        LoopClosureError: If the loops cannot be closed.
        SingularityError: If no motion is found.
        MechanismError: If the robot cannot move, no actuator has an effect, or the search takes too long.
    """
    still = swing(mechanism, guess, (), np.zeros(0), span=SPAN)
    free = Tracer(mechanism=mechanism, law=still, drives=(), where=where)
    start = regular_start(free, guess)
    want_mobile(free, start.q)
    search = _Search(
        mechanism=mechanism,
        start=start,
        where=where,
        dt=dt,
        undriven=undriven_dofs(mechanism, start.q) > 0,
    )
    return _largest(search)


def _largest(search: _Search) -> Motion:
    """The motion of the largest swings that fit, with notes on the start and on limits that it goes on without."""
    mechanism, start, began = search.mechanism, search.start, time.monotonic()
    moved, ignored = joints_moved(mechanism, start.drives, start.q), set[int]()
    scale, notes, count, reason = np.ones(len(start.drives)), list(start.notes), 0, ""
    while scale.max() >= LEAST_SWING:
        in_the_way: list[int] = []
        for attempt in search.attempts(scale):
            count += 1
            left = [j for j in attempt.beyond if j not in ignored]
            if attempt.motion is not None and not left:
                return replace(attempt.motion, notes=tuple(notes))
            in_the_way, reason = in_the_way or left[:1], attempt.reason or reason
            _want_time(search, count, time.monotonic() - began, reason)
        cause = moved[:, in_the_way[0]] if in_the_way else np.ones(len(scale), dtype=bool)
        if in_the_way and scale[cause].max() / 2 < LEAST_FOR_LIMITS:
            ignored.add(in_the_way[0])
            scale = np.where(cause, 1.0, scale)
            joint = limits_in_words(mechanism, in_the_way[0])
            notes.append(f"limits of {joint} are ignored because they leave no room for a motion")
        else:
            scale = np.where(cause, scale / 2, scale)
    raise SingularityError(
        f"{search.where}: no motion found in {count} attempts: the initial pose is singular or at the edge of the "
        f"workspace; even {2 * scale.max():.2g} of the largest stroke fails: {reason}. Add a motion with --motion",
        time=0.0,
        singular_value=float("nan"),
    )


def _want_time(search: _Search, count: int, seconds: float, reason: str) -> None:
    if seconds > MOST_SECONDS:
        raise MechanismError(
            f"{search.where}: no motion found within {MOST_SECONDS:g} s ({count} attempts of "
            f"{seconds / count:.3g} s each): {reason or 'joint limits prevent it'}. Add a motion with --motion"
        )


def swing(
    mechanism: Mechanism,
    q: JointPositions,
    drives: tuple[Coordinate, ...],
    amplitude: Array,
    *,
    span: tuple[float, float],
) -> Law:
    """Every drive swings to a side of its position and back, with one, two or three periods in the span.

    Each group of three drives has its own skew, so that the accelerations of six drives are linearly independent.

    Args:
        q: Starting pose [m or rad], shape (nq,).
        drives: Coordinates that move.
        amplitude: Half of the swing of each drive [m or rad], shape (drives,).
        span: First and last time [s].
    """
    start = mechanism.values_of(drives, q[None])[0]
    rate = 2 * np.pi * np.array([1.0 + k % 3 for k in range(len(drives))]) / (span[1] - span[0])
    skew = np.array([SKEWS[k // 3 % len(SKEWS)] for k in range(len(drives))])
    return partial(_cosines, start, amplitude / (1 + np.abs(skew)), rate, skew)


def room(mechanism: Mechanism, q: JointPositions, drives: tuple[Coordinate, ...], *, side: int = 1) -> Array:
    """Half of the largest swing of each drive from its position [m or rad].

    Args:
        q: Starting pose [m or rad], shape (nq,).
        drives: Coordinates that move.
        side: 1 for the side that has more room, −1 for the other.
    """
    size = _size(mechanism, q)
    if not drives:
        return np.zeros(0)
    both = np.array([[_room(mechanism, drive, q, size, towards) for towards in (1, -1)] for drive in drives])
    upwards = (both[:, 0] >= both[:, 1]) == (side > 0)
    return np.where(upwards, both[:, 0], -both[:, 1])


def _cosines(start: Array, amplitude: Array, rate: Array, skew: Array, t: Array) -> Drive:
    """Swings (1 − cos x)(1 + s sin x) of phases x, at least zero and from rest."""
    x = t[:, None] * rate
    return Drive(
        q=start + amplitude * (1 - np.cos(x)) * (1 + skew * np.sin(x)),
        qd=amplitude * rate * (np.sin(x) + skew * (np.cos(x) - np.cos(2 * x))),
        qdd=amplitude * rate**2 * (np.cos(x) + skew * (2 * np.sin(2 * x) - np.sin(x))),
    )


def _room(mechanism: Mechanism, drive: Coordinate, q: Array, size: float, towards: int) -> float:
    """Half of the largest swing of a drive up (1) or down (−1), all of its joints helping [m or rad]."""
    total = 0.0
    for j, weight in zip(drive.joints, drive.weights, strict=True):
        joint, x = mechanism.joints[j], float(q[mechanism.q_slices[j].start])
        half = SWING * (size if joint.kind == "slide" else 1.0)
        if joint.limits is not None and joint.limits[0] - TOUCHED <= x <= joint.limits[1] + TOUCHED:
            left = joint.limits[1] - x if towards * weight > 0 else x - joint.limits[0]
            half = min(half, ROOM * max(0.0, left) / 2)
        total += abs(weight) * half
    return total


def _unlimited(mechanism: Mechanism) -> tuple[Joint, ...]:
    return tuple(replace(joint, limits=None) for joint in mechanism.joints)


def _size(mechanism: Mechanism, q: Array) -> float:
    """Half of the largest distance of joints or mass centres from their mean [m]; 1 m if all coincide."""
    body_poses = poses(mechanism, q[None])
    points = np.concatenate([body_poses.anchors[0], body_poses.c[0]])
    return float(np.linalg.norm(points - points.mean(axis=0), axis=1).max()) / 2 or 1.0


def remaining_conditioning(tracer: Tracer, motion: Motion) -> float:
    """Smallest conditioning of loops and actuators along a motion, relative to that at its start [-]."""
    Phi_u = tracer.dependent_jacobian(motion.q)
    follow = Phi_u.shape[-1] - tracer.undriven(motion.q[:1])
    ratios = conditioning(Phi_u, follow)[0] if Phi_u.size and follow else np.ones(1)
    driving = np.linalg.svd(drive_motions(tracer.mechanism, motion.q), compute_uv=False)
    weakest = driving[:, min(len(tracer.drives), driving.shape[1]) - 1]
    return min(float(values.min() / values[0]) for values in (ratios, weakest))
