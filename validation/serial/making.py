"""Derives a serial stand-in from a closed mechanism: joints that carry most stay, the rest stands still."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.transmission.joint_space import (
    JointSpace,
    fixed_joints,
    independent_joints,
    joint_motions,
    joint_space,
    want_known,
    want_no_lengths,
)
from loopcheck.analytic.transmission.twin import SWING, sound_poses, sound_start
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf_serial import POINT, SAME_POSE, Cut, Follower, RelativePose, Split, serial_text
from loopcheck.robots.mechanism import DOFS, WORLD, Mechanism
from loopcheck.robots.robot import Case
from loopcheck.robots.transmission import Transmission, load_transmission, mjcf_of
from loopcheck.validation.serial.writing import write_text

STAND_IN = "stand_in.xml"
BESIDE = 0.05
"""Largest distance from the initial pose for the detection of dependent joints [m or rad]."""
SAMPLES = 65
"""Number of poses for a polynomial."""
DEGREE = 4
"""Degree of the joint polynomials of MuJoCo."""


def write_closed(target: str, folder: Path) -> tuple[Transmission, str]:
    """Write the closed mechanism of a published transmission, and return both.

    Args:
        target: Its name, or the path of a file of the same form.

    Raises:
        MechanismError: If the file is bad.
        OutputError: If the mechanism cannot be written.
    """
    transmission = load_transmission(target)
    path = folder / f"{transmission.name}.xml"
    write_text(path, mjcf_of(transmission))
    return transmission, str(path)


def outside_loops(mechanism: Mechanism, keep: Sequence[str]) -> tuple[str, ...]:
    """Hinges and slides that no loop ties to some joints, in the order of the mechanism.

    Args:
        keep: Names of those joints.
    """
    ways = [_way(mechanism, body) for body in range(len(mechanism.bodies))]
    ties = [
        (set() if closure.body1 == WORLD else ways[closure.body1])
        ^ (set() if closure.body2 == WORLD else ways[closure.body2])
        for closure in mechanism.rigid_closures
    ]
    for closure in mechanism.coordinate_closures:
        ties.append({*closure.follower.joints, *(closure.leader.joints if closure.leader else ())})
    tied = {j for j, joint in enumerate(mechanism.joints) if joint.name in keep}
    while any(tie & tied and not tie <= tied for tie in ties):
        tied |= set().union(*(tie for tie in ties if tie & tied))
    return tuple(
        joint.name for j, joint in enumerate(mechanism.joints) if j not in tied and joint.kind in ("hinge", "slide")
    )


def _way(mechanism: Mechanism, body: int) -> set[int]:
    """Joints between the world and a body."""
    joints = set[int]()
    while body != WORLD:
        joints |= set(mechanism.joints_of[body])
        body = mechanism.bodies[body].parent
    return joints


class StandIn(NamedTuple):
    """A derived serial model."""

    path: Path
    notes: list[str]
    carried: Mapping[int, float]
    """Mass of each rod that its other end's body carries, by index of the rod [kg]."""


