"""URDF with loops in every dialect becomes the mechanism that it describes; likely mistakes get one line."""

import re
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.closures import closure_jacobian_at, null_space
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.formats.model_file import ModelFile, files_of
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import load_folder
from loopcheck.validation.new.new_robot import add_robot
from tests.four_bar_efforts import four_bar_error
from tests.urdf_models import (
    DIALECTS,
    TRANSMISSION,
    TREE,
    constraint,
    inertia_matrix_of,
    random_tree,
    write_urdf,
)


def read(path: Path) -> Mechanism:
    return read_mechanism(ModelFile(path=path))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_efforts_of_every_dialect_are_those_of_the_closed_form(dialect: str, tmp_path: Path) -> None:
    assert four_bar_error(read(write_urdf(tmp_path, *DIALECTS[dialect]))) < 1e-12


def test_weld_of_two_frames_closes_their_axes_too(tmp_path: Path) -> None:
    elements, name, content = DIALECTS["Gepetto"]
    mechanism = read(write_urdf(tmp_path, elements, name, content.replace("3d", "6d")))
    state = State.at_rest(mechanism, np.zeros((1, mechanism.nq)))
    assert np.abs(state.gap).max() < 1e-14
    assert null_space(state.Phi[0]).shape[1] == 0  # the rigid corner locks the four-bar


