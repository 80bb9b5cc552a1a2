"""The second reading of model files finds faults of the first reader in every format, and raises no false alarm."""

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.formats import mjcf
from loopcheck.robots.formats.mjcf import describe
from loopcheck.robots.mechanism import ConnectClosure, CoordinateClosure, WeldClosure
from loopcheck.robots.second_reading import differences
from loopcheck.robots.second_reading.differences import Comparison, _sum, compare_with_file, second_reading
from loopcheck.robots.second_reading.tables import Link
from loopcheck.validation.gate.gate import gate
from tests.conftest import MODELS

SECOND = Path(differences.__file__).parent
MJCF = """<mujoco>
  <compiler eulerseq="ZYx"/>
  <default>
    <joint damping=".2"/><equality solref=".01 1"/>
    <default class="arm"><joint range="-70 50" armature=".03" frictionloss=".4"/><motor gear="7"/>
      <default class="hand"><joint axis="1 2 3" range="-20 80"/></default></default>
  </default>
  <option gravity="1 2 -9"/>
  <worldbody>
    <body name="base" pos="0 .1 0" childclass="arm">
      <body name="upper" pos=".1 0 .3" euler="10 20 30" gravcomp=".5">
        <joint name="shoulder" pos=".01 .02 .03" axis="0 1 2" ref="12" stiffness="3" springref="25"
          actuatorfrcrange="-9 8"/>
        <inertial pos=".1 .02 .03" euler="10 20 40" mass="1.5" diaginertia=".02 .03 .04"/>
        <frame axisangle="1 1 0 35" pos="0 0 .1">
          <body name="lower" pos=".3 0 0" xyaxes="1 .2 0 0 1 .1">
            <joint name="elbow" class="hand"/>
            <inertial pos=".2 0 .01" mass=".7" fullinertia=".02 .03 .04 .001 -.002 .003"/>
            <body name="tool" pos=".4 0 0" zaxis="1 1 1"><inertial pos="0 .1 0" mass=".2" diaginertia="1e-3 2e-3 2e-3"/>
              <site name="tip" pos=".1 .2 .3" quat="1 .2 .3 .4"/></body>
          </body>
        </frame>
      </body>
      <body name="rod" pos="1 0 0"><joint name="rod" class="main" type="ball" pos="0 0 .1"/>
        <joint name="slide" type="slide"/>
        <inertial pos="0 0 .2" mass=".3" diaginertia="1e-3 2e-3 2e-3"/></body>
      <body name="last" pos="1 1 0"><joint name="other"/>
        <inertial pos="0 0 .2" mass=".3" diaginertia="1e-3 2e-3 2e-3"/><site name="end" pos="0 .1 .2"/></body>
    </body>
  </worldbody>
  <tendon><fixed name="cable" damping=".6" stiffness="2"><joint joint="elbow" coef=".3"/><joint joint="slide" coef="2"/>
    </fixed></tendon>
  <equality>
    <connect name="loop" body1="lower" body2="rod" anchor=".3 .1 .2"/>
    <weld name="hold" site1="tip" site2="end"/>
    <weld name="stated" body1="upper" body2="last" relpose=".1 .2 .3 1 .2 .3 .4" anchor=".1 0 .2"/>
    <weld name="as it stands" body1="lower" body2="last" anchor=".1 0 .2"/>
    <joint name="gears" joint1="other" joint2="elbow" polycoef=".1 -2 .3 0 0"/>
  </equality>
  <actuator><motor name="motor" class="arm" joint="shoulder" forcerange="-3 5"/>
    <motor name="pull" tendon="cable"/></actuator>
</mujoco>
"""
INERTIAL = (
    '<inertial><origin xyz=".1 .2 .3" rpy=".3 .2 .1"/><mass value="{mass}"/>'
    '<inertia ixx=".02" iyy=".03" izz=".04" ixy=".001" ixz="-.002" iyz=".003"/></inertial>'
)
URDF = f"""<robot name="r">
  <link name="base"/>
  <link name="upper">{INERTIAL.format(mass=1.5)}</link>
  <link name="lower">{INERTIAL.format(mass=0.7)}</link>
  <link name="tool">{INERTIAL.format(mass=0.2)}</link>
  <link name="last">{INERTIAL.format(mass=0.3)}</link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz=".1 0 .3" rpy=".1 .2 .3"/><axis xyz="0 1 2"/><limit lower="-1" upper="2" effort="8" velocity="1"/>
    <dynamics damping=".2" friction=".4"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz=".3 0 0" rpy="1 .2 .3"/>
    <axis xyz="1 2 3"/><dynamics damping=".2" friction=".4"/></joint>
  <joint name="tool" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz=".3 0 0" rpy="1 .2 .3"/></joint>
  <joint name="other" type="revolute"><parent link="base"/><child link="last"/><origin xyz="1 0 0" rpy=".2 0 1"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="0" velocity="1"/>
    <mimic joint="elbow" multiplier="-2" offset=".3"/></joint>
  <constraint name="loop" type="spherical"><parent link="tool"/><child link="last"/>
    <parent_origin xyz=".1 .2 .3" rpy=".1 .2 .3"/><child_origin xyz="0 .3 .1"/></constraint>
  <transmission name="t"><joint name="shoulder"/><actuator name="motor"><mechanicalReduction>7</mechanicalReduction>
    </actuator></transmission>
</robot>
"""


