"""A mechanism as links and joints, the form of SDF and USD.

Links have the frames of their bodies. A body with several joints becomes a chain of massless links.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.carried import effort_of
from loopcheck.robots.formats.linkage import GROUND, Connection, Link, Linkage, Mimic, Motor, inverse
from loopcheck.robots.formats.rigid_frames import of_axis, of_quaternion, rigid_frame
from loopcheck.robots.formats.spec_loops import PIN, SECOND_POINT
from loopcheck.robots.mechanism import WORLD, Body, Closure, ConnectClosure, Joint, Mechanism, RigidClosure, WeldClosure

EXACT = 1e-12
"""Largest gap of a closed loop [m or rad]."""
PIN_TOLERANCE = 1e-12
"""Largest difference of the distance between two points of a revolute loop from `PIN` [m]."""


def linkage_of(mechanism: Mechanism, q: JointPositions) -> Linkage:
    """A mechanism in a pose, as links and joints.

    Args:
        mechanism: The part that SDF or USD carries, see `loopcheck.robots.formats.carried`.
        q: Positions of its joints in the pose of the file.
    """
    links: list[Link] = []
    connections: list[Connection] = []
    taken = {body.name for body in mechanism.bodies}
    X_of = {WORLD: np.eye(4)}
    for b, body in enumerate(mechanism.bodies):
        joints = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        X, between, parent = X_of[body.parent], rigid_frame(body.position, body.rotation), _name(mechanism, body.parent)
        if joints and joints[0].kind == "free":
            pose = q[mechanism.q_slices[mechanism.joints_of[b][0]]]
            X_of[b] = rigid_frame(pose[:3], of_quaternion(pose[3:]))
            links.append(_link(body, X_of[b], joints[0].name))
            continue
        for k, joint in zip(mechanism.joints_of[b], joints, strict=True):
            is_last = joint is joints[-1]
            child = body.name if is_last else _unique(f"{body.name}, after {joint.name}", taken)
            ends = (between @ rigid_frame(joint.anchor, np.eye(3)), rigid_frame(joint.anchor, np.eye(3)))
            X = X @ ends[0] @ _motion(joint, q[mechanism.q_slices[k]]) @ rigid_frame(-joint.anchor, np.eye(3))
            links.append(_link(body, X) if is_last else Link(name=child, X=X))
            connections.append(_connection(mechanism, joint, (parent, child), ends))
            parent, between = child, np.eye(4)
        if not joints:
            X = X @ between
            links.append(_link(body, X))
            connections.append(_fixed(f"{body.name}, fixed", (parent, body.name), (between, np.eye(4))))
        X_of[b] = X
    return Linkage(
        path=mechanism.model.path,
        links=tuple(links),
        connections=(*connections, *_renamed(loops_of(mechanism), {connection.name for connection in connections})),
        motors=tuple(Motor(name=a.name, joint=a.coordinate.name, gear=a.gear) for a in mechanism.actuators),
        gravity=mechanism.gravity,
    )


def _link(body: Body, X: Array, free_joint: str = "") -> Link:
    return Link(name=body.name, X=X, mass=body.mass, center=body.center, inertia=body.inertia, free_joint=free_joint)


def _name(mechanism: Mechanism, b: int) -> str:
    return GROUND if b == WORLD else mechanism.bodies[b].name


def _renamed(loops: Iterable[Connection], taken: set[str]) -> Iterator[Connection]:
    """Loops with other names than those of joints: an equality of MJCF may have the name of a joint."""
    for loop in loops:
        yield replace(loop, name=_unique(loop.name, taken))


def _unique(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _motion(joint: Joint, q: Array) -> Array:
    """Motion of a joint from the pose at rest, in its frame [m and -], shape (4, 4)."""
    match joint.kind:
        case "hinge":
            return rigid_frame(np.zeros(3), of_axis(joint.axis, q[0] - joint.rest_position[0]))
        case "slide":
            return rigid_frame((q[0] - joint.rest_position[0]) * joint.axis, np.eye(3))
        case "ball":
            return rigid_frame(np.zeros(3), of_quaternion(q))
        case _:
            raise MechanismError(f"joint '{joint.name}': a free joint must be the only joint of its body")


def _fixed(name: str, names: tuple[str, str], ends: tuple[Array, Array]) -> Connection:
    return Connection(
        name=name, kind="fixed", parent=names[0], child=names[1], parent_frame=ends[0], child_frame=ends[1]
    )


def _connection(mechanism: Mechanism, joint: Joint, names: tuple[str, str], ends: tuple[Array, Array]) -> Connection:
    if joint.kind == "ball":
        return replace(_fixed(joint.name, names, ends), kind="spherical")
    at_zero = _motion(replace(joint, rest_position=np.zeros(1)), -joint.rest_position)
    return replace(
        _fixed(joint.name, names, (ends[0] @ at_zero, ends[1])),
        kind="revolute" if joint.kind == "hinge" else "prismatic",
        axis=joint.axis,
        limits=joint.limits,
        damping=joint.damping,
        stiffness=joint.stiffness,
        spring_reference=float(joint.spring_reference[0]) if joint.stiffness else 0.0,
        friction=joint.friction,
        armature=joint.armature,
        effort=next((effort_of(a) for a in mechanism.actuators if a.coordinate.name == joint.name), None),
        mimic=_mimic(mechanism, joint),
    )


def _mimic(mechanism: Mechanism, joint: Joint) -> Mimic | None:
    """The linear closure of a joint, with positions instead of distances from the rest positions."""
    for closure in mechanism.coordinate_closures:
        if closure.follower.name == joint.name and closure.leader is not None:
            leader = mechanism.joints[closure.leader.joints[0]]
            constant, slope = (float(value) for value in closure.coefficients[:2])
            offset = float(joint.rest_position[0]) + constant - slope * float(leader.rest_position[0])
            return Mimic(leader=leader.name, multiplier=slope, offset=offset)
    return None


def loops_of(mechanism: Mechanism) -> list[Connection]:
    """The closures between bodies; two points at the distance `PIN` are a revolute loop."""
    closures = {closure.name: closure for closure in mechanism.rigid_closures}
    loops = []
    for closure in mechanism.rigid_closures:
        first = closures.get(closure.name.removesuffix(SECOND_POINT))
        if first is not None and first is not closure and _is_pin(first, closure):
            continue
        second = closures.get(f"{closure.name}{SECOND_POINT}")
        R = closure.rotation if isinstance(closure, WeldClosure) else np.eye(3)
        names = (_name(mechanism, closure.body1), _name(mechanism, closure.body2))
        loop = _fixed(closure.name, names, (rigid_frame(closure.point1, R), rigid_frame(closure.point2, np.eye(3))))
        if second is not None and _is_pin(closure, second):
            left, right = second.point1 - closure.point1, second.point2 - closure.point2
            R = _turn_between(right / PIN, left / PIN)
            loop = replace(loop, kind="revolute", parent_frame=rigid_frame(closure.point1, R), axis=right / PIN)
        elif isinstance(closure, ConnectClosure):
            loop = replace(loop, kind="spherical")
        loops.append(replace(loop, closes_loop=True))
    return loops


def closed_exactly(mechanism: Mechanism, q: JointPositions) -> tuple[Mechanism, float]:
    """The mechanism with loops that close exactly in a pose, and the gap that they had there [m or rad].

    Loops that close within `EXACT` are not changed; the gap is zero if no loop is.

    Args:
        q: Positions of its joints in the pose of the file.
    """
    poses = {GROUND: np.eye(4), **{link.name: link.X for link in linkage_of(mechanism, q).links}}
    closures: list[Closure] = []
    largest = 0.0
    for closure in mechanism.closures:
        if not isinstance(closure, ConnectClosure | WeldClosure):
            closures.append(closure)
            continue
        X1, X2 = (poses[_name(mechanism, b)] for b in (closure.body1, closure.body2))
        on_first = inverse(X1) @ X2 @ rigid_frame(closure.point2, np.eye(3))
        gap = float(np.abs(on_first[:3, 3] - closure.point1).max())
        if isinstance(closure, WeldClosure):
            gap = max(gap, float(np.abs(on_first[:3, :3] - closure.rotation).max()))
        if gap <= EXACT:
            closures.append(closure)
        elif isinstance(closure, WeldClosure):
            closures.append(replace(closure, point1=on_first[:3, 3], rotation=on_first[:3, :3]))
        else:
            closures.append(replace(closure, point1=on_first[:3, 3]))
        largest = max(largest, gap if gap > EXACT else 0.0)
    return (replace(mechanism, closures=tuple(closures)), largest) if largest else (mechanism, 0.0)


def _is_pin(first: RigidClosure, second: RigidClosure) -> bool:
    """Whether two closures are the points of a revolute loop that `close` made."""
    if not (isinstance(first, ConnectClosure) and isinstance(second, ConnectClosure)):
        return False
    if (first.body1, first.body2) != (second.body1, second.body2):
        return False
    lengths = [np.linalg.norm(end) for end in (second.point1 - first.point1, second.point2 - first.point2)]
    return bool(np.abs(np.array(lengths) - PIN).max() <= PIN_TOLERANCE)


def _turn_between(a: Array, b: Array) -> Array:
    """A rotation that takes a unit vector to another [-], shape (3, 3)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.align_vectors(b[None], a[None])[0].as_matrix())
