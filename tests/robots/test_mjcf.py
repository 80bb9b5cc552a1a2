"""Faults of a model are reported in a single line; unsupported elements are refused by name, never dropped."""

from dataclasses import replace
from pathlib import Path

import mujoco  # noqa: TID251
import numpy as np
import pytest

from loopcheck.analytic.kinematics.closures import closure_jacobian_at, null_space
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism, with_overrides
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Wrench

BODY = '<body name="arm"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
MODEL = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<body", "<bdy", "MuJoCo's compiler rejected the file: XML parse error"),
        ("</mujoco>", "", "MuJoCo's compiler rejected the file: XML parse error"),
        (
            "<worldbody>",
            "<worldbdy/><worldbody>",
            "rejected the file: XML Error: .* unrecognized element Element 'worldbdy', line 1",
        ),
        ('mass="1"', 'mass="nan"', 'numbers must be finite, got mass="nan" in line 1'),
        ('pos="0 0 0"', 'pos="0 nan 0"', 'numbers must be finite, got pos="0 nan 0" in line 1'),
        ('<joint name="j"/>', "<joint name='j' axis='0 0 0'/>", "MuJoCo's compiler rejected the file: .*axis"),
        (
            "</mujoco>",
            '<keyframe><key name="k" qpos="0 0"/></keyframe></mujoco>',
            "MuJoCo's compiler rejected the file: .*qpos",
        ),
        (
            '<joint name="j"/>',
            '<joint name="j" damping="1 2"/>',
            "not supported: nonlinear spring or damper of joint 'j'",
        ),
        ("<worldbody>", '<option timestep="0"/><worldbody>', "option timestep: must be above 0 s, got 0 s"),
        ("<worldbody>", '<option timestep="-1e-3"/><worldbody>', "option timestep: must be above 0 s, got -0.001 s"),
        ("<worldbody>", '<option density="1.2"/><worldbody>', "not supported: drag of a medium"),
        ("<worldbody>", '<option><flag spring="disable"/></option><worldbody>', "not supported: option flag spring"),
        (
            "</mujoco>",
            '<actuator><motor name="m" site="s"/></actuator></mujoco>',
            "MuJoCo's compiler rejected the file|not supported: actuator 'm'",
        ),
    ],
)
def test_a_bad_model_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(MODEL.replace(old, new), encoding="utf-8")
    with pytest.raises(MechanismError, match=message) as caught:
        read_mechanism(ModelFile(path=path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=r"nowhere\.xml: must be an existing model file"):
        read_mechanism(ModelFile(path=tmp_path / "nowhere.xml"))


WRAPPING = """
<site name="s"/><site name="t" pos="1 0 0"/><geom name="wheel" type="cylinder" size="0.1 0.1" mass="0"/></worldbody>
<tendon><spatial name="cable"{}><site site="s"/><geom geom="wheel"/><site site="t"/></spatial></tendon>"""


def test_a_tendon_that_acts_on_nothing_may_wrap(tmp_path: Path) -> None:
    """It is measured or drawn alone; a tendon with a spring is refused as before."""
    path = tmp_path / "cable.xml"
    path.write_text(MODEL.replace("</worldbody>", WRAPPING.format("")), encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=path))
    assert mechanism.point_springs == ()
    assert "spatial tendons without spring, damper, armature or actuator: cable" in mechanism.left_out
    path.write_text(MODEL.replace("</worldbody>", WRAPPING.format(' stiffness="1"')), encoding="utf-8")
    with pytest.raises(MechanismError, match="not supported: spatial tendon 'cable', which wraps around geom 'wheel'"):
        read_mechanism(ModelFile(path=path))


TOUCH = """<sensor><plugin name="touch" plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
<config key="size" value="3 3"/><config key="fov" value="45 45"/><config key="gamma" value="0"/>
<config key="nchannel" value="1"/></plugin></sensor></mujoco>"""
PID = """<actuator><plugin name="p" plugin="mujoco.pid" joint="j"><config key="kp" value="1"/></plugin></actuator>
</mujoco>"""


def test_plugins_are_refused_where_they_act(tmp_path: Path) -> None:
    """Names of sensors do not."""
    path = tmp_path / "plugin.xml"

    def write(name: str, after: str) -> None:
        extension = f'<extension><plugin plugin="{name}"/></extension><worldbody><site name="s"/>'
        path.write_text(MODEL.replace("<worldbody>", extension).replace("</mujoco>", after), encoding="utf-8")

    write("mujoco.sensor.touch_grid", TOUCH)
    assert "plugins of sensors, geometry and rendering" in read_mechanism(ModelFile(path=path)).left_out
    write("mujoco.pid", PID)
    with pytest.raises(MechanismError, match="not supported: plugins of bodies or actuators"):
        read_mechanism(ModelFile(path=path))


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    text = MODEL.replace(
        '<joint name="j"/>', '<joint name="j" frictionloss="1" range="-1 1" limited="true"/><geom size="1"/>'
    )
    (tmp_path / "model.xml").write_text(text, encoding="utf-8")
    left_out = read_mechanism(ModelFile(path=tmp_path / "model.xml")).left_out
    assert left_out == ("dry friction of joints j", "limits of joints j", "contacts between geoms")