def _sdf_link(name: str, pose: str, mass: float) -> str:
    return (
        f'<link name="{name}"><pose>{pose}</pose><inertial><pose>.1 .2 .3 .3 .2 .1</pose><mass>{mass}</mass>'
        "<inertia><ixx>.02</ixx><iyy>.03</iyy><izz>.04</izz><ixy>.001</ixy><ixz>-.002</ixz><iyz>.003</iyz></inertia>"
        "</inertial></link>"
    )


def _sdf_joint(name: str, kind: str, parent: str, child: str, axis: str = "", pose: str = "") -> str:
    """A joint; the axis without its tag."""
    inner = f"<axis>{axis}</axis>" if axis else ""
    return (
        f'<joint name="{name}" type="{kind}">{pose}<parent>{parent}</parent><child>{child}</child>{inner}'
        "<drake:rotor_inertia>.0003</drake:rotor_inertia><drake:gear_ratio>10</drake:gear_ratio></joint>"
    )


FORCES = (
    "<dynamics><damping>.2</damping><friction>.4</friction><spring_stiffness>3</spring_stiffness>"
    "<spring_reference>.4</spring_reference></dynamics>"
)
RANGE = "<limit><lower>-1</lower><upper>2</upper><effort>8</effort></limit>"
MIMIC = '<mimic joint="elbow"><multiplier>-2</multiplier><offset>.3</offset><reference>.1</reference></mimic>'
SDF = "".join(
    [
        '<sdf version="1.11"><world name="w"><gravity>1 2 -9</gravity><model name="m"><pose>0 0 1 .1 .2 .3</pose>',
        _sdf_link("upper", ".1 0 .3 .1 .2 .3", 1.5),
        _sdf_link("lower", ".4 0 .3 .3 .2 .3", 0.7),
        _sdf_link("tool", ".6 0 .3 .3 1 .3", 0.2),
        _sdf_link("last", "1 0 0 .3 1 .3", 0.3),
        '<frame name="tip" attached_to="tool"><pose>.1 .2 .3 .1 .2 .3</pose></frame>',
        _sdf_joint("shoulder", "revolute", "world", "upper", f"<xyz>0 1 2</xyz>{RANGE}{FORCES}"),
        _sdf_joint(
            "elbow",
            "revolute",
            "upper",
            "lower",
            f'<xyz expressed_in="__model__">1 2 3</xyz>{FORCES}',
            '<pose relative_to="upper">.2 .1 0 1 2 3</pose>',
        ),
        _sdf_joint("fixed", "fixed", "lower", "tool"),
        _sdf_joint("other", "revolute", "world", "last", f"<xyz>0 0 1</xyz>{RANGE}{MIMIC}"),
        _sdf_joint("loop", "ball", "last", "tip"),
        '<plugin name="gz::sim::systems::JointController" filename="f"><joint_name>shoulder</joint_name><gear>7</gear>',
        "</plugin></model></world></sdf>",
    ]
)
FILES = {"r.xml": MJCF, "r.urdf": URDF, "r.sdf": SDF}
Edit = Callable[[Any], Any]


def read(folder: Path, name: str, text: str = "") -> Comparison:
    path = folder / name
    path.write_text(text or FILES[name], encoding="utf-8")
    return compare_with_file(describe(path).mechanism)


def seed(monkeypatch: pytest.MonkeyPatch, function: str, edit: Edit) -> None:
    """Let the result of a function of the first reader be edited."""
    original = getattr(mjcf, function)
    monkeypatch.setattr(mjcf, function, lambda *arguments: edit(original(*arguments)))


