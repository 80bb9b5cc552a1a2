"""Loops of a URDF: `<constraint>` elements, or a file beside it in one of three dialects.

| where | dialect |
| --- | --- |
| `<constraint>` in the URDF | urdfdom_headers pull request 108 |
| `loop_closures.yaml` | solidworks_urdf_exporter2 (`closures`), and the form of robonex (`pin_loops`, `ball_loops`) |
| `robot.yaml`, or the name of the URDF | Gepetto's example-parallel-robots (`closed_loop`) |
| `robot_data.yaml` | fusion2URDF (`closing_joints`) |
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.rigid_frames import of_angles, rigid_frame

LoopKind: TypeAlias = Literal["fixed", "revolute", "prismatic", "cylindrical", "universal", "spherical"]
KINDS: Mapping[str, LoopKind] = {
    **{kind: kind for kind in ("fixed", "revolute", "prismatic", "cylindrical", "universal", "spherical")},
    "continuous": "revolute",
    "ball": "spherical",
    "6d": "fixed",
    "3d": "spherical",
}
"""Kind of each name of a loop joint in the dialects."""
FOLDERS = (Path(), Path("config"), Path(".."), Path("..", "config"))
"""Folders of loop files, relative to the URDF."""
UNIVERSAL = "UJOINT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A joint between two links that closes a loop."""

    name: str
    kind: LoopKind
    parent: str
    """Name of a link."""
    child: str
    """Name of the other link."""
    parent_frame: Array
    """Frame of the joint on the parent link [m and -], shape (4, 4)."""
    child_frame: Array
    """Frame of the joint on the child link [m and -], shape (4, 4)."""
    axis: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    """Axis of the joint in its frame [-], shape (3,)."""
    child_axis: Array | None = None
    """Second axis of a universal joint in the child's frame [-], shape (3,)."""
    pitch: float | None = None
    """Travel along the axis per turn of a screw, which is a cylindrical joint [m]; None for other joints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """The content of a loop file."""

    loops: tuple[Loop, ...] = ()
    actuated: tuple[str, ...] = ()
    """Joints with a motor; empty if the file does not state them."""
    dependent: tuple[str, ...] = ()
    """Joints that the loops move; their `<mimic>` is an approximation of the loops."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Joints of another kind than in the URDF: `ball`, `fixed`, or the two axes of a universal joint, as `ZY`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The links of a URDF that a loop file refers to."""

    frames: Mapping[str, Array]
    """Pose of each link in the world, with all joints at zero [m and -], shape (4, 4)."""
    joints: Mapping[str, str]
    """Child link of each joint."""
    root: str
    """Name of the root link."""

    def frame(self, name: str, where: str) -> tuple[str, Array]:
        """The link of a frame that a link or a joint names, and the frame on it.

        Args:
            where: Place of the name in the file.

        Raises:
            NotFoundError: If neither a link nor a joint has the name.
        """
        if name not in self.frames and name not in self.joints:
            raise NotFoundError(f"link at {where}", name, self.frames)
        return (name if name in self.frames else self.joints[name]), np.eye(4)

    def on(self, link: str, X: Array) -> Array:
        """A frame of the world, with all joints at zero, in a link.

        Args:
            X: The frame [m and -], shape (4, 4).
        """
        return np.asarray(np.linalg.inv(self.frames[link]) @ X, dtype=np.float64)


def loop_file_of(urdf: Path) -> Path | None:
    """The loop file beside a URDF, None without a loop file.

    Raises:
        MechanismError: If there is more than a single loop file in the first folder that has any.
    """
    for folder in FOLDERS:
        own = f"{urdf.stem}.yaml"
        names = dict.fromkeys((own, "robot.yaml", "loop_closures.yaml", "robot_data.yaml"))
        found = [path for name in names if (path := urdf.parent / folder / name).is_file() and _dialect(path)]
        if found and found[0].name == own:
            return found[0]
        if len(found) > 1:
            raise MechanismError(
                f"{urdf}: must have a single loop file, got {', '.join(map(str, found))}. Rename the right one to {own}"
            )
        if found:
            return found[0]
    return None


