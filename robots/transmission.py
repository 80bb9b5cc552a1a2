"""Published transmissions by cranks and rods: tables of numbers with their source, and the MJCF that they make."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal
from xml.etree import ElementTree as ET

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE, transmission_names
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf_writer import numbers
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.schema import reason_of

FOLDER = CATALOGUE / "transmissions"
LIGHT = 1e-7
"""Mass of parts without one in their source [kg]."""
THIN = 0.1
"""Moment of inertia of a thin rod about its own axis, over that across it [-]."""


def _unit(value: tuple[float, float, float]) -> tuple[float, float, float]:
    length = float(np.linalg.norm(value))
    if not 0 < length < np.inf:
        raise ValueError(f"must have a direction, got {value}")
    x, y, z = (float(part) / length for part in value)
    return x, y, z


Vector = tuple[float, float, float]
Axis = Annotated[Vector, AfterValidator(_unit)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Form(BaseModel):
    """A table without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Form):
    """Where the numbers were read."""

    repository: str
    commit: str
    path: str
    licence: str


class Solid(Form):
    """Mass of a part, in the axes of the base with all joints and motors at zero."""

    mass: Positive
    center: Vector
    inertia: tuple[float, float, float, float, float, float]
    """xx, yy, zz, xy, xz, yz about the centre [kg m²]."""


class ChainJoint(Form):
    """A joint of the chain."""

    name: str
    kind: Literal["hinge", "slide"] = "hinge"
    anchor: Vector = (0.0, 0.0, 0.0)
    axis: Axis
    range: tuple[float, float] | None = None
    """[rad or m]."""
    effort_limit: Positive | None = None
    """Of the serial model, if its source states one [N m or N]."""
    body: Solid | None = None
    """The link that it moves."""


class Crank(Form):
    """A motor on the base with its crank and rod."""

    motor: str
    kind: Literal["hinge", "slide"] = "hinge"
    anchor: Vector = (0.0, 0.0, 0.0)
    axis: Axis
    pin: Vector
    """End of the rod on the crank [m]."""
    end: Vector
    """End of the rod on the chain [m]."""
    on: str = ""
    """The joint that moves the link with that end; by default the last."""
    rod_length: Positive | None = None
    """By default the distance of pin and end [m]."""
    elbow: Literal[-1, 1] | None = None
    """Sign of axis · ((pin − anchor) × (end − pin)), if the zero pose is not closed [-]."""
    range: tuple[float, float] | None = None
    """Of the motor [rad or m]."""
    effort_limit: Positive | None = None
    """At the crank [N m or N]."""
    speed_limit: Positive | None = None
    """At the crank [rad/s or m/s]."""
    armature: Positive | None = None
    """Of the rotor, at the crank [kg m² or kg]."""
    crank: Solid | None = None
    rod: Solid | None = None


