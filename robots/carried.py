"""The part of a mechanism that a format carries, and the elements that it loses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from loopcheck.robots.mechanism import Actuator, Closure, CoordinateClosure, EffortLimit, Joint, Mechanism
from loopcheck.robots.mjcf_writer import ON_JOINT

STANDARD = np.array([0.0, 0.0, -9.81])
"""Gravity that readers of URDF assume [m/s²]: the format states none."""


class Carried(NamedTuple):
    """The part of a mechanism that a format carries."""

    mechanism: Mechanism
    losses: tuple[str, ...]
    """Elements that it does not carry, a sentence each."""


class Features(NamedTuple):
    """Elements that some formats carry."""

    format: str
    rotors: bool
    """Rotor inertia of joints."""
    springs: bool
    """Springs of hinges and slides."""
    gravity: bool


URDF = Features("readers of URDF", rotors=False, springs=False, gravity=False)
SDF = Features("SDF", rotors=False, springs=True, gravity=True)
USD = Features("USD", rotors=True, springs=True, gravity=True)


def carried_by(features: Features, mechanism: Mechanism) -> Carried:
    """The part of a mechanism that a format carries."""
    losses: list[str] = []
    joints = tuple(_carried_joint(features, joint) for joint in mechanism.joints)
    pairs = list(zip(mechanism.joints, joints, strict=True))
    lost = {
        "rotor inertia (armature) of joints": [a.name for a, b in pairs if a.armature != b.armature],
        "springs of joints": [a.name for a, b in pairs if a.stiffness != b.stiffness],
        "dampers and dry friction of ball and free joints": [
            a.name for a, b in pairs if (a.damping, a.friction) != (b.damping, b.friction)
        ],
        "gravity compensation of bodies": [body.name for body in mechanism.bodies if body.gravity_compensation],
        "tendons": [tendon.name for tendon in mechanism.tendons],
        "springs and dampers between points": [spring.name for spring in mechanism.point_springs],
    }
    actuators = _carried_actuators(mechanism)
    lost["actuators of tendons, or a second actuator of a joint"] = _names(mechanism.actuators, actuators)
    lost["effort limits that are not symmetric, of actuators"] = [
        actuator.name for actuator in actuators if actuator.limits and effort_of(actuator) is None
    ]
    closures = _carried_closures(mechanism)
    lost["closures between joints that are not linear, or of tendons"] = _names(mechanism.closures, closures)
    losses += [f"{what}: {', '.join(names)}" for what, names in lost.items() if names]
    if not features.gravity and not np.array_equal(mechanism.gravity, STANDARD):
        stated, assumed = (" ".join(f"{value:g}" for value in g) for g in (mechanism.gravity, STANDARD))
        losses.append(f"gravity {stated} m/s²; {features.format} assume {assumed} m/s²")
    if mechanism.wrenches:
        losses.append("constant external wrenches")
    if mechanism.keyframes:
        losses.append(f"keyframes: {', '.join(mechanism.keyframes)} (no effect on the dynamics)")
    kept = replace(
        mechanism,
        joints=joints,
        bodies=tuple(replace(body, gravity_compensation=0.0) for body in mechanism.bodies),
        actuators=tuple(_with_symmetric_limit(actuator) for actuator in actuators),
        closures=closures,
        tendons=(),
        point_springs=(),
        wrenches=(),
        gravity=mechanism.gravity if features.gravity else STANDARD,
    )
    return Carried(kept, tuple(losses))


def _names(every: Sequence[Actuator] | Sequence[Closure], kept: Sequence[Actuator] | Sequence[Closure]) -> list[str]:
    left = {element.name for element in kept}
    return [element.name for element in every if element.name not in left]


def _carried_joint(features: Features, joint: Joint) -> Joint:
    is_scalar = joint.kind in ("hinge", "slide")
    return replace(
        joint,
        armature=joint.armature if features.rotors and is_scalar else 0.0,
        stiffness=joint.stiffness if features.springs and is_scalar else 0.0,
        damping=joint.damping if is_scalar else 0.0,
        friction=joint.friction if is_scalar else 0.0,
    )


def _carried_actuators(mechanism: Mechanism) -> tuple[Actuator, ...]:
    """The first actuator of each joint; a tendon along a single joint becomes this joint."""
    of_joints = [
        replace(a, coordinate=replace(a.coordinate, name=mechanism.joints[a.coordinate.joints[0]].name))
        for a in mechanism.actuators
        if a.coordinate.is_joint
    ]
    return tuple({actuator.coordinate.joints[0]: actuator for actuator in reversed(of_joints)}.values())[::-1]


def effort_of(actuator: Actuator) -> float | None:
    """The symmetric effort limit of its joint [N or N m]; None without one."""
    if not actuator.limits:
        return None
    low, high = max(limit.low for limit in actuator.limits), min(limit.high for limit in actuator.limits)
    return abs(high * actuator.gear) if high > 0 and low == -high else None


def _with_symmetric_limit(actuator: Actuator) -> Actuator:
    effort = effort_of(actuator)
    limits = (
        () if effort is None else (EffortLimit(ON_JOINT, -effort / abs(actuator.gear), effort / abs(actuator.gear)),)
    )
    return replace(actuator, limits=limits)


def _carried_closures(mechanism: Mechanism) -> tuple[Closure, ...]:
    """Closures between bodies, and the first linear closure of each joint."""
    kept: list[Closure] = []
    followers: set[int] = set()
    for closure in mechanism.closures:
        if not isinstance(closure, CoordinateClosure):
            kept.append(closure)
        elif _is_mimic(closure) and closure.follower.joints[0] not in followers:
            followers.add(closure.follower.joints[0])
            kept.append(closure)
    return tuple(kept)


def _is_mimic(closure: CoordinateClosure) -> bool:
    is_linear = not np.any(closure.coefficients[2:])
    return is_linear and closure.follower.is_joint and closure.leader is not None and closure.leader.is_joint