def read_loops(path: Path, links: Links) -> Loops:
    """Read a loop file.

    Raises:
        MechanismError: If it is not a loop file, or an entry is incomplete.
        NotFoundError: If it names a link that the URDF does not have.
    """
    content = _yaml(path)
    dialect = _dialect(path)
    if dialect is None:
        raise MechanismError(
            f"{path}: a loop file must have one of the keys {', '.join(DIALECTS)}, got {list(content)}"
        )
    try:
        return DIALECTS[dialect](_Entries(str(path), content), links)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"entry {error} is missing" if isinstance(error, KeyError) else str(error)
        raise MechanismError(f"{path}: must be a complete loop file with the key '{dialect}': {what}") from error


def loop_kind(name: str, where: str) -> LoopKind:
    """Kind of a loop joint.

    Raises:
        NotFoundError: If the name is unknown.
    """
    if name not in KINDS:
        raise NotFoundError(f"kind of loop joint at {where}", name, KINDS)
    return KINDS[name]


def frame(xyz: Iterable[float], rpy: Iterable[float] = (0.0, 0.0, 0.0)) -> Array:
    """A frame of a URDF.

    Args:
        xyz: Origin [m], 3 numbers.
        rpy: Rotations about the fixed X, Y and Z axes [rad], 3 numbers.

    Returns:
        Position and axes [m and -], shape (4, 4).
    """
    return rigid_frame(_vector(xyz), of_angles(_vector(rpy)))


def _vector(values: Iterable[float]) -> Array:
    vector = np.array([float(value) for value in values])
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(f"a vector must have 3 finite numbers, got {vector}")
    return vector


@dataclass(frozen=True, slots=True)
class _Entries:
    """Content of a loop file, with its path for messages."""

    path: str
    content: Mapping[str, Any]

    def __call__(self, key: str) -> list[Any]:
        return list(self.content.get(key) or [])


def _solidworks(entries: _Entries, links: Links) -> Loops:
    """`closures`: two links, with point and axis in the base link at the zero pose."""
    base = links.frames["base_link" if "base_link" in links.frames else links.root]
    loops = []
    for k, entry in enumerate(entries("closures")):
        where = f"{entries.path}, closures[{k}]"
        parent, child = (links.frame(entry[key], where)[0] for key in ("link_a", "link_b"))
        X = base @ frame(entry["point"])
        on_parent = links.on(parent, X)
        axis = on_parent[:3, :3] @ _vector(entry["axis"])
        on_parent[:3, :3] = np.eye(3)
        loops.append(_closed_at_zero(f"loop {k}", "revolute", (parent, child), on_parent, axis, links))
    independent = entries("independent")
    return Loops(loops=tuple(loops), actuated=tuple(independent), dependent=tuple(entries("dependent")))


def _robonex(entries: _Entries, links: Links) -> Loops:
    """`pin_loops` and `ball_loops`: a point on each link; the axis is the same in both links."""
    loops = []
    kinds: Mapping[str, LoopKind] = {"pin_loops": "revolute", "ball_loops": "spherical"}
    for key, kind in kinds.items():
        for k, entry in enumerate(entries(key)):
            where = f"{entries.path}, {key}[{k}]"
            loops.append(
                Loop(
                    name=str(entry.get("name", f"{key} {k}")),
                    kind=kind,
                    parent=links.frame(entry["parent"], where)[0],
                    child=links.frame(entry["child"], where)[0],
                    parent_frame=frame(entry["parent_xyz"]),
                    child_frame=frame(entry["child_xyz"]),
                    axis=_vector(entry.get("axis", (1, 0, 0))),
                )
            )
    balls = dict.fromkeys(entries("ball_upgrades"), "ball")
    return Loops(loops=tuple(loops), actuated=tuple(entries("actuated_joints")), replaced=balls)