KINDS = {"fixed": 0, "revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "spherical": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_leaves_the_motions_of_its_joint(kind: str, tmp_path: Path) -> None:
    """A body on six joints, of which five carry massless links, closed to the base by each kind of joint."""
    axes = ("1 0 0", "0 1 0", "0 0 1")
    joints = [("prismatic", axis) for axis in axes] + [("continuous", axis) for axis in axes]
    inertial = (
        '<inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><mass value="2"/>'
        '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>'
    )
    text = '<link name="l0"/>'
    for k, (joint, axis) in enumerate(joints):
        text += (
            f'<link name="l{k + 1}">{inertial if k == 5 else ""}</link><joint name="j{k}" type="{joint}">'
            f'<parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="{axis}"/>'
            f'<origin xyz="0 0 {0.02 * k}" rpy="0 {0.02 * k} 0"/><limit effort="9" velocity="1"/></joint>'
        )
    loop = (
        f'<constraint name="loop" type="{kind}"><parent link="l0"/><child link="l6"/>'
        '<parent_origin xyz="0.3 0.2 0.1" rpy="0.3 0 0"/><child_origin xyz="-0.1 0 0" rpy="0 0 0.2"/>'
        '<parent_axis xyz="0 0 1"/><child_axis xyz="1 0 0"/></constraint>'
    )
    path = tmp_path / "body.urdf"
    free, closed = (
        (path.write_text(f'<robot name="r">{text}{more}</robot>', encoding="utf-8"), read(path))[1]
        for more in ("", loop)
    )
    q = np.zeros((1, closed.nq))
    q[:, :6] = np.random.default_rng(0).uniform(-0.2, 0.2, 6)
    closed_q = closed_pose(closed, q)
    N = null_space(closure_jacobian_at(closed, closed_q)[0])
    assert N.shape[1] == KINDS[kind]
    # the halves of the body weigh as much as the body
    M, M_free = (inertia_matrix(State.at_rest(m, p))[0] for m, p in ((closed, closed_q), (free, closed_q[:, :6])))
    assert pytest.approx(N[:6].T @ M_free @ N[:6], abs=1e-12) == N.T @ M @ N


def closed_pose(mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
    from loopcheck.analytic.kinematics.continuation import close_batch

    closed, residual = close_batch(mechanism, q, np.ones(mechanism.nv, dtype=bool))
    assert residual.max() < 1e-13
    return closed


def test_a_name_of_an_actuator_that_two_transmissions_have_is_used_once(tmp_path: Path) -> None:
    """As in a public URDF of Talos."""
    second = TRANSMISSION.replace('"crank"', '"rocker"').replace('name="t"', 'name="u"')
    mechanism = read(write_urdf(tmp_path, TRANSMISSION + second))
    assert [actuator.name for actuator in mechanism.actuators] == ["m", "rocker"]


def test_a_transmission_of_a_fixed_joint_drives_nothing(tmp_path: Path) -> None:
    """As in public URDFs of which some joints were fixed; one of a joint that is missing is an error."""
    fixed = '<link name="pad"/><joint name="wrist" type="fixed"><parent link="coupler"/><child link="pad"/></joint>'
    second = TRANSMISSION.replace('"crank"', '"wrist"').replace('name="t"', 'name="u"')
    mechanism = read(write_urdf(tmp_path, fixed + TRANSMISSION + second))
    assert [actuator.coordinate.name for actuator in mechanism.actuators] == ["crank"]
    with pytest.raises(HarnessError, match=r"unknown actuated joint of .*: 'wrist'"):
        read(write_urdf(tmp_path, TRANSMISSION + second))


def test_a_tree_says_what_is_missing(tmp_path: Path) -> None:
    mechanism = read(write_urdf(tmp_path, TRANSMISSION))
    assert not mechanism.closures
    assert "loops: the URDF is a tree, without <constraint> and without a loop file" in mechanism.left_out[-1]


def test_the_loop_file_is_a_file_of_the_model(tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *DIALECTS["Gepetto"])
    assert files_of(path) == (path, tmp_path / "robot.yaml")
    model = ModelFile(path=path)
    (tmp_path / "robot.yaml").write_text("closed_loop: []\ntype: []\n", encoding="utf-8")
    with pytest.raises(HarnessError, match=r"robot\.yaml: must not change during a command"):
        read_mechanism(model)


def test_a_urdf_in_an_xml_file_keeps_its_loop(tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *DIALECTS["constraint, revolute"]).rename(tmp_path / "model.xml")
    assert len(read(path).closures) == 2


def test_a_mimic_of_a_dependent_joint_is_no_second_constraint(tmp_path: Path) -> None:
    elements, name, content = DIALECTS["solidworks"]
    mimic = '<axis xyz="0 0 1"/><mimic joint="crank" multiplier="-0.5" offset="0.25"/></joint>'
    joint = '<axis xyz="0 0 1"/></joint>'
    path = write_urdf(tmp_path, elements, name, content)
    text = path.read_text(encoding="utf-8")
    place = text.rindex(joint)
    path.write_text(text[:place] + mimic + text[place + len(joint) :], encoding="utf-8")
    assert not read(path).coordinate_closures
    (tmp_path / name).unlink()
    (follows,) = read(path).coordinate_closures
    assert (follows.follower.name, follows.coefficients[0], follows.coefficients[1]) == ("rocker", 0.25, -0.5)


GEPETTO = DIALECTS["Gepetto"]


@pytest.mark.parametrize(
    ("elements", "loop_file", "content", "message"),
    [
        ("<xacro:bar/>", "", "", r"model.urdf:\d+: xacro must be expanded, got <xacro:bar>. Run: xacro model.urdf"),
        (
            '<link name="${side}_foot"/>',
            "",
            "",
            r"model.urdf:\d+: xacro must be expanded, got \${side}_foot. Run: xacro",
        ),
        (
            '<link name="l"/><joint name="j" type="hinge"><parent link="rocker"/><child link="l"/></joint>',
            "",
            "",
            "MuJoCo's reader of URDF rejected the file: XML Error: invalid joint type in URDF joint definition Element "
            "'joint'$",
        ),
        ("<link", "", "", r"model.urdf: must be a readable XML file: not well-formed .*: line \d+"),
        ('<link name="left_over"/>', "", "", "must have a single root link, got ground, left_over. Connect the others"),
        (
            '<joint name="close" type="revolute"><parent link="coupler"/><child link="rocker"/></joint>',
            "",
            "",
            r"model.urdf:\d+: joint 'close': link 'rocker' must have a single parent joint, got another in line \d+. "
            "A URDF is a tree: write the joint that closes the loop as <constraint> or in a loop file",
        ),
        (
            '<link name="l"/><joint name="j" type="revolute"><parent link="rockr"/><child link="l"/></joint>',
            "",
            "",
            r"unknown parent link at .*model.urdf:\d+: joint 'j': 'rockr'. Did you mean 'rocker'\?",
        ),
        (
            '<link name="l"/><joint name="j" type="revolute"><parent link="rocker"/><child link="l"/></joint>',
            "",
            "",
            "link 'l' must have a mass and an inertia, because it moves with the joint 'j'",
        ),
        ('<link name="crank"/>', "", "", "names of links must be unique, got 'crank' twice"),
        (constraint("hinge"), "", "", r"unknown kind of loop joint at .*model.urdf:\d+: constraint 'loop': 'hinge'"),
        (
            GEPETTO[0],
            GEPETTO[1],
            GEPETTO[2].replace("end_rocker", "end_roker"),
            r"unknown link at .*robot.yaml, closed_loop\[0\]: 'end_roker'. Did you mean 'end_rocker'\?",
        ),
        (
            GEPETTO[0],
            GEPETTO[1],
            GEPETTO[2].replace("name_mot: [crank]", "name_mot: [krank]"),
            r"unknown actuated joint of .*model.urdf: 'krank'. Did you mean 'crank'\?",
        ),
        (
            GEPETTO[0],
            GEPETTO[1],
            GEPETTO[2].replace("['3d']", "[]"),
            "robot.yaml: must be a complete loop file with the key 'closed_loop': 'type' must have an entry for each "
            "of the 1 closed loops, got 0",
        ),
        (
            "",
            "loop_closures.yaml",
            "closures: [{link_a: coupler}]\n",
            "with the key 'closures': entry 'link_b' is missing",
        ),
        ("", "robot.yaml", "closed_loop: [\n", "robot.yaml: must be a readable YAML file"),
    ],
)
def test_likely_mistakes_get_one_line(
    elements: str, loop_file: str, content: str, message: str, tmp_path: Path
) -> None:
    path = write_urdf(tmp_path, elements, loop_file, content)
    with pytest.raises(HarnessError) as refused:
        read(path)
    assert re.search(message, str(refused.value)), refused.value


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leg.urdf.xacro", r"leg\.urdf\.xacro: xacro must be expanded\. Run: xacro leg\.urdf\.xacro > leg\.urdf$"),
        ("leg.xacro", r"Run: xacro leg\.xacro > leg\.urdf$"),
        ("leg.dae", r"leg\.dae: the suffix of a model must be one of .*\.urdf.*, got '\.dae'$"),
    ],
)
def test_other_files_get_one_line(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=message):
        read(write_urdf(tmp_path, *GEPETTO).rename(tmp_path / name))


