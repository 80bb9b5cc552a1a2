"""Reads a USD with UsdPhysics into an `MjSpec`: joints outside the articulation, or beyond a tree, close loops.

Standard attributes are floats. loopcheck writes `loopcheck:NAME` beside each `NAME`, a double of the same unit. The
double counts only where it rounds to the float beside it: otherwise another program has changed the float, and the
float counts. Passive forces of joints are attributes of Newton's and MuJoCo's schemas; `mjc:ref` and `mjc:springref`
are in degrees, as in MuJoCo. Geometry is left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.linkage import (
    GROUND,
    UNLIMITED,
    Connection,
    Link,
    Linkage,
    Mimic,
    Motor,
    inverse,
    spec_of,
)
from loopcheck.robots.formats.loop_files import LoopKind
from loopcheck.robots.formats.losses import KINDS as LOSSES
from loopcheck.robots.formats.losses import Loss, NameClass, NameTable, kind_of_unknown, table_of
from loopcheck.robots.formats.rigid_frames import of_axis, of_quaternion, quaternion, rigid_frame
from loopcheck.robots.formats.spec_elements import want_moments

SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
PREFIX = "loopcheck:"
"""Of the attributes that loopcheck adds."""
EARTH = 9.81
"""Gravity of a scene that states none [m/s²]."""
KINDS: Mapping[str, LoopKind] = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsFixedJoint": "fixed",
}
AXES = {"X": np.array([1.0, 0.0, 0.0]), "Y": np.array([0.0, 1.0, 0.0]), "Z": np.array([0.0, 0.0, 1.0])}
DRIVES = {"revolute": ("angular", "rotX", "rotY", "rotZ"), "prismatic": ("linear", "transX", "transY", "transZ")}
"""Instances of `DriveAPI` by kind of joint."""
ROTORS = ("newton:armature", "mjc:armature", "physxJoint:armature")
"""Attributes with the rotor inertia of a joint."""
SHEAR = 1e-5
"""Largest product of two axes of a link that are not perpendicular [-]."""


def is_usd(path: Path) -> bool:
    """Whether a file is a USD, by its name."""
    return path.suffix.lower() in SUFFIXES


def usd_modules(path: Path) -> Any:
    """Modules of usd-core.

    Args:
        path: The file that needs them, for the message.

    Raises:
        MechanismError: If usd-core is not installed.
    """
    try:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdUtils
    except ImportError as error:
        raise MechanismError(
            f"{path}: the package usd-core must be installed to read or write USD. Run: pip install 'loopcheck[usd]'"
        ) from error
    return SimpleNamespace(Gf=Gf, Sdf=Sdf, Tf=Tf, Usd=Usd, UsdGeom=UsdGeom, UsdPhysics=UsdPhysics, UsdUtils=UsdUtils)


def usd_spec(path: Path) -> Any:
    """The USD with its loops as an editable `MjSpec`.

    Raises:
        MechanismError: If it cannot be read, an inertia is not stated, or it has a joint that no source carries.
        NotFoundError: If a mimic names a joint that the file does not have.
    """
    return spec_of(read_usd(path))


def files_of_usd(path: Path) -> tuple[Path, ...]:
    """A USD and the files that it is composed of."""
    stage = _stage(usd_modules(path), path)  # layers live as long as their stage
    layers = stage.GetUsedLayers()
    others = {Path(layer.realPath) for layer in layers if layer.realPath and not layer.anonymous}
    return (path, *sorted(other for other in others if other.resolve() != path.resolve()))


def left_out_of_usd(path: Path) -> tuple[str, ...]:
    """Features of a USD that no source takes into account, and overruled doubles, a sentence each."""
    reading = _Reading(usd_modules(path), path)
    colliders = sum(1 for prim in reading.prims if prim.HasAPI(reading.usd.UsdPhysics.CollisionAPI))
    notes = [f"{colliders} collision shapes"] if colliders else []
    changed = sorted(set(_changed(reading)))
    if changed:
        notes.append(
            "doubles of loopcheck that another program has left behind: the standard attribute was changed and counts: "
            + ", ".join(changed)
        )
    if reading.scene is None:
        notes.append(f"a physics scene: gravity is {EARTH} m/s² against the up axis")
    return tuple(notes)


def losses_of_usd(path: Path) -> Iterator[Loss]:
    """Types of prims and properties of a USD that are not read, one loss for each occurrence."""
    reading, table = _Reading(usd_modules(path), path), table_of("usd")
    registry = reading.usd.Usd.SchemaRegistry()
    lines = path.read_text(encoding="utf-8").splitlines() if path.suffix.lower() == ".usda" else []
    for prim in reading.prims:
        kind = str(prim.GetTypeName())
        is_ours = kind.startswith("Physics") or (kind and not registry.FindConcretePrimDefinition(kind))
        found = table.class_of(f"/{kind}") if is_ours else NameClass("read")
        if found.kind == "read":
            yield from _lost_properties(reading, table, prim, lines)
        elif found.kind != "harmless":
            texts = [str(target) for relation in prim.GetRelationships() for target in relation.GetTargets()]
            yield _loss(reading, prim, kind, found, (texts, f'"{prim.GetName()}"'), lines)


def _lost_properties(reading: "_Reading", table: NameTable, prim: Any, lines: Sequence[str]) -> Iterator[Loss]:
    """Losses of the properties of a prim; unknown names count on links, joints and groups, not on shapes."""
    definition, UsdGeom = prim.GetPrimDefinition(), reading.usd.UsdGeom
    is_group = not prim.GetTypeName() or prim.IsA(UsdGeom.Xform) or prim.IsA(UsdGeom.Scope)
    is_known = is_group or prim.IsA(reading.usd.UsdPhysics.Joint) or prim.IsA(reading.usd.UsdPhysics.Scene)
    for authored in prim.GetAuthoredProperties():
        name = str(authored.GetName())
        is_of_view = ":" not in name and definition.GetPropertyDefinition(name)
        found = NameClass("harmless") if is_of_view else table.class_of(f"@{name}")
        relation = prim.GetRelationship(name)
        value = [str(one) for one in relation.GetTargets()] if relation else prim.GetAttribute(name).Get()
        if found.kind in ("read", "harmless") or not (found.kind or is_known):
            continue
        texts = value if relation else [_text(value)]
        if not table.is_neutral(f"@{name}", " ".join(texts)):
            yield _loss(reading, prim, name, found, (texts, name), lines)


def _text(value: Any) -> str:
    """A value of USD as words or numbers."""
    try:
        return " ".join(map(str, _array(value, np.float64).ravel()))
    except (TypeError, ValueError):
        return "" if value is None else str(value)


def _loss(
    reading: "_Reading", prim: Any, tag: str, found: NameClass, texts: tuple[Sequence[str], str], lines: Sequence[str]
) -> Loss:
    """A loss of a prim or of its property.

    Args:
        texts: Values that may name links and joints, and the text to be found in the file.
    """
    kind, words = found.kind, found.words
    if not kind:
        kind, words = kind_of_unknown(table_of("usd"), {str(path) for path in reading.names}, tag, texts[0])
    pattern = re.compile(rf"(?<![\w:]){re.escape(texts[1])}(?![\w:])")
    return Loss(
        kind=next(one for one in LOSSES if one == kind),
        tag=tag,
        words=words,
        elements=(prim.GetName(),),
        path=str(prim.GetPath()),
        file=str(reading.path),
        line=next((number for number, line in enumerate(lines, start=1) if pattern.search(line)), 1),
    )


def _changed(reading: "_Reading") -> Iterator[str]:
    for prim in reading.prims:
        for attribute in prim.GetAttributes():
            name = attribute.GetName().removeprefix(PREFIX)
            if name != attribute.GetName() and ":" in name and not reading.rounds(prim, name):
                yield f"{name} of {prim.GetPath()}"


def _stage(usd: Any, path: Path) -> Any:
    """The composed stage, without messages on the terminal."""
    messages = usd.UsdUtils.CoalescingDiagnosticDelegate()
    try:
        stage = usd.Usd.Stage.Open(str(path))
        errors = stage.GetCompositionErrors()
    except usd.Tf.ErrorException as error:
        first = str(error).strip().split("\n")[0].split(" : ")[-1].strip(" '")
        raise MechanismError(f"{path}: must be a readable USD file: {first}") from error
    finally:
        messages.TakeUncoalescedDiagnostics()
    if errors:
        first = " ".join(str(errors[0]).split())
        raise MechanismError(f"{path}: all referenced files must be there: {first}")
    return stage


@dataclass
class _Reading:
    """A stage with its units."""

    usd: Any
    path: Path

    @cached_property
    def stage(self) -> Any:
        return _stage(self.usd, self.path)

    @cached_property
    def prims(self) -> list[Any]:
        """All active prims, those of instances too."""
        return list(self.usd.Usd.PrimRange(self.stage.GetPseudoRoot(), self.usd.Usd.TraverseInstanceProxies()))

    @cached_property
    def length(self) -> float:
        """Unit of lengths [m]."""
        return float(self.usd.UsdGeom.GetStageMetersPerUnit(self.stage))

    @cached_property
    def mass(self) -> float:
        """Unit of masses [kg]."""
        return float(self.usd.UsdPhysics.GetStageKilogramsPerUnit(self.stage))

    @cached_property
    def scene(self) -> Any:
        return next((prim for prim in self.prims if prim.IsA(self.usd.UsdPhysics.Scene)), None)

    @cached_property
    def names(self) -> dict[Any, str]:
        """Names of links and joints by path: those of their prims, or their paths where names are not unique."""
        parts = [prim for prim in self.prims if self.is_link(prim) or prim.IsA(self.usd.UsdPhysics.Joint)]
        short = {prim.GetPath(): self.text(prim, "name") or prim.GetName() for prim in parts}
        kinds = {prim.GetPath(): self.is_link(prim) for prim in parts}
        count = [(kinds[path], name) for path, name in short.items()]
        return {
            path: name if count.count((kinds[path], name)) == 1 and name != GROUND else str(path)
            for path, name in short.items()
        }

    def is_link(self, prim: Any) -> bool:
        """Whether a prim is a rigid body that moves."""
        if not prim.HasAPI(self.usd.UsdPhysics.RigidBodyAPI):
            return False
        return bool(self.plain(prim, "physics:rigidBodyEnabled", True)) and not self.plain(
            prim, "physics:kinematicEnabled", False
        )

    def plain(self, prim: Any, name: str, default: Any = None) -> Any:
        """Value of an attribute, or the default if it has none."""
        attribute = prim.GetAttribute(name)
        value = attribute.Get() if attribute and attribute.IsValid() else None
        return default if value is None else value

    def text(self, prim: Any, name: str) -> str:
        """A text that loopcheck wrote; empty if it did not."""
        return str(self.plain(prim, f"{PREFIX}{name}", ""))

    def rounds(self, prim: Any, name: str) -> bool:
        """Whether the double of an attribute rounds to the attribute."""
        double, standard = self.plain(prim, f"{PREFIX}{name}"), self.plain(prim, name)
        return bool(standard is not None and np.array_equal(_array(double, np.float32), _array(standard, np.float32)))

    def value(self, prim: Any, name: str, default: float | Array) -> Array:
        """Numbers of an attribute: its double, if that rounds to the attribute [unit of the stage].

        Raises:
            MechanismError: If a number is NaN.
        """
        standard = self.plain(prim, name)
        double = self.plain(prim, f"{PREFIX}{name}")
        value = double if double is not None and self.rounds(prim, name) else standard
        numbers = np.atleast_1d(np.asarray(default, dtype=float)) if value is None else _array(value, np.float64)
        if np.isnan(numbers).any():
            raise MechanismError(f"{self.path}: {prim.GetPath()}: {name} must be a number, got {numbers}")
        return numbers

    def number(self, prim: Any, name: str, default: float) -> float:
        """A single number of an attribute, see `value`."""
        return float(self.value(prim, name, default)[0])

    def pose(self, prim: Any) -> tuple[Array, Array]:
        """Pose of a prim in the world [m and -], shape (4, 4), and its scales along its axes [-], shape (3,)."""
        matrix = self.usd.UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(self.usd.Usd.TimeCode.Default())
        X = np.array(matrix, dtype=float).T  # USD multiplies rows
        scales = np.linalg.norm(X[:3, :3], axis=0)
        R = X[:3, :3] / scales
        if not np.abs(R.T @ R - np.eye(3)).max() <= SHEAR or np.linalg.det(R) < 0:
            raise MechanismError(
                f"{self.path}: {prim.GetPath()}: axes must be at right angles, without a mirror, got scales {scales} "
                f"and a determinant of {np.linalg.det(R):.3g}. Remove scales from the prims above links"
            )
        return rigid_frame(self.length * X[:3, 3], of_quaternion(quaternion(R))), scales


def _array(value: Any, dtype: Any) -> Array:
    """Numbers of a value of USD; quaternions have the real part first."""
    if hasattr(value, "GetReal"):
        return np.array([value.GetReal(), *value.GetImaginary()], dtype=dtype)
    return np.atleast_1d(np.asarray(value, dtype=dtype))


def read_usd(path: Path) -> Linkage:
    """The links and joints of a USD.

    Raises:
        MechanismError: See `usd_spec`.
    """
    reading = _Reading(usd_modules(path), path)
    links = tuple(_link(reading, prim) for prim in reading.prims if reading.is_link(prim))
    if not links:
        raise MechanismError(f"{path}: must have rigid bodies (PhysicsRigidBodyAPI), got none")
    joints = [
        prim
        for prim in reading.prims
        if prim.IsA(reading.usd.UsdPhysics.Joint) and reading.plain(prim, "physics:jointEnabled", True)
    ]
    tendon = next((prim for prim in reading.prims if prim.GetTypeName() == "MjcTendon"), None)
    if tendon is not None:
        raise MechanismError(f"{path}: {tendon.GetPath()}: not supported: tendons (MjcTendon)")
    connections, between = _in_series(reading, [(prim, _connection(reading, prim)) for prim in joints], links)
    driving = [*joints, *(prim for prim in reading.prims if prim.GetTypeName() == "MjcActuator")]
    motors = {motor.joint: motor for prim in driving for motor in _motors(reading, prim)}
    return Linkage(
        path=path,
        links=(*links, *between),
        connections=tuple(_from_reference(reading, *pair) for pair in zip(joints, connections, strict=True)),
        motors=tuple(motors.values()),
        gravity=_gravity(reading),
    )


def _in_series(
    reading: _Reading, joints: Sequence[tuple[Any, Connection]], links: Sequence[Link]
) -> tuple[list[Connection], list[Link]]:
    """Joints between the same two links as a chain of massless links, where Newton's schema adds their motions.

    Without `newton:jointsAddMobility` above them, they close a loop.
    """
    poses = {GROUND: np.eye(4), **{link.name: link.X for link in links}}
    last: dict[tuple[str, str], tuple[int, Connection]] = {}
    connections: list[Connection] = []
    between: list[Link] = []
    for prim, stated in joints:
        connection, ends = stated, (stated.parent, stated.child)
        if ends in last and not stated.closes_loop and _adds_mobility(reading, prim):
            place, before = last[ends]
            name = f"{stated.child}, after {before.name}"
            between.append(Link(name=name, X=poses[stated.child]))
            connections[place] = replace(connections[place], child=name)
            at_zero = before.child_frame @ inverse(before.parent_frame) @ stated.parent_frame
            connection = replace(stated, parent=name, parent_frame=at_zero)
        last[ends] = len(connections), stated
        connections.append(connection)
    return connections, between


def _adds_mobility(reading: _Reading, prim: Any) -> bool:
    while prim:
        value = reading.plain(prim, "newton:jointsAddMobility")
        if value is not None:
            return bool(value)
        prim = prim.GetParent()
    return False


def _gravity(reading: _Reading) -> Array:
    up = AXES[str(reading.usd.UsdGeom.GetStageUpAxis(reading.stage))]
    if reading.scene is None:
        return np.asarray(-EARTH * up)
    direction = reading.value(reading.scene, "physics:gravityDirection", np.zeros(3))
    magnitude = reading.number(reading.scene, "physics:gravityMagnitude", -np.inf)
    length = float(np.linalg.norm(direction))
    along = direction / length if length else -up
    return np.asarray(along * (EARTH if magnitude < 0 else magnitude * reading.length))


def _link(reading: _Reading, prim: Any) -> Link:
    X, scale = reading.pose(prim)
    mass = reading.number(prim, "physics:mass", 0.0)
    moments = reading.value(prim, "physics:diagonalInertia", np.zeros(3))
    center = reading.value(prim, "physics:centerOfMass", np.full(3, -np.inf))
    where = f"{reading.path}: {prim.GetPath()}"
    is_stated = bool(reading.text(prim, "massless"))
    if not is_stated and (mass <= 0 or not np.any(moments)):
        raise MechanismError(
            f"{where}: physics:mass and physics:diagonalInertia must be stated, got {mass:g} and {moments}: inertias "
            "of shapes are not computed"
        )
    if not np.isfinite(center).all():
        has_shapes = any(
            child.HasAPI(reading.usd.UsdPhysics.CollisionAPI)
            for child in reading.usd.Usd.PrimRange(prim, reading.usd.Usd.TraverseInstanceProxies())
        )
        if has_shapes:
            raise MechanismError(f"{where}: physics:centerOfMass must be stated, got a centre that follows from shapes")
        center = np.zeros(3)
    want_moments(np.diag(moments), f"{where}: physics:diagonalInertia")
    axes = reading.value(prim, "physics:principalAxes", np.zeros(4))
    R = of_quaternion(axes) if np.any(axes) else np.eye(3)
    return Link(
        name=reading.names[prim.GetPath()],
        X=X,
        mass=mass * reading.mass,
        center=reading.length * scale * center,
        inertia=reading.mass * reading.length**2 * R @ np.diag(moments) @ R.T,
        free_joint=reading.text(prim, "free_joint"),
    )


def _end(reading: _Reading, prim: Any, k: int) -> tuple[str, Array]:
    """A link of a joint, and the frame of the joint on it [m and -], shape (4, 4)."""
    targets = prim.GetRelationship(f"physics:body{k}").GetTargets()
    position = reading.value(prim, f"physics:localPos{k}", np.zeros(3))
    rotation = reading.value(prim, f"physics:localRot{k}", np.array([1.0, 0.0, 0.0, 0.0]))
    R = of_quaternion(rotation) if np.any(rotation) else np.eye(3)
    if not targets:
        return GROUND, rigid_frame(reading.length * position, R)
    target = reading.stage.GetPrimAtPath(targets[0])
    if not target:
        raise MechanismError(f"{reading.path}: {prim.GetPath()}: physics:body{k} must be a prim, got {targets[0]}")
    X, scale = reading.pose(target)
    local = rigid_frame(reading.length * scale * position, R)
    body = target
    while body and not reading.is_link(body):
        body = body.GetParent()
    if not body:
        return GROUND, X @ local
    if body == target:
        return reading.names[body.GetPath()], local
    return reading.names[body.GetPath()], inverse(reading.pose(body)[0]) @ X @ local


def _connection(reading: _Reading, prim: Any) -> Connection:
    kind, axes = _kind(reading, prim)
    (parent, parent_frame), (child, child_frame) = (_end(reading, prim, k) for k in (0, 1))
    connection = Connection(
        name=reading.names[prim.GetPath()],
        kind=kind,
        parent=parent,
        child=child,
        parent_frame=parent_frame,
        child_frame=child_frame,
        where=f"{reading.path}: {prim.GetPath()}",
        closes_loop=bool(reading.plain(prim, "physics:excludeFromArticulation", False)),
    )
    if not axes:
        return connection
    connection = replace(connection, axis=AXES[axes[0]], child_axis=AXES[axes[1]] if len(axes) > 1 else None)
    return _with_forces(reading, prim, connection) if kind in DRIVES else connection


def _from_reference(reading: _Reading, prim: Any, connection: Connection) -> Connection:
    """The connection with MuJoCo's zero: its frames coincide at `mjc:ref`."""
    if connection.kind not in DRIVES:
        return connection
    is_turn = connection.kind == "revolute"
    reference = reading.number(prim, "mjc:ref", 0.0) * (np.pi / 180 if is_turn else reading.length)
    turn = rigid_frame(np.zeros(3), of_axis(connection.axis, -reference))
    move = turn if is_turn else rigid_frame(-reference * connection.axis, np.eye(3))
    limits = connection.limits and (connection.limits[0] + reference, connection.limits[1] + reference)
    return replace(connection, parent_frame=connection.parent_frame @ move, limits=limits)


