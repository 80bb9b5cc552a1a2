"""USD with loops becomes the mechanism that it describes; likely mistakes get one line."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.linkage_from_mechanism import linkage_of
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.formats.model_file import ModelFile, files_of
from loopcheck.robots.formats.usd_writer import usd_text
from loopcheck.robots.mechanism import Mechanism
from tests.four_bar_efforts import four_bar_error
from tests.planar_four_bar import GROUND, ROCKER
from tests.usd_models import (
    COUPLER_ANGLE,
    COUPLER_JOINT,
    CRANK_JOINT,
    LINKS,
    LOOP,
    ROCKER_JOINT,
    SCENE,
    usda,
    write_usd,
)

pytest.importorskip("pxr")
FLOATS = 2e-6
MODEL = Path(__file__).parents[1] / "models" / "four_bar.xml"


def read(path: Path) -> Mechanism:
    return read_mechanism(ModelFile(path=path))


def backwards(joint: str) -> str:
    """The joint with its bodies exchanged, and with the opposite axes, so that its position stays the same."""
    exchanged = re.sub(r"(body|localPos|localRot)([01])", lambda m: f"{m[1]}{1 - int(m[2])}", joint)

    def opposite(match: re.Match[str]) -> str:
        w, x, y, z = map(float, match[1].split(","))
        return f"= ({-z!r}, {y!r}, {-x!r}, {w!r})" if match else ""  # times a turn of 180° about Z

    return re.sub(r"= \(([^()]*,[^()]*,[^()]*,[^()]*)\)", opposite, exchanged)


def of_any_kind(joint: str) -> str:
    """The same joint as one with six limits."""
    locked = "".join(
        f"float limit:{dof}:physics:low = 1\nfloat limit:{dof}:physics:high = -1\n"
        for dof in ("transX", "transY", "transZ", "rotY", "rotZ")
    )
    return joint.replace("PhysicsRevoluteJoint", "PhysicsJoint").replace("uniform token", f"{locked} uniform token")


SUBLAYER = "(\n subLayers = [@model.usda@]"
JOINTS = CRANK_JOINT + COUPLER_JOINT + ROCKER_JOINT
ROTORS = "float physxJoint:armature = 1\ndouble mjc:armature = 2\n"
OUTSIDE, DISABLED = "uniform bool physics:excludeFromArticulation = 1", "bool physics:jointEnabled = 0"
MODELS = {
    "units and axes": usda(),
    "no flag at the loop": usda(LINKS + JOINTS + LOOP.replace(OUTSIDE, "") + SCENE),
    "bodies exchanged": usda(LINKS + LOOP + backwards(CRANK_JOINT) + backwards(COUPLER_JOINT) + ROCKER_JOINT + SCENE),
    "joints with six limits": usda(
        LINKS + of_any_kind(LOOP) + CRANK_JOINT + of_any_kind(COUPLER_JOINT) + ROCKER_JOINT + SCENE
    ),
    "disabled joint": usda(
        LINKS + LOOP + JOINTS + SCENE + LOOP.replace('"loop"', '"other"').replace(OUTSIDE, DISABLED).replace("40", "9")
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_efforts_are_those_of_the_closed_form(name: str, tmp_path: Path) -> None:
    assert four_bar_error(read(write_usd(tmp_path, MODELS[name]))) < FLOATS


def test_the_pose_of_the_file_is_the_position_at_rest(tmp_path: Path) -> None:
    """The coupler is at zero where it continues the crank, not in the pose of the file."""
    mechanism = read(write_usd(tmp_path))
    home = mechanism.rest_position
    assert not mechanism.keyframes
    at = dict(zip((joint.name for joint in mechanism.joints), home, strict=True))
    assert at["crank_joint"] == pytest.approx(0.0, abs=1e-6)
    assert at["coupler_joint"] == pytest.approx(COUPLER_ANGLE, abs=1e-6)


def test_limits_and_drives_are_converted_from_units_of_the_stage(tmp_path: Path) -> None:
    more = (
        "float physics:lowerLimit = -90\nfloat physics:upperLimit = 45\nfloat drive:angular:physics:maxForce = 100\n"
        "double mjc:damping = 3\ndouble mjc:armature = 40\n"
    )
    limited = CRANK_JOINT.replace("uniform token", f"{more} uniform token")
    mechanism = read(write_usd(tmp_path, usda().replace(CRANK_JOINT, limited)))
    joint = next(joint for joint in mechanism.joints if joint.name == "crank_joint")
    assert joint.limits == pytest.approx((-np.pi / 2, np.pi / 4))
    assert joint.damping == pytest.approx(3 * 0.5 * 0.01**2)
    assert joint.armature == pytest.approx(40 * 0.5 * 0.01**2)
    assert mechanism.actuators[0].limits[0].high == pytest.approx(100 * 0.5 * 0.01**2)


def test_a_changed_standard_attribute_overrules_the_double(tmp_path: Path) -> None:
    original = read(MODEL)
    path = tmp_path / "model.usda"
    text = usd_text(linkage_of(original, original.rest_position))
    path.write_text(text, encoding="utf-8")
    assert [body.mass for body in read(path).bodies] == [body.mass for body in original.bodies]
    path.write_text(text.replace("float physics:mass = 0.8", "float physics:mass = 0.75"), encoding="utf-8")
    changed = read(path)
    assert [body.mass for body in changed.bodies] == [1.2, 0.75, 0.9]
    assert "the standard attribute was changed and counts: physics:mass of /World/coupler" in changed.left_out[-1]


MJCF = """<mujoco><worldbody><body name="a" pos="0 0 1">
  <joint name="s" type="slide" axis="1 0 0" ref="0.3"/>
  <joint name="h" axis="0 0 1" pos="0.1 0 0" damping="0.2" armature="0.03" stiffness="3" springref="10"/>
  <inertial pos="0.2 0.1 0" mass="2" diaginertia="0.1 0.2 0.25"/></body></worldbody>
  <actuator><motor name="m" joint="h" gear="5"/></actuator></mujoco>"""
IN_SERIES = """#usda 1.0
(
    kilogramsPerUnit = 1
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World" (prepend apiSchemas = ["NewtonArticulationRootAPI"]) {
    uniform bool newton:jointsAddMobility = 1
    def MjcActuator "m" {
        uniform double[] mjc:gear = [5, 0, 0, 0, 0, 0]
        rel mjc:target = </World/a/h>
    }
    def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
        point3f physics:centerOfMass = (0.2, 0.1, 0)
        float3 physics:diagonalInertia = (0.1, 0.2, 0.25)
        float physics:mass = 2
        double3 xformOp:translate = (0, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def PhysicsPrismaticJoint "s" {
            uniform double mjc:ref = 0.3
            uniform token physics:axis = "X"
            rel physics:body1 = </World/a>
            point3f physics:localPos0 = (0, 0, 1)
        }
        def PhysicsRevoluteJoint "h" {
            float newton:armature = 0.03
            float newton:damping = 0.0034906585
            uniform double mjc:springref = 10
            uniform double mjc:stiffness = 3
            uniform token physics:axis = "Z"
            rel physics:body1 = </World/a>
            point3f physics:localPos0 = (0.1, 0, 1)
            point3f physics:localPos1 = (0.1, 0, 0)
        }
    }
}
"""


def test_schemas_of_newton_and_mujoco_are_read_as_mujoco_reads_the_model(tmp_path: Path) -> None:
    """Joints in series between two links, in the form of mujoco-usd-converter."""
    (tmp_path / "m.xml").write_text(MJCF, encoding="utf-8")
    expected, found = read(tmp_path / "m.xml"), read(write_usd(tmp_path, IN_SERIES))
    q = np.array([[0.7, 0.4]])
    one, other = (State(mechanism=mechanism, q=q, qd=q) for mechanism in (expected, found))
    assert inertia_matrix(other)[0] == pytest.approx(inertia_matrix(one)[0], abs=1e-6)
    for name in ("name", "damping", "stiffness", "armature", "spring_reference", "rest_position"):
        values = ([getattr(joint, name) for joint in mechanism.joints] for mechanism in (expected, found))
        for left, right in zip(*values, strict=True):
            assert right == (left if name == "name" else pytest.approx(left, abs=1e-6))
    assert [(motor.name, motor.gear) for motor in found.actuators] == [("m", 5.0)]
    assert other.poses.p[0, -1] == pytest.approx(one.poses.p[0, -1], abs=1e-6)


def test_joints_between_the_same_links_close_a_loop_without_the_flag_of_newton(tmp_path: Path) -> None:
    text = IN_SERIES.replace("jointsAddMobility = 1", "jointsAddMobility = 0")
    assert len(read(write_usd(tmp_path, text)).closures) == 1


def test_usd_core_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_usd(tmp_path)
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(HarnessError, match=r"usd-core must be installed .* Run: pip install 'loopcheck\[usd\]'"):
        read(path)


def test_referenced_files_belong_to_the_model(tmp_path: Path) -> None:
    path = write_usd(tmp_path)
    whole = tmp_path / "whole.usda"
    whole.write_text(path.read_text(encoding="utf-8").split("def Xform")[0].replace("(", SUBLAYER, 1), encoding="utf-8")
    assert {file.name for file in files_of(whole)} == {"whole.usda", "model.usda"}
    assert four_bar_error(read(whole)) < FLOATS
    path.unlink()
    with pytest.raises(HarnessError, match=r"whole.usda: all referenced files must be there: .*model.usda"):
        read(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", r"model.usda: must be a readable USD file: .*not a valid usda layer"),
        (usda(SCENE), r"must have rigid bodies \(PhysicsRigidBodyAPI\), got none"),
        (
            usda().replace("float physics:mass", "float physics:weight"),
            "/World/crank: physics:mass and physics:diagonalI",
        ),
        (usda().replace("physics:diagonalInertia", "physics:diagonal"), "diagonalInertia must be stated, got 0.8 and"),
        (
            usda()
            .replace("centerOfMass", "center")
            .replace('"picture" {', '"picture" (apiSchemas = ["PhysicsCollisionAPI"]) {'),
            "/World/crank: physics:centerOfMass must be stated",
        ),
        (usda().replace("(2, 2, 2)", "(2, -2, 2)"), "/World/crank: axes must be at right angles, without a mirror"),
        (
            usda().replace("body1 = </World/rocker>", "body1 = </World/roker>"),
            "physics:body1 must be a prim, got /World/rok",
        ),
        (
            usda().replace("PhysicsRevoluteJoint", "PhysicsDistanceJoint", 1),
            "type of a joint must be one of .* PhysicsDist",
        ),
        (usda().replace("PhysicsRevoluteJoint", "PhysicsJoint", 1), "not supported: a joint with free transX, transY"),
        (usda(LINKS + JOINTS + 'def MjcTendon "t" {\n}'), "/World/t: not supported: tendons"),
        (
            usda().replace("uniform token physics", f"{ROTORS} uniform token physics", 1),
            "rotor inertias mjc:armature, physxJoint:armature must be equal, got 2.0, 1.0",
        ),
        (usda().replace("mass = ", "mass = nan #", 1), "physics:mass must be a number, got"),
    ],
)
def test_likely_mistakes_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as refused:
        read(write_usd(tmp_path, text))
    assert re.search(message, str(refused.value)), refused.value
    assert "\n" not in str(refused.value)


def test_settings_are_not_written_into_a_usd(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="settings of a simulation must be written into an MJCF, got a USD"):
        patched(ModelFile(path=write_usd(tmp_path)), Patch(option={"timestep": "0.001"}, equalities={}), 1)


def test_inertias_and_poses_are_converted_to_si_units_and_link_axes(tmp_path: Path) -> None:
    mechanism = read(write_usd(tmp_path, usda(LINKS + SCENE)))
    rocker = next(body for body in mechanism.bodies if body.name == "rocker")
    about = ROCKER**3 / 12
    assert rocker.inertia == pytest.approx(np.diag([1e-3 * about, about, about]), abs=1e-7)
    assert rocker.position == pytest.approx([GROUND, 0.0, 0.03])
    assert {joint.kind for joint in mechanism.joints} == {"free"}
