"""Loops of a tree of links in an `MjSpec`, and joints of its massless links."""

from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.loop_files import Loop
from loopcheck.robots.formats.rigid_frames import of_quaternion, quaternion, rigid_frame
from loopcheck.robots.formats.spec_elements import FREE, KINDS, LEAST, add_closure, add_joint

PIN = 0.1
"""Distance of the two points that make a revolute loop [m]."""
SECOND_POINT = ", axis"
"""End of the name of the second point of a revolute loop."""
HALVES = ", halves"
"""End of the name of the weld between the halves of a link that a loop joint with coordinates needs."""
SCREWED = ", slide follows "
"""Middle of the name of the coupling that makes a screw of a slide and a hinge."""
TURNED = 1e-12
"""Least moment about the axis of a joint over the largest moment of the link [-]."""
OF_JOINTS = (
    "axis",
    "pos",
    "range",
    "limited",
    "damping",
    "frictionloss",
    "actfrcrange",
    "actfrclimited",
    "stiffness",
    "springref",
    "ref",
    "armature",
)
"""Attributes of a joint that readers set."""


def close(spec: Any, loop: Loop, *, has_coordinates: bool = False) -> list[Any]:
    """Add the closures of a loop, and return its joints if it has any.

    Joints that MuJoCo cannot close a loop with are put on a half of the child.

    Args:
        has_coordinates: Whether the positions of the loop joint matter, as for a spring; a ball has none then too.
    """
    parent, child = spec.body(loop.parent), spec.body(loop.child)
    ends = ((parent, loop.parent_frame), (child, loop.child_frame))
    if loop.kind in ("fixed", "spherical"):
        add_closure(spec, loop.name, ends, is_weld=loop.kind == "fixed")
        return []
    if loop.kind == "revolute" and not has_coordinates:
        along = np.eye(4)
        along[:3, 3] = PIN * loop.axis / np.linalg.norm(loop.axis)
        add_closure(spec, loop.name, ends, is_weld=False)
        add_closure(spec, f"{loop.name}{SECOND_POINT}", [(body, X @ along) for body, X in ends], is_weld=False)
        return []
    half = _halved(parent, child, loop)
    joints = joints_between(half, loop, np.eye(4))
    add_closure(spec, f"{loop.name}{HALVES}", ((half, np.eye(4)), (child, loop.child_frame)), is_weld=True)
    return joints


def joints_between(body: Any, loop: Loop, X: Array) -> list[Any]:
    """Add the joints of one kind of joint to a body, and return them.

    Args:
        loop: The joint.
        X: Its frame in the body [m and -], shape (4, 4).
    """
    second = loop.axis if loop.child_axis is None else loop.child_axis
    kinds = {
        "fixed": (),
        "spherical": (("ball", loop.axis),),
        "revolute": (("hinge", loop.axis),),
        "prismatic": (("slide", loop.axis),),
        "cylindrical": (("slide", loop.axis), ("hinge", loop.axis)),
        "universal": (("hinge", loop.axis), ("hinge", second)),
    }[loop.kind]
    joints = []
    names = [loop.name] if len(kinds) == 1 else [f"{loop.name} {k + 1}" for k in range(len(kinds))]
    if loop.pitch is not None:
        names = [slide_of(loop), loop.name]
    for name, (kind, axis) in zip(names, kinds, strict=True):
        joint = add_joint(body, name, kind, X[:3, :3] @ axis)
        joint.pos = X[:3, 3]
        joints.append(joint)
    return joints


def slide_of(loop: Loop) -> str:
    """Name of the slide of a screw, of which the turn has the name of the joint."""
    return f"{loop.name}, slide"