def _kind(reading: _Reading, prim: Any) -> tuple[LoopKind, str]:
    """Kind of a joint and letters of its axes."""
    name = str(prim.GetTypeName())
    if name in KINDS:
        kind = KINDS[name]
        return kind, str(reading.plain(prim, "physics:axis", "X")) if kind in DRIVES else ""
    if name != "PhysicsJoint":
        raise MechanismError(
            f"{reading.path}: {prim.GetPath()}: the type of a joint must be one of {', '.join(KINDS)} or PhysicsJoint, "
            f"got {name}"
        )
    free = [
        f"{motion}{axis}"
        for motion in ("trans", "rot")
        for axis in AXES
        if reading.number(prim, f"limit:{motion}{axis}:physics:low", -np.inf)
        <= reading.number(prim, f"limit:{motion}{axis}:physics:high", np.inf)
    ]
    turns, slides = ([f[-1] for f in free if f.startswith(motion)] for motion in ("rot", "trans"))
    kinds: dict[tuple[int, int], LoopKind] = {
        (0, 0): "fixed",
        (1, 0): "revolute",
        (0, 1): "prismatic",
        (2, 0): "universal",
        (3, 0): "spherical",
    }
    if turns == slides and len(turns) == 1:
        return "cylindrical", turns[0]
    kind_of = kinds.get((len(turns), len(slides)))
    if kind_of is None:
        raise MechanismError(f"{reading.path}: {prim.GetPath()}: not supported: a joint with free {', '.join(free)}")
    return kind_of, "" if kind_of in ("fixed", "spherical") else "".join(turns + slides)


