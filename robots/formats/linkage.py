"""Links and the joints between them, as SDF and USD describe a robot: any joint may close a loop.

Reading makes an `MjSpec` of it: a spanning tree of the joints, and closures for all other joints. Writing makes it of a
mechanism. Frames are those of the links; positions of joints are zero where both frames of the joint coincide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.loop_files import Loop
from loopcheck.robots.formats.rigid_frames import of_axis, quaternion, rigid_frame
from loopcheck.robots.formats.spec_elements import add_motor, add_polynomial, set_inertia, set_passive
from loopcheck.robots.formats.spec_loops import close, joints_between, sink_joints, slide_of, want_turned_inertia

GROUND = "world"
"""Name of the world in place of a link, as in MuJoCo."""
HOME = "home"
"""Name of the keyframe with the pose of the file."""
UNLIMITED = 1e16
"""Limit of a joint that has a limit on its other side only [m or rad], as SDF states it."""
BALL = np.array([1.0, 0.0, 0.0, 0.0])
"""Position of a ball at zero [-]."""
SAME = 1e-9
"""Largest distance from `BALL` that counts as zero [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A rigid link."""

    name: str
    X: Array
    """Frame in the world in the pose of the file [m and -], shape (4, 4)."""
    mass: float = 0.0
    """Mass [kg]."""
    center: Array = field(default_factory=lambda: np.zeros(3))
    """Mass centre in the link's frame [m], shape (3,)."""
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    """Inertia about the mass centre, axes of the link [kg m²], shape (3, 3)."""
    compensation: float = 0.0
    """Fraction of the weight that does not act [-]."""
    free_joint: str = ""
    """Name of its joint if no joint connects it to the world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mimic:
    """A joint that follows another: position = offset + multiplier · position of the leader."""

    leader: str
    multiplier: float
    """[-, m/rad or rad/m]."""
    offset: float
    """[m or rad]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Loop):
    """A joint between two links, in the tree or in a loop."""

    where: str = ""
    """Place in the file, for messages."""
    closes_loop: bool = False
    """Whether the file excludes it from the tree."""
    limits: tuple[float, float] | None = None
    """Lowest and highest position [m or rad]."""
    damping: float = 0.0
    """Viscous damping [N s/m or N m s/rad]."""
    stiffness: float = 0.0
    """Stiffness of the spring [N/m or N m/rad]."""
    spring_reference: float = 0.0
    """Rest position of the spring [m or rad]."""
    friction: float = 0.0
    """Dry friction [N or N m]."""
    armature: float = 0.0
    """Inertia of the drive [kg or kg m²]."""
    effort: float | None = None
    """Largest effort of the joint's actuator [N or N m]."""
    mimic: Mimic | None = None

    @property
    def has_coordinate(self) -> bool:
        """Whether forces or limits depend on its position."""
        acts = (self.damping, self.stiffness, self.armature, self.friction)
        return any(acts) or self.pitch is not None or self.limits is not None or self.mimic is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Motor:
    """An actuator of a joint."""

    name: str
    joint: str
    gear: float = 1.0
    """Effort on the joint per effort of the actuator [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linkage:
    """A robot as links and joints."""

    path: Path
    links: tuple[Link, ...]
    connections: tuple[Connection, ...]
    motors: tuple[Motor, ...] = ()
    gravity: Array
    """Acceleration of gravity, world axes [m/s²], shape (3,)."""


def spec_of(linkage: Linkage) -> Any:
    """The linkage as an editable `MjSpec`.

    Raises:
        MechanismError: If it has no links, or names are not unique.
        NotFoundError: If a joint names a link, or a motor or mimic a joint, that the file does not have.
    """
    links = _links(linkage)
    tree = _tree(linkage, links)
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.option.gravity = linkage.gravity
    positions: dict[str, Array] = {}
    for name, connection in _in_order(links, tree):
        link = links[name]
        if connection is None:
            _add_root(spec, link)
            continue
        body = _add_body(spec.body(connection.parent), link, connection.parent_frame @ inverse(connection.child_frame))
        joints = joints_between(body, connection, connection.child_frame)
        positions |= _dressed(joints, connection, links, connection.child_frame)
    for connection in linkage.connections:
        if connection.name not in tree:
            halves = close(spec, connection, has_coordinates=connection.has_coordinate)
            positions |= _dressed(halves, connection, links, np.eye(4)) if halves else {}
    _add_followers(linkage, spec)
    closed = [connection for connection in linkage.connections if connection.name not in tree]
    sink_joints(spec, {link for connection in closed for link in (connection.parent, connection.child)})
    want_turned_inertia(spec, linkage.path)
    _add_motors(linkage, spec)
    _add_home(spec, positions)
    return spec


def with_ground(linkage: Linkage) -> dict[str, Link]:
    """The links by name, the world too."""
    return {GROUND: Link(name=GROUND, X=np.eye(4)), **{link.name: link for link in linkage.links}}


def _links(linkage: Linkage) -> dict[str, Link]:
    """The links by name, the world too, after a check of all names."""
    for kind, names in (
        ("links", [link.name for link in linkage.links]),
        ("joints", [connection.name for connection in linkage.connections]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise MechanismError(f"{linkage.path}: names of {kind} must be unique, got '{twice}' twice")
    links = with_ground(linkage)
    for connection in linkage.connections:
        for name in (connection.parent, connection.child):
            if name not in links:
                raise NotFoundError(f"link at {connection.where}", name, links)
    return links


def _tree(linkage: Linkage, links: Mapping[str, Link]) -> dict[str, Connection]:
    """The joints of a spanning tree by name.

    Joints with a motor, or that lead or follow, come first. Joints that give a link a second parent come last. A joint
    that the file excludes from the tree stays outside unless it has a motor.
    """
    driven = {motor.joint for motor in linkage.motors}
    for connection in linkage.connections:
        if connection.mimic is not None:
            driven |= {connection.name, connection.mimic.leader}
    parents: set[str] = set()
    ranks = []
    for connection in linkage.connections:
        is_second = connection.child in parents
        parents.add(connection.child)
        ranks.append(0 if connection.name in driven else 2 if is_second else 1)
    component = {name: name for name in links}
    tree = {}
    for rank, connection in sorted(zip(ranks, linkage.connections, strict=True), key=lambda pair: pair[0]):
        if connection.closes_loop and rank:
            continue
        left, right = component[connection.parent], component[connection.child]
        if left != right:
            tree[connection.name] = connection
            component = {name: left if of == right else of for name, of in component.items()}
    return tree


def _in_order(links: Mapping[str, Link], tree: Mapping[str, Connection]) -> Iterator[tuple[str, Connection | None]]:
    """Links after their parents, each with the joint to its parent, or None for a link that floats."""
    neighbours: dict[str, list[Connection]] = {name: [] for name in links}
    for connection in tree.values():
        neighbours[connection.parent].append(connection)
        neighbours[connection.child].append(connection)
    seen = {GROUND}
    for root in (GROUND, *links):
        if root not in seen:
            seen.add(root)
            yield root, None
        elif root != GROUND:
            continue
        pending = [root]
        while pending:
            parent = pending.pop(0)
            for connection in neighbours[parent]:
                directed = connection if connection.parent == parent else _reversed(connection)
                if directed.child not in seen:
                    seen.add(directed.child)
                    pending.append(directed.child)
                    yield directed.child, directed


def _reversed(connection: Connection) -> Connection:
    """The same joint seen from its child, with the same position: the axis changes its sign."""
    second = connection.axis if connection.child_axis is None else connection.child_axis
    axes = (connection.axis, None) if connection.kind != "universal" else (second, connection.axis)
    return replace(
        connection,
        parent=connection.child,
        child=connection.parent,
        parent_frame=connection.child_frame,
        child_frame=connection.parent_frame,
        axis=-axes[0],
        child_axis=None if axes[1] is None else -axes[1],
    )


def inverse(X: Array) -> Array:
    """Inverse of a frame [m and -], shape (4, 4).

    Args:
        X: Position and axes [m and -], shape (4, 4).
    """
    R = X[:3, :3].T
    return rigid_frame(-R @ X[:3, 3], R)


def _add_root(spec: Any, link: Link) -> None:
    body = _add_body(spec.worldbody, link, link.X)
    joint = body.add_freejoint()
    joint.name = link.free_joint or f"{link.name} free"


def _add_body(parent: Any, link: Link, X: Array) -> Any:
    body = parent.add_body()
    body.name, body.pos, body.quat = link.name, X[:3, 3], quaternion(X[:3, :3])
    body.gravcomp = link.compensation
    set_inertia(body, link.mass, link.center, link.inertia)
    return body


def _dressed(joints: Sequence[Any], connection: Connection, links: Mapping[str, Link], X: Array) -> dict[str, Array]:
    """Set forces, limits and references of the joints of a connection, and return their positions.

    The pose of the file becomes MuJoCo's qpos0, except for balls, which have no reference.

    Args:
        X: Frame of the joints on their body [m and -], shape (4, 4).
    """
    positions = dict(zip((joint.name for joint in joints), positions_of(connection, links), strict=True))
    at = connection.parent_frame
    for joint in joints:
        if connection.pitch is None or joint.name == connection.name:
            _set(joint, connection)
        if joint.type == mujoco.mjtJoint.mjJNT_BALL:
            continue
        joint.ref = float(positions[joint.name][0])
        axis = connection.axis / np.linalg.norm(connection.axis)
        is_hinge = joint.type == mujoco.mjtJoint.mjJNT_HINGE
        move = (np.zeros(3), of_axis(axis, joint.ref)) if is_hinge else (joint.ref * axis, np.eye(3))
        at = at @ rigid_frame(*move)
    for body in {id(joint.parent): joint.parent for joint in joints}.values():
        pose = at @ inverse(X)
        body.pos, body.quat = pose[:3, 3], quaternion(pose[:3, :3])
    return positions


def _set(joint: Any, connection: Connection) -> None:
    """Forces and limits of a joint."""
    if joint.type == mujoco.mjtJoint.mjJNT_BALL:
        return
    set_passive(joint, connection.damping, connection.stiffness)
    joint.springref, joint.frictionloss, joint.armature = (
        connection.spring_reference,
        connection.friction,
        connection.armature,
    )
    if connection.limits is not None:
        joint.limited, joint.range = mujoco.mjtLimited.mjLIMITED_TRUE, connection.limits
    if connection.effort is not None:
        joint.actfrclimited, joint.actfrcrange = (
            mujoco.mjtLimited.mjLIMITED_TRUE,
            (-connection.effort, connection.effort),
        )


def positions_of(connection: Connection, links: Mapping[str, Link]) -> Sequence[Array]:
    """Positions of the joints of a connection in the pose of the file [m, rad, or a quaternion].

    A universal joint is at zero there.
    """
    child = links[connection.child].X @ connection.child_frame
    X = inverse(links[connection.parent].X @ connection.parent_frame) @ child
    axis = connection.axis / np.linalg.norm(connection.axis)
    turn, along = np.array([_angle(X[:3, :3], axis)]), np.array([X[:3, 3] @ axis])
    match connection.kind:
        case "fixed":
            return ()
        case "revolute":
            return (turn,)
        case "prismatic":
            return (along,)
        case "cylindrical":
            return along, turn
        case "spherical":
            R = connection.child_frame[:3, :3]
            return (quaternion(R @ X[:3, :3] @ R.T),)
        case "universal":
            return np.zeros(1), np.zeros(1)
        case _:
            assert_never(connection.kind)


def _angle(R: Array, axis: Array) -> float:
    """Angle of the part of a rotation about an axis [rad]."""
    w, *v = quaternion(R)
    return float(2 * np.arctan2(np.asarray(v) @ axis, w) + np.pi) % (2 * np.pi) - np.pi


def _add_followers(linkage: Linkage, spec: Any) -> None:
    known = {joint.name: joint for joint in spec.joints}
    for connection in linkage.connections:
        if connection.pitch is not None:
            slide, turn = known[slide_of(connection)], known[connection.name]
            slope = connection.pitch / (2 * np.pi)
            terms = np.array([slope * turn.ref - slide.ref, slope, 0.0, 0.0, 0.0])
            add_polynomial(spec, slide.name, turn.name, terms)
        mimic = connection.mimic
        if mimic is None:
            continue
        names = (connection.name, mimic.leader)
        for name in names:
            if name not in known:
                raise NotFoundError(f"joint of the mimic at {connection.where}", name, known)
        follower, leader = (known[name].ref for name in names)  # MuJoCo's polynomial is of distances from these
        constant = mimic.offset + mimic.multiplier * leader - follower
        add_polynomial(spec, connection.name, mimic.leader, np.array([constant, mimic.multiplier, 0.0, 0.0, 0.0]))


def _add_motors(linkage: Linkage, spec: Any) -> None:
    known = [joint.name for joint in spec.joints]
    for element in linkage.motors:
        if element.joint not in known:
            raise NotFoundError(f"actuated joint of {linkage.path}", element.joint, known)
        motor = add_motor(spec, element.joint)
        motor.name, motor.gear[0] = element.name, element.gear


def _add_home(spec: Any, positions: Mapping[str, Array]) -> None:
    """A keyframe with the pose of the file, if a ball is not at zero there."""
    balls = [q for q in positions.values() if len(q) == len(BALL)]
    if all(np.abs(q - BALL).max() <= SAME for q in balls):
        return
    spec.add_key(name=HOME, qpos=[value for child in spec.worldbody.bodies for value in _qpos(child, positions)])


def _qpos(body: Any, positions: Mapping[str, Array]) -> Iterator[float]:
    """Positions of the joints of a body and of the bodies on it, in MuJoCo's order."""
    for joint in body.joints:
        is_free = joint.type == mujoco.mjtJoint.mjJNT_FREE
        yield from (*body.pos, *body.quat) if is_free else positions[joint.name]
    for child in body.bodies:
        yield from _qpos(child, positions)