class Transmission(Form):
    """A transmission: numbers of its source, in the axes of the base with all joints and motors at zero."""

    name: str
    title: str
    certainty: Literal["manufacturer's model", "manufacturer's code", "community reconstruction"]
    open_question: str
    """What would settle the remaining doubt."""
    usual_factor: tuple[float, ...] = ()
    """Factor of the motor's armature at each joint in public configurations [-]."""
    usual_source: str = ""
    source: Source
    joint: Annotated[tuple[ChainJoint, ...], Field(min_length=1, max_length=3)]
    leg: Annotated[tuple[Crank, ...], Field(min_length=1, max_length=3)]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(joint.name for joint in self.joint)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the source lacks, a sentence each."""
        notes = []
        if not all(leg.armature for leg in self.leg):
            notes.append(
                "the source states no rotor inertia: armatures are the printed factors times that of your rotor"
            )
        if not all(leg.effort_limit for leg in self.leg):
            notes.append("the source states no effort limit of the motors: limits are per unit of motor effort")
        if self.joint[-1].body is None:
            notes.append("the source states no mass of the last link: 1 kg with 1e-3 kg m² stands in for it")
        return tuple(notes)

    @property
    def public_factor(self) -> tuple[float, ...]:
        """Factor of the motor's armature in public configurations of such transmissions; empty for slides [-].

        Its own, or the customary 2 of ankles and waists, and 1 of one joint.
        """
        customary = {1: (1.0,), 2: (2.0, 2.0)}.get(len(self.joint), ())
        turns = {*(joint.kind for joint in self.joint), *(leg.kind for leg in self.leg)} == {"hinge"}
        return self.usual_factor or (customary if turns else ())

    @property
    def public_armature(self) -> tuple[float, ...]:
        """Armature of each joint by `public_factor`, of the mean rotor [kg m²]; empty if the source has no rotors."""
        rotors = [leg.armature for leg in self.leg if leg.armature]
        if len(rotors) < len(self.leg):
            return ()
        return tuple(factor * sum(rotors) / len(rotors) for factor in self.public_factor)

    @property
    def speed_limits(self) -> dict[str, float]:
        """Largest speed of motors by name, as far as the source has them [rad/s or m/s]."""
        return {leg.motor: leg.speed_limit for leg in self.leg if leg.speed_limit}


def load_transmission(target: str | Path) -> Transmission:
    """A transmission of the library, or of a TOML file of the same form.

    Args:
        target: Its name, or a path.

    Raises:
        NotFoundError: If there is none of that name.
        MechanismError: If the file is bad.
    """
    path = Path(target)
    if path.suffix != ".toml":
        if str(target) not in transmission_names():
            raise NotFoundError("transmission", str(target), transmission_names())
        path = FOLDER / f"{target}.toml"
    try:
        transmission = Transmission(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise MechanismError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise MechanismError(f"{path}: must be a readable TOML file: {error}") from error
    except ValidationError as error:
        raise MechanismError(f"{path}: {reason_of(error, Transmission)}") from error
    unknown = [leg.on for leg in transmission.leg if leg.on and leg.on not in transmission.joint_names]
    if unknown or len(transmission.leg) != len(transmission.joint):
        what = f"got '{unknown[0]}' in `on`" if unknown else f"got {len(transmission.leg)} legs"
        raise MechanismError(f"{path}: must have a leg for each of {', '.join(transmission.joint_names)}, {what}")
    return transmission


def without_stand_ins(mechanism: Mechanism) -> Mechanism:
    """A mechanism from `mjcf_of` whose parts without a mass in the source have none, which MJCF cannot express."""
    bodies = (
        replace(body, mass=0.0, inertia=np.zeros((3, 3))) if body.mass <= LIGHT else body for body in mechanism.bodies
    )
    return replace(mechanism, bodies=tuple(bodies))


def mjcf_of(transmission: Transmission) -> str:
    """The closed mechanism: rods on two hinges at their cranks, with a point closure at the chain.

    Parts without a mass in the source get next to none, the last link 1 kg.
    """
    root = ET.Element("mujoco", model=transmission.name)
    ET.SubElement(root, "compiler", angle="radian")
    ET.SubElement(root, "option", gravity="0 0 -9.81", integrator="implicitfast")
    world = ET.SubElement(root, "worldbody")
    parent, origin = ET.SubElement(world, "body", name="base"), np.zeros(3)
    base, links = parent, {}
    last = transmission.joint[-1].name
    for joint in transmission.joint:
        anchor = np.array(joint.anchor)
        parent = ET.SubElement(parent, "body", name=f"{joint.name}_link", pos=numbers(anchor - origin))
        element = ET.SubElement(parent, "joint", name=joint.name, type=joint.kind, axis=numbers(joint.axis))
        if joint.range:
            element.set("range", numbers(joint.range))
        origin = anchor
        some = Solid(mass=1.0, center=joint.anchor, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0))
        _solid(parent, joint.body or (some if joint.name == last else None), origin)
        links[joint.name] = parent, origin
    closures, motors = ET.SubElement(root, "equality"), ET.SubElement(root, "actuator")
    for leg in transmission.leg:
        link, anchor = links[leg.on or last]
        ET.SubElement(link, "site", name=f"{leg.motor}_end", pos=numbers(np.subtract(leg.end, anchor)))
        _leg(base, leg)
        ET.SubElement(closures, "connect", name=leg.motor, site1=f"{leg.motor}_rod_end", site2=f"{leg.motor}_end")
        motor = ET.SubElement(motors, "motor", name=leg.motor, joint=f"{leg.motor}_crank")
        if leg.effort_limit:
            motor.set("ctrlrange", numbers((-leg.effort_limit, leg.effort_limit)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _leg(base: ET.Element, leg: Crank) -> None:
    """The bodies of a leg."""
    anchor, pin, end = (np.array(point) for point in (leg.anchor, leg.pin, leg.end))
    crank = ET.SubElement(base, "body", name=f"{leg.motor}_crank", pos=numbers(anchor))
    joint = ET.SubElement(crank, "joint", name=f"{leg.motor}_crank", type=leg.kind, axis=numbers(leg.axis))
    joint.set("armature", repr(leg.armature or 0.0))
    if leg.range:
        joint.set("range", numbers(leg.range))
    _solid(crank, leg.crank, anchor)
    rod = ET.SubElement(crank, "body", name=f"{leg.motor}_rod", pos=numbers(pin - anchor))
    along = (end - pin) / np.linalg.norm(end - pin)
    across = np.cross(along, leg.axis)
    if np.linalg.norm(across) < 0.1:
        across = np.cross(along, np.eye(3)[np.abs(along).argmin()])
    across = across / np.linalg.norm(across)
    for name, axis in (("a", np.cross(across, along)), ("b", across)):
        ET.SubElement(rod, "joint", name=f"{leg.motor}_rod_{name}", axis=numbers(axis))
    length = leg.rod_length or float(np.linalg.norm(end - pin))
    _solid(rod, leg.rod, pin, along * length)
    ET.SubElement(rod, "site", name=f"{leg.motor}_rod_end", pos=numbers(along * length))


def _solid(body: ET.Element, solid: Solid | None, origin: Array, rod: Array | None = None) -> None:
    """Mass of a body in the axes of the base; next to none, as of a point or a thin rod, without data."""
    along = np.zeros(3) if rod is None else rod
    if solid is None:
        square = float(along @ along)
        across = (square * np.eye(3) - (1 - THIN) * np.outer(along, along)) / 12 if square else 1e-4 * np.eye(3)
        I = LIGHT * across
        inertia: Sequence[float] = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        mass, center = LIGHT, along / 2
    else:
        mass, center, inertia = solid.mass, np.subtract(solid.center, origin), solid.inertia
    element = ET.SubElement(body, "inertial", mass=repr(float(mass)), pos=numbers(center))
    element.set("fullinertia", numbers(inertia))