def _with_forces(reading: _Reading, prim: Any, connection: Connection) -> Connection:
    """Limits and forces of a revolute or prismatic joint."""
    is_turn = connection.kind == "revolute"
    angle = np.pi / 180 if is_turn else reading.length
    force = reading.mass * reading.length ** (2 if is_turn else 1)
    per_motion = reading.mass * reading.length ** (2 if is_turn else 0)
    letter = next(letter for letter, axis in AXES.items() if np.array_equal(axis, connection.axis))
    per_angle = np.pi / 180 if is_turn else 1.0
    of_newton = reading.number(prim, "newton:damping", 0.0)
    of_axis = f"limit:{'rot' if is_turn else 'trans'}{letter}:physics:"
    low = reading.number(prim, "physics:lowerLimit", reading.number(prim, f"{of_axis}low", -np.inf))
    high = reading.number(prim, "physics:upperLimit", reading.number(prim, f"{of_axis}high", np.inf))
    is_limited = low < high and bool(np.isfinite(low) or np.isfinite(high))
    efforts = [reading.number(prim, f"drive:{drive}:physics:maxForce", np.inf) for drive in _drives(reading, prim)]
    effort = min(efforts, default=np.inf)
    return replace(
        connection,
        limits=(max(low * angle, -UNLIMITED), min(high * angle, UNLIMITED)) if is_limited else None,
        effort=effort * force if np.isfinite(effort) else None,
        damping=per_motion * reading.number(prim, "mjc:damping", of_newton / per_angle),
        stiffness=reading.number(prim, "mjc:stiffness", 0.0) * per_motion,
        spring_reference=reading.number(prim, "mjc:springref", 0.0) * angle,
        friction=reading.number(prim, "mjc:frictionloss", reading.number(prim, "newton:friction", 0.0)) * force,
        armature=_armature(reading, prim) * per_motion,
        mimic=_mimic(reading, prim, angle),
    )


