"""A robot as rigid bodies, the joints of its spanning tree, the closures of its loops, and its actuators.

Frames: W is the world; every body has a frame B, and its vectors are given in it unless stated otherwise. The joints of
a body act in sequence on the pose of the body in its parent, in the order of MuJoCo's `mj_kinematics`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple, Self, TypeAlias, TypeVar, assert_never

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, frozen
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.formats.losses import Loss
from loopcheck.robots.formats.model_file import ModelFile

WORLD = -1
"""Index of the world in place of a body."""

JointKind: TypeAlias = Literal["hinge", "slide", "ball", "free"]
POSITIONS: Mapping[str, int] = {"hinge": 1, "slide": 1, "ball": 4, "free": 7}
"""Entries of q of a joint; quaternions are (w, x, y, z)."""
DOFS: Mapping[str, int] = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
"""Entries of qd of a joint; the angular velocity of ball and free joints is in the axes of the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A rigid body."""

    name: str
    parent: int
    """Index of the parent body, or `WORLD`."""
    position: Array
    """Origin of the body in its parent's frame, with all joints at rest position [m], shape (3,)."""
    rotation: Array
    """Rotation from the body's to its parent's axes there [-], shape (3, 3)."""
    mass: float
    """Mass [kg]."""
    center: Array
    """Mass centre in the body frame [m], shape (3,)."""
    inertia: Array
    """Inertia about the mass centre, body axes [kg m²], shape (3, 3)."""
    gravity_compensation: float = 0.0
    """Fraction of the weight that is held by a force at the mass centre [-]."""

    def __post_init__(self) -> None:
        for name, shape in (("position", (3,)), ("rotation", (3, 3)), ("center", (3,)), ("inertia", (3, 3))):
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"body '{self.name}', {name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint of the spanning tree, between a body and its parent."""

    name: str
    kind: JointKind
    body: int
    """Index of the body that moves; `WORLD` for a slide that moves none: its position is the length of a path."""
    axis: Array
    """Unit axis in the body frame [-], shape (3,); unused by ball and free joints."""
    anchor: Array
    """A point of the joint in the body frame [m], shape (3,)."""
    rest_position: Array
    """Position in the pose of the file [m or rad], shape (1,), (4,) or (7,)."""
    armature: float = 0.0
    """Inertia of the drive, felt by each dof [kg or kg m²]."""
    damping: float = 0.0
    """Viscous damping [N s/m or N m s/rad]."""
    stiffness: float = 0.0
    """Stiffness of the joint's spring [N/m or N m/rad]; that of a ball pulls back along the shortest rotation."""
    spring_reference: Array = field(default_factory=lambda: np.zeros(0))
    """Rest position of the spring [m or rad], shape (1,), (4,) or (7,); by default `rest_position`."""
    friction: float = 0.0
    """Dry friction [N or N m]. No source feels it."""
    limits: tuple[float, float] | None = None
    """Lowest and highest position [m or rad]; hinges and slides only. No source feels them."""

    def __post_init__(self) -> None:
        if not len(self.spring_reference):
            object.__setattr__(self, "spring_reference", self.rest_position)
        positions = POSITIONS[self.kind]
        shapes = (("axis", 3), ("anchor", 3), ("rest_position", positions), ("spring_reference", positions))
        for name, length in shapes:
            object.__setattr__(self, name, frozen(getattr(self, name), (length,), name=f"joint '{self.name}', {name}"))

    @property
    def unit(self) -> str:
        """Unit of the joint's position: m for slides, rad for all other joints."""
        return "m" if self.kind == "slide" else "rad"

    @property
    def effort_unit(self) -> str:
        """Unit of an effort on the joint: N for slides, N m for all other joints."""
        return "N" if self.kind == "slide" else "N m"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectClosure:
    """A point of a body coincides with a point of another body: a ball joint, or a planar hinge."""

    name: str
    body1: int
    point1: Array
    """The point in the frame of `body1` [m], shape (3,)."""
    body2: int
    point2: Array
    """The point in the frame of `body2` [m], shape (3,)."""

    def __post_init__(self) -> None:
        for name in ("point1", "point2"):
            object.__setattr__(self, name, frozen(getattr(self, name), (3,), name=f"closure '{self.name}', {name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeldClosure:
    """A frame of a body coincides with a frame of another body."""

    name: str
    body1: int
    point1: Array
    """Origin of the frame in the frame of `body1` [m], shape (3,)."""
    body2: int
    point2: Array
    """Origin of the frame in the frame of `body2` [m], shape (3,)."""
    rotation: Array
    """Rotation from the axes of `body2` to the axes of `body1` when closed [-], shape (3, 3)."""

    def __post_init__(self) -> None:
        for name, shape in (("point1", (3,)), ("point2", (3,)), ("rotation", (3, 3))):
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"closure '{self.name}', {name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """A weighted sum of the positions of hinges and slides: a single joint, or the length of a fixed tendon."""

    name: str
    joints: tuple[int, ...]
    """Indices of the joints."""
    weights: Array
    """Weight of each [-, or m per rad], shape (joints,)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, (len(self.joints),), name=f"'{self.name}', weights"))

    @property
    def is_joint(self) -> bool:
        """Whether it is the position of a single joint."""
        return len(self.joints) == 1 and bool(self.weights[0] == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateClosure:
    """A coordinate is a polynomial of another coordinate, both relative to the rest positions of all joints.

    MuJoCo's `joint` and `tendon` equalities.
    """

    name: str
    follower: Coordinate
    leader: Coordinate | None
    """None if the follower is held at a constant."""
    coefficients: Array
    """Coefficients of the polynomial, from the constant up [m or rad, per powers of m or rad], shape (5,)."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "coefficients", frozen(self.coefficients, (5,), name=f"closure '{self.name}', polynomial")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A straight part of a path between points of two bodies."""

    body1: int
    point1: Array
    """The point in the frame of `body1`, or of the world [m], shape (3,)."""
    body2: int
    point2: Array
    """The point in the frame of `body2`, or of the world [m], shape (3,)."""
    divisor: float = 1.0
    """Length of the part over its share in the length of the path [-]: the number of strands of a pulley."""

    def __post_init__(self) -> None:
        for name in ("point1", "point2"):
            object.__setattr__(self, name, frozen(getattr(self, name), (3,), name=f"segment, {name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathClosure:
    """The length of a path with straight parts is a constant, or the position of a slide that moves no body.

    MuJoCo's spatial tendons: rods and ropes of constant length, and the lengths of ropes that are driven.
    """

    name: str
    segments: tuple[Segment, ...]
    slide: int | None = None
    """Index of the slide; None if the length is constant."""
    length: float = 0.0
    """The constant [m]."""


RigidClosure: TypeAlias = ConnectClosure | WeldClosure
"""Points or frames of two bodies coincide."""
LoopClosure: TypeAlias = RigidClosure | CoordinateClosure
"""Closures of bodies, and of joints."""
Closure: TypeAlias = LoopClosure | PathClosure
"""Code that distinguishes them matches each and ends in `assert_never`: mypy then reports every missing case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tendon:
    """A tendon: its length is a weighted sum of joint positions, or the position of the slide of a path."""

    length: Coordinate
    armature: float = 0.0
    """Inertia felt by the rate of its length [kg or kg m²]."""
    damping: float = 0.0
    """Viscous damping of its length [N s/m or N m s/rad]."""
    stiffness: float = 0.0
    """Stiffness of its spring [N/m or N m/rad]."""
    rest: Array = field(default_factory=lambda: np.zeros(2))
    """Range of lengths without spring force [m or rad], shape (2,)."""
    friction: float = 0.0
    """Dry friction [N or N m]. No source feels it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", frozen(self.rest, (2,), name=f"tendon '{self.name}', rest"))

    @property
    def name(self) -> str:
        """Name of the tendon."""
        return self.length.name


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSpring:
    """A spring and damper along the line between two points: a straight spatial tendon."""

    name: str
    body1: int
    point1: Array
    """The point in the frame of `body1`, or of the world [m], shape (3,)."""
    body2: int
    point2: Array
    """The point in the frame of `body2`, or of the world [m], shape (3,)."""
    stiffness: float = 0.0
    """Stiffness of the spring [N/m]."""
    damping: float = 0.0
    """Viscous damping of the length [N s/m]."""
    rest: tuple[float, float] = (0.0, 0.0)
    """Range of distances without spring force [m]."""

    def __post_init__(self) -> None:
        for name in ("point1", "point2"):
            object.__setattr__(self, name, frozen(getattr(self, name), (3,), name=f"tendon '{self.name}', {name}"))

    @property
    def ends(self) -> tuple[tuple[int, Array], tuple[int, Array]]:
        """Both bodies with their points."""
        return (self.body1, self.point1), (self.body2, self.point2)


class EffortLimit(NamedTuple):
    """Limits of an actuator's effort; no source applies them."""

    name: str
    """Name of the attribute of the MJCF."""
    low: float
    """[N or N m]."""
    high: float
    """[N or N m]."""

    def needed(self, effort: Array) -> float:
        """The largest effort over the limit on its side [-]; infinite if the range allows no effort on that side.

        Args:
            effort: Effort of one actuator [N or N m], shape (nt,).
        """
        sides = ((effort.max(initial=0.0), max(self.high, 0.0)), (-effort.min(initial=0.0), max(-self.low, 0.0)))
        return float(max((most / room if room else np.inf) if most > 0 else 0.0 for most, room in sides))


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuator:
    """A motor on a hinge, a slide or a tendon."""

    name: str
    coordinate: Coordinate
    """The driven coordinate."""
    gear: float = 1.0
    """Effort on the coordinate per effort of the actuator [-]."""
    effort_scale: float = 1.0
    """Reference effort, used to weigh the efforts of different actuators against each other [N or N m]."""
    limits: tuple[EffortLimit, ...] = ()
    """Ranges of its effort that the model has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A named point of a body."""

    name: str
    body: int
    """Index of the body, or `WORLD`."""
    position: Array
    """The point in the body frame [m], shape (3,)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", frozen(self.position, (3,), name=f"site '{self.name}', position"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrench:
    """A constant external load on a body: a force at a point that moves with the body, and a moment."""

    body: int
    point: Array
    """Point of application of the force, in the body frame [m], shape (3,)."""
    moment: Array
    """World axes [N m], shape (3,)."""
    force: Array
    """World axes [N], shape (3,)."""

    def __post_init__(self) -> None:
        for name in ("point", "moment", "force"):
            object.__setattr__(self, name, frozen(getattr(self, name), (3,), name=f"external wrench, {name}"))


class Places(NamedTuple):
    """Some joints, and their places in q and in qd."""

    joints: list[int]
    """Indices of the joints."""
    entries: AnyArray
    """Entries of q of each joint [-], shape (n,), (n, 3) for the position of a free joint, (n, 4) for a quaternion."""
    dofs: AnyArray
    """Dofs of each joint [-], shape (n,) or (n, 3)."""


class Stacked(NamedTuple):
    """Constants of all bodies and joints in arrays: numpy takes as long for one as for some."""

    frames: Array
    """Transform from the parent to each body before its joints, identity if free [-, m], shape (nb, 4, 4)."""
    centers: Array
    """Mass centres, in the axes of their bodies [m], shape (nb, 3, 1)."""
    inertia: Array
    """Mass matrix of each body about its mass centre, body axes, rotation first [kg m², kg], shape (nb, 6, 6)."""
    axes: Array
    """Axis of each joint [-], shape (joints, 3, 1)."""
    anchors: Array
    """Anchor of each joint in its body, of a free joint zero [m], shape (joints, 3, 1)."""
    hinges: Places
    slides: Places
    turns: Places
    """Ball and free joints, with their quaternions and their last three dofs."""
    shifts: Places
    """Free joints, with their positions and their first three dofs."""
    rest: Array
    """Rest positions of q [m or rad], shape (nq,)."""
    damping: Array
    """Damping of each dof [N s/m or N m s/rad], shape (nv,)."""
    weights: Array
    """Weight of each body less its gravity compensation, world axes [N], shape (nb, 3)."""
    rotors: Array
    """Inertia of the rotors of joints and tendons on the joint velocities [kg or kg m²], shape (nv, nv)."""
    structure: tuple[tuple[int, ...], tuple[tuple[JointKind, int], ...]]
    """Parent of each body, and kind and body of each joint."""
    ends: tuple[AnyArray, Array, AnyArray]
    """Bodies (2, n), points in them (2, n, 3) and whether they are no points of W (2, n, 1), of the pairs of points of
    all closures, in their order."""
    longest_link: float
    """Longest distance of two joints, closures or mass centres of a body, or of the world [m]; 0 without any."""


class Closing(NamedTuple):
    """Accuracy to which the loops of a file close, found by `loopcheck.analytic.kinematics.closing`."""

    accuracy: float = 0.0
    """Largest gap of a loop in closed poses: lengths over the size, angles in rad [-]; 0 if loops close exactly."""
    noise: float = 0.0
    """Singular values of the closures below this part of the largest are noise of the numbers [-]; 0: unknown."""
    rank_limit: float = 1e-5
    """Smallest singular value that counts, relative to the largest [-]."""


UNKNOWN = Closing()
"""Accuracy of a mechanism whose loops nobody has closed yet: they count as exact."""


class PinOffset(NamedTuple):
    """Distance of the two anchors of a closure along its pin, a direction in which nothing moves them."""

    closure: str
    length: float
    """Distance [m]."""
    axes: tuple[tuple[float, ...], tuple[float, ...]]
    """Direction from anchor 2 to anchor 1 in the axes of both bodies [-]."""
    points: tuple[tuple[float, ...], tuple[float, ...]]
    """Anchors at their mean along the pin, in the frames of both bodies [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A robot with closed loops. Bodies stand after their parents, joints in the order of their bodies."""

    model: ModelFile
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    closures: tuple[Closure, ...]
    actuators: tuple[Actuator, ...]
    sites: tuple[Site, ...]
    keyframes: Mapping[str, Array]
    """Named joint positions [m or rad], each of shape (nq,)."""
    gravity: Array
    """Acceleration of gravity, world axes [m/s²], shape (3,)."""
    tendons: tuple[Tendon, ...] = ()
    point_springs: tuple[PointSpring, ...] = ()
    wrenches: tuple[Wrench, ...] = ()
    """Constant external loads (the MJCF format has no element for them)."""
    left_out: tuple[str, ...] = ()
    """Features of the model that no source of loopcheck takes into account, a sentence each."""
    losses: tuple[Loss, ...] = ()
    """Elements of the file that the reference does not take into account, by kind."""
    offsets: tuple[PinOffset, ...] = ()
    """Offsets along pins in the file; the closures are without them."""
    closing: Closing = UNKNOWN
    """Accuracy of the closures."""
    q_slices: tuple[slice, ...] = field(init=False, repr=False)
    """Indices of each joint in q."""
    dof_slices: tuple[slice, ...] = field(init=False, repr=False)
    """Indices of each joint in qd."""
    joints_of: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    """Indices of the joints of each body, in the order of their action."""
    stacked: Stacked = field(init=False, repr=False, compare=False)
    """Constants of bodies and joints in arrays, derived once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", frozen(self.gravity, (3,), name="gravity"))
        object.__setattr__(self, "q_slices", _slices([POSITIONS[joint.kind] for joint in self.joints]))
        object.__setattr__(self, "dof_slices", _slices([DOFS[joint.kind] for joint in self.joints]))
        of_bodies = tuple(
            tuple(j for j, joint in enumerate(self.joints) if joint.body == b) for b in range(len(self.bodies))
        )
        object.__setattr__(self, "joints_of", of_bodies)
        object.__setattr__(self, "stacked", _stacked(self))
        keys = {name: frozen(q, (self.nq,), name=f"keyframe '{name}'") for name, q in self.keyframes.items()}
        object.__setattr__(self, "keyframes", keys)

    @property
    def nq(self) -> int:
        """Number of entries of q."""
        return self.q_slices[-1].stop if self.joints else 0

    @property
    def nv(self) -> int:
        """Number of entries of qd: the dofs of the spanning tree."""
        return self.dof_slices[-1].stop if self.joints else 0

    @property
    def na(self) -> int:
        """Number of actuators."""
        return len(self.actuators)

    @property
    def rest_position(self) -> Array:
        """Joint positions in which the bodies are given, MuJoCo's qpos0."""
        return np.concatenate([np.zeros(0), *(joint.rest_position for joint in self.joints)])

    @property
    def rigid_closures(self) -> tuple[RigidClosure, ...]:
        """The closures between bodies, in their order."""
        return _of_kind(self.closures, ConnectClosure, WeldClosure)

    @property
    def coordinate_closures(self) -> tuple[CoordinateClosure, ...]:
        """The closures between coordinates, in their order."""
        return _of_kind(self.closures, CoordinateClosure)

    @property
    def loop_closures(self) -> tuple[LoopClosure, ...]:
        """All closures but the lengths of paths, in their order: those of engines without paths."""
        return _of_kind(self.closures, ConnectClosure, WeldClosure, CoordinateClosure)

    @property
    def path_closures(self) -> tuple[PathClosure, ...]:
        """The lengths of paths, in their order."""
        return _of_kind(self.closures, PathClosure)

    @property
    def spanning_tree(self) -> tuple[int, int]:
        """Entries of q and of qd of the joints that move a body; the slides of paths follow them."""
        slides = sum(joint.body == WORLD for joint in self.joints)
        return self.nq - slides, self.nv - slides

    def without_lengths(self) -> Self:
        """The mechanism without the lengths of tendons among its coordinates, and without all that acts on them."""
        tree = self.spanning_tree[0]
        slides = {j for j, joint in enumerate(self.joints) if joint.body == WORLD}

        def acts(*coordinates: Coordinate | None) -> bool:
            return any(slides & {*coordinate.joints} for coordinate in coordinates if coordinate is not None)

        return replace(
            self,
            joints=tuple(joint for joint in self.joints if joint.body != WORLD),
            closures=tuple(
                closure
                for closure in self.closures
                if not (isinstance(closure, PathClosure) and closure.slide is not None)
                and not (isinstance(closure, CoordinateClosure) and acts(closure.follower, closure.leader))
            ),
            actuators=tuple(actuator for actuator in self.actuators if not acts(actuator.coordinate)),
            tendons=tuple(tendon for tendon in self.tendons if not acts(tendon.length)),
            keyframes={name: q[:tree] for name, q in self.keyframes.items()},
        )

    @property
    def drives(self) -> tuple[Coordinate, ...]:
        """The coordinates that have an actuator, in the order of the actuators, each once; motions prescribe them."""
        coordinates = [actuator.coordinate for actuator in self.actuators]
        return tuple({(drive.name, drive.joints): drive for drive in coordinates}.values())

    @property
    def actuated_joints(self) -> tuple[int, ...]:
        """Indices of the joints with actuators, in the order of the drives, without repetition."""
        return tuple(dict.fromkeys(j for drive in self.drives for j in drive.joints))

    @property
    def actuator_units(self) -> tuple[str, ...]:
        """Unit of each actuator's effort, N or N m."""
        return tuple(self.effort_unit(actuator.coordinate) for actuator in self.actuators)

    @property
    def effort_scales(self) -> Array:
        """Reference effort of each actuator in the norm of efforts [N or N m], shape (na,)."""
        return np.array([actuator.effort_scale for actuator in self.actuators])

    @property
    def selection(self) -> Array:
        """Actuator velocities per joint velocity, S in τ_joints = Sᵀ τ [-], shape (na, nv)."""
        return self.gearing @ self.rates_of(self.drives)

    @property
    def gearing(self) -> Array:
        """Actuator velocities per rate of the drives [-], shape (na, drives)."""
        drives = [(drive.name, drive.joints) for drive in self.drives]
        G = np.zeros((self.na, len(drives)))
        for row, actuator in enumerate(self.actuators):
            G[row, drives.index((actuator.coordinate.name, actuator.coordinate.joints))] = actuator.gear
        return G

    def needs(self, effort: Array) -> Iterator[tuple[str, str, float]]:
        """Actuator, range, and the largest effort over the range [-], for each range of the model.

        Args:
            effort: Efforts of the actuators [N or N m], shape (nt, na).
        """
        for actuator, values in zip(self.actuators, effort.T, strict=True):
            for limit in actuator.limits:
                yield actuator.name, limit.name, limit.needed(values)

    def effort_unit(self, coordinate: Coordinate) -> str:
        """Unit of an effort on a coordinate: N m if it sums angles alone, N otherwise."""
        units = {self.joints[j].effort_unit for j in coordinate.joints}
        return "N m" if units == {"N m"} else "N"

    def rates_of(self, coordinates: Sequence[Coordinate]) -> Array:
        """Rates of coordinates per joint velocity [-, or m per rad], shape (coordinates, nv)."""
        W = np.zeros((len(coordinates), self.nv))
        for row, coordinate in enumerate(coordinates):
            for j, weight in zip(coordinate.joints, coordinate.weights, strict=True):
                W[row, self.dof_slices[j].start] += weight
        return W

    def values_of(self, coordinates: Sequence[Coordinate], q: AnyArray) -> AnyArray:
        """Values of coordinates.

        Args:
            coordinates: Joints, or lengths of tendons.
            q: Joint positions [m or rad], shape (nt, nq); may be complex.

        Returns:
            Values [m or rad], shape (nt, coordinates).
        """
        values = np.zeros((len(q), len(coordinates)), q.dtype)
        for column, coordinate in enumerate(coordinates):
            values[:, column] = q[:, [self.q_slices[j].start for j in coordinate.joints]] @ coordinate.weights
        return values

    def way(self, body: int) -> list[int]:
        """A body and all that it hangs on, to the world.

        Args:
            body: Index of the body, or `WORLD`.
        """
        way = [body]
        while way[-1] != WORLD:
            way.append(self.bodies[way[-1]].parent)
        return way

    def site(self, name: str) -> Site:
        """A site by its name.

        Raises:
            NotFoundError: If the model has no such site.
        """
        for site in self.sites:
            if site.name == name:
                return site
        raise NotFoundError("site", name, [site.name for site in self.sites])

    def with_gravity(self, gravity: Array) -> Self:
        """The same mechanism in another gravity.

        Args:
            gravity: Acceleration of gravity, world axes [m/s²], shape (3,).
        """
        return replace(self, gravity=gravity)

    def with_mass(self, body: str, mass: float) -> Self:
        """The same mechanism with another mass at the mass centre of a body; its inertia about that point is kept.

        Args:
            mass: New mass [kg].
        """
        return replace(self, bodies=tuple(replace(b, mass=mass) if b.name == body else b for b in self.bodies))


def _stacked(mechanism: Mechanism) -> Stacked:
    """Constants of all bodies and joints in arrays."""
    bodies, joints = mechanism.bodies, mechanism.joints
    frames, inertia = np.tile(np.eye(4), (len(bodies), 1, 1)), np.zeros((len(bodies), 6, 6))
    for b, body in enumerate(bodies):
        if not any(joints[j].kind == "free" for j in mechanism.joints_of[b]):
            frames[b, :3, :3], frames[b, :3, 3] = body.rotation, body.position
        inertia[b, :3, :3], inertia[b, range(3, 6), range(3, 6)] = body.inertia, body.mass
    pairs = [pair for closure in mechanism.closures for pair in pairs_of_points(closure)]
    ends = np.array([[pair.body1 for pair in pairs], [pair.body2 for pair in pairs]], dtype=int)
    points = [[pair.point1 for pair in pairs], [pair.point2 for pair in pairs]]
    repeats = [DOFS[joint.kind] for joint in joints]
    anchors = [np.zeros(3) if joint.kind == "free" else joint.anchor for joint in joints]
    with np.errstate(invalid="ignore"):  # the reader refuses an infinite mass after this
        weights = np.array([b.mass * (1 - b.gravity_compensation) * mechanism.gravity for b in bodies])
    return Stacked(
        frames=frames,
        centers=np.array([body.center for body in bodies]).reshape(-1, 3, 1),
        inertia=inertia,
        axes=np.array([joint.axis for joint in joints]).reshape(-1, 3, 1),
        anchors=np.array(anchors).reshape(-1, 3, 1),
        hinges=_places(mechanism, "hinge"),
        slides=_places(mechanism, "slide"),
        turns=_places(mechanism, "ball", "free", entries=range(-4, 0), dofs=range(-3, 0)),
        shifts=_places(mechanism, "free", entries=range(3), dofs=range(3)),
        rest=mechanism.rest_position,
        damping=np.repeat([joint.damping for joint in joints], repeats),
        weights=weights.reshape(-1, 3),
        rotors=np.diag(np.repeat([joint.armature for joint in joints], repeats)) + _rotors_of_tendons(mechanism),
        structure=(tuple(body.parent for body in bodies), tuple((joint.kind, joint.body) for joint in joints)),
        ends=(ends, np.array(points).reshape(2, -1, 3), (ends != WORLD).reshape(2, -1, 1)),
        longest_link=_longest_link(mechanism),
    )


def _places(mechanism: Mechanism, *kinds: JointKind, entries: range | None = None, dofs: range | None = None) -> Places:
    """Joints of some kinds.

    Args:
        entries: Which of the entries of each joint in q; by default its only one.
        dofs: Which of its dofs.
    """
    joints = [j for j, joint in enumerate(mechanism.joints) if joint.kind in kinds]
    places = []
    for slices, some in ((mechanism.q_slices, entries), (mechanism.dof_slices, dofs)):
        of_joints = [np.arange(slices[j].start, slices[j].stop)[some or 0] for j in joints]
        places.append(np.array(of_joints, dtype=int).reshape(len(joints), *([len(some)] if some else [])))
    return Places(joints, *places)


def _rotors_of_tendons(mechanism: Mechanism) -> Array:
    W = mechanism.rates_of([tendon.length for tendon in mechanism.tendons])
    return W.T @ np.diag([tendon.armature for tendon in mechanism.tendons]) @ W


def _longest_link(mechanism: Mechanism) -> float:
    points: dict[int, list[Array]] = {b: [] for b in range(WORLD, len(mechanism.bodies))}
    for b, body in enumerate(mechanism.bodies):
        points[b].append(body.center)
        joints = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        if any(joint.kind == "free" for joint in joints):
            continue  # it is joined to nothing
        for anchor in [joint.anchor for joint in joints] or [np.zeros(3)]:
            points[b].append(anchor)
            points[body.parent].append(body.position + body.rotation @ anchor)
    for pair in (pair for closure in mechanism.closures for pair in pairs_of_points(closure)):
        points[pair.body1].append(pair.point1)
        points[pair.body2].append(pair.point2)
    of_bodies = (np.array(each) for each in points.values() if each)
    with np.errstate(all="ignore"):  # the reader refuses numbers that are not finite
        return max((float(np.linalg.norm(each[:, None] - each, axis=-1).max()) for each in of_bodies), default=0.0)


def _slices(lengths: list[int]) -> tuple[slice, ...]:
    ends = np.cumsum([0, *lengths])
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))


def pairs_of_points(closure: Closure) -> tuple[RigidClosure | Segment, ...]:
    """Pairs of points of two bodies that a closure brings together, or holds at distances."""
    match closure:
        case ConnectClosure() | WeldClosure():
            return (closure,)
        case PathClosure():
            return closure.segments
        case CoordinateClosure():
            return ()
        case _:
            assert_never(closure)


def bodies_of(closure: Closure) -> tuple[int, ...]:
    """Bodies, or `WORLD`, whose points a closure brings together, or holds at distances; each once."""
    return tuple(dict.fromkeys(body for pair in pairs_of_points(closure) for body in (pair.body1, pair.body2)))


_Kind = TypeVar("_Kind")


def _of_kind(closures: Sequence[Closure], *kinds: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(closure for closure in closures if isinstance(closure, kinds))
