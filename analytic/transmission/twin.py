"""A closed mechanism and its serial stand-in, seen at the joints that both have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.limits import TOUCHED, excess
from loopcheck.analytic.motion.start import regular_start
from loopcheck.analytic.transmission.joint_space import (
    JointSpace,
    closed_start,
    conditioning,
    fixed_joints,
    independent_joints,
    joint_space,
    reached_poses,
    want_known,
    want_no_lengths,
)
from loopcheck.analytic.transmission.pairing import Pair, pair_joints
from loopcheck.analytic.transmission.terms import JointTerms, joint_terms
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, svd
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import unit_rates

SWING = 0.5
"""Range of a joint without limits to both sides [rad, or in sizes of the robot]."""
SOUND = 0.05
"""Fraction of the start's conditioning that loops and motors must keep [-]."""
LEAST_DRIVEN = 1e-9
"""Largest rate of a motor that drives no shared joint [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A closed mechanism and its stand-in."""

    closed: JointSpace
    serial: JointSpace
    pairs: tuple[Pair, ...]
    motors: tuple[int, ...]
    """Indices of the closed mechanism's actuators that move shared joints."""
    ranges: Array
    """Lowest and highest value of each shared coordinate that is looked at [m or rad], shape (n, 2)."""
    notes: tuple[str, ...] = ()
    """Remarks on the initial pose of the closed mechanism."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the shared joints."""
        return self.closed.names

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the motors that move them."""
        return tuple(self.closed.mechanism.actuators[k].name for k in self.motors)


def make_twin(
    closed: Mechanism,
    closed_guess: JointPositions,
    serial: Mechanism,
    serial_guess: JointPositions,
    given: Mapping[str, str],
    hold: Sequence[str] = (),
) -> Twin:
    """Find the common joints and poses of a closed mechanism and its serial model.

    Args:
        closed_guess: A pose near its closed start.
        serial: The serial model.
        given: Names of joints of the serial model by names in the closed mechanism.
        hold: Immobile joints of either model; free joints are immobile anyway.

    Raises:
        NotFoundError: If a joint is missing.
        LoopClosureError: If the loops cannot be closed.
        MechanismError: If the shared joints do not determine the mechanisms, or the motors do not move them all.
    """
    want_no_lengths(closed)
    want_known(hold, closed, serial)
    fixed, others = fixed_joints(closed, hold), fixed_joints(serial, hold)
    closed, q, notes = sound_start(closed, closed_guess, fixed)
    still, q_serial = closed_start(serial, serial_guess, others)
    pairs = pair_joints(closed, q, serial, q_serial, given, (*fixed, *others))
    independent = independent_joints(still, q_serial, [pair.serial for pair in pairs])  # it may have loops of its own
    pairs = tuple(pair for pair in pairs if pair.serial in independent)
    own = joint_space(closed, q, [pair.closed for pair in pairs], [1.0] * len(pairs))
    columns = {joint.name: place.start for joint, place in zip(serial.joints, serial.q_slices, strict=True)}
    q_serial = q_serial.copy()  # a pose that was closed from the start is that of a keyframe, which nobody may change
    for pair, x in zip(pairs, own.coordinates(q[None])[0], strict=True):
        q_serial[columns[pair.serial]] = pair.sign * x
    serial, q_serial = closed_start(serial, q_serial, others, [pair.serial for pair in pairs])
    other = joint_space(serial, q_serial, [pair.serial for pair in pairs], [pair.sign for pair in pairs])
    notes += tuple(space.left_out for space in (own, other) if space.left_out)
    return Twin(closed=own, serial=other, pairs=pairs, motors=_motors(own), ranges=_ranges(own, other), notes=notes)


def sound_start(
    mechanism: Mechanism, guess: JointPositions, fixed: Sequence[str]
) -> tuple[Mechanism, Array, tuple[str, ...]]:
    """A mechanism with immobile joints, and a closed pose inside its limits with regular loops and motors.

    Args:
        mechanism: Robot with motors.
        fixed: Names of the immobile joints.

    Returns:
        The mechanism, the pose [m or rad], shape (nq,), and notes on it.

    Raises:
        LoopClosureError: If the loops cannot be closed.
        MechanismError: If the robot cannot move, or no motor has an effect.
    """
    mechanism, q = closed_start(mechanism, guess, fixed)
    start = regular_start(Tracer.free(mechanism), q)
    return mechanism, start.q, start.notes


def sound_poses(space: JointSpace, x: Array) -> tuple[Array, AnyArray]:
    """Closed poses at shared coordinates, inside the joints' limits and well away from singular loops and motors.

    Args:
        x: Shared coordinates [m or rad], shape (nt, n).

    Returns:
        Poses [m or rad], shape (nt, nq), and the mask of valid poses (nt,).
    """
    q, sound = reached_poses(space, x)
    start = space.start[None]
    sound &= (excess(space.mechanism, q) - excess(space.mechanism, start)).max(axis=1, initial=0.0) <= TOUCHED
    sound &= conditioning(space, q) >= SOUND * conditioning(space, start)[0]
    motors = list(_motors(space))
    if motors and sound.any():
        T = joint_terms(space, np.concatenate([start, q[sound]])).transmission[:, motors]
        driven = int(np.linalg.matrix_rank(T[0]))  # fewer than joints where springs hold some
        sound[sound] = np.linalg.svd(T[1:] @ np.linalg.pinv(T[0]), compute_uv=False)[:, driven - 1] >= SOUND
    return q, sound


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Both mechanisms at samples of the shared coordinates."""

    x: Array
    """Shared coordinates [m or rad], shape (ns, n)."""
    closed_reaches: AnyArray
    """Samples reached by the closed mechanism, shape (ns,), boolean."""
    serial_reaches: AnyArray
    """Samples reached by the serial model, shape (ns,), boolean."""
    closed: JointTerms
    """Terms of the closed mechanism at common samples."""
    serial: JointTerms
    """Of the serial model at the same coordinates."""
    closed_q: Array
    """Poses of the closed mechanism there [m or rad], shape (nt, nq)."""
    serial_q: Array
    """Poses of the serial model there [m or rad], shape (nt, nq of the serial model)."""
    pose_error: Array
    """Distance of the bodies that the shared joints move, and angle between them [m and rad], shape (nt, n, 2)."""

    @property
    def common(self) -> AnyArray:
        """Mask of the samples that both reach, shape (ns,)."""
        return self.closed_reaches & self.serial_reaches