def write_stand_in(case: Case, keep: Sequence[str], hold: Sequence[str], folder: Path) -> StandIn:
    """Write the serial model of a closed mechanism: its spanning tree with the kept joints, a motor on each.

    Bodies behind dropped joints are fixed in their initial pose, with their weight. If the loop of a rod closes on a
    body that moves against it, this body gets the load of the rod's far end. A joint that carries a kept joint and
    follows from another joint does so by a polynomial.

    Args:
        keep: Names of the kept joints; by default those that carry most of the independent joints.
        hold: Names of joints that are fixed in both models.

    Raises:
        NotFoundError: If a joint is unknown.
        LoopClosureError: If the loops cannot be closed.
        MechanismError: If the serial model does not compile.
        OutputError: If it cannot be written.
    """
    mechanism = case.mechanism
    want_no_lengths(mechanism)
    want_known([*keep, *hold], mechanism)
    fixed = fixed_joints(mechanism, hold)
    closed, q, _ = sound_start(mechanism, case.guess, fixed)
    scalar = [joint.name for joint in mechanism.joints if DOFS[joint.kind] == 1 and joint.name not in fixed]
    kept = independent_joints(closed, q, [name for name in scalar if not keep or name in keep])
    if not kept or set(keep) - set(kept):
        tied = ", ".join(sorted(set(keep) - set(kept))) or "no independent joint"
        raise MechanismError(f"{mechanism.model.path}: joints to keep must move independently, got {tied}")
    space = joint_space(closed, q, kept, [1.0] * len(kept))
    followers, notes = _followers(space, [name for name in _carrying(mechanism, kept) if name in scalar])
    free = [joint.name for joint in mechanism.joints if joint.kind == "free"]
    left = {*kept, *free, *(follower.name for follower in followers)}
    dropped = [joint.name for joint in mechanism.joints if joint.name not in left]
    _want_first(mechanism, dropped)
    body_poses = _relative_poses(mechanism, q, dropped)
    splits = _splits(mechanism, left)
    cut = Cut(dropped=dropped, motors=kept, followers=followers, splits=splits, body_poses=body_poses)
    text = serial_text(mechanism.model, cut)
    path = folder / STAND_IN
    if path.resolve() == mechanism.model.path.resolve():
        raise MechanismError(f"{folder}: contains the input {STAND_IN}; name another folder with --out")
    write_text(path, text)
    notes = [f"wrote {STAND_IN}: moves by {', '.join(kept)}", *notes]
    return StandIn(path=path, notes=notes, carried={split.rod: split.end_mass for split in splits})


def _splits(mechanism: Mechanism, left: set[str]) -> list[Split]:
    """Rods at the end of the tree with a loop to a body that moves against them in the serial model."""
    splits: dict[int, Split] = {}
    parents = {body.parent for body in mechanism.bodies}
    for closure in mechanism.rigid_closures:
        ends = ((closure.body1, closure.point1), (closure.body2, closure.point2))
        for (rod, tip), (other, end) in (ends, ends[::-1]):
            if rod in (WORLD, *parents, *splits) or other in (WORLD, *splits) or not mechanism.joints_of[rod]:
                continue
            if _moving(mechanism, rod, left) == _moving(mechanism, other, left) or _own(mechanism, rod, left):
                continue
            body, start = mechanism.bodies[rod], mechanism.joints[mechanism.joints_of[rod][-1]].anchor
            along = tip - start
            share = float(np.clip((body.center - start) @ along / max(float(along @ along), POINT), 0, 1))
            far = share * body.mass
            splits[rod] = Split(rod=rod, joint=start, mass=body.mass - far, other=other, end=end, end_mass=far)
            break
    return list(splits.values())


def _own(mechanism: Mechanism, body: int, left: set[str]) -> set[str]:
    """Joints of a body that are left."""
    return {mechanism.joints[j].name for j in mechanism.joints_of[body]} & left


def _moving(mechanism: Mechanism, body: int, left: set[str]) -> set[str]:
    """Joints that are left on the way from a body to the world."""
    joints = set[str]()
    while body != WORLD:
        joints |= _own(mechanism, body, left)
        body = mechanism.bodies[body].parent
    return joints


def _carrying(mechanism: Mechanism, kept: Sequence[str]) -> list[str]:
    """Names of dropped joints that carry a kept joint."""
    carrying = set[int]()
    for joint in mechanism.joints:
        body = mechanism.bodies[joint.body].parent if joint.name in kept else WORLD
        while body != WORLD:
            carrying |= set(mechanism.joints_of[body])
            body = mechanism.bodies[body].parent
    return [mechanism.joints[j].name for j in sorted(carrying) if mechanism.joints[j].name not in kept]


