"""A random robot as data, and its text as URDF and as MJCF: written by formulas of the formats, without loopcheck."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """A link and the joint that moves it; its frame is that of the joint, at zero."""

    name: str
    parent: str
    xyz: Array
    rpy: Array
    axis: Array
    mass: float
    center: Array
    inertia: Array
    kind: str = "hinge"
    limits: tuple[float, float] = (-1.0, 1.5)
    effort: float = 20.0
    damping: float = 0.1
    friction: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0
    """Rest position of the spring; MJCF only."""
    zero: float = 0.0
    """Position of the joint at the pose `xyz`, `rpy`; MJCF only."""


@dataclass(frozen=True)
class Robot:
    """A tree of parts on a base."""

    parts: tuple[Part, ...]
    free: bool = False
    gravity: float = -9.81
    suffix: str = ""
    """End of the names of all joints."""
    extra: str = ""
    """Further elements of the MJCF."""

    def changed(self, name: str, **values: object) -> "Robot":
        """The robot with other values of a part."""
        return replace(self, parts=tuple(replace(p, **values) if p.name == name else p for p in self.parts))  # type: ignore[arg-type]


def random_robot(seed: int, count: int = 7) -> Robot:
    """A robot with two branches, a slide and turned frames."""
    random = np.random.default_rng(seed)
    parents = ["base", "p1", "p2", "p3", "p2", "p5", "p6", "p7"]
    parts = []
    for k in range(count):
        A = random.normal(size=(3, 3))
        axis = random.normal(size=3)
        parts.append(
            Part(
                name=f"p{k + 1}",
                parent=parents[k],
                xyz=random.uniform(-0.4, 0.4, 3),
                rpy=random.uniform(-1, 1, 3),
                axis=axis / np.linalg.norm(axis),
                mass=float(random.uniform(0.5, 3)),
                center=random.uniform(-0.2, 0.2, 3),
                inertia=0.01 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T) + 0.05 * np.eye(3),
                kind="slide" if k == 4 else "hinge",
            )
        )
    return Robot(parts=tuple(parts))


def _join(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(values)))


def urdf(robot: Robot, *, split: bool = False) -> str:
    """The URDF; if split, a third of every mass is a link of its own on a fixed joint."""
    lines = ['<robot name="twin">', _link("base", 2.0, np.zeros(3), 0.02 * np.eye(3))]
    for part in robot.parts:
        mass, center, inertia = part.mass, part.center, part.inertia
        if split:
            point, third = part.center + np.array([0.03, -0.02, 0.05]), part.mass / 3
            center = (mass * part.center - third * point) / (mass - third)
            d, e = center - part.center, point - part.center
            moved = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in ((mass - third, d), (third, e)))
            R = Rotation.from_euler("xyz", [0.3, -0.5, 0.7]).as_matrix()
            lines.append(_link(f"{part.name}_box", third, np.zeros(3), R.T @ (0.2 * inertia) @ R))
            lines.append(
                f'<joint name="{part.name}_fix" type="fixed"><parent link="{part.name}"/>'
                f'<child link="{part.name}_box"/><origin xyz="{_join(point)}" rpy="0.3 -0.5 0.7"/></joint>'
            )
            mass, inertia = mass - third, 0.8 * inertia - moved
        lines.append(_link(part.name, mass, center, inertia))
        kind = {"hinge": "revolute", "slide": "prismatic"}[part.kind]
        lines.append(
            f'<joint name="j_{part.name}" type="{kind}"><parent link="{part.parent}"/><child link="{part.name}"/>'
            f'<origin xyz="{_join(part.xyz)}" rpy="{_join(part.rpy)}"/><axis xyz="{_join(part.axis)}"/>'
            f'<limit lower="{part.limits[0]}" upper="{part.limits[1]}" effort="{part.effort}" velocity="1"/>'
            f'<dynamics damping="{part.damping}" friction="{part.friction}"/></joint>'
        )
    return "\n".join([*lines, "</robot>"])


def _link(name: str, mass: float, center: Array, inertia: Array) -> str:
    entries = zip(
        ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]], strict=True
    )
    tensor = " ".join(f'{key}="{value!r}"' for key, value in ((k, float(v)) for k, v in entries))
    return (
        f'<link name="{name}"><inertial><origin xyz="{_join(center)}"/><mass value="{mass!r}"/><inertia {tensor}/>'
        "</inertial></link>"
    )


def mjcf(robot: Robot, *, turned: bool = False, degrees: bool = False) -> str:
    """The MJCF.

    Args:
        robot: The robot.
        turned: Whether the frame of every body is turned and shifted against that of the part, and siblings are
            reversed.
        degrees: Whether angles are in degrees, and damping comes from a default class.
    """
    random = np.random.default_rng(7)
    frames: dict[str, tuple[Array, Array]] = {"base": (np.zeros(3), np.eye(3))}
    for part in robot.parts:
        R = Rotation.from_rotvec(random.normal(size=3)).as_matrix() if turned else np.eye(3)
        frames[part.name] = (random.normal(size=3) / 10 if turned else np.zeros(3), R)
    angle = 180 / np.pi if degrees else 1.0

    def body(part: Part) -> str:
        (p0, R0), (p1, R1) = frames[part.parent], frames[part.name]
        R = Rotation.from_euler("xyz", part.rpy).as_matrix()
        if part.kind == "hinge" and part.zero:
            R = R @ Rotation.from_rotvec(part.zero * part.axis).as_matrix()
        xyz, rotation = R0.T @ (part.xyz + R @ p1 - p0), R0.T @ R @ R1
        quat = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
        inertia = R1.T @ part.inertia @ R1
        scale = angle if part.kind == "hinge" else 1.0
        full = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        damping = "" if degrees and part.damping == 0.1 else f'damping="{part.damping}"'
        return (
            f'<body name="{part.name}" pos="{_join(xyz)}" quat="{_join(quat)}">'
            f'<joint name="j_{part.name}{robot.suffix}" type="{part.kind}" axis="{_join(R1.T @ part.axis)}" '
            f'pos="{_join(-R1.T @ p1)}" limited="true" range="{part.limits[0] * scale!r} {part.limits[1] * scale!r}" '
            f'actuatorfrclimited="true" actuatorfrcrange="{-part.effort} {part.effort}" {damping} '
            f'frictionloss="{part.friction}" armature="{part.armature}" stiffness="{part.stiffness}" '
            f'ref="{part.zero * scale!r}" springref="{part.reference * scale!r}"/>'
            f'<inertial mass="{part.mass!r}" pos="{_join(R1.T @ (part.center - p1))}" fullinertia="{_join(full)}"/>'
            f"{children(part.name)}</body>"
        )

    def children(name: str) -> str:
        texts = [body(part) for part in robot.parts if part.parent == name]
        return "".join(reversed(texts) if turned else texts)

    free = "<freejoint/>" if robot.free else ""
    return (
        f'<mujoco><compiler angle="{"degree" if degrees else "radian"}" balanceinertia="false"/>'
        f'<option gravity="0 0 {robot.gravity}"/><default><joint damping="0.1"/></default>'
        f'<worldbody><body name="base">{free}'
        f'<inertial mass="2" pos="0 0 0" diaginertia="0.02 0.02 0.02"/>{children("base")}</body></worldbody>'
        f"{robot.extra}</mujoco>"
    )
