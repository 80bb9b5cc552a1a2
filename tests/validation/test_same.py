"""Twins in two formats are the same robot; every seeded difference is found at its place, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.spatial.transform import Rotation

import loopcheck
from loopcheck.robots.errors import NotFoundError
from loopcheck.validation.cli import cli
from loopcheck.validation.convert.converting import convert
from loopcheck.validation.same.same import SameResult, same
from tests.cpu_time import extended_but
from tests.json_outputs import valid_output
from tests.robot_twins import Part, Robot, mjcf, random_robot, urdf

Compare: TypeAlias = Callable[..., SameResult]
ROBOT = random_robot(0)
SHAPES = ("plain", "turned", "split")


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compare the URDF of a robot with the MJCF of another."""

    def result(a: Robot, b: Robot, shape: str = "plain", **options: object) -> SameResult:
        (tmp_path / "a.urdf").write_text(urdf(a, split=shape == "split"), encoding="utf-8")
        turned = shape == "turned"
        (tmp_path / "b.xml").write_text(mjcf(b, turned=turned, degrees=turned), encoding="utf-8")
        return same(tmp_path / "a.urdf", tmp_path / "b.xml", **options)  # type: ignore[arg-type]

    return result


def found(result: SameResult) -> set[tuple[str, str]]:
    return {(row.name, row.field) for row in result.rows}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_twins_are_the_same_to_round_off(compare: Compare, shape: str, seed: int) -> None:
    robot = random_robot(seed)
    result = compare(robot, robot, shape, exact=True)
    assert (found(result), result.exit_status, result.joints) == (set(), 0, len(robot.parts)), result.dynamics
    assert result.forces.error.max() < 1e-9 * result.forces.scale.max()


def part(name: str) -> Part:
    return next(each for each in ROBOT.parts if each.name == name)


def across(axis: np.ndarray) -> np.ndarray:
    normal = np.cross(axis, [0.3, 0.5, -0.8])
    return normal / np.linalg.norm(normal)


def turned_about(name: str, vector: np.ndarray) -> np.ndarray:
    R = Rotation.from_euler("xyz", part(name).rpy) * Rotation.from_rotvec(vector)
    return R.as_euler("xyz")


P3, P5, P7 = part("p3"), part("p5"), part("p7")
ALONG = Rotation.from_euler("xyz", P3.rpy).apply(P3.axis)
FAULTS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "mass": ({"mass": 1.01 * P3.mass}, "p3", False),
    "centre": ({"center": P3.center + np.array([0.001, 0, 0])}, "p3", False),
    "inertia": ({"inertia": P3.inertia + 0.02 * P3.inertia.max() * np.eye(3)}, "p3", False),
    "axis": ({"axis": P3.axis * np.cos(0.02) + across(P3.axis) * np.sin(0.02)}, "j_p3", False),
    "direction": ({"axis": -P3.axis, "limits": (-P3.limits[1], -P3.limits[0])}, "j_p3", True),
    "position": (
        {"xyz": P3.xyz + 0.001 * Rotation.from_euler("xyz", P3.rpy).apply(across(P3.axis))},
        "j_p3",
        False,
    ),
    "position along the axis": ({"xyz": P3.xyz + 0.01 * ALONG}, "j_p3", False),
    "orientation": ({"rpy": turned_about("p3", 0.1 * across(P3.axis))}, "j_p3", False),
    "zero": (
        {"rpy": turned_about("p3", 0.1 * P3.axis), "limits": (P3.limits[0] - 0.1, P3.limits[1] - 0.1)},
        "j_p3",
        True,
    ),
    "range": ({"limits": (P3.limits[0], P3.limits[1] + 0.005)}, "j_p3", True),
    "effort limit": ({"effort": 1.1 * P3.effort}, "j_p3", True),
    "damping": ({"damping": 0.2}, "j_p3", True),
    "friction": ({"friction": 0.3}, "j_p3", True),
    "armature": ({"armature": 0.05}, "j_p3", True),
    "stiffness": ({"stiffness": 4.0}, "j_p3", False),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("field", FAULTS)