def _armature(reading: _Reading, prim: Any) -> float:
    """Rotor inertia of a joint, by the schemas of MuJoCo, Newton or PhysX, which must not differ."""
    names = [name for name in ROTORS if prim.GetAttribute(name) and prim.GetAttribute(name).HasAuthoredValue()]
    values = [reading.number(prim, name, 0.0) for name in names]
    if len({float(np.float32(value)) for value in values}) > 1:
        raise MechanismError(
            f"{reading.path}: {prim.GetPath()}: rotor inertias {', '.join(names)} must be equal, got "
            f"{', '.join(map(str, values))}"
        )
    return values[0] if values else 0.0


def _mimic(reading: _Reading, prim: Any, angle: float) -> Mimic | None:
    """A joint that follows another, by the schemas of Newton or PhysX.

    Args:
        angle: Unit of the positions of the joint [rad or m].
    """
    names = ["newton:mimic", *(f"physxMimicJoint:rot{axis}:" for axis in AXES)]
    for name in names:
        is_newton = name == names[0]
        relation = prim.GetRelationship(f"{name}{'Joint' if is_newton else 'referenceJoint'}")
        targets = relation.GetTargets() if relation else []
        if not targets:
            continue
        leader = reading.names.get(targets[0])
        if leader is None:
            raise MechanismError(f"{reading.path}: {prim.GetPath()}: a mimic must follow a joint, got {targets[0]}")
        if is_newton:
            offset, multiplier = (reading.number(prim, f"{name}Coef{k}", float(k)) for k in (0, 1))
        else:
            offset, multiplier = (-reading.number(prim, f"{name}{value}", 0.0) for value in ("offset", "gearing"))
        return Mimic(leader=leader, multiplier=multiplier, offset=offset * angle)
    return None


def _drives(reading: _Reading, prim: Any) -> list[str]:
    """Instances of the drives of a joint."""
    instances = [name.split(":")[1] for name in prim.GetAppliedSchemas() if name.startswith("PhysicsDriveAPI:")]
    return [name for names in DRIVES.values() for name in names if name in instances]


def _motors(reading: _Reading, prim: Any) -> Iterator[Motor]:
    if prim.GetTypeName() == "MjcActuator":
        targets = prim.GetRelationship("mjc:target").GetTargets()
        gear = reading.plain(prim, "mjc:gear", [1.0])
        if targets and targets[0] in reading.names:
            yield Motor(name=prim.GetName(), joint=reading.names[targets[0]], gear=float(gear[0]))
    elif _drives(reading, prim):
        joint = reading.names[prim.GetPath()]
        gear = float(reading.plain(prim, f"{PREFIX}gear", 1.0))
        yield Motor(name=reading.text(prim, "actuator") or joint, joint=joint, gear=gear)