def _gepetto(entries: _Entries, links: Links) -> Loops:
    """`closed_loop`: pairs of frames that coincide, with their positions alone (3d) or their axes too (6d)."""
    pairs, kinds = entries("closed_loop"), entries("type")
    if len(kinds) != len(pairs):
        raise ValueError(f"'type' must have an entry for each of the {len(pairs)} closed loops, got {len(kinds)}")
    loops = []
    for k, ((left, right), kind) in enumerate(zip(pairs, kinds, strict=True)):
        where = f"{entries.path}, closed_loop[{k}]"
        (parent, on_parent), (child, on_child) = links.frame(left, where), links.frame(right, where)
        loops.append(
            Loop(
                name=f"{left} = {right}",
                kind=loop_kind(str(kind).lower(), where),
                parent=parent,
                child=child,
                parent_frame=on_parent,
                child_frame=on_child,
            )
        )
    kinds_of_joints = zip(entries("joint_name"), entries("joint_type"), strict=True)
    replaced = {str(name): _gepetto_joint(str(kind), entries.path) for name, kind in kinds_of_joints}
    return Loops(loops=tuple(loops), actuated=tuple(entries("name_mot")), replaced=replaced)


def _gepetto_joint(kind: str, path: str) -> str:
    axes = kind.removeprefix(UNIVERSAL)
    if kind.startswith(UNIVERSAL) and len(axes) == 2 and set(axes) <= set("XYZ"):
        return axes
    known = {"SPHERICAL": "ball", "FIXED": "fixed"}
    if kind not in known:
        raise NotFoundError(f"joint_type in {path}", kind, (*known, f"{UNIVERSAL}XY"))
    return known[kind]


def _fusion(entries: _Entries, links: Links) -> Loops:
    """`closing_joints`: a frame on the parent; the child is where it is at the zero pose."""
    loops = []
    for k, entry in enumerate(entries("closing_joints")):
        where = f"{entries.path}, closing_joints[{k}]"
        parent, child = (links.frame(entry[key], where)[0] for key in ("parent", "child"))
        X = frame(entry["origin_xyz_m"], entry.get("origin_rpy_rad", (0, 0, 0)))
        kind = loop_kind(str(entry["type"]), where)
        name = str(entry.get("name", f"closing joint {k}"))
        loops.append(_closed_at_zero(name, kind, (parent, child), X, _vector(entry.get("axis", (1, 0, 0))), links))
    joints = entries.content.get("joints") or {}
    driven = [str(n) for n, joint in joints.items() if not joint.get("passive") and joint.get("type") != "fixed"]
    return Loops(loops=tuple(loops), actuated=tuple(driven))


def _closed_at_zero(
    name: str, kind: LoopKind, ends: tuple[str, str], on_parent: Array, axis: Array, links: Links
) -> Loop:
    """A loop that is closed with all joints at zero."""
    parent, child = ends
    on_child = links.on(child, links.frames[parent] @ on_parent)
    return Loop(
        name=name, kind=kind, parent=parent, child=child, parent_frame=on_parent, child_frame=on_child, axis=axis
    )


DIALECTS: Mapping[str, Callable[[_Entries, Links], Loops]] = {
    "closed_loop": _gepetto,
    "closing_joints": _fusion,
    "closures": _solidworks,
    "pin_loops": _robonex,
    "ball_loops": _robonex,
}
"""Reader of each dialect, by the key that only this dialect has."""


def _dialect(path: Path) -> str | None:
    return next((key for key in DIALECTS if key in _yaml(path)), None)


def _yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise MechanismError(f"{path}: must be a readable YAML file: {error}") from error
    return content if isinstance(content, Mapping) else {}


def with_constraints(loops: Loops, constraints: Iterator[Loop]) -> Loops:
    """The loops of a file, and those of the elements in the URDF."""
    return replace(loops, loops=(*loops.loops, *constraints))
