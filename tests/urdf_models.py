"""URDFs: the upright four-bar of `planar_four_bar` with its loop in every dialect, zero at START, and random trees."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from tests.planar_four_bar import COUPLER, CRANK, GROUND, ROCKER, START, terms

LENGTHS = {"crank": CRANK, "coupler": COUPLER, "rocker": ROCKER}
CRANK_ANGLE, COUPLER_ANGLE, ROCKER_ANGLE = map(float, terms(START).positions)
"""Angles of the bars at START, of the coupler relative to the crank [rad]."""
CLOSED_AT = (
    float(GROUND + ROCKER * np.cos(ROCKER_ANGLE)),
    float(ROCKER * np.sin(ROCKER_ANGLE)),
)
"""Point of the loop at START in the frame of the base [m]."""


def bar(name: str) -> str:
    """A link with the inertia of a rod along X, in an inertial frame that is turned."""
    length = LENGTHS[name]
    thin, about = 1e-3 * length**3 / 12, length * length**2 / 12
    return (
        f'<link name="{name}"><inertial><origin xyz="{length / 2!r} 0 0" rpy="0 0 {np.pi / 2!r}"/>'
        f'<mass value="{length}"/>\n'
        f'<inertia ixx="{about!r}" iyy="{thin!r}" izz="{about!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<visual><geometry><mesh filename="package://absent/bar.stl"/></geometry></visual></link>'
    )


def hinge(name: str, parent: str, x: float, angle: float, limit: str = "") -> str:
    """A joint about Z."""
    return (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{name}"/>'
        f'<origin xyz="{x!r} 0 0" rpy="0 0 {angle!r}"/><axis xyz="0 0 1"/>{limit}</joint>'
    )


TREE = f"""
<link name="ground"/>
<link name="base_link"/>
<joint name="upright" type="fixed"><parent link="ground"/><child link="base_link"/>
  <origin xyz="0 0 0.3" rpy="{np.pi / 2!r} 0 0"/></joint>
{bar("crank")}
{bar("coupler")}
{bar("rocker")}
{hinge("crank", "base_link", 0.0, CRANK_ANGLE)}
{hinge("coupler", "crank", CRANK, COUPLER_ANGLE)}
{hinge("rocker", "base_link", GROUND, ROCKER_ANGLE)}
"""
TRANSMISSION = '<transmission name="t"><joint name="crank"/><actuator name="m"/></transmission>'


def constraint(kind: str, more: str = "") -> str:
    """The loop as an element of the URDF."""
    return (
        f'<constraint name="loop" type="{kind}"><parent link="coupler"/><child link="rocker"/>'
        f'<parent_origin xyz="{COUPLER} 0 0"/><child_origin xyz="{ROCKER} 0 0"/>'
        f'<parent_axis xyz="0 0 1"/><child_axis xyz="0 0 1"/>{more}</constraint>'
    )


FRAMES = "".join(
    f'<link name="end_{name}"/><joint name="fix_{name}" type="fixed"><parent link="{name}"/>'
    f'<child link="end_{name}"/><origin xyz="{LENGTHS[name]} 0 0" rpy="0 0 {angle!r}"/></joint>'
    for name, angle in (("coupler", 0.0), ("rocker", CRANK_ANGLE + COUPLER_ANGLE - ROCKER_ANGLE))
)
"""Links that coincide where the loop is closed, at START with their axes too."""
DIALECTS: dict[str, tuple[str, str, str]] = {
    "constraint, spherical": (constraint("spherical") + TRANSMISSION, "", ""),
    "constraint, revolute": (constraint("revolute") + TRANSMISSION, "", ""),
    "solidworks": (
        "",
        "loop_closures.yaml",
        f"closures:\n- link_a: coupler\n  link_b: rocker\n  point: [{CLOSED_AT[0]!r}, {CLOSED_AT[1]!r}, 0]\n"
        "  axis: [0, 0, 1]\ndependent: [coupler, rocker]\nindependent: [crank]\n",
    ),
    "robonex": (
        "",
        "loop_closures.yaml",
        f"pin_loops:\n- name: pin\n  parent: coupler\n  child: rocker\n  parent_xyz: [{COUPLER}, 0, 0]\n"
        f"  child_xyz: [{ROCKER}, 0, 0]\n  axis: [0, 0, 1]\nactuated_joints: [crank]\n",
    ),
    "Gepetto": (
        FRAMES,
        "robot.yaml",
        "closed_loop: [[end_coupler, end_rocker]]\ntype: ['3d']\nname_mot: [crank]\n",
    ),
    "fusion2URDF": (
        "",
        "robot_data.yaml",
        "joints:\n  crank: {type: continuous, passive: false}\n  coupler: {type: continuous, passive: true}\n"
        "  rocker: {type: continuous, passive: true}\n"
        "closing_joints:\n- name: close\n  type: revolute\n  parent: coupler\n  child: rocker\n"
        f"  origin_xyz_m: [{COUPLER}, 0, 0]\n  origin_rpy_rad: [0.3, 0, 0]\n"
        f"  axis: [0, {float(np.sin(0.3))!r}, {float(np.cos(0.3))!r}]\n",
    ),
}
"""Elements added to the tree, name of the loop file and its content, by dialect."""


def write_urdf(folder: Path, elements: str = "", loop_file: str = "", content: str = "") -> Path:
    """Write a URDF of the four-bar with more elements, and a loop file beside it."""
    path = folder / "model.urdf"
    path.write_text(f'<?xml version="1.0"?>\n<robot name="four_bar">{TREE}{elements}</robot>\n', encoding="utf-8")
    if loop_file:
        (folder / loop_file).write_text(content, encoding="utf-8")
    return path


def random_tree(seed: int, links: int = 9) -> str:
    """A URDF of a tree with turned tensors, plates, links without inertia and fixed joints at every depth."""
    rng = np.random.default_rng(seed)

    def text(values: np.ndarray) -> str:
        return " ".join(map(repr, map(float, values)))

    parts = ['<link name="l0"/>']
    for k in range(1, links + 1):
        is_fixed = k > 1 and rng.uniform() < 0.4
        parent = int(rng.integers(max(0, k - 3), k))
        moments = rng.uniform(0.1, 1.0, 3)
        moments[2] = moments[:2].sum() if rng.uniform() < 0.3 else np.abs(moments[:2]).max()  # a plate, or a body
        R = Rotation.random(random_state=rng.integers(2**31)).as_matrix()
        I = R @ np.diag(moments) @ R.T
        entries = " ".join(f'i{"xyz"[i]}{"xyz"[j]}="{float(I[i, j])!r}"' for i in range(3) for j in range(i, 3))
        inertial = (
            f'<inertial><origin xyz="{text(rng.uniform(-0.3, 0.3, 3))}" rpy="{text(rng.uniform(-3, 3, 3))}"/>'
            f'<mass value="{rng.uniform(0.5, 2)!r}"/><inertia {entries}/></inertial>'
        )
        kind = "fixed" if is_fixed else str(rng.choice(["continuous", "prismatic"]))
        parts.append(
            f'<link name="l{k}">{"" if is_fixed and rng.uniform() < 0.3 else inertial}</link>'
            f'<joint name="j{k}" type="{kind}"><parent link="l{parent}"/><child link="l{k}"/>'
            f'<origin xyz="{text(rng.uniform(-0.5, 0.5, 3))}" rpy="{text(rng.uniform(-3, 3, 3))}"/>'
            f'<axis xyz="{text(rng.normal(size=3))}"/><limit effort="1" velocity="1" lower="-9" upper="9"/></joint>'
        )
    return f'<robot name="tree">{"".join(parts)}</robot>'


def inertia_matrix_of(text: str, names: list[str], q: np.ndarray) -> np.ndarray:
    """Mass matrix of a tree of hinges and slides, from the XML alone: each link adds Jᵀ diag(m, I) J.

    Args:
        names: Joints in the order of the coordinates.
        q: Positions [rad or m], shape (nv,).
    """
    robot = ET.fromstring(text)
    joints = {_part(joint, "child", "link"): joint for joint in robot.findall("joint")}
    M = np.zeros((len(names), len(names)))
    for link in robot.findall("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        chain = [joint := joints[str(link.get("name"))]]
        while (parent := _part(joint, "parent", "link")) in joints:
            chain.append(joint := joints[parent])
        p, R, screws = np.zeros(3), np.eye(3), []
        for joint in reversed(chain):
            p, R = _moved(p, R, joint)
            if joint.get("type") == "fixed":
                continue
            k = names.index(str(joint.get("name")))
            axis = _vector(_part(joint, "axis", "xyz"))
            axis /= np.linalg.norm(axis)
            screws.append((k, joint.get("type"), R @ axis, p))
            if joint.get("type") == "prismatic":
                p = p + R @ axis * q[k]
            else:
                R = R @ Rotation.from_rotvec(axis * q[k]).as_matrix()
        center, W = _moved(p, R, inertial)
        I = np.array([[float(_part(inertial, "inertia", f"i{min(a, b)}{max(a, b)}")) for b in "xyz"] for a in "xyz"])
        J = np.zeros((6, len(names)))
        for k, kind, axis, at in screws:
            J[:, k] = [*np.zeros(3), *axis] if kind == "prismatic" else [*axis, *np.cross(axis, center - at)]
        M += J[:3].T @ W @ I @ W.T @ J[:3] + float(_part(inertial, "mass", "value")) * J[3:].T @ J[3:]
    return M


def _part(element: ET.Element, child: str, attribute: str, default: str = "") -> str:
    found = element.find(child)
    return default if found is None else found.get(attribute, default)


def _vector(text: str) -> np.ndarray:
    return np.array([float(part) for part in text.split()])


def _moved(p: np.ndarray, R: np.ndarray, element: ET.Element) -> tuple[np.ndarray, np.ndarray]:
    """A frame moved by the `<origin>` of an element."""
    xyz, rpy = (_vector(_part(element, "origin", part, "0 0 0")) for part in ("xyz", "rpy"))
    return p + R @ xyz, R @ Rotation.from_euler("xyz", rpy).as_matrix()