def test_a_difference_is_found_at_its_place_alone(compare: Compare, field: str, shape: str) -> None:
    values, name, keeps_dynamics = FAULTS[field]
    result = compare(ROBOT, ROBOT.changed("p3", **values), shape)
    expected = {(name, field.removesuffix(" along the axis"))}
    if field == "orientation":  # the axis turns with the frame
        expected |= {(name, "axis")}
    assert (found(result), result.exit_status, result.verdict) == (expected, 1, "different")
    assert result.dynamics.startswith("The same dynamics") or not keeps_dynamics
    assert (result.forces.error.max() < 1e-9 * result.forces.scale.max()) == keeps_dynamics


def test_values_and_differences_are_those_of_the_files(compare: Compare) -> None:
    rows = {}
    for field in ("mass", "centre", "range", "effort limit", "zero", "axis", "position"):
        (row,) = compare(ROBOT, ROBOT.changed("p3", **FAULTS[field][0])).rows
        rows[field] = row
    assert rows["mass"].a == (P3.mass,)
    assert rows["mass"].difference == pytest.approx(1 - 1 / 1.01)
    assert rows["centre"].difference == pytest.approx(1e-3)
    assert rows["range"].a == P3.limits
    assert rows["range"].difference == pytest.approx(0.005)
    assert rows["effort limit"].b == pytest.approx((-22.0, 22.0))
    assert rows["effort limit"].difference == pytest.approx(1 - 1 / 1.1)
    assert rows["axis"].difference == pytest.approx(0.02)
    assert rows["position"].difference == pytest.approx(1e-3)
    assert rows["zero"].b == pytest.approx((-0.1,))


def test_a_frame_that_turns_about_any_axis_is_not_another_zero(compare: Compare) -> None:
    vector = 0.1 * across(P3.axis) + 0.05 * P3.axis
    rows = {row.field: row for row in compare(ROBOT, ROBOT.changed("p3", rpy=turned_about("p3", vector))).rows}
    assert {*rows} == {"orientation", "axis"}
    assert rows["orientation"].difference == pytest.approx(np.linalg.norm(vector))


def test_joints_are_paired_by_the_bodies_that_they_move(tmp_path: Path) -> None:
    (tmp_path / "a.urdf").write_text(urdf(ROBOT), encoding="utf-8")
    text = mjcf(ROBOT)
    for k in range(len(ROBOT.parts)):
        text = text.replace(f'"j_p{k + 1}"', f'"motor{(3 * k) % 7}"')
    (tmp_path / "b.xml").write_text(text, encoding="utf-8")
    result = same(tmp_path / "a.urdf", tmp_path / "b.xml", exact=True)
    assert (result.exit_status, result.only) == (0, ((), ()))