def of(element: str, **values: Any) -> Edit:
    """A fault of an element of that name; values may be functions of the right value."""

    def edit(right: Any) -> Any:
        if right.name != element:
            return right
        return replace(
            right, **{k: value(getattr(right, k)) if callable(value) else value for k, value in values.items()}
        )

    return edit


def loop(wrong: Callable[[Any], Any], kind: type = ConnectClosure) -> Edit:
    return lambda right: wrong(right) if isinstance(right, kind) else right


def _turned(vector: Any) -> Any:
    return np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ vector


def _products_flipped(tensor: Any) -> Any:
    return 2 * np.diag(np.diag(tensor)) - tensor


ALL = ("r.xml", "r.urdf", "r.sdf")
FAULTS: dict[str, tuple[tuple[str, ...], str, Edit, str, str]] = {
    "tensor not turned": (ALL, "_body", of("upper", inertia=np.diag([0.02, 0.03, 0.04])), "body 'upper'", "inertia"),
    "sign of products": (ALL, "_body", of("upper", inertia=_products_flipped), "body 'upper'", "inertia"),
    "tensor about another point": (
        ALL,
        "_body",
        of("upper", inertia=lambda I: I + np.eye(3) * 1e-6),
        "body 'upper'",
        "inertia",
    ),
    "mass scaled": (ALL, "_body", of("upper", mass=lambda m: m * (1 + 1e-8)), "body 'upper'", "mass"),
    "centre lost": (ALL, "_body", of("upper", center=np.zeros(3)), "body 'upper'", "mass centre"),
    "fixed link lost": (ALL, "_body", of("tool", mass=0.0, inertia=np.zeros((3, 3))), "body 'lower'", "mass"),
    "fixed link at the wrong place": (ALL, "_body", of("tool", position=np.zeros(3)), "body 'lower'", "mass centre"),
    "fixed link not turned": (ALL, "_body", of("tool", rotation=np.eye(3)), "body 'lower'", "mass centre"),
    "pose of a link not turned": (ALL, "_body", of("upper", rotation=np.eye(3)), "joint 'shoulder'", "axis"),
    "weight compensation lost": (
        ("r.xml",),
        "_body",
        of("upper", gravity_compensation=0.0),
        "body 'upper'",
        "mass without weight",
    ),
    "axis in the wrong frame": (ALL, "_joint", of("elbow", axis=_turned), "joint 'elbow'", "axis"),
    "axis reversed": (ALL, "_joint", of("elbow", axis=np.negative), "joint 'elbow'", "axis"),
    "joint at the wrong place": (
        ALL,
        "_joint",
        of("shoulder", anchor=lambda p: p + 1e-6),
        "joint 'shoulder'",
        "place of the axis",
    ),
    "range in degrees": (
        ALL,
        "_joint",
        of("shoulder", limits=lambda r: tuple(np.rad2deg(r))),
        "joint 'shoulder'",
        "lower limit",
    ),
    "range lost": (ALL, "_joint", of("shoulder", limits=None), "joint 'shoulder'", "lower limit"),
    "damping lost": (ALL, "_joint", of("elbow", damping=0.0), "joint 'elbow'", "damping"),
    "friction lost": (ALL, "_joint", of("elbow", friction=0.0), "joint 'elbow'", "friction"),
    "armature lost": (("r.xml", "r.sdf"), "_joint", of("elbow", armature=0.0), "joint 'elbow'", "armature"),
    "gear of a rotor not squared": (("r.sdf",), "_joint", of("elbow", armature=0.003), "joint 'elbow'", "armature"),
    "spring lost": (("r.xml", "r.sdf"), "_joint", of("shoulder", stiffness=0.0), "joint 'shoulder'", "stiffness"),
    "rest of a spring lost": (
        ("r.xml", "r.sdf"),
        "_joint",
        of("shoulder", spring_reference=np.zeros(1)),
        "joint 'shoulder'",
        "spring reference",
    ),
    "ref lost": (("r.xml",), "_joint", of("shoulder", rest_position=np.zeros(1)), "joint 'shoulder'", "position"),
    "kind of joint": (ALL, "_joint", of("elbow", kind="slide"), "joint 'elbow'", "kind"),
    "joint on another body": (("r.xml",), "_joint", of("other", body=0), "joint 'other'", "links"),
    "gear lost": (ALL, "_actuator", of("motor", gear=1.0), "actuator 'motor'", "gear"),
    "effort limit lost": (("r.xml", "r.urdf"), "_actuator", of("motor", limits=()), "actuator 'motor'", "lower"),
    "anchor at an open pose": (ALL, "_closure", loop(lambda c: replace(c, point2=c.point1)), "", "point"),
    "ends of a closure swapped": (
        ALL,
        "_closure",
        loop(lambda c: replace(c, body1=c.body2, body2=c.body1)),
        "",
        "point",
    ),
    "closure on another body": (ALL, "_closure", loop(lambda c: replace(c, body1=0)), "", "links"),
    "rotation of a weld": (
        ("r.xml",),
        "_closure",
        loop(lambda c: replace(c, rotation=c.rotation.T), WeldClosure),
        "equality 'hold'",
        "rotation",
    ),
    "offset of a coupling lost": (
        ALL,
        "_closure",
        loop(lambda c: replace(c, coefficients=c.coefficients * [0, 1, 1, 1, 1]), CoordinateClosure),
        "joint 'other'",
        "coefficient 0",
    ),
    "multiplier lost": (
        ALL,
        "_closure",
        loop(lambda c: replace(c, coefficients=np.where(np.arange(5) == 1, 1.0, c.coefficients)), CoordinateClosure),
        "joint 'other'",
        "coefficient 1",
    ),
    "coefficient of a tendon": (
        ("r.xml",),
        "_tendon",
        lambda t: replace(t, length=replace(t.length, weights=np.ones(2))),
        "tendon 'cable'",
        "weight",
    ),
    "damping of a tendon": (("r.xml",), "_tendon", lambda t: replace(t, damping=0.0), "tendon 'cable'", "damping"),
}
SEEDED = [(fault, name) for fault, (names, *_) in FAULTS.items() for name in names]


