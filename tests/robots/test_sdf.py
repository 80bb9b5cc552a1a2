"""SDF with loops becomes the mechanism that it describes; likely mistakes get one line."""

import re
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from tests.four_bar_efforts import four_bar_error
from tests.planar_four_bar import CRANK
from tests.sdf_models import DRIVE, JOINTS, LINKS, LOOP, hinge, sdf, write_sdf


def read(path: Path) -> Mechanism:
    return read_mechanism(ModelFile(path=path))


MESH = '<collision name="c"><geometry><mesh><uri>a.obj</uri></mesh></geometry></collision>'
AXIS = "<axis><xyz>0 0 1</xyz></axis>"
SPRING = "<dynamics><spring_stiffness>1e-9</spring_stiffness></dynamics></axis>"
OLD = re.sub(' expressed_in="[^"]*"', "", sdf().replace("1.9", "1.6"))
MODELS = {
    "frames": sdf(),
    "loop first": sdf(LINKS + LOOP + JOINTS + DRIVE),
    "nested model": sdf(
        f'<model name="inner">{LINKS}{JOINTS}</model>'
        + LOOP.replace("coupler<", "inner::coupler<").replace(">end<", ">inner::end<").replace("__model__", "inner")
        + DRIVE.replace("crank_joint", "inner::crank_joint")
    ),
    "old axes": OLD.replace(AXIS, AXIS.replace("</axis>", "<use_parent_model_frame>1</use_parent_model_frame></axis>")),
    "a loop with a spring": sdf(LINKS + JOINTS + LOOP.replace("</axis>", SPRING) + DRIVE),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_efforts_are_those_of_the_closed_form(name: str, tmp_path: Path) -> None:
    mechanism = read(write_sdf(tmp_path, MODELS[name]))
    assert four_bar_error(mechanism) < (1e-8 if "spring" in name else 1e-12)


def test_a_joint_in_a_loop_keeps_its_spring(tmp_path: Path) -> None:
    mechanism = read(write_sdf(tmp_path, MODELS["a loop with a spring"]))
    stiffness = {joint.name: joint.stiffness for joint in mechanism.joints}
    assert stiffness["loop"] == 1e-9
    assert mechanism.nv == 4


def test_drake_reads_the_same_tree(tmp_path: Path) -> None:
    """Drake refuses looped SDF, and a frame of another link as the child of a joint; it reads the tree."""
    drake = pytest.importorskip("pydrake.multibody.parsing")
    plants = pytest.importorskip("pydrake.multibody.plant")
    path = write_sdf(tmp_path, sdf(LINKS + JOINTS + DRIVE))
    plant = plants.MultibodyPlant(0.0)
    drake.Parser(plant).AddModels(str(path))
    plant.Finalize()
    mechanism = read(path)
    q = {"crank_joint": 0.3, "coupler_joint": -0.8, "rocker_joint": 0.5}
    context = plant.CreateDefaultContext()
    for name, value in q.items():
        plant.GetJointByName(name).set_angle(context, value)
    M = plant.CalcMassMatrix(context)
    places = [plant.GetJointByName(joint.name).velocity_start() for joint in mechanism.joints]
    state = State.at_rest(mechanism, np.array([[q[joint.name] for joint in mechanism.joints]]))
    assert inertia_matrix(state)[0] == pytest.approx(M[np.ix_(places, places)], abs=1e-13)


def test_a_model_that_nothing_holds_floats(tmp_path: Path) -> None:
    joints = JOINTS.replace("<parent>world", "<parent>ground")
    ground = '<link name="ground"><pose relative_to="base">0 0 0 0 0 0</pose></link>'
    mechanism = read(write_sdf(tmp_path, sdf(LINKS + ground + joints + LOOP)))
    assert [joint.kind for joint in mechanism.joints].count("free") == 1
    assert mechanism.nv == 9
    wall = "<model name='x'><static>1</static><link name='wall'/></model></world>"
    static = read(write_sdf(tmp_path, sdf(LINKS + JOINTS + LOOP).replace("</world>", wall)))
    assert static.nv == 3
    assert {body.name for body in static.bodies} >= {"x::wall", "m::crank"}


def test_limits_springs_and_friction_are_read(tmp_path: Path) -> None:
    axis = (
        "<axis><xyz>0 0 2</xyz><limit><lower>-1</lower><upper>2</upper><effort>5</effort></limit><dynamics>"
        "<damping>0.1</damping><friction>0.2</friction><spring_stiffness>3</spring_stiffness>"
        "<spring_reference>0.4</spring_reference></dynamics></axis>"
    )
    joints = JOINTS.replace("<axis><xyz>0 0 1</xyz></axis>", axis, 1)
    mechanism = read(write_sdf(tmp_path, sdf(LINKS + joints + LOOP + DRIVE)))
    joint = next(joint for joint in mechanism.joints if joint.name == "crank_joint")
    assert (joint.limits, joint.damping, joint.friction, joint.stiffness) == ((-1.0, 2.0), 0.1, 0.2, 3.0)
    assert joint.spring_reference == pytest.approx([0.4])
    assert [(limit.low, limit.high) for limit in mechanism.actuators[0].limits] == [(-5.0, 5.0)]


def test_a_file_without_a_world_has_the_gravity_of_the_format(tmp_path: Path) -> None:
    text = sdf().replace('<world name="w"><gravity>0 0 -9.81</gravity>', "").replace("</world>", "")
    mechanism = read(write_sdf(tmp_path, text))
    assert mechanism.gravity == pytest.approx([0, 0, -9.8])
    assert any("gravity is the default of the format" in note for note in mechanism.left_out)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sdf(LINKS + "<include><uri>model://arm</uri></include>"), r"included models must be expanded. Run: gz sdf -p"),
        (sdf("<xacro:bar/>"), "xacro must be expanded, got <xacro:bar>"),
        (
            sdf(LINKS + hinge("j", "crnk", "coupler")),
            r"unknown frame at .*model.sdf:\d+: joint 'j': 'crnk'. Did you mean",
        ),
        (
            sdf(LINKS + JOINTS.replace("revolute", "skrew", 1)),
            r"unknown type of joint at .*joint 'crank_joint': 'skrew'. Did you mean 'screw'",
        ),
        (
            sdf(LINKS.replace('relative_to="crank"', 'relative_to="krank"') + JOINTS),
            r"unknown frame at .*link 'coupler': 'm::krank'",
        ),
        (
            sdf(LINKS.replace('relative_to="base">0 0 0 0 0', 'relative_to="coupler">0 0 0 0 0', 1) + JOINTS),
            "frames must not depend on each other in a circle",
        ),
        (sdf(LINKS.replace("<mass>", "<mass>x", 1) + JOINTS), r"link 'crank': mass must have a finite number, got 'x"),
        (
            sdf(LINKS + JOINTS + DRIVE.replace("crank_joint", "crank_jont")),
            r"unknown joint at .*plugin.*'m::crank_jont'",
        ),
        (sdf(LINKS.replace("<inertial>", '<inertial auto="true">', 1)), "auto='true' must have collision shapes"),
        (
            sdf(LINKS.replace("<inertial>", f'{MESH}<inertial auto="true">', 1)),
            r"collision 'c': auto='true' is supported for box, sphere, .*, got mesh. State mass",
        ),
        (
            sdf(LINKS + JOINTS.replace("<axis>", "<drake:parent_frame>crank</drake:parent_frame><axis>", 1)),
            "must have both drake:parent_frame and drake:child_frame",
        ),
        (sdf(LINKS + LINKS), "names of links, joints and frames must be unique"),
        ("<sdf version='1.9'></sdf>", "must have a <model>, got none"),
        ("<robot/>", "the root element of an SDF must be <sdf>, got <robot>"),
    ],
)
def test_likely_mistakes_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as refused:
        read(write_sdf(tmp_path, text))
    assert re.search(message, str(refused.value)), refused.value