def _followers(space: JointSpace, names: Sequence[str]) -> tuple[list[Follower], list[str]]:
    """Polynomials of joints that each follow from a kept joint, and notes."""
    mechanism, followers, notes = space.mechanism, [], list[str]()
    places = {joint.name: j for j, joint in enumerate(mechanism.joints)}
    start = space.coordinates(space.start[None])[0]
    x = start + np.random.default_rng(0).uniform(-BESIDE, BESIDE, (SAMPLES, len(start)))
    q, sound = sound_poses(space, x)
    state = State(mechanism=mechanism, q=q[sound], qd=np.zeros((int(sound.sum()), mechanism.nv)))
    rates = np.abs(joint_motions(space, state)).max(axis=0)
    for name in names:
        j = places[name]
        leaders = np.flatnonzero(rates[mechanism.dof_slices[j].start] > RANK_TOLERANCE)
        if len(leaders) != 1:
            known = ", ".join(space.names[k] for k in leaders) or "nothing"
            notes.append(f"{name} depends on {known} instead of a single joint: it is fixed in {STAND_IN}")
            continue
        coefficients, error = _polynomial(space, j, int(leaders[0]))
        leader = space.names[leaders[0]]
        followers.append(Follower(name=name, leader=leader, coefficients=coefficients))
        unit = mechanism.joints[j].unit
        notes.append(
            f"{name} carries a kept joint: it follows {leader} by a polynomial with an error of {error:.2g} {unit}"
        )
    return followers, notes


def _polynomial(space: JointSpace, follower: int, leader: int) -> tuple[Array, float]:
    """Coefficients of the polynomial of degree four from rest that comes nearest, and its largest error [m or rad]."""
    mechanism, k = space.mechanism, space.joints[leader]
    x = np.repeat(space.coordinates(space.start[None]), SAMPLES, axis=0)
    low, high = mechanism.joints[k].limits or (x[0, leader] - SWING, x[0, leader] + SWING)
    x[:, leader] = np.linspace(low, high, SAMPLES)
    q, sound = sound_poses(space, x)
    u, v = (q[sound, mechanism.q_slices[j].start] - mechanism.joints[j].rest_position[0] for j in (k, follower))
    fit = Polynomial.fit(u, v, min(DEGREE, len(u) - 1)).convert()
    coefficients = np.zeros(DEGREE + 1)
    coefficients[: len(fit.coef)] = fit.coef
    return coefficients, float(np.abs(fit(u) - v).max())


def _relative_poses(mechanism: Mechanism, q: Array, dropped: Sequence[str]) -> list[RelativePose]:
    """Pose of each body in its parent, with dropped joints as in a pose (nq,) and all others at rest."""
    at_rest = mechanism.rest_position.copy()
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.name in dropped:
            at_rest[columns] = q[columns]
    here, relative = poses(mechanism, at_rest[None]), []
    for b, body in enumerate(mechanism.bodies):
        R, p = here.R[0, b], here.p[0, b]
        if body.parent != WORLD:
            R_T = here.R[0, body.parent].T
            R, p = R_T @ R, R_T @ (p - here.p[0, body.parent])
        moved = max(np.abs(R - body.rotation).max(), np.abs(p - body.position).max()) > SAME_POSE
        relative.append(RelativePose(name=body.name, position=p, rotation=R, is_moved=bool(moved)))
    return relative


def _want_first(mechanism: Mechanism, dropped: Sequence[str]) -> None:
    """Refuse to drop a joint after a kept joint of the same body: the axis of the kept joint would turn."""
    for body, joints in zip(mechanism.bodies, mechanism.joints_of, strict=True):
        names = [mechanism.joints[j].name for j in joints]
        if any(before not in dropped and after in dropped for before, after in pairwise(names)):
            late = ", ".join(name for name in names if name in dropped)
            raise MechanismError(
                f"{mechanism.model.path}: dropped joints of body '{body.name}' must come before its kept joints, got "
                f"{late} behind a kept joint"
            )