def write_pair(folder: Path, a: str, b: str) -> tuple[Path, Path]:
    for name, text in (("a.xml", a), ("b.xml", b)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "a.xml", folder / "b.xml"


def test_springs_and_efforts_turn_with_the_direction(tmp_path: Path) -> None:
    forward = {"stiffness": 4.0, "reference": 0.3, "effort": 21.0}
    backward = {**forward, "reference": -0.3, "axis": -P3.axis, "limits": (-P3.limits[1], -P3.limits[0])}
    a, b = (mjcf(ROBOT.changed("p3", **values)) for values in (forward, backward))
    a = a.replace("-21.0 21.0", "-10.0 21.0")
    files = write_pair(tmp_path, a, b.replace("-21.0 21.0", "-21.0 10.0"))
    result = same(*files)
    assert found(result) == {("j_p3", "direction")}
    assert result.forces.error.max() < 1e-9 * result.forces.scale.max()
    assert found(same(*write_pair(tmp_path, a, b))) == {("j_p3", "direction"), ("j_p3", "effort limit")}
    moved = mjcf(ROBOT.changed("p3", **{**forward, "reference": 0.4})).replace("-21.0 21.0", "-10.0 21.0")
    assert found(same(*write_pair(tmp_path, a, moved))) == {("j_p3", "spring reference")}


def test_the_reference_of_a_spring_without_stiffness_is_no_difference(tmp_path: Path) -> None:
    """A spring in one file alone is a difference of stiffness, and its reference is that of the spring."""
    a, b = (mjcf(ROBOT.changed("p3", stiffness=k, reference=x)) for k, x in ((0.0, 0.3), (4.0, -0.2)))
    assert found(same(*write_pair(tmp_path, a, b))) == {("j_p3", "stiffness")}


def test_a_light_link_is_compared_and_a_frame_is_not(tmp_path: Path) -> None:
    light, heavy = ({"mass": m, "inertia": m * P7.inertia} for m in (1e-4, 2e-4))
    files = write_pair(tmp_path, *(mjcf(ROBOT.changed("p7", **each)) for each in (light, heavy)))
    assert ("p7", "mass") in found(same(*files))
    files = write_pair(tmp_path, *(mjcf(ROBOT.changed("p7", mass=m, inertia=m * np.eye(3))) for m in (1e-7, 2e-7)))
    assert same(*files).exit_status == 0


def test_the_robot_with_the_most_joints_is_compared(tmp_path: Path) -> None:
    """A free box in front of a free robot, which has joints."""
    text = mjcf(Robot(parts=ROBOT.parts, free=True))
    box = '<body name="box"><freejoint/><inertial mass="3" pos="0 0 0" diaginertia="1 1 1"/></body>'
    assert same(*write_pair(tmp_path, text, text.replace("<worldbody>", f"<worldbody>{box}"))).joints == len(
        ROBOT.parts
    )


def test_fixed_bodies_share_their_gravity_compensation_by_mass(tmp_path: Path) -> None:
    """A link of 3 kg of which the weight of one is held, as two bodies of 1 and 2 kg."""
    inner = '<body name="b" gravcomp="{1}"><inertial mass="2" pos="0 0 0" diaginertia="1 1 1"/></body>'
    outer = '<body name="a" gravcomp="{0}"><joint name="j"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    text = f"<mujoco><worldbody>{outer}{inner}</body></worldbody></mujoco>"
    texts = [text.format(*held) for held in ((1, 0), (0, 0.5), (0, 1))]
    assert same(*write_pair(tmp_path, *texts[:2])).exit_status == 0
    assert {field for _, field in found(same(*write_pair(tmp_path, texts[0], texts[2])))} == {"gravity compensation"}


def test_base_of_fixed_robots(tmp_path: Path) -> None:
    text = mjcf(ROBOT)
    turned = text.replace('<body name="base"', '<body name="base" euler="0.3 0 0"')
    assert found(same(*write_pair(tmp_path, text, turned))) == {("", "gravity")}
    heavy = text.replace('<inertial mass="2"', '<inertial mass="2.1"')
    assert found(same(*write_pair(tmp_path, text, heavy))) == {("base", "mass")}
    bare = text.replace('<inertial mass="2" pos="0 0 0" diaginertia="0.02 0.02 0.02"/>', "")
    assert same(*write_pair(tmp_path, text, bare)).exit_status == 0  # a fixed base without mass


def test_another_zero_moves_springs_and_loops_with_it(tmp_path: Path) -> None:
    """The file of B starts the rocker 0.2 rad further on, and the reference of its spring is so much less."""
    text = LOOP.format(closures='<connect site1="end" site2="tip"/>')
    for body, site in (("coupler", 'end" pos="0.4 0 0'), ("rocker", 'tip" pos="0.1 -0.1 0')):
        text = text.replace(f'<joint name="{body}"', f'<site name="{site}"/><joint name="{body}"')
    a, b = (text.replace('name="rocker"/>', f'name="rocker" stiffness="4" springref="{x}"/>') for x in (0.3, 0.1))
    turned = '<body name="rocker" euler="0 0 0.2"'
    result = same(*write_pair(tmp_path, a, b.replace('<body name="rocker"', turned)))
    assert found(result) == {("rocker", "zero")}, result.rows
    assert result.forces.error.max() < 1e-9 * result.forces.scale.max()


def test_another_zero_of_a_slide_is_named(compare: Compare) -> None:
    slide = next(each for each in ROBOT.parts if each.kind == "slide")
    along = Rotation.from_euler("xyz", slide.rpy).apply(slide.axis)
    limits = (slide.limits[0] - 0.02, slide.limits[1] - 0.02)
    result = compare(ROBOT, ROBOT.changed(slide.name, xyz=slide.xyz + 0.02 * along, limits=limits))
    assert found(result) == {(f"j_{slide.name}", "zero")}, result.rows
    assert result.rows[0].b == pytest.approx((-0.02,))


@pytest.mark.parametrize(("shift", "is_same"), [("0 0.05 0", True), ("0.01 0.05 0", False)])
def test_an_anchor_may_be_anywhere_along_its_axis(shift: str, is_same: bool, tmp_path: Path) -> None:
    text = LOOP.format(closures="").replace('"0 0 1"', '"0 1 0"')
    result = same(
        *write_pair(tmp_path, text, text.replace('name="crank"/>', f'name="crank" pos="{shift}"/>')), exact=True
    )
    assert (result.exit_status == 0, ("crank", "position") in found(result)) == (is_same, not is_same)


def test_another_zero_by_ref_is_named_or_mended(compare: Compare) -> None:
    """`ref` moves the number of a pose, and not the pose: the zero of the joint stays where it is."""
    result = compare(ROBOT, ROBOT.changed("p3", zero=0.3), exact=True)
    assert (found(result), result.exit_status) == (set(), 0)


def test_forces_scale_with_all_masses(compare: Compare) -> None:
    """Without dampers the forces on the joints are linear in masses and inertias."""
    heavy = ROBOT
    for each in ROBOT.parts:
        heavy = heavy.changed(each.name, mass=1.05 * each.mass, inertia=1.05 * each.inertia, damping=0.0)
    light = ROBOT
    for each in ROBOT.parts:
        light = light.changed(each.name, damping=0.0)
    result = compare(light, heavy)
    assert {row.field for row in result.rows} == {"mass", "inertia"}
    assert len(result.rows) == 2 * len(ROBOT.parts)
    assert (result.forces.error / result.forces.scale).to_numpy() == pytest.approx(0.05 * np.ones(len(ROBOT.parts)))
    assert "differ by up to 5.00%" in result.dynamics


def test_a_difference_below_the_digits_counts_only_if_exact(compare: Compare) -> None:
    rounded = ROBOT.changed("p3", mass=1.0005 * P3.mass).changed("p5", center=P5.center + np.array([5e-5, 0, 0]))
    assert compare(ROBOT, rounded).exit_status == 0
    assert found(compare(ROBOT, rounded, exact=True)) == {("p3", "mass"), ("p5", "centre")}


def test_a_kind_and_a_parent_stop_the_dynamics(compare: Compare) -> None:
    kind = compare(ROBOT, ROBOT.changed("p3", kind="slide"))
    assert ("j_p3", "kind") in found(kind)
    assert kind.exit_status == 1
    assert kind.dynamics == "Dynamics not comparable: the kinematic trees differ"
    assert kind.forces.empty
    assert ("j_p7", "parent") in found(compare(ROBOT, ROBOT.changed("p7", parent="p1")))


def test_gravity_of_a_fixed_robot_is_compared(compare: Compare) -> None:
    for gravity in (-1.62, -9.79):  # of the moon, and of the equator
        assert found(compare(ROBOT, Robot(parts=ROBOT.parts, gravity=gravity))) == {("", "gravity")}


def test_a_free_base_in_one_file_is_held_unless_asked_for(compare: Compare) -> None:
    free = Robot(parts=ROBOT.parts, free=True)
    held, floating = compare(ROBOT, free), compare(ROBOT, free, free_base=True)
    assert (held.exit_status, floating.exit_status) == (0, 0)
    assert held.notes == ("Only B has a free base: held for the dynamics. Compare with a free base: --free-base",)
    assert len(held.forces) == len(ROBOT.parts)
    assert len(floating.forces) == len(ROBOT.parts) + 6
    assert "with the base held" in held.dynamics
    assert "held" not in floating.dynamics
    light = Robot(parts=ROBOT.changed("p1", mass=1.01 * ROBOT.parts[0].mass).parts, free=True)
    error = compare(ROBOT, light, free_base=True).forces.error[:3]  # weight and inertia of the base's own freedom
    assert error.max() > 1e-3


def test_names_with_a_common_end_are_paired(compare: Compare) -> None:
    result = compare(ROBOT, Robot(parts=ROBOT.parts, suffix="_joint"))
    assert result.exit_status == 0
    assert result.notes[0].startswith("Names of joints differ: 'j_p1' is 'j_p1_joint' in B")


def test_names_are_paired_by_mapping(tmp_path: Path) -> None:
    text = mjcf(ROBOT)
    other = text.replace('body name="p3"', 'body name="x"').replace('"j_p3"', '"elbow"')
    for name, content in (("a.xml", text), ("b.xml", other)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    files = tmp_path / "a.xml", tmp_path / "b.xml"
    unpaired = same(*files)
    assert (unpaired.exit_status, unpaired.verdict, unpaired.only) == (3, "not comparable", (("j_p3",), ("elbow",)))
    assert same(*files, mapping={"j_p3": "elbow"}, exact=True).exit_status == 0
    with pytest.raises(NotFoundError, match=r"unknown joint in b.xml: 'elbo'. Did you mean 'elbow'\?"):
        same(*files, mapping={"j_p3": "elbo"})
    with pytest.raises(NotFoundError, match="unknown field or option of same: 'mas'"):
        same(*files, ignore=["mas"])


def test_joints_in_one_file_are_held_and_the_others_compared(compare: Compare) -> None:
    fewer = Robot(parts=ROBOT.parts[:-1])
    result = compare(ROBOT, fewer)
    assert result.only == (("j_p7",), ())
    assert found(result) == {("p6", "mass"), ("p6", "centre"), ("p6", "inertia")}  # with p7 on it
    dead = Robot(parts=(*ROBOT.parts[:-1], ROBOT.parts[-1])).changed("p7", mass=1e-12, inertia=1e-14 * np.eye(3))
    assert compare(dead, fewer).exit_status == 3


BALL = """<mujoco><worldbody><body name="arm" pos="0 0 1" quat="0.8 0.6 0 0">{joints}
<inertial mass="1" pos="0.1 0.2 0.05" diaginertia="0.02 0.03 0.04"/><body name="hand" pos="0.3 0 0"><joint name="wrist"
axis="0 1 0"/><inertial mass="0.5" pos="0.1 0 0" diaginertia="0.001 0.001 0.001"/></body></body></worldbody></mujoco>"""
HINGES = "".join(
    f'<joint name="s{k}" pos="0 0 0" axis="{axis}"/>' for k, axis in enumerate(("1 0 0", "0 1 0", "0 0 1"))
)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_ball_is_three_hinges(tmp_path: Path, swapped: bool) -> None:
    for name, joints in (("a.xml", '<joint name="s" type="ball"/>'), ("b.xml", HINGES)):
        (tmp_path / name).write_text(BALL.format(joints=joints), encoding="utf-8")
    files = sorted(tmp_path.iterdir(), reverse=swapped)
    result = same(*files, exact=True)
    assert (result.exit_status, result.joints, len(result.forces)) == (0, 4, 4), result
    assert result.notes == ("Ball joints compared as three hinges: s",)
    heavy = files[1].read_text(encoding="utf-8").replace('mass="1"', 'mass="1.1"')
    files[1].write_text(heavy, encoding="utf-8")
    assert found(same(*files)) == {("arm", "mass")}


def test_hinges_apart_are_no_ball(tmp_path: Path) -> None:
    apart = HINGES.replace('name="s2" pos="0 0 0"', 'name="s2" pos="0 0.01 0"')
    for name, joints in (("a.xml", '<joint name="s" type="ball"/>'), ("b.xml", apart)):
        (tmp_path / name).write_text(BALL.format(joints=joints), encoding="utf-8")
    assert same(tmp_path / "a.xml", tmp_path / "b.xml").only == (("s",), ("s0", "s1", "s2"))


@pytest.mark.parametrize("out", ["x.urdf", "x.sdf", "x.usda", "x.xml"])
@pytest.mark.parametrize(
    "robot",
    extended_but(
        ["four_bar", "slider_crank"],
        ["four_bar", "slider_crank", "6spu", "2t1r"],
        "test_conversions_are_the_same_robot",
    ),
)
def test_conversions_are_the_same_robot(tmp_path: Path, robot: str, out: str) -> None:
    convert(robot, tmp_path / out, lossless=False, seed=0)
    lost = [] if out in ("x.xml", "x.usda") else ["gravity", "stiffness", "armature", "effort limit"]
    result = same(robot, tmp_path / out, ignore=lost, exact=out == "x.xml")
    assert (result.exit_status, "on closed loops" in result.dynamics) == (0, True), (result.rows, result.dynamics)


LOOP = """<mujoco><option gravity="0 -9.81 0"/><compiler angle="radian"/><default>
<joint axis="0 0 1"/></default><worldbody>
<body name="crank"><joint name="crank"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
<body name="coupler" pos="0.2 0.05 0"><joint name="coupler" ref="-1"/><inertial mass="1" pos="0.2 0 0"
diaginertia="0.01 0.01 0.01"/></body></body>
<body name="rocker" pos="0.5 0.15 0"><joint name="rocker"/><inertial mass="1"
pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/></body></worldbody><equality>{closures}</equality></mujoco>"""
PIN = '<connect body1="coupler" body2="rocker" anchor="{x} 0 0"/>'


def test_loops_are_compared_by_their_motion(tmp_path: Path) -> None:
    closures = {
        "a": PIN.format(x=0.4),
        "twice": 2 * PIN.format(x=0.4),
        "moved": PIN.format(x=0.401),
        "locked": PIN.format(x=0.4) + '<joint joint1="crank"/>',
        "open": "",
    }
    for name, text in closures.items():
        (tmp_path / f"{name}.xml").write_text(LOOP.format(closures=text), encoding="utf-8")
    results = {name: same(tmp_path / "a.xml", tmp_path / f"{name}.xml") for name in closures}
    assert [results[name].exit_status for name in ("a", "twice")] == [0, 0]
    assert found(results["moved"]) == {("", "loops closed in A")}
    assert ("", "degrees of freedom") in found(results["locked"])
    assert found(results["open"]) == {("", "loops")}
    turned = LOOP.format(closures=closures["a"]).replace('name="rocker"/>', 'name="rocker" axis="0 0 -1"/>')
    floating = LOOP.format(closures=closures["a"]).replace(
        "<worldbody>", '<worldbody><body name="frame"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    )
    for text, expected in (
        (turned, {("rocker", "direction")}),
        (floating.replace("</worldbody>", "</body></worldbody>"), set()),
    ):
        (tmp_path / "other.xml").write_text(text, encoding="utf-8")
        for files in (("a.xml", "other.xml"), ("other.xml", "a.xml")):
            result = same(*(tmp_path / name for name in files))
            assert found(result) - {("base", "mass")} == expected, result.rows
    assert "of the spanning trees" in results["open"].dynamics
    assert "on closed loops" in results["a"].dynamics


ROD = """<mujoco><worldbody><body name="rod" pos="0 0 1" {quat}><joint name="s" type="ball"/><inertial mass="1"
pos="{middle}" diaginertia="0.01 0.01 0.01"/></body><body name="slider" pos="0.3 0.4 1"><joint name="slide" type="slide"
axis="1 0 0"/><inertial mass="1" pos="0 0 0" diaginertia="0.01 0.01 0.01"/></body></worldbody><equality>
<connect body1="rod" body2="slider" anchor="{end}"/></equality></mujoco>"""


def test_balls_in_loops_turn_with_their_bodies(tmp_path: Path) -> None:
    plain = ROD.format(quat="", middle="0.15 0.2 0", end="0.3 0.4 0")
    turned = ROD.format(quat='euler="0 0 90"', middle="0.2 -0.15 0", end="0.4 -0.3 0")
    result = same(*write_pair(tmp_path, plain, turned))
    assert (found(result), result.exit_status, "on closed loops" in result.dynamics) == (set(), 0, True)


def test_loops_are_not_compared_if_a_joint_has_no_partner(tmp_path: Path) -> None:
    text = LOOP.format(closures=PIN.format(x=0.4))
    tool = (
        '<body name="tool"><joint name="tool"/><inertial mass="1e-9" pos="0 0 0" diaginertia="1e-9 1e-9 1e-9"/></body>'
    )
    result = same(*write_pair(tmp_path, text, text.replace("</body></worldbody>", f"{tool}</body></worldbody>")))
    assert (found(result), result.exit_status, result.only) == (set(), 3, ((), ("tool",)))
    assert "of the spanning trees with the other joints held" in result.dynamics


MOTORS = (
    '<actuator><motor name="{name}" joint="j_p3" gear="{gear}" ctrlrange="-{end} {end}" ctrllimited="true"/></actuator>'
)


def test_effort_limits_of_joints_and_of_actuators_are_one_field(compare: Compare) -> None:
    def with_motor(gear: float, end: float) -> SameResult:
        return compare(ROBOT, Robot(parts=ROBOT.parts, extra=MOTORS.format(name="m", gear=gear, end=end)))

    assert with_motor(4, 5).exit_status == 0  # 4 · 5 = 20 N m, as the joint allows
    assert with_motor(4, 6).exit_status == 0
    assert found(with_motor(4, 4)) == {("j_p3", "effort limit")}
    assert found(with_motor(-4, 4)) == {("j_p3", "effort limit")}

    def with_two(second: str) -> set[tuple[str, str]]:
        first = MOTORS.format(name="m", gear=1, end=12)
        return found(compare(ROBOT, Robot(parts=ROBOT.parts, extra=first + second)))

    assert with_two(MOTORS.format(name="n", gear=2, end=5)) == set()  # 12 + 10 N m, more than the joint allows
    assert with_two(MOTORS.format(name="n", gear=2, end=3)) == {("j_p3", "effort limit")}
    assert with_two('<actuator><motor name="n" joint="j_p3"/></actuator>') == set()  # no limit


def test_driven_joints_and_options(tmp_path: Path) -> None:
    for name, joint in (("a.xml", "j_p3"), ("b.xml", "j_p4")):
        extra = MOTORS.format(name="m", gear=4, end=4).replace("j_p3", joint)
        (tmp_path / name).write_text(mjcf(Robot(parts=ROBOT.parts, extra=extra)), encoding="utf-8")
    files = tmp_path / "a.xml", tmp_path / "b.xml"
    joints = {"j_p3", "j_p4"}
    assert found(same(*files)) == {(name, field) for name in joints for field in ("driven", "effort limit")}
    assert found(same(*files, ignore=["driven"])) == {(name, "effort limit") for name in joints}
    assert same(*files, without_actuators=True).exit_status == 0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["same", *arguments], standalone_mode=False)


def test_command_prints_a_bounded_table_and_valid_json(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    other = ROBOT
    for each in ROBOT.parts:
        values = {"mass": each.mass * random.uniform(1.1, 2), "center": each.center + 0.01, "inertia": 2 * each.inertia}
        other = other.changed(each.name, limits=(-2.0 - random.uniform(), 2.0), armature=0.01, **values)
    files = [str(tmp_path / "a.urdf"), str(tmp_path / "b.xml")]
    for path, text in zip(files, (urdf(ROBOT), mjcf(other)), strict=True):
        Path(path).write_text(text, encoding="utf-8")
    shown = run(*files)
    assert shown.return_value == 1
    assert "And 15 more: --all" in shown.output
    assert "joint j_p1, j_p2 and 4 more" in shown.output.replace("\n", " ")
    assert "armature │ kg    │" in shown.output
    assert "mass     │ kg " in shown.output
    assert "And" not in run(*files, "--all").output
    output = run(*files, "--format", "json")
    entries = valid_output(output.output)
    assert output.return_value == entries["exit_status"] == 1
    assert len(entries["differences"]) == 5 * len(ROBOT.parts)
    result = loopcheck.same(*files)
    assert json.loads(result.report(tmp_path / "same.json").read_text(encoding="utf-8")) == entries
    assert list(result.differences.field[:1]) == [entries["differences"][0]["field"]]
    equal = run(files[0], files[0])
    assert equal.return_value == 0
    assert "The same robot: 7 joints with their bodies." in equal.output
    assert run(*files, "--map", "a").exception is not None