def test_settings_are_not_written_into_an_sdf(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="settings of a simulation must be written into an MJCF, got an SDF"):
        patched(ModelFile(path=write_sdf(tmp_path)), Patch(option={"timestep": "0.001"}, equalities={}), 1)


def test_inertias_are_turned_into_the_frame_of_the_link(tmp_path: Path) -> None:
    crank = next(body for body in read(write_sdf(tmp_path)).bodies if body.name == "crank")
    about = CRANK**3 / 12
    assert crank.inertia == pytest.approx(np.diag([1e-3 * about, about, about]), abs=1e-15)
    assert crank.center == pytest.approx([CRANK / 2, 0, 0])


def test_a_gearbox_turns_its_child_against_its_parent(tmp_path: Path) -> None:
    """theta_2 = -gearbox_ratio theta_1, both from the reference body; one of the axes is reversed here."""
    gearbox = (
        '<joint name="gear" type="gearbox"><parent>crank</parent><child>rocker</child>'
        "<gearbox_reference_body>world</gearbox_reference_body><gearbox_ratio>3</gearbox_ratio>"
        "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 -1</xyz></axis2></joint>"
    )
    (closure,) = read(write_sdf(tmp_path, sdf(LINKS + JOINTS + gearbox))).coordinate_closures
    assert closure.leader is not None
    assert (closure.follower.name, closure.leader.name) == ("rocker_joint", "crank_joint")
    assert closure.coefficients[:2] == pytest.approx([0.0, 3.0])
