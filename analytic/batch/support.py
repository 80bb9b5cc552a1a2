"""Elements of a mechanism in the traced equations. A mechanism with other elements is left to the plain version."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import (
    Actuator,
    Body,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Joint,
    Mechanism,
    PointSpring,
    Tendon,
    WeldClosure,
    Wrench,
)

KNOWN: Mapping[type, str] = {
    Mechanism: "model bodies joints closures actuators sites keyframes gravity wrenches left_out losses tendons "
    "point_springs closing q_slices dof_slices joints_of stacked",
    Body: "name parent position rotation mass center inertia gravity_compensation",
    Joint: "name kind body axis anchor rest_position armature damping stiffness spring_reference limits",
    ConnectClosure: "name body1 point1 body2 point2",
    WeldClosure: "name body1 point1 body2 point2 rotation",
    CoordinateClosure: "name follower leader coefficients",
    Coordinate: "name joints weights",
    Actuator: "name coordinate gear effort_scale limits",
    Wrench: "body point moment force",
    Tendon: "length armature damping stiffness rest",
    PointSpring: "name body1 point1 body2 point2 stiffness damping rest",
}
"""Fields that the traced equations use, or that no source uses."""

UNDRIVEN = (
    "every degree of freedom must have an actuator, so that the drives determine the motion. See `hybrid_dynamics` for "
    "states with other degrees of freedom"
)
"""Refusal of undriven dofs."""


def want_known(mechanism: Mechanism) -> None:
    """Raise if a mechanism has an element that the traced equations lack.

    A field added to a type of `loopcheck.robots.mechanism` counts unless it has its default, which must have no effect.

    Raises:
        MechanismError: Names the element.
    """
    for what in _unknown(mechanism):
        raise MechanismError(f"{mechanism.model.path}: the traced equations do not support {what}")


def want_drives_of_joints(mechanism: Mechanism) -> None:
    """Raise if a drive moves a tendon.

    Raises:
        MechanismError: Names the drive.
    """
    for drive in mechanism.drives:
        if not drive.is_joint:
            raise MechanismError(
                f"{mechanism.model.path}: the traced equations do not support the drive of tendon '{drive.name}'"
            )


def _unknown(mechanism: Mechanism) -> Iterator[str]:
    if mechanism.closing.accuracy:
        yield "loops that do not close exactly"
    names = ("bodies", "joints", "closures", "actuators", "wrenches", "tendons", "point_springs")
    parts = (getattr(mechanism, name) for name in names)
    coordinates = [item.coordinate for item in mechanism.actuators] + [item.length for item in mechanism.tendons]
    for part in (mechanism, *(item for items in parts for item in items), *coordinates):
        known_fields = KNOWN.get(type(part), "").split()
        if not known_fields:
            yield f"{type(part).__name__}"
        yield from (
            f"{type(part).__name__}.{field.name}"
            for field in fields(part)
            if field.name not in known_fields and not _is_default(field, getattr(part, field.name))
        )


def _is_default(field: Any, value: object) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if isinstance(default, int | float) and isinstance(value, int | float):
        return bool(value == default)
    if value is None or default is None:
        return value is default
    return isinstance(value, tuple | dict | str) and value == default
