"""Tables of the numbers in a model file, and the XML, rotations and frames that the second readers need.

All positions, axes and tensors are those of the pose of the file. A missing key or None is a value that a reader does
not read.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from xml.parsers.expat import ParserCreate

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

WORLD = "world"
DRAKE = "drake:"


class NotReadError(Exception):
    """The second reader does not read a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link or body."""

    name: str
    X: Array
    """Frame in the world [m and -], shape (4, 4)."""
    mass: float | None = 0.0
    """Mass [kg]; None with `center` and `inertia` unread."""
    center: Array = field(default_factory=lambda: np.zeros(3))
    """Mass centre in the frame of the link [m], shape (3,)."""
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    """Inertia about the mass centre, axes of the link [kg m²], shape (3, 3)."""
    compensation: float | None = None
    """Fraction of the weight that does not act [-]; None if unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint of the file, in a tree or in a loop."""

    name: str
    kind: str
    """hinge, slide, ball, fixed, or another kind, which is not compared."""
    parent: str
    child: str
    anchor: Array | None = None
    """A point of its axis in the world [m], shape (3,)."""
    axis: Array | None = None
    """Unit axis in the world, as the child moves [-], shape (3,)."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Limits, forces and references by quantity [SI]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """A point of a link that coincides with a point of another link."""

    name: str
    links: tuple[str, str]
    points: tuple[Array, Array]
    """In the world [m], each of shape (3,)."""
    rotation: Array | None = None
    """Rotation from the axes of the second to those of the first link when closed, of a weld [-], shape (3, 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """A joint or tendon that follows another by a polynomial, both from their positions in the pose of the file."""

    kind: str = "joint"
    follower: str
    leader: str
    coefficients: tuple[float, ...]
    """From the constant up [m or rad, per powers of m or rad], 5 numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transmission:
    """An actuator or a fixed tendon on joints."""

    name: str
    weights: Mapping[str, float]
    """Weight of each joint, 1 for a single joint [-, or m per rad]."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Gear and effort limits, or forces of a tendon, by quantity [SI]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The numbers of a model file."""

    links: Sequence[Link]
    joints: Sequence[Joint]
    closures: Sequence[Closure] = ()
    couplings: Sequence[Coupling] = ()
    actuators: Sequence[Transmission] = ()
    tendons: Sequence[Transmission] = ()
    gravity: Array | None = None
    """[m/s²], shape (3,); None if the format does not state it."""
    universal: frozenset[str] = frozenset()
    """Joints of the reference that are half of a joint with two axes."""
    is_complete: bool = True
    """Whether the file has no other joints, as a loop file beside it may."""
    names_all_joints: bool = False
    """Whether the reference has these joints and no others."""
    conventions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Elements by registered convention, in words: both readings of what the format leaves open."""


def parse(path: Path) -> ET.Element:
    """Root element of an XML file, with `drake:` for every prefix of an element.

    Raises:
        NotReadError: If it is not XML.
    """
    builder, parser = ET.TreeBuilder(), ParserCreate()

    def name(tag: str) -> str:
        return DRAKE + tag.partition(":")[2] if ":" in tag else tag

    parser.StartElementHandler = lambda tag, attributes: builder.start(name(tag), attributes)
    parser.EndElementHandler = lambda tag: builder.end(name(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(re.sub(rb"<!--.*?-->", b"", path.read_bytes(), flags=re.DOTALL), True)  # two dashes are no XML
        return builder.close()
    except Exception as error:
        raise NotReadError(f"{path} is not plain XML: {error}") from error


def numbers(text: str | None, default: Sequence[float]) -> Array:
    """Numbers of a text; the numbers of a short text replace the first of the default.

    Args:
        default: Numbers without a text [any unit].

    Raises:
        NotReadError: If it has something else.
    """
    values = np.array(default, dtype=float)
    try:
        found = [float(part) for part in (text or "").split()]
        values[: len(found)] = found
    except ValueError as error:
        raise NotReadError(f"not numbers: {text}") from error
    return values


def number(text: str | None, default: float) -> float:
    """A number of a text.

    Raises:
        NotReadError: If it has something else.
    """
    return float(numbers(text, [default])[0])


def frame(position: Sequence[float] | Array, rotation: Array) -> Array:
    """Position and axes [m and -], shape (4, 4).

    Args:
        position: Origin [m], shape (3,).
        rotation: Axes in columns [-], shape (3, 3).
    """
    X = np.eye(4)
    X[:3, 3], X[:3, :3] = position, rotation
    return X


def at(X: Array, point: Array) -> Array:
    """A point of a frame in the world [m], shape (3,).

    Args:
        X: The frame [m and -], shape (4, 4).
        point: The point in the frame [m], shape (3,).
    """
    return np.asarray(X[:3, 3] + X[:3, :3] @ point)


def turn(axis: Sequence[float] | Array, angle: float) -> Array:
    """Rotation about an axis by Rodrigues' formula [-], shape (3, 3).

    Args:
        axis: The axis, of any length above 0 [-], shape (3,).
        angle: Angle [rad].
    """
    x, y, z = unit(np.asarray(axis, dtype=float))
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


def roll_pitch_yaw(angles: Sequence[float] | Array) -> Array:
    """Rotations about the fixed X, Y and Z axes [-], shape (3, 3).

    Args:
        angles: Angles in this order [rad], shape (3,).
    """
    return turn((0, 0, 1), angles[2]) @ turn((0, 1, 0), angles[1]) @ turn((1, 0, 0), angles[0])


def of_quaternion(wxyz: Sequence[float] | Array) -> Array:
    """Rotation of a quaternion of any length above 0 [-], shape (3, 3).

    Args:
        wxyz: The quaternion, real part first [-], shape (4,).
    """
    w, *v = unit(np.asarray(wxyz, dtype=float))
    sine = float(np.linalg.norm(v))
    return turn(v, 2 * float(np.arctan2(sine, w))) if sine else np.eye(3)


def unit(vector: Array) -> Array:
    """A vector of length 1 [-], of the same shape.

    Args:
        vector: The vector [any unit], shape (n,).

    Raises:
        NotReadError: If it is zero.
    """
    length = float(np.linalg.norm(vector))
    if not length > 0:
        raise NotReadError("a vector is zero")
    return np.asarray(vector / length)


def symmetric(diagonal: Sequence[float] | Array, products: Sequence[float] | Array) -> Array:
    """An inertia tensor [kg m²], shape (3, 3).

    Args:
        diagonal: xx, yy, zz [kg m²], shape (3,).
        products: xy, xz, yz [kg m²], shape (3,).
    """
    xy, xz, yz = products
    return np.diag(diagonal) + np.array([[0.0, xy, xz], [xy, 0.0, yz], [xz, yz, 0.0]])
