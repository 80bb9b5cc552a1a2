"""The spanning tree of a model as links, each moved by one joint, with all bodies that are fixed to it.

Vectors are in world axes at the zero pose, with every hinge and slide at zero: neither the frames of the bodies nor the
pose of the file matter.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.kinematics.tree import poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.formats.rigid_frames import rigid_frame
from loopcheck.robots.mechanism import WORLD, Body, Joint, Mechanism

BASE, ORIGIN = "base", np.zeros(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A rigid link."""

    joint: Joint | None = None
    """The joint that moves it; None for the base."""
    parent: int = WORLD
    """Index of the parent link."""
    body: Body
    """Its mass, mass centre and inertia, in world axes."""
    frames: Mapping[str, Array]
    """Pose of each of its bodies [m and -], shape (4, 4)."""
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
        """Name of its joint."""
        return self.joint.name if self.joint else BASE

    @property
    def kind(self) -> str:
        """Kind of its joint."""
        return self.joint.kind if self.joint else BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The links of a robot, the base first, parents before their children."""

    mechanism: Mechanism
    links: tuple[Link, ...]
    floating: bool
    """Whether the base moves freely."""
    left_out: tuple[str, ...]
    """Parts of the model that belong to no link, a sentence each."""


def tree_of(description: Description, locked: Collection[str] = ()) -> Tree:
    """The links of the robot with the most joints in a model.

    Args:
        description: The model.
        locked: Joints that are fixed at zero.
    """
    mechanism = description.mechanism.without_lengths()
    description = replace(description, mechanism=mechanism, unsupported=tuple(_unsupported(description)))
    moving = [[k for k in of if mechanism.joints[k].name not in locked] for of in mechanism.joints_of]
    roots = [mechanism.way(b)[-2] for b in range(len(mechanism.bodies))]
    free = {b for b in roots if any(mechanism.joints[k].kind == "free" for k in mechanism.joints_of[b])}
    robots = [b if b in free else WORLD for b in roots]  # all that is not free belongs to the fixed robot
    joints = {robot: sum(len(moving[b]) for b, of in enumerate(robots) if of == robot) for robot in robots}
    chosen = max(joints, key=lambda robot: joints[robot])
    others = [robot for robot in joints if robot != chosen and joints[robot]]
    rest = [np.zeros(1) if joint.kind in ("hinge", "slide") else joint.rest_position for joint in mechanism.joints]
    at_zero = poses(mechanism, np.concatenate([np.zeros(0), *rest])[None])
    frames = [rigid_frame(*each) for each in zip(at_zero.p[0], at_zero.R[0], strict=True)]
    place: dict[int, int] = {}
    links, members = [Link(body=_together(BASE, []), frames={}, anchor=ORIGIN, axis=ORIGIN)], [list[int]()]
    for b in (b for b, of in enumerate(robots) if of == chosen):
        place[b] = place.get(mechanism.bodies[b].parent, 0)
        for k in moving[b]:
            joint, dof = mechanism.joints[k], mechanism.dof_slices[k].start
            if joint.kind != "free":
                anchor, axis = at_zero.anchors[0, dof], at_zero.axes[0, dof]
                links.append(replace(links[0], joint=joint, parent=place[b], anchor=anchor, axis=axis))
                members.append([])
                place[b] = len(links) - 1
        members[place[b]].append(b)
    efforts, driven = _efforts(description), {mechanism.joints[j].name for j in mechanism.actuated_joints}
    return Tree(
        mechanism=mechanism,
        links=tuple(
            replace(
                link,
                body=_together(link.name, [_in_world(mechanism.bodies[b], frames[b]) for b in of]),
                frames={mechanism.bodies[b].name: frames[b] for b in of},
                effort=efforts.get(link.name),
                driven=link.name in driven,
            )
            for link, of in zip(links, members, strict=True)
        ),
        floating=chosen in free,
        left_out=(
            *(f"bodies on '{mechanism.bodies[b].name if b != WORLD else 'world'}'" for b in others),
            *description.unsupported,
        ),
    )


def with_hinges(tree: Tree, name: str, hinges: Sequence[Link]) -> Tree:
    """The tree with a ball joint as three hinges.

    Args:
        tree: The tree.
        name: Name of the ball joint.
        hinges: Links of another model with the three hinges, in the axes of the tree.
    """
    place = next(k for k, link in enumerate(tree.links) if link.name == name)
    ball, new = tree.links[place], []
    drives = {field: getattr(ball.joint, field) for field in ("armature", "damping", "friction", "stiffness")}
    for k, hinge in enumerate(hinges):
        body, frames = (ball.body, ball.frames) if hinge is hinges[-1] else (_together(hinge.name, []), {})
        joint = None if hinge.joint is None else replace(hinge.joint, **drives)
        link = replace(hinge, joint=joint, parent=place + k - 1 if k else ball.parent, body=body, frames=frames)
        new.append(replace(link, anchor=ball.anchor))
    after = [
        replace(each, parent=each.parent + 2 if each.parent >= place else each.parent)
        for each in tree.links[place + 1 :]
    ]
    return replace(tree, links=(*tree.links[:place], *new, *after))


def _in_world(body: Body, X: Array) -> Body:
    R = X[:3, :3]
    return replace(body, center=X[:3, 3] + R @ body.center, inertia=R @ body.inertia @ R.T)


def _together(name: str, parts: Sequence[Body]) -> Body:
    """Bodies that are fixed to each other, as one body."""
    mass = sum(part.mass for part in parts)
    center = sum((part.mass * part.center for part in parts), np.zeros(3)) / (mass or 1.0)
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.center - center
        inertia = inertia + part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Body(
        name=name,
        parent=WORLD,
        position=ORIGIN,
        rotation=np.eye(3),
        mass=mass,
        center=center,
        inertia=inertia,
        gravity_compensation=sum(part.mass * part.gravity_compensation for part in parts) / (mass or 1.0),
    )


def _unsupported(description: Description) -> Iterator[str]:
    """Elements that are not compared."""
    for closure in description.mechanism.path_closures:
        if closure.slide is not None:
            yield f"spatial tendon '{description.mechanism.joints[closure.slide].name}'"
    yield from description.unsupported


def _efforts(description: Description) -> dict[str, tuple[float, float]]:
    """Range of the effort on each joint: the narrower of its own and of the sum of its motors' [N or N m]."""
    mechanism, m = description.mechanism, description.compiled
    ranges: dict[str, tuple[float, float]] = {}
    for j, joint in enumerate(mechanism.joints):
        low, high = m.jnt_actfrcrange[j] if m.jnt_actfrclimited[j] else (-np.inf, np.inf)
        motors = [a for a in mechanism.actuators if a.coordinate.is_joint and a.coordinate.joints == (j,)]
        ends = [
            sorted(a.gear * end for end in (max(x.low for x in a.limits), min(x.high for x in a.limits)))
            for a in motors
            if a.limits
        ]
        if ends and len(ends) == len(motors):
            low, high = max(low, sum(least for least, _ in ends)), min(high, sum(most for _, most in ends))
        if np.isfinite([low, high]).any():
            ranges[joint.name] = (float(low), float(high))
    return ranges
