"""The simplified serial model of an MJCF with loops: closures and joints removed, bodies placed as in a closed pose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.rigid_frames import quaternion
from loopcheck.robots.formats.spec_elements import add_polynomial, text_of

POINT = 1e-12
"""Moment of inertia of a point mass [kg m²]; MuJoCo requires more than 1e-15."""
SAME_POSE = 1e-12
"""Largest pose difference for which the written pose is kept [m or -]."""


class RelativePose(NamedTuple):
    """Pose of a body in its parent."""

    name: str
    """Pose of the body."""
    position: Array
    """[m], shape (3,)."""
    rotation: Array
    """Rotation from the body's to its parent's axes [-], shape (3, 3)."""
    is_moved: bool
    """Whether it differs from the pose in the file."""


class Follower(NamedTuple):
    """A joint that follows another by a polynomial of their positions, both from rest."""

    name: str
    leader: str
    coefficients: Array
    """From the constant up [m or rad, per powers of m or rad], shape (5,)."""


class Split(NamedTuple):
    """A rod that is left as two points: a part of its mass at its joint, the rest on the body that its loop joins."""

    rod: int
    """Index of the rod."""
    joint: Array
    """Point of its joint in its frame [m], shape (3,)."""
    mass: float
    """Mass at that end [kg]."""
    other: int
    """Index of the body at its other end."""
    end: Array
    """The point of that body [m], shape (3,)."""
    end_mass: float
    """Mass at the other end [kg]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Changes that turn a model with loops into a serial model."""

    dropped: Sequence[str]
    """Names of the removed joints."""
    motors: Sequence[str]
    """Names of joints that get a motor each, instead of the actuators of the file."""
    followers: Sequence[Follower]
    """Joints that follow a leader joint."""
    splits: Sequence[Split]
    """Rods with their mass split between the bodies at both ends."""
    body_poses: Sequence[RelativePose]
    """Pose of each body in its parent, with the remaining joints at rest, in the order of the bodies."""


def serial_text(model: ModelFile, cut: Cut) -> str:
    """The MJCF of a serial model: without closures, tendons, keyframes, sensors and the dropped joints.

    Args:
        model: The MJCF with loops.
        cut: Removed and added elements.

    Raises:
        MechanismError: If it does not compile, or a file that it names is missing.
    """
    specs: list[Any] = []
    compile_model(replace(model, actuated=tuple(cut.motors)), partial(_apply, model, cut, specs))
    try:
        text = text_of(specs[0])
    except ValueError as error:  # a model can be computed without its pictures, but not written
        reason = " ".join(str(error).split())
        raise MechanismError(
            f"{model.path}: all referenced files must exist to write a simplified model: {reason}"
        ) from error
    return text


def _apply(model: ModelFile, cut: Cut, specs: list[Any], spec: Any) -> None:
    """Remove closures and joints from an `MjSpec`, and place the bodies as in the closed pose."""
    dropped, body_poses = cut.dropped, cut.body_poses
    spec.comment = (
        f"Simplified serial model of {model.path.name}, without its closures and the joints {', '.join(dropped)}"
    )
    joints = [joint for joint in spec.joints if joint.name in dropped]
    for element in (*spec.equalities, *spec.tendons, *spec.keys, *spec.sensors, *joints):
        spec.delete(element)
    for follower in cut.followers:
        add_polynomial(spec, *follower)
    bodies = list(spec.bodies)[1:]  # the first is the world
    if len(bodies) != len(body_poses):
        raise MechanismError(f"{model.path}: all {len(body_poses)} bodies must be XML elements, got {len(bodies)}")
    for body, pose in zip(bodies, body_poses, strict=True):
        if pose.is_moved:
            body.pos = pose.position
            body.alt.type = type(body.alt.type)(0)
            body.quat = quaternion(pose.rotation)
    _split(bodies, cut.splits)
    for folder in ("meshdir", "texturedir"):  # the stand-in may lie elsewhere
        if getattr(spec, folder, ""):
            setattr(spec, folder, str((model.path.parent / getattr(spec, folder)).absolute()))
    specs.append(spec)


def _split(bodies: Sequence[Any], splits: Sequence[Split]) -> None:
    """Share rods between the bodies at their ends."""
    for split in splits:
        _make_point(bodies[split.rod], split.joint, split.mass)
        end = bodies[split.other].add_body()
        end.name, end.pos = f"end of {bodies[split.rod].name or split.rod}", split.end
        _make_point(end, np.zeros(3), split.end_mass)


def _make_point(body: Any, position: Array, mass: float) -> None:
    """Make a body's inertia that of a point in its frame."""
    body.explicitinertial, body.mass, body.ipos = True, mass, position
    body.inertia, body.fullinertia = np.full(3, POINT), np.full(6, np.nan)
    body.iquat, body.ialt.type = [1, 0, 0, 0], type(body.ialt.type)(0)
