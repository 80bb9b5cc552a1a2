"""The part of a mechanism that a format carries, and the elements that it loses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from loopcheck.robots.formats.losses import Kind, Loss
from loopcheck.robots.formats.mjcf_writer import ON_JOINT
from loopcheck.robots.mechanism import (
    WORLD,
    Actuator,
    Closure,
    CoordinateClosure,
    EffortLimit,
    Joint,
    Mechanism,
    PathClosure,
)

STANDARD = np.array([0.0, 0.0, -9.81])
"""Gravity that readers of URDF assume [m/s²]: the format states none."""


class Carried(NamedTuple):
    """The part of a mechanism that a format carries."""

    mechanism: Mechanism
    losses: tuple[Loss, ...]
    """Elements that it does not carry."""


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
ROTORS, SPRINGS = "rotor inertia (armature) of joints", "springs of joints"
LOST: Mapping[str, Kind] = {
    ROTORS: "mechanism",
    SPRINGS: "load",
    "dampers and dry friction of ball and free joints": "load",
    "limits of ball joints": "load",
    "gravity compensation of bodies": "load",
    "tendons": "mechanism",
    "springs and dampers between points": "load",
    "actuators of tendons, or a second actuator of a joint": "drive",
    "effort limits that are not symmetric, of actuators": "drive",
    "closures between joints that are not linear, or of tendons": "mechanism",
    "keyframes": "setting",
}
"""Kind of each element of a mechanism that URDF, SDF and USD lose; some carry `ROTORS` or `SPRINGS`."""
GRAVITY, WRENCHES = "gravity", "constant external wrenches"
CARRIED = ("dof_frictionloss", "jnt_limited")
"""Fields of a compiled model outside of the reference that all formats carry, of hinges and slides."""


def lost_by_mjcf(mechanism: Mechanism) -> Carried:
    """The part of a mechanism that an MJCF of loopcheck carries."""
    losses = [loss for loss in mechanism.losses if loss.tag not in (*CARRIED, "tendon_frictionloss", "tendon_limited")]
    if mechanism.wrenches:
        losses.append(_loss(WRENCHES, "load"))
    return Carried(replace(mechanism, wrenches=()) if mechanism.wrenches else mechanism, tuple(losses))


def carried_by(features: Features, mechanism: Mechanism) -> Carried:
    """The part of a mechanism that a format carries, and the losses, those of the reader included."""
    joints = tuple(_carried_joint(features, joint) for joint in mechanism.joints)
    pairs = list(zip(mechanism.joints, joints, strict=True))
    actuators, closures = _carried_actuators(mechanism), _carried_closures(mechanism)
    limited = [name for loss in mechanism.losses if loss.tag == "jnt_limited" for name in loss.elements]
    names = (
        [a.name for a, b in pairs if a.armature != b.armature],
        [a.name for a, b in pairs if a.stiffness != b.stiffness],
        [a.name for a, b in pairs if (a.damping, a.friction) != (b.damping, b.friction)],
        [joint.name for joint in mechanism.joints if joint.kind == "ball" and joint.name in limited],
        [body.name for body in mechanism.bodies if body.gravity_compensation],
        [tendon.name for tendon in mechanism.tendons],
        [spring.name for spring in mechanism.point_springs],
        _names(mechanism.actuators, actuators),
        [actuator.name for actuator in actuators if actuator.limits and effort_of(actuator) is None],
        _names(mechanism.closures, closures),
        list(mechanism.keyframes),
    )
    losses = [loss for loss in mechanism.losses if loss.tag not in CARRIED]
    losses += [_loss(words, LOST[words], of) for words, of in zip(LOST, names, strict=True) if of]
    if not features.gravity and not np.array_equal(mechanism.gravity, STANDARD):
        stated, assumed = (" ".join(f"{value:g}" for value in g) for g in (mechanism.gravity, STANDARD))
        losses.append(_loss(f"{GRAVITY} {stated} m/s²; {features.format} assume {assumed} m/s²", "load"))
    if mechanism.wrenches:
        losses.append(_loss(WRENCHES, "load"))
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
    return Carried(kept.without_lengths(), tuple(losses))


def _loss(words: str, kind: Kind, elements: Iterable[str] = ()) -> Loss:
    return Loss(kind=kind, tag=words.partition(" (")[0], words=words, elements=tuple(elements))


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
        if a.coordinate.is_joint and mechanism.joints[a.coordinate.joints[0]].body != WORLD
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
        if isinstance(closure, PathClosure):
            continue
        if not isinstance(closure, CoordinateClosure):
            kept.append(closure)
        elif _is_mimic(mechanism, closure) and closure.follower.joints[0] not in followers:
            followers.add(closure.follower.joints[0])
            kept.append(closure)
    return tuple(kept)


def _is_mimic(mechanism: Mechanism, closure: CoordinateClosure) -> bool:
    ends = [end for end in (closure.follower, closure.leader) if end is not None and end.is_joint]
    is_linear = not np.any(closure.coefficients[2:])
    return is_linear and len(ends) == 2 and all(mechanism.joints[end.joints[0]].body != WORLD for end in ends)
