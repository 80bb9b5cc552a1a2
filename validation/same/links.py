"""The spanning tree of a model as links, each moved by one joint, with all bodies that are fixed to it.

Vectors are given at the zero pose, with every hinge and slide at zero: neither the frames of the bodies nor the pose of
the file matter.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.kinematics.tree import poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, Body, Joint, Mechanism
from loopcheck.robots.mjcf import Description
from loopcheck.robots.rigid_frames import rigid_frame


class Inertial(NamedTuple):
    """Mass, mass centre and inertia about it."""

    mass: float
    """Mass [kg]."""
    center: Array
    """Mass centre [m], shape (3,)."""
    inertia: Array
    """Inertia about the mass centre [kg m²], shape (3, 3)."""
    held: float = 0.0
    """Fraction of the weight that gravity compensation holds [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A rigid link, in world axes at the zero pose."""

    joint: Joint | None
    """The joint that moves it; None for the base."""
    parent: int
    """Index of the parent link."""
    bodies: Mapping[str, Array]
    """Pose of each of its bodies [m and -], shape (4, 4)."""
    inertial: Inertial
    anchor: Array
    """Anchor of its joint [m], shape (3,)."""
    axis: Array
    """Axis of its joint [-], shape (3,)."""
    effort: tuple[float, float] | None = None
    """Range of the effort on its joint, by the joint or by its actuators [N or N m]."""
    driven: bool = False
    """Whether an actuator acts on its joint."""

    @property
    def name(self) -> str:
        """Name of its joint; of the base, 'base'."""
        return self.joint.name if self.joint else "base"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The links of a robot, the base first, parents before their children."""

    mechanism: Mechanism
    links: tuple[Link, ...]
    place: Mapping[int, int]
    """Link of each body, by index; of the world too if the base is fixed to it."""
    floating: bool
    """Whether the base moves freely."""
    frames: Mapping[int, Array]
    """Pose of each body and of the world [m and -], shape (4, 4)."""
    left_out: tuple[str, ...] = field(default=())
    """Parts of the model that belong to no link, a sentence each."""


def tree_of(description: Description, locked: Collection[str] = ()) -> Tree:
    """The links of the robot with the most joints in a model.

    Args:
        description: The model.
        locked: Joints that are fixed at zero.
    """
    mechanism = description.mechanism
    moving = [[k for k in of if mechanism.joints[k].name not in locked] for of in mechanism.joints_of]
    roots = [mechanism.way(b)[-2] for b in range(len(mechanism.bodies))]
    free = {b for b in set(roots) if any(mechanism.joints[k].kind == "free" for k in mechanism.joints_of[b])}
    robots = [b if b in free else WORLD for b in roots]  # what is not free belongs to the fixed robot
    joints = {robot: sum(len(moving[b]) for b, of in enumerate(robots) if of == robot) for robot in robots}
    chosen = max(joints, key=lambda robot: joints[robot])
    others = [mechanism.bodies[robot].name if robot in free else "world" for robot in joints if robot != chosen]
    left_out = [f"bodies on '{name}'" for name in others if name != "world" or joints[WORLD]]
    at_zero = poses(mechanism, _zero(mechanism)[None])
    frames = {b: rigid_frame(at_zero.p[0, b], at_zero.R[0, b]) for b in range(len(mechanism.bodies))}
    efforts, driven = _effort_ranges(description), {j for a in mechanism.actuators for j in a.coordinate.joints}
    place, members = ({} if chosen in free else {WORLD: 0}), [[]]  # type: ignore[var-annotated]
    links = [(None, -1)]
    for b, body in enumerate(mechanism.bodies):
        if robots[b] != chosen:
            continue
        place[b] = place.get(body.parent, 0)
        for k in moving[b]:
            if mechanism.joints[k].kind != "free":
                links.append((k, place[b]))  # type: ignore[arg-type]
                members.append([])
                place[b] = len(links) - 1
        members[place[b]].append(b)
    starts = [dofs.start for dofs in mechanism.dof_slices]
    return Tree(
        mechanism=mechanism,
        links=tuple(
            Link(
                joint=None if k is None else mechanism.joints[k],
                parent=parent,
                bodies={mechanism.bodies[b].name: frames[b] for b in of},
                inertial=_together([_inertial(mechanism.bodies[b], frames[b]) for b in of]),
                anchor=np.zeros(3) if k is None else at_zero.anchors[0, starts[k]],
                axis=np.zeros(3) if k is None else at_zero.axes[0, starts[k]],
                effort=None if k is None else efforts.get(k),
                driven=k in driven,
            )
            for (k, parent), of in zip(links, members, strict=True)
        ),
        place=place,
        floating=chosen in free,
        frames={**frames, WORLD: np.eye(4)},
        left_out=(*left_out, *description.unsupported),
    )


def with_hinges(tree: Tree, ball: int, hinges: tuple[Link, ...], turn: Array) -> Tree:
    """The tree with a ball joint as three hinges.

    Args:
        tree: The tree.
        ball: Index of the link of the ball joint.
        hinges: Links of another model with the three hinges.
        turn: Rotation from the world axes of the other model [-], shape (3, 3).
    """
    link = tree.links[ball]
    assert link.joint is not None
    empty = _together([])
    new = [
        replace(
            link,
            joint=replace(
                hinge.joint,  # type: ignore[type-var]
                rest_position=np.zeros(1),
                spring_reference=np.zeros(1),
                **{name: getattr(link.joint, name) for name in ("armature", "damping", "friction", "stiffness")},
            ),
            parent=link.parent if k == 0 else ball + k - 1,
            axis=turn @ hinge.axis,
            effort=hinge.effort,
            driven=hinge.driven,
            **({"bodies": {}, "inertial": empty} if k < 2 else {}),
        )
        for k, hinge in enumerate(hinges)
    ]

    def moved(k: int) -> int:
        return k if k < ball else k + 2

    after = [replace(each, parent=moved(each.parent)) for each in tree.links[ball + 1 :]]
    place = {b: moved(k) for b, k in tree.place.items()}
    return replace(tree, links=(*tree.links[:ball], *new, *after), place=place)


def _zero(mechanism: Mechanism) -> Array:
    rest = [np.zeros(1) if joint.kind in ("hinge", "slide") else joint.rest_position for joint in mechanism.joints]
    return np.concatenate([np.zeros(0), *rest])


def _inertial(body: Body, X: Array) -> Inertial:
    R = X[:3, :3]
    return Inertial(body.mass, X[:3, 3] + R @ body.center, R @ body.inertia @ R.T, body.gravity_compensation)


def _together(parts: list[Inertial]) -> Inertial:
    mass = sum(part.mass for part in parts)
    if not mass:
        return Inertial(0.0, np.zeros(3), np.sum([part.inertia for part in parts] or [np.zeros((3, 3))], axis=0))
    center = np.sum([part.mass * part.center for part in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.center - center
        inertia += part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertial(mass, center, inertia, sum(part.mass * part.held for part in parts) / mass)


def _effort_ranges(description: Description) -> dict[int, tuple[float, float]]:
    """Range of the effort on each joint: the narrower of its own and of the sum of its motors' [N or N m]."""
    mechanism, m = description.mechanism, description.compiled
    own = {j: m.jnt_actfrcrange[j] for j in range(len(mechanism.joints)) if m.jnt_actfrclimited[j]}
    motors: dict[int, list[Array]] = {}
    for actuator in mechanism.actuators:
        if actuator.coordinate.is_joint:
            limits = [[limit.low, limit.high] for limit in actuator.limits] or [[-np.inf, np.inf]]
            ends = np.array([np.max(limits, axis=0)[0], np.min(limits, axis=0)[1]])
            motors.setdefault(actuator.coordinate.joints[0], []).append(np.sort(ends * actuator.gear))
    ranges = dict(_narrowed(own, {j: np.sum(of, axis=0) for j, of in motors.items()}))
    return {j: (float(low), float(high)) for j, (low, high) in ranges.items() if np.isfinite([low, high]).any()}


def _narrowed(own: Mapping[int, Array], motors: Mapping[int, Array]) -> Iterator[tuple[int, tuple[float, float]]]:
    for j in {**own, **motors}:
        ends = [of[j] for of in (own, motors) if j in of]
        yield j, (max(low for low, _ in ends), min(high for _, high in ends))
