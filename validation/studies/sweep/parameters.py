"""Varied parameters of a robot: masses, moments of inertia, mass centres and lengths, each by a factor of its own.

A length is the distance of a point of a body from the origin of the body's frame: of the next body, of the anchor of
its joints, or of the end of a closure. On the base it is the distance from the middle of all its points. The point
moves along its direction, so that parallel and coplanar directions stay so. All changes are overrides of the MJCF:
MuJoCo compiles them, and all other sources get the mechanism read from the compiled model. The anchor of a closure
without sites follows by MuJoCo's own rule: the loop closes with all joints at zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import with_overrides
from loopcheck.robots.mechanism import WORLD, Body, Mechanism, Site

Kind: TypeAlias = Literal["mass", "inertia", "mass centre", "body", "joint", "site"]
PREPOSITIONS: Mapping[Kind, str] = {
    "mass": "mass of",
    "inertia": "moments of inertia of",
    "mass centre": "mass centre of",
    "body": "place of body",
    "joint": "joint anchor of",
    "site": "closure point",
}
INERTIAL: tuple[Kind, ...] = ("mass", "inertia", "mass centre")
Group: TypeAlias = Literal["all", "geometry", "inertia"]
"""Varied parameters: all, only lengths, or only masses, moments of inertia and mass centres."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something of a robot that is multiplied by a factor."""

    kind: Kind
    element: str
    """Name of the body or site."""
    unit: str
    value: float
    """Nominal value: of a point, its distance from its origin; of a tensor, its largest moment."""

    @property
    def name(self) -> str:
        """Name in tables, as `mass of link1`."""
        return f"{PREPOSITIONS[self.kind]} {self.element}"


def inertial(body: Body, *, center: Array | None = None, inertia: Array | None = None) -> Mapping[str, Any]:
    """Override of all inertial elements of a body in the MJCF, in the axes of the body.

    Args:
        center: Another mass centre [m], shape (3,).
        inertia: Another inertia about the mass centre [kg m²], shape (3, 3).
    """
    I = body.inertia if inertia is None else inertia
    return {
        "explicitinertial": True,
        "mass": body.mass,
        "ipos": (body.center if center is None else center).tolist(),
        "iquat": [1.0, 0.0, 0.0, 0.0],
        "inertia": [0.0, 0.0, 0.0],
        "fullinertia": [float(I[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))],
    }


def parameters(mechanism: Mechanism, vary: Group = "all") -> tuple[Parameter, ...]:
    """Varied parameters of a robot; zero parameters stay zero and are left out."""
    middle = _middle(mechanism)
    every_parameter = []
    for b, body in enumerate(mechanism.bodies):
        arm = body.position - (middle if body.parent == WORLD else 0)
        anchors = [joint.anchor for joint in mechanism.joints if joint.body == b and joint.kind != "slide"]
        every_parameter += [
            _parameter("mass", body.name, "kg", body.mass),
            _parameter("inertia", body.name, "kg m²", np.linalg.eigvalsh(body.inertia)[-1]),
            _parameter("mass centre", body.name, "m", np.linalg.norm(body.center) if body.mass else 0),
            _parameter("body", body.name, "m", np.linalg.norm(arm)),
            _parameter("joint", body.name, "m", max(map(np.linalg.norm, anchors), default=0)),
        ]
    for site in _ends_of_closures(mechanism):
        arm = site.position - (middle if site.body == WORLD else 0)
        every_parameter.append(_parameter("site", site.name, "m", np.linalg.norm(arm)))
    varied = [
        parameter
        for parameter in every_parameter
        if vary == "all" or (parameter.kind in INERTIAL) == (vary == "inertia")
    ]
    return tuple(parameter for parameter in varied if parameter.value > 0)


def perturbed(mechanism: Mechanism, varied: Sequence[Parameter], change: Array) -> Mechanism:
    """The mechanism with every parameter multiplied by one plus its change.

    Args:
        mechanism: The nominal mechanism.
        varied: Result of `parameters`.
        change: Change of each [-], shape (parameters,).

    Raises:
        MechanismError: If MuJoCo's compiler refuses it.
    """
    changes = {(p.kind, p.element): float(c) for p, c in zip(varied, change, strict=True) if c}
    if not changes:
        return mechanism
    middle = _middle(mechanism)
    bodies: dict[str, dict[str, Any]] = {}
    joints: dict[str, dict[str, Any]] = {}
    for b, body in enumerate(mechanism.bodies):
        bodies[body.name] = _of_body(body, changes, middle)
        factor = 1 + changes.get(("joint", body.name), 0.0)
        joints |= {
            j.name: {"pos": (j.anchor * factor).tolist()} for j in mechanism.joints if j.body == b and factor != 1
        }
    sites = {
        site.name: {"pos": _moved(site.position, site.body, changes[key], middle)}
        for site in _ends_of_closures(mechanism)
        for key in [("site", site.name)]
        if key in changes
    }
    return with_overrides(mechanism, {"body": bodies, "joint": joints, "site": sites})


def _of_body(body: Body, changes: Mapping[tuple[Kind, str], float], middle: Array) -> dict[str, Any]:
    """Overrides of a body."""
    values: dict[str, Any] = {}
    mass, inertia, center = (1 + changes.get((kind, body.name), 0.0) for kind in INERTIAL)
    if (mass, inertia, center) != (1, 1, 1):
        heavier = replace(body, mass=body.mass * mass)
        values |= inertial(heavier, center=body.center * center, inertia=body.inertia * inertia)
    if ("body", body.name) in changes:
        values["pos"] = _moved(body.position, body.parent, changes["body", body.name], middle)
    return values


def _moved(point: Array, body: int, change: float, middle: Array) -> list[float]:
    origin = middle if body == WORLD else np.zeros(3)
    moved: list[float] = (origin + (1 + change) * (point - origin)).tolist()
    return moved


def _middle(mechanism: Mechanism) -> Array:
    """The middle of all points of the base that carry the robot [m], shape (3,)."""
    points = [body.position for body in mechanism.bodies if body.parent == WORLD]
    points += [site.position for site in _ends_of_closures(mechanism) if site.body == WORLD]
    return np.mean(points, axis=0) if points else np.zeros(3)


def _ends_of_closures(mechanism: Mechanism) -> list[Site]:
    """The sites at the ends of closures."""
    ends = [
        end
        for closure in mechanism.rigid_closures
        for end in ((closure.body1, closure.point1), (closure.body2, closure.point2))
    ]
    return [
        site
        for site in mechanism.sites
        if any(site.body == body and np.array_equal(site.position, point) for body, point in ends)
    ]


def _parameter(kind: Kind, element: str, unit: str, value: Any) -> Parameter:
    return Parameter(kind=kind, element=element, unit=unit, value=float(value))