def test_overrides_change_the_model(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(MODEL, encoding="utf-8")
    model = ModelFile(path=tmp_path / "model.xml", overrides={"body": {"arm": {"mass": 2.5, "inertia": [1, 2, 2.5]}}})
    arm = read_mechanism(model).bodies[0]
    assert arm.mass == 2.5
    np.testing.assert_allclose(arm.inertia, np.diag([1, 2, 2.5]), atol=1e-15)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"bodyy": {"arm": {"mass": 1.0}}},
            "unknown kind of element in the overrides of model.xml: 'bodyy'. Did you mean 'body'. Known: body",
        ),
        ({"body": {"leg": {"mass": 1.0}}}, "unknown body in model.xml: 'leg'. Known: world, arm"),
        ({"body": {"arm": {"mas": 1.0}}}, "unknown attribute of body 'arm' in model.xml: 'mas'. Did you mean 'mass'"),
        ({"body": {"arm": {"parent": "world"}}}, "unknown attribute of body 'arm' in model.xml: 'parent'"),
        ({"body": {"arm": {"add_joint": 1}}}, "unknown attribute of body 'arm' in model.xml: 'add_joint'"),
        ({"body": {"arm": {"mass": "heavy"}}}, "body 'arm': invalid value 'heavy' of attribute 'mass'"),
    ],
)
def test_an_override_of_nothing_is_refused(tmp_path: Path, overrides: dict, message: str) -> None:  # type: ignore[type-arg]
    (tmp_path / "model.xml").write_text(MODEL, encoding="utf-8")
    with pytest.raises((MechanismError, NotFoundError), match=message):
        read_mechanism(ModelFile(path=tmp_path / "model.xml", overrides=overrides))


def test_no_log_file_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.xml").write_text(MODEL.replace('pos="0 0 0"', 'pos="0 nan 0"'), encoding="utf-8")
    with pytest.raises(MechanismError):
        read_mechanism(ModelFile(path=tmp_path / "bad.xml"))
    assert [path.name for path in tmp_path.iterdir()] == ["bad.xml"]


def test_overrides_keep_what_the_file_cannot_hold(tmp_path: Path) -> None:
    """Gravity of the configuration, external wrenches, effort scales, and the overrides that were there."""
    motor = '<actuator><motor name="m" joint="j"/></actuator></mujoco>'
    (tmp_path / "model.xml").write_text(MODEL.replace("</mujoco>", motor), encoding="utf-8")
    model = ModelFile(path=tmp_path / "model.xml", overrides={"body": {"arm": {"mass": 2.5}}})
    load = Wrench(body=0, point=np.ones(3), moment=np.zeros(3), force=np.ones(3))
    read = read_mechanism(model).with_gravity(np.array([0.0, 1.0, 0.0]))
    mechanism = replace(read, wrenches=(load,), actuators=(replace(read.actuators[0], effort_scale=5.0),))
    stiff = with_overrides(mechanism, {"joint": {"j": {"armature": 0.5}}, "body": {"arm": {"ipos": [0.0, 0.0, 1.0]}}})
    assert (stiff.joints[0].armature, stiff.bodies[0].mass, stiff.bodies[0].center[2]) == (0.5, 2.5, 1.0)
    assert stiff.gravity.tolist() == [0.0, 1.0, 0.0]
    assert (stiff.wrenches, stiff.effort_scales.tolist()) == ((load,), [5.0])


def _link(name: str, at: str, end: str, inside: str = "") -> str:
    return (
        f'<body name="{name}" pos="{at}"><joint name="{name}" axis="0 1 0"/>'
        f'<inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/><site name="{name}" pos="{end}"/>{inside}</body>'
    )


@pytest.mark.parametrize(
    "ends",
    [
        'site1="b" site2="c"',
        'body1="c" body2="b" anchor=".5 0 .1"',
        'body1="c" body2="b" anchor=".5 0 .1" relpose="0 0 .3 1 0 0 0"',
    ],
)
def test_a_weld_whose_torque_scale_is_zero_is_a_connect(ends: str, tmp_path: Path) -> None:
    """MuJoCo's own rows of the file, those of its rotation zero, leave the same motion."""
    bars = _link("a", "0 0 0", "0 0 .2", _link("b", "0 0 .2", ".5 0 .1")) + _link("c", ".5 0 0", "0 0 .3")
    path = tmp_path / "model.xml"
    path.write_text(
        f'<mujoco><worldbody>{bars}</worldbody><equality><weld {ends} torquescale="0"/></equality></mujoco>',
        encoding="utf-8",
    )
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mechanism = read_mechanism(ModelFile(path=path))
    N, mine = (
        null_space(rows) for rows in (data.efc_J.reshape(-1, 3), closure_jacobian_at(mechanism, np.zeros((1, 3)))[0])
    )
    assert N.shape == mine.shape == (3, 1)
    np.testing.assert_allclose(mine @ mine.T, N @ N.T, atol=1e-12)