def test_missing_meshes_do_not_matter(tmp_path: Path) -> None:
    """Inertias of a URDF are stated; the report lists geometry that is not read."""
    path = write_urdf(tmp_path, *GEPETTO)
    assert "package://absent/bar.stl" in path.read_text(encoding="utf-8")
    assert read(path).left_out[0] == "visual and collision geometry of 7 links"


def test_two_loop_files_are_refused_unless_one_has_the_name_of_the_urdf(tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *GEPETTO)
    (tmp_path / "robot_data.yaml").write_text("closing_joints: []\n", encoding="utf-8")
    with pytest.raises(HarnessError, match=r"must have a single loop file, got .*robot_data\.yaml. Rename"):
        read(path)
    (tmp_path / "robot.yaml").rename(tmp_path / "model.yaml")
    assert len(read(path).closures) == 1


def test_settings_are_not_written_into_a_urdf(tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *GEPETTO)
    with pytest.raises(HarnessError, match="settings of a simulation must be written into an MJCF, got a URDF"):
        patched(ModelFile(path=path), Patch(option={"timestep": "0.001"}, equalities={}), 1)


@pytest.mark.evidence("a new robot, with its drawing", seconds=1)
def test_a_new_robot_gets_the_loop_file_too(tmp_path: Path) -> None:
    folder = add_robot("linkage", write_urdf(tmp_path, *GEPETTO), catalogue=tmp_path / "robots")
    assert len(load_folder(folder).mechanism().closures) == 1