@pytest.mark.parametrize("name", FILES)
def test_both_readers_agree_on_a_file_with_every_element(name: str, tmp_path: Path) -> None:
    comparison = read(tmp_path, name)
    assert (comparison.differences, comparison.unread) == ((), "")
    assert comparison.compared > 80


@pytest.mark.parametrize(("fault", "name"), SEEDED)
def test_a_fault_of_the_first_reader_is_an_error_with_both_values(
    fault: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, function, edit, element, quantity = FAULTS[fault]
    if name == "r.sdf" and function == "_actuator":
        edit, element = of("shoulder", gear=1.0), "actuator 'shoulder'"
    seed(monkeypatch, function, edit)
    found = read(tmp_path, name).differences
    fits = [
        d
        for d in found
        if d.quantity.startswith(quantity) and (not element or name == "r.urdf" or d.element == element)
    ]
    assert fits, found
    assert fits[0].first != fits[0].second
    findings = [finding for finding in gate(str(tmp_path / name)).findings if finding.code == "LC106"]
    assert [finding.message for finding in findings] == [str(difference) for difference in found]
    assert all(Path(finding.file).name == name for finding in findings)


def test_a_lost_joint_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The links on both sides are fused."""
    original = mjcf._mechanism

    def fused(*arguments: Any, **options: Any) -> Any:
        mechanism = original(*arguments, **options)
        last = mechanism.joints[-1].name
        return replace(
            mechanism,
            joints=mechanism.joints[:-1],
            closures=tuple(
                c for c in mechanism.closures if not isinstance(c, CoordinateClosure) or c.follower.name != last
            ),
            keyframes={},
        )

    monkeypatch.setattr(mjcf, "_mechanism", fused)
    for name in FILES:
        assert any(d.quantity == "kind" and d.first == "no such joint" for d in read(tmp_path, name).differences), name


@pytest.mark.parametrize(
    ("compiler", "confirmed"),
    [
        ('balanceinertia="true"', True),
        ('boundmass=".4" boundinertia=".025"', True),
        ('settotalmass="12"', True),
        ('inertiafromgeom="false"', True),
        ('autolimits="true" angle="radian"', True),
        ('inertiafromgeom="true"', False),
    ],
)
def test_settings_of_the_compiler_apply_to_both(compiler: str, confirmed: bool, tmp_path: Path) -> None:
    """Where they make the inertia one of the geometry, it is not confirmed."""
    text = MJCF.replace("<compiler", f"<compiler {compiler}").replace("<site", '<geom size=".1"/><site')
    text = (
        text.replace('diaginertia="1e-3 2e-3 2e-3"', 'diaginertia="1e-3 1e-3 3e-3"') if "balance" in compiler else text
    )
    comparison = read(tmp_path, "r.xml", text)
    assert (comparison.differences, comparison.unread) == ((), "")
    assert (comparison.compared > 150) == confirmed


def test_what_the_second_reader_does_not_read_is_no_finding(tmp_path: Path) -> None:
    copies = '<replicate count="2" offset="0 0 1"><body name="x"/></replicate>'
    comparison = read(tmp_path, "r.xml", MJCF.replace('<body name="last"', f'{copies}<body name="last"'))
    assert (comparison.differences, comparison.compared) == ((), 0)
    assert "replicate" in comparison.unread


@pytest.mark.parametrize("version", ["1.4", "1.5", "1.6", "1.6 in the model", "1.7"])
def test_axes_of_older_versions_have_their_frame(version: str, tmp_path: Path) -> None:
    """Up to 1.4 that of the model, then that of the joint unless the axis says otherwise."""
    number, _, in_model = version.partition(" ")
    stated = "<use_parent_model_frame>true</use_parent_model_frame>" if in_model else ""
    axis, pose = f"<xyz>1 2 3</xyz>{stated}", "<pose>.2 .1 0 1 2 3</pose>"
    ends = "<parent>upper</parent><child>lower</child>"
    joint = f'<joint name="hinge" type="revolute">{pose}{ends}<axis>{axis}</axis></joint>'
    links = _sdf_link("upper", ".1 0 .3 .1 .2 .3", 1.5) + _sdf_link("lower", ".4 0 .3 .3 .2 .3", 0.7)
    text = f'<sdf version="{number}"><model name="m"><pose>0 0 1 .1 .2 .3</pose>{links}{joint}</model></sdf>'
    comparison = read(tmp_path, "old.sdf", text)
    assert (comparison.differences, comparison.unread) == ((), "")
    (hinge,) = (joint for joint in second_reading(tmp_path / "old.sdf").joints if joint.kind == "hinge")
    turns = [(0.1, 0.2, 0.3), *([] if number == "1.4" or in_model else [(0.3, 0.2, 0.3), (1, 2, 3)])]
    R = np.linalg.multi_dot([np.eye(3), *(Rotation.from_euler("xyz", angles).as_matrix() for angles in turns)])
    assert hinge.axis is not None
    np.testing.assert_allclose(hinge.axis, R @ [1, 2, 3] / np.sqrt(14), atol=1e-14)


def test_a_link_without_weight_is_without_weight_in_both_halves(tmp_path: Path) -> None:
    """A spring at a loop puts half of the link on a second body; the first reader let its half of the weight act."""
    loop = _sdf_joint("loop", "revolute", "last", "tool", f"<xyz>0 0 1</xyz>{FORCES}")
    text = re.sub('<joint name="loop".*?</joint>', loop, SDF).replace(
        "</pose><inertial>", "</pose><gravity>0</gravity><inertial>"
    )
    assert read(tmp_path, "r.sdf", text).differences == ()
    mechanism = describe(tmp_path / "r.sdf").mechanism
    assert len(mechanism.bodies) == 5
    assert {body.gravity_compensation for body in mechanism.bodies} == {1.0}


def test_halves_of_a_link_are_one_link_where_the_loop_is_open(tmp_path: Path) -> None:
    """The second half stands apart in the pose of the file, and moves as the link does once the loop is closed."""
    comparison = read(tmp_path, "r.urdf", URDF.replace('type="spherical"', 'type="prismatic"'))
    assert any(", half at loop" in body.name for body in describe(tmp_path / "r.urdf").mechanism.bodies)
    assert (comparison.differences, comparison.unread) == ((), "")


def test_motors_that_replace_those_of_the_file_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(MJCF, encoding="utf-8")
    mechanism = describe(tmp_path / "r.xml").mechanism
    assert compare_with_file(replace(mechanism, actuators=())).differences
    model = replace(mechanism.model, actuated=("elbow",))
    assert compare_with_file(replace(mechanism, actuators=(), model=model)).differences == ()


def test_a_joint_that_the_tree_takes_from_its_child_is_read_alike(tmp_path: Path) -> None:
    """Its axis changes the sign, and the axes of a universal joint change places."""
    links = _sdf_link("upper", ".1 0 .3 .1 .2 .3", 1.5) + _sdf_link("lower", ".4 0 .3 .3 .2 .3", 0.7)
    axes = f"<xyz>0 1 2</xyz>{RANGE}"
    for kind, more in (("revolute", ""), ("screw", ""), ("universal", f"</axis><axis2>{axes}</axis2><axis>")):
        joints = _sdf_joint("first", "revolute", "world", "lower", axes) + _sdf_joint(
            "second", kind, "upper", "lower", axes + more
        )
        text = f'<sdf version="1.11"><model name="m">{links}{joints}</model></sdf>'.replace("<axis></axis>", "")
        text = re.sub(r"<drake:.*?</drake:\w+>", "", text)  # a rotor has one axis
        comparison = read(tmp_path, "r.sdf", text)
        assert (comparison.differences, comparison.unread) == ((), ""), kind


def test_rotations_of_mjcf_are_those_of_its_definition(tmp_path: Path) -> None:
    """By scipy: the reference uses MuJoCo's."""
    stated = {
        'quat="1 2 3 4"': Rotation.from_quat([1, 2, 3, 4], scalar_first=True),
        'axisangle="1 2 3 50"': Rotation.from_rotvec(np.deg2rad(50) * np.array([1, 2, 3]) / np.sqrt(14)),
        'euler="10 20 30"': Rotation.from_euler("xyz", [10, 20, 30], degrees=True),
        'zaxis="0 1 0"': Rotation.from_rotvec([-np.pi / 2, 0, 0]),
        'zaxis="0 0 -1"': Rotation.from_rotvec([np.pi, 0, 0]),
        'xyaxes="0 2 0 -3 1 0"': Rotation.from_rotvec([0, 0, np.pi / 2]),
    }
    bodies = "".join(
        f'<body {text}><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>' for text in stated
    )
    path = tmp_path / "turned.xml"
    path.write_text(f'<mujoco><compiler eulerseq="XYZ"/><worldbody>{bodies}</worldbody></mujoco>', encoding="utf-8")
    for link, (text, R) in zip(second_reading(path).links, stated.items(), strict=True):
        np.testing.assert_allclose(link.X[:3, :3], R.as_matrix(), atol=1e-14, err_msg=text)


def test_conventions_are_notes_with_both_readings(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    text = URDF.replace('lower="-1" upper="2"', 'lower="2" upper="-1"')
    limit = '<limit lower="-1" upper="1" effort="8" velocity="1"/>'
    path.write_text(text.replace('type="continuous">', f'type="continuous">{limit}'), encoding="utf-8")
    findings = gate(str(path)).findings
    assert "LC106" not in {finding.code for finding in findings}
    assert sorted(finding.message for finding in findings if finding.code == "LC307") == [
        "read an effort limit of 0 as no limit (taken literally, the joint has no effort): other",
        "read limits with lower ≥ upper as no limits (taken literally, the joint is locked): shoulder",
        "read the limits of a continuous joint as no limits (taken literally, the joint has limits): elbow",
    ]


def test_a_world_that_the_file_does_not_declare_is_a_convention(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(URDF.replace('<link name="base"/>', "").replace('"base"', '"world"'), encoding="utf-8")
    table = second_reading(path)
    assert [names for words, names in table.conventions.items() if "declare" in words] == [["world"]]
    assert "world" in {link.name for link in table.links}


def test_models_of_the_repository_are_read_alike() -> None:
    files = sorted([*CATALOGUE.glob("*/*.xml"), *MODELS.glob("*.xml"), *MODELS.glob("*/*.xml")])
    comparisons = {path: compare_with_file(describe(path).mechanism) for path in files if path.name != "missing.xml"}
    assert {path: comparison.differences for path, comparison in comparisons.items() if comparison.differences} == {}
    assert sum(comparison.compared for comparison in comparisons.values()) > 5000


def test_the_second_reader_shares_no_code_with_the_first() -> None:
    """Only the comparison imports other modules of ours."""
    for path in SECOND.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        ours = [module for module in modules if module.startswith("loopcheck.")]
        others = [module for module in ours if not module.startswith("loopcheck.robots.second_reading.")]
        assert not others or path.name == "differences.py", path


def test_links_that_move_as_one_are_a_dumbbell() -> None:
    """Two points of 1 and 3 kg, 2 m apart: m₁m₂/(m₁ + m₂) d² across, by hand."""
    ends = [np.eye(4), np.eye(4)]
    ends[1][:3, 3] = (0, 2, 0)
    zero, none = np.zeros(3), np.zeros((3, 3))
    links = [Link(name=str(m), X=X, mass=m, center=zero, inertia=none) for m, X in zip((1.0, 3.0), ends, strict=True)]
    mass, center, inertia = _sum(links)
    assert (mass, list(center)) == (4, [0, 1.5, 0])
    assert inertia == pytest.approx(np.diag([3.0, 0, 3.0]))
