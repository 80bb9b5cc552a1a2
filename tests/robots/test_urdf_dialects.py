"""Elements of URDF that Drake and Gazebo add, against Drake's own reader and formulas by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.losses import unread
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import ConnectClosure, Mechanism

MASS, ABOUT, ALONG, CENTER = 2.0, 0.02, 0.001, 0.1
"""Mass [kg], moments [kg m²] and mass centre [m] of each bar, along X."""


def link(name: str) -> str:
    tensor = f'ixx="{ALONG}" iyy="{ABOUT}" izz="{ABOUT}" ixy="0" ixz="0" iyz="0"'
    origin = f'<origin xyz="{CENTER} 0 0" rpy="0 0 0"/>'
    return f'<link name="{name}"><inertial>{origin}<mass value="{MASS}"/><inertia {tensor}/></inertial></link>'


def joint(name: str, ends: str, at: str = "0 0 0", rpy: str = "0 0 0", more: str = "", tag: str = "joint") -> str:
    parent, child = ends.split()
    kind = more if tag != "joint" else "continuous"
    return (
        f'<{tag} name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}" rpy="{rpy}"/><axis xyz="0 1 0"/></{tag}>'
    )


def read(tmp_path: Path, body: str) -> Mechanism:
    path = tmp_path / "m.urdf"
    path.write_text(f'<robot name="m" xmlns:drake="http://drake.mit.edu">{body}</robot>', encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=path))
    assert unread(mechanism.losses) == ()
    return mechanism


def drake_plant(tmp_path: Path) -> Any:
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    plants = pytest.importorskip("pydrake.multibody.plant")
    plant = plants.MultibodyPlant(1e-3)
    parsing.Parser(plant).AddModels(str(tmp_path / "m.urdf"))
    plant.Finalize()
    return plant


QUARTER = np.pi / 2
PARALLELOGRAM = (
    link("crank")
    + link("coupler")
    + link("rocker")
    + joint("a", "world crank", rpy=f"0 {-QUARTER!r} 0")
    + joint("b", "crank coupler", at="0.5 0 0", rpy=f"0 {QUARTER!r} 0")
    + joint("c", "world rocker", at="0.5 0 0", rpy=f"0 {-QUARTER!r} 0")
)
"""Two upright bars of 0.5 m and a level one between them; the world is not declared."""
BALL = (
    '<drake:ball_constraint><drake:ball_constraint_body_A name="coupler"/>'
    '<drake:ball_constraint_body_B name="rocker"/><drake:ball_constraint_p_AP value="0.5 0 0"/>'
    '<drake:ball_constraint_p_BQ value="0.5 0 0"/></drake:ball_constraint>'
)
OF_GAZEBO = (
    "<gazebo><joint name='close' type='revolute'><child>rocker</child><parent>coupler</parent>{}"
    "<axis><xyz{}>{}</xyz>{}</axis></joint></gazebo>"
)
LOOPS = {
    "ball": BALL,
    "in the joint": OF_GAZEBO.format("<pose>0.5 0 0 0 0 0</pose>", "", "0 1 0", ""),
    "in the model": OF_GAZEBO.format(
        f"<pose>0.5 0 0 {QUARTER!r} 0 0</pose>", "", "0 1 0", "<use_parent_model_frame>1</use_parent_model_frame>"
    ),
    "in a link": OF_GAZEBO.format(f"<pose>0.5 0 0 {QUARTER!r} 0 0</pose>", ' expressed_in="coupler"', "0 1 0", ""),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_elements_of_dialects_close_the_loop(loop: str, tmp_path: Path) -> None:
    """A parallelogram: crank and rocker turn alike, the coupler moves on a circle of 0.5 m without turning."""
    mechanism = read(tmp_path, PARALLELOGRAM + LOOPS[loop])
    assert all(isinstance(closure, ConnectClosure) for closure in mechanism.closures)
    state = State.at_rest(mechanism, mechanism.rest_position[None])
    assert np.abs(state.gap).max() < 1e-12
    _, values, V_T = np.linalg.svd(state.Phi[0])
    assert int((values > 1e-9).sum()) == 2
    motion = V_T[-1] / V_T[-1][0]
    bar = ABOUT + MASS * CENTER**2
    assert motion @ inertia_matrix(state)[0] @ motion == pytest.approx(2 * bar + MASS * 0.5**2, rel=1e-12)
    if loop == "ball":
        assert drake_plant(tmp_path).num_constraints() == 1


@pytest.mark.parametrize(
    ("where", "ratio", "armature"),
    [("transmission", '<drake:gear_ratio value="20"/>', 0.04), ("transmission", "", 1e-4), ("joint", "", 1e-4)],
)
def test_rotors_are_reflected_as_by_drake(where: str, ratio: str, armature: float, tmp_path: Path) -> None:
    actuator = f'<actuator name="m"><drake:rotor_inertia value="1e-4"/>{ratio}</actuator>'
    arm = link("x") + link("y") + joint("a", "world x") + joint("b", "x y", at="0.3 0 0", rpy="0.2 0 0")
    if where == "joint":
        arm = arm.replace('</joint><joint name="b"', f'{actuator}</joint><joint name="b"')
    else:
        kind = "<type>transmission_interface/SimpleTransmission</type>"
        arm += f'<transmission name="t">{kind}<joint name="a"/>{actuator}</transmission>'
    mechanism = read(tmp_path, arm)
    assert [one.armature for one in mechanism.joints] == pytest.approx([armature, 0.0], abs=1e-18)
    if where == "transmission":
        plant = drake_plant(tmp_path)
        context = plant.CreateDefaultContext()
        q = np.array([0.3, -0.8])
        plant.SetPositions(context, q)
        ours = inertia_matrix(State.at_rest(mechanism, q[None]))[0]
        assert ours == pytest.approx(plant.CalcMassMatrix(context), abs=1e-14)


@pytest.mark.parametrize(("kind", "count"), [("universal", 2), ("planar", 3), ("ball", 3)])
def test_joints_of_drake_have_its_inertia(kind: str, count: int, tmp_path: Path) -> None:
    body = link("x") + joint("a", "world x", at="0.1 0.2 0.3", rpy="0.4 0.5 0.6", more=kind, tag="drake:joint")
    mechanism = read(tmp_path, body)
    assert mechanism.nv == count
    plant = drake_plant(tmp_path)
    context = plant.CreateDefaultContext()
    q = np.zeros(plant.num_positions())
    theirs = plant.CalcMassMatrix(context)
    if kind != "ball":
        q = np.array([0.3, -0.8, 0.5])[:count]
        plant.SetPositions(context, q)
        theirs = plant.CalcMassMatrix(context)
    ours = inertia_matrix(State.at_rest(mechanism, (mechanism.rest_position if kind == "ball" else q)[None]))[0]
    if kind == "ball":  # Drake's rates lie in the parent's axes, ours in the body's: the same at zero
        assert np.linalg.eigvalsh(ours) == pytest.approx(np.linalg.eigvalsh(theirs), rel=1e-12)
    else:
        assert ours == pytest.approx(theirs, abs=1e-14)


def test_a_joint_of_drake_of_another_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"type of .*drake:joint 'a'.*curvilinear.*Known: ball, universal, planar"):
        read(tmp_path, link("x") + joint("a", "world x", more="curvilinear", tag="drake:joint"))


def test_an_undeclared_world_holds_the_robot(tmp_path: Path) -> None:
    """A bar of 2 kg that lies: its weight at 0.1 m, by hand."""
    motor = '<transmission name="t"><joint name="a"/><actuator name="m"/></transmission>'
    mechanism = read(tmp_path, link("x") + joint("a", "world x") + motor)
    state = State.at_rest(mechanism, np.zeros((1, 1)))
    assert needed_efforts(state, np.zeros((1, 1))).effort[0] == pytest.approx([-9.81 * MASS * CENTER])
    assert [body.name for body in mechanism.bodies] == ["x"]


def test_an_inertia_of_a_fixed_root_has_no_effect(tmp_path: Path) -> None:
    for root in ("world", "base"):
        mechanism = read(tmp_path, link(root) + link("x") + joint("a", f"{root} x"))
        M = inertia_matrix(State.at_rest(mechanism, np.zeros((1, 1))))[0]
        assert pytest.approx(np.array([[ABOUT + MASS * CENTER**2]])) == M


def test_a_reduction_beside_the_actuator_is_its_gear(tmp_path: Path) -> None:
    reduction = "<mechanicalReduction>63</mechanicalReduction>"
    motor_of_a = f'<transmission name="t"><joint name="a"/><actuator name="m"/>{reduction}</transmission>'
    (motor,) = read(tmp_path, link("x") + joint("a", "world x") + motor_of_a).actuators
    assert motor.gear == 63


def test_a_rod_without_a_moment_about_its_axis_is_read(tmp_path: Path) -> None:
    rod = link("x").replace(f'ixx="{ALONG}"', 'ixx="0"')
    M = inertia_matrix(State.at_rest(read(tmp_path, rod + joint("a", "world x")), np.zeros((1, 1))))[0]
    assert pytest.approx(np.array([[ABOUT + MASS * CENTER**2]]), rel=1e-12) == M
    with pytest.raises(HarnessError, match="inertia of link 'x' about the axis of joint 'a' must be above 0"):
        read(tmp_path, rod + joint("a", "world x").replace("0 1 0", "1 0 0"))


def floating(parent: str, child: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 1"/>'
    return f'<joint name="free" type="floating">{ends}</joint>'


@pytest.mark.parametrize("root", ["world", "dummy"])
def test_a_floating_joint_begins_at_the_root(root: str, tmp_path: Path) -> None:
    """Also at a root that is not called world, as in public humanoids; a bar beside it is held."""
    body = f'<link name="{root}"/>' + link("x") + link("y") + floating(root, "x") + joint("a", f"{root} y")
    mechanism = read(tmp_path, body)
    assert sorted(one.kind for one in mechanism.joints) == ["free", "hinge"]
    free = next(one for one in mechanism.joints if one.kind == "free")
    assert free.rest_position[:3] == pytest.approx([0, 0, 1])


def test_a_floating_joint_at_another_link_is_refused_by_its_line(tmp_path: Path) -> None:
    body = link("base") + link("x") + link("y") + joint("a", "base x") + floating("x", "y")
    with pytest.raises(
        HarnessError, match=r"m.urdf:\d+: joint 'free': a floating joint must begin at the root link 'base'"
    ):
        read(tmp_path, body)


@pytest.mark.parametrize("text", ["0 1", "0 1 x", "0 1 nan", "1 2 3 4"])
def test_numbers_of_joints_are_refused_by_their_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(
        HarnessError, match=rf"m.urdf:1: joint 'a': <origin xyz> must have 3 finite numbers, got '{text}'"
    ):
        read(tmp_path, link("x") + joint("a", "world x", at=text))


@pytest.mark.parametrize("tag", ["link", "joint"])
def test_an_element_without_a_name_is_refused_by_its_line(tag: str, tmp_path: Path) -> None:
    body = (link("x") + joint("a", "world x")).replace(f'<{tag} name="{"x" if tag == "link" else "a"}"', f"<{tag}")
    with pytest.raises(HarnessError, match=rf"m.urdf:1: {tag} '': must have a name"):
        read(tmp_path, body)


def test_a_repeated_element_of_a_joint_is_refused_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"m.urdf:1: joint 'a': must have a single <axis>, got 2"):
        read(tmp_path, link("x") + joint("a", "world x").replace("</joint>", '<axis xyz="1 0 0"/></joint>'))