def inertia(ixx: float, iyy: float, izz: float, mass: float = 1.0) -> str:
    return (
        f'<inertial><mass value="{mass}"/>\n<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )


@pytest.mark.parametrize(
    ("inertial", "message"),
    [
        (
            inertia(1, 2, 4),
            r"3: link .a.: <inertial/inertia> must have no principal moment above .* 1, 2, 4. .* moments by 1 together",
        ),
        (
            inertia(1, -2, 4),
            r"3: link 'a': <inertial/inertia> must have principal moments .* not negative, got -2, 1, 4$",
        ),
        (inertia(1, 1, 1, mass=-3), r"2: link 'a': <inertial/mass> must not be negative, got -3$"),
        (inertia(0, 0, 0), r"2: link 'a': <inertial> of a moving link must have .* 1e-15, got 1 kg and 0, 0, 0 kg m²$"),
        (
            '<inertial><mass value="1"/></inertial>',
            r"2: link 'a': <inertial> of a moving link must have .* 0, 0, 0 kg m²$",
        ),
        ('<inertial><mass value="1"/><inertia/></inertial>', r"2: link 'a': must have <inertial/inertia ixx=...>$"),
        (inertia(1, 1, 1).replace('"1"', '"1 2"'), r"2: link 'a': <inertial/inertia ixx> must have a finite number"),
        (inertia(1, 1, 1) * 2, r"2: link 'a': must have a single <inertial>, got 2$"),
    ],
)
def test_an_inertia_is_refused_by_its_tag(inertial: str, message: str, tmp_path: Path) -> None:
    """MuJoCo names an element and a line of a text that the user has not."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="r"><link name="base"/>\n<link name="a">{inertial}</link><joint name="j" type="continuous">'
        '<parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>',
        encoding="utf-8",
    )
    with pytest.raises(HarnessError, match=rf"arm\.urdf:{message}"):
        read(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' ixy="0" ixz="0" iyz="0"', ""),
        ('ixz="0"', 'ixz=""'),
        ("<inertial>", "<!-- A *----* B --><inertial>"),
    ],
)
def test_what_other_readers_accept_changes_nothing(old: str, new: str, tmp_path: Path) -> None:
    """MuJoCo and Drake take missing products as 0, and two hyphens in a comment."""
    texts = [
        f'<robot name="r"><link name="base"/><link name="a">{inertial}</link><joint name="j" type="continuous">'
        '<parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>'
        for inertial in (inertia(1, 2, 2.5), inertia(1, 2, 2.5).replace(old, new))
    ]
    bodies = []
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.urdf").write_text(text, encoding="utf-8")
        bodies.append(read(tmp_path / f"{k}.urdf").bodies[-1])
    assert texts[0] != texts[1]
    np.testing.assert_array_equal(bodies[1].inertia, bodies[0].inertia)
    np.testing.assert_allclose(np.linalg.eigvalsh(bodies[1].inertia), [1, 2, 2.5], rtol=1e-12)


@pytest.mark.parametrize("root", ["base", "world"])
def test_a_point_without_rotary_inertia_may_be_fixed_to_a_link(root: str, tmp_path: Path) -> None:
    """Also where the inertia is that of a link which is fixed to a fixed link, on a base with an inertia."""
    text = (
        f'<robot name="r"><link name="{root}">{inertia(1, 1, 1)}</link><link name="a">{inertia(0, 0, 0)}</link>'
        f'<link name="b">{inertia(0, 0, 0, 2)}</link><link name="c">{inertia(1, 1, 1)}</link>'
        f'<joint name="j" type="continuous"><parent link="{root}"/><child link="a"/><axis xyz="0 0 1"/></joint>'
        '<joint name="k" type="fixed"><parent link="a"/><child link="b"/><origin xyz="3 0 0"/></joint>'
        '<joint name="l" type="fixed"><parent link="b"/><child link="c"/></joint></robot>'
    )
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    inertia_of_joint = inertia_matrix(State.at_rest(read(path), np.zeros((1, 1))))[0, 0, 0]
    assert inertia_of_joint == pytest.approx(1 + (2 + 1) * 9, rel=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_tensors_are_those_of_the_file(seed: int, tmp_path: Path) -> None:
    """Of turned tensors and fixed links, by the XML alone and by Pinocchio's reader."""
    path = tmp_path / "tree.urdf"
    path.write_text(text := random_tree(seed), encoding="utf-8")
    mechanism = read(path)
    names = [joint.name for joint in mechanism.joints]
    q = np.random.default_rng(seed).uniform(-2, 2, len(names))
    M = inertia_matrix(State.at_rest(mechanism, q[None]))[0]
    limit = 1e-13 * np.abs(M).max()
    assert pytest.approx(inertia_matrix_of(text, names, q), abs=limit) == M
    assert pytest.approx(inertia_of_pinocchio(text, names, q), abs=limit) == M


def test_the_tree_is_that_of_pinocchio(tmp_path: Path) -> None:
    mechanism = read(write_urdf(tmp_path, TRANSMISSION))
    q = np.array([0.3, -0.8, 0.5])
    M = inertia_of_pinocchio(f'<robot name="four_bar">{TREE}</robot>', [joint.name for joint in mechanism.joints], q)
    assert inertia_matrix(State.at_rest(mechanism, q[None]))[0] == pytest.approx(M, abs=1e-13)


def inertia_of_pinocchio(text: str, names: list[str], q: np.ndarray) -> np.ndarray:
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(text)
    full, order = [], [model.names[k] for k in range(1, model.njoints)]
    for k, name in enumerate(order, 1):
        value = q[names.index(name)]
        # hinges without limits are unit circles in Pinocchio
        full += [np.cos(value), np.sin(value)] if model.joints[k].nq == 2 else [value]
    upper = np.triu(pinocchio.crba(model, model.createData(), np.array(full)))
    places = [order.index(name) for name in names]
    return (upper + np.triu(upper, 1).T)[np.ix_(places, places)]