def workspace(twin: Twin, x: Array) -> Workspace:
    """Both mechanisms at samples of the shared coordinates.

    Args:
        x: Shared coordinates [m or rad], shape (ns, n).

    Raises:
        MechanismError: If no sample is reached by both.
    """
    (q_closed, closed_reaches), (q_serial, serial_reaches) = (
        sound_poses(space, x) for space in (twin.closed, twin.serial)
    )
    common = closed_reaches & serial_reaches
    if not common.any():
        counts = int(closed_reaches.sum()), int(serial_reaches.sum())
        raise MechanismError(
            f"{twin.serial.mechanism.model.path}: must share reachable poses with "
            f"{twin.closed.mechanism.model.path.name}, got 0 of {len(x)} in common: the closed mechanism reaches "
            f"{counts[0]}, the serial model {counts[1]}"
        )
    return Workspace(
        x=x,
        closed_reaches=closed_reaches,
        serial_reaches=serial_reaches,
        closed=joint_terms(twin.closed, q_closed[common]),
        serial=joint_terms(twin.serial, q_serial[common]),
        closed_q=q_closed[common],
        serial_q=q_serial[common],
        pose_error=_pose_error(twin, q_closed[common], q_serial[common]),
    )


def _motors(space: JointSpace) -> tuple[int, ...]:
    """Actuators that move shared joints; an error if they do not move all."""
    T = joint_terms(space, space.start[None]).transmission[0]
    return tuple(int(k) for k in np.flatnonzero(np.abs(T).max(axis=1, initial=0.0) > LEAST_DRIVEN))


def want_driven(twin: Twin) -> None:
    """Refuse a closed mechanism with motors that do not move all shared joints.

    Raises:
        MechanismError: Names the joints without a motor.
    """
    space, motors = twin.closed, list(twin.motors)
    T = joint_terms(space, space.start[None]).transmission[0, motors]
    values, directions = svd(T)[1:] if motors else (np.zeros(0), np.eye(len(space.joints)))
    rank = int((values > 1e-6 * values.max(initial=0.0)).sum())
    if rank < len(space.joints):
        idle = np.abs(directions[rank:]).max(axis=0) > 1e-6
        names = [name for name, is_idle in zip(space.names, idle, strict=True) if is_idle]
        raise MechanismError(
            f"{space.mechanism.model.path}: motors must move all shared joints, got {', '.join(twin.motor_names)} with "
            f"{', '.join(names)} unactuated. Hold these joints with --hold, or add motors with --actuated"
        )


def _ranges(closed: JointSpace, serial: JointSpace) -> Array:
    """The examined box: the limits of both joints, or a swing about the start without limits."""
    start = closed.coordinates(closed.start[None])[0]
    far = SWING * unit_rates(closed.mechanism)[closed.dofs]
    ranges = np.stack([start - far, start + far], axis=1)
    for k in range(len(start)):
        limits = []
        for space in (closed, serial):
            own = space.mechanism.joints[space.joints[k]].limits
            if own is not None:
                limits += [space.signs[k] * own[0], space.signs[k] * own[1]]
        if limits:
            ranges[k] = min(limits), max(limits)
    return ranges


def _pose_error(twin: Twin, q_closed: Array, q_serial: Array) -> Array:
    """Distance between the bodies moved by the shared joints, relative to the start."""
    ends = []
    for space, q in ((twin.closed, q_closed), (twin.serial, q_serial)):
        mechanism = space.mechanism
        bodies = [mechanism.joints[j].body for j in space.joints]
        here, start = poses(mechanism, q), poses(mechanism, space.start[None])
        R = here.R[:, bodies] @ start.R[:, bodies].swapaxes(-1, -2)
        ends.append((R, here.p[:, bodies] - start.p[:, bodies]))
    (R1, p1), (R2, p2) = ends
    cosine = (np.trace(R1.swapaxes(-1, -2) @ R2, axis1=-2, axis2=-1) - 1) / 2
    return np.stack([np.linalg.norm(p1 - p2, axis=-1), np.arccos(np.clip(cosine, -1, 1))], axis=-1)