def _halved(parent: Any, child: Any, loop: Loop) -> Any:
    """Half of the child's mass on a body of the parent, with the frame of the loop as its frame.

    Both halves are welded, so that they move as the link does.
    """
    while not child.mass and not list(child.joints) and child.parent.name != "world":
        child = child.parent
    if not child.mass:
        raise MechanismError(
            f"loop '{loop.name}': the child of a {loop.kind} loop must have a mass, got none on link '{loop.child}'"
        )
    from_child: Array = np.asarray(
        np.linalg.inv(loop.child_frame) @ rigid_frame(child.ipos, of_quaternion(child.iquat)), dtype=np.float64
    )
    half = parent.add_body()
    half.name = f"{loop.child}, half at {loop.name}"
    half.pos, half.quat = loop.parent_frame[:3, 3], quaternion(loop.parent_frame[:3, :3])
    half.explicitinertial, half.gravcomp = True, child.gravcomp
    half.ipos, half.iquat = from_child[:3, 3], quaternion(from_child[:3, :3])
    for name in ("mass", "inertia", "fullinertia"):
        value = np.asarray(getattr(child, name)) / 2
        setattr(child, name, value if value.ndim else float(value))
        setattr(half, name, value if value.ndim else float(value))
    return half


def sink_joints(spec: Any, closed: Set[str]) -> None:
    """Move the joints of massless links to the next link of their chain: a body of MuJoCo may have several joints.

    Args:
        closed: Names of links with a loop.
    """
    for body in spec.bodies[1:]:
        if list(body.joints) and not _rigid_mass(body):
            children = list(body.bodies)
            if body.joints[0].type == FREE:
                raise MechanismError(f"link '{body.name}' must have a mass and an inertia, because it floats, got 0 kg")
            if len(children) != 1 or body.name in closed:
                raise MechanismError(
                    f"link '{body.name}' must have a mass and an inertia, because it moves with the joint "
                    f"'{body.joints[0].name}'; only a massless link with a single child joint and no loop is supported"
                )
            _sink(spec, body, children[0])


def want_turned_inertia(spec: Any, path: Path) -> None:
    """Refuse a rod without a moment about its axis that turns about it, with nothing else on it.

    Args:
        path: The file, for the message.
    """
    for body in spec.bodies[1:]:
        moments = np.asarray(body.inertia)
        if list(body.bodies) or not 0 < moments.min() <= LEAST:
            continue
        R = of_quaternion(body.iquat)
        for joint in body.joints:
            arm = body.ipos - joint.pos
            about = R @ np.diag(moments) @ R.T + body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
            axis = joint.axis / np.linalg.norm(joint.axis)
            turned = float(np.linalg.eigvalsh(about)[0] if joint.type == KINDS["ball"] else axis @ about @ axis)
            if joint.type != KINDS["slide"] and turned <= TURNED * moments.max():
                raise MechanismError(
                    f"{path}: the inertia of link '{body.name}' about the axis of joint '{joint.name}' must be above "
                    "0, got 0 kg m². State the moment of inertia of the link about its axis"
                )


def _sink(spec: Any, body: Any, child: Any) -> None:
    """Put the joints of a body before the joints of its child."""
    X = rigid_frame(child.pos, of_quaternion(child.quat))
    joints = [(joint, {name: np.copy(getattr(joint, name)) for name in OF_JOINTS}) for joint in body.joints]
    for _, values in joints:
        values["axis"] = X[:3, :3].T @ values["axis"]
        values["pos"] = X[:3, :3].T @ (values["pos"] - X[:3, 3])
    joints += [(joint, {name: np.copy(getattr(joint, name)) for name in OF_JOINTS}) for joint in child.joints]
    names = [(joint.name, joint.type) for joint, _ in joints]
    for joint, _ in joints:
        spec.delete(joint)
    for (name, kind), (_, values) in zip(names, joints, strict=True):
        joint = child.add_joint()
        joint.name, joint.type = name, kind
        for attribute, value in values.items():
            setattr(joint, attribute, value if value.ndim else value.item())


def _rigid_mass(body: Any) -> float:
    """Mass of a body and of the bodies that are fixed to it [kg]."""
    return float(body.mass) + sum(_rigid_mass(child) for child in body.bodies if not list(child.joints))
