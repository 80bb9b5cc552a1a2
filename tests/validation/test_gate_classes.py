"""Classes of faults of a model file, wrong and right beside each other, on both sides of each limit."""

import json
from pathlib import Path

import mujoco  # noqa: TID251
import numpy as np
import pytest
from click.testing import CliRunner

from loopcheck.robots.formats.mjcf import compile_model, describe, read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.validation.cli import cli
from loopcheck.validation.gate import closed_poses
from loopcheck.validation.gate.baseline import new_findings, store
from loopcheck.validation.gate.checks import parameter_checks
from loopcheck.validation.gate.checks.softness import opening
from loopcheck.validation.gate.checks.trusses import has_definite, held_dofs, trusses
from loopcheck.validation.gate.findings import RULES, Finding
from loopcheck.validation.gate.formats import GateResult, as_markdown, as_text
from loopcheck.validation.gate.gate import gate

ARM = """<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002"/>
  <worldbody>
    <body name="arm">
      <joint name="j" axis="0 1 0"/><geom name="g" type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="j" ctrlrange="-10 10" ctrllimited="true"/></actuator>
</mujoco>
"""
"""A pendulum of 1 kg, 0.15 m beside its hinge at the start: its weight takes 1.4715 N m."""
JOINT, MOTOR = '<joint name="j" axis="0 1 0"/>', '<motor name="m" joint="j" ctrlrange="-10 10" ctrllimited="true"/>'
LINK = '<geom type="capsule" size=".01" fromto="0 0 0 {0}" density="500" contype="0" conaffinity="0"/>'


def _findings(folder: Path, text: str) -> list[Finding]:
    path = folder / "model.xml"
    path.write_text(text, encoding="utf-8")
    return list(gate(str(path)).findings)


def _codes(folder: Path, text: str) -> set[str]:
    return {finding.code for finding in _findings(folder, text)}


def _joint(attributes: str) -> str:
    return ARM.replace(JOINT, JOINT.replace("/>", f" {attributes}/>"))


def _option(attributes: str) -> str:
    return ARM.replace("<option", f"<option {attributes}")


def _drive(drives: str) -> str:
    return ARM.replace(MOTOR, drives)


def _with_equality(attributes: str) -> str:
    """A second arm whose joint follows that of the first."""
    other = '<body name="b"><joint name="k"/><geom size=".1"/></body></worldbody>'
    equality = f'<equality><joint name="e" joint1="k" joint2="j" {attributes}/></equality></mujoco>'
    return ARM.replace("</worldbody>", other).replace("</mujoco>", equality)


def _keyed(ctrl: str) -> str:
    return ARM.replace("</mujoco>", f'<keyframe><key name="home" qpos="0" ctrl="{ctrl}"/></keyframe></mujoco>')


def _cube(mass: float) -> str:
    """A body of 0.3 m between joint and mass centre, with a small inertia."""
    moment = 1e-3 * mass
    inertial = f'<inertial pos=".3 0 0" mass="{mass}" diaginertia="{moment} {moment} {moment}"/>'
    return ARM.replace(JOINT, JOINT + inertial)


def _servo(span: float, more: str = "") -> str:
    servo = f'<position name="m" joint="j" kp="1" ctrlrange="-{span} {span}" ctrllimited="true" {more}/>'
    return _joint('range="-1 1" limited="true"').replace(MOTOR, servo)


TILTED = "{:.6f} 0 {:.6f}"
EACH = [
    # gravity: notes, but for one that points up and one in mm/s²
    (_option('gravity="0 0 9.81"'), "LC213", True),
    (_option('gravity="0 0 9.01"'), "LC213", True),
    (_option('gravity="0 0 8.99"'), "LC213", False),
    (_option('gravity="0 0 10.51"'), "LC213", False),
    (_option(f'gravity="{TILTED.format(9.81 * np.sin(0.51), 9.81 * np.cos(0.51))}"'), "LC213", True),
    (_option(f'gravity="{TILTED.format(9.81 * np.sin(0.54), 9.81 * np.cos(0.54))}"'), "LC213", False),
    (_option('gravity="0 9.81 0"'), "LC213", False),
    (_option('gravity="0 0 0"'), "LC308", True),
    (_option("").replace("<option", '<option><flag gravity="disable"/></option><option'), "LC308", True),
    (_option('gravity="0 0 -.09"'), "LC308", True),
    (_option('gravity="0 0 -.11"'), "LC308", False),
    (_option('gravity="0 0 -99"'), "LC308", False),
    (_option('gravity="0 0 -981"'), "LC308", True),
    (_option('gravity="0 0 -981"'), "LC208", False),
    (_option('gravity="0 0 -9810"'), "LC208", True),
    (_option('gravity="0 0 -9810"'), "LC308", False),
    # signs
    (_joint('damping="-1"'), "LC109", True),
    (_joint('armature="-.001"'), "LC109", True),
    (_joint('frictionloss="-1"'), "LC109", True),
    (_joint('damping="1" armature="1" frictionloss="1"'), "LC109", False),
    (_drive('<position joint="j" kp="-4"/>'), "LC109", True),
    (_drive('<position joint="j" kp="4" kv="1"/>'), "LC109", False),
    (_drive('<velocity joint="j" kv="-4"/>'), "LC109", True),
    (_drive('<velocity joint="j" kv="4"/>'), "LC109", False),
    (_drive('<general joint="j" gainprm="4" biastype="affine" biasprm="0 4 0"/>'), "LC109", True),
    (_drive('<general joint="j" gainprm="4" biastype="affine" biasprm="0 0 4"/>'), "LC109", True),
    (_drive('<general joint="j" gainprm="4" biastype="affine" biasprm="9 4 0"/>'), "LC109", False),  # a force law
    (_drive('<general joint="j" gainprm="-4" biastype="affine" biasprm="0 -4 0"/>'), "LC109", True),
    (_drive('<general joint="j" gainprm="-.01" biastype="affine" biasprm="0 -4 0"/>'), "LC109", False),  # closes at 1
    (_drive('<motor joint="j" gear="-4"/>'), "LC109", False),
    (
        _drive(MOTOR.replace("-10 10", "-5 5").replace("/>", ' gear="2"/>')).replace(
            JOINT, JOINT.replace("/>", ' frictionloss="9"/>')
        ),
        "LC110",
        False,
    ),
    # friction: below, up to 5 % above, more
    (_joint('frictionloss="10.1"'), "LC110", True),
    (_joint('frictionloss="10.1"'), "LC214", False),
    (_joint('frictionloss="10"'), "LC110", False),
    (_joint('frictionloss="10"'), "LC214", True),
    (_joint('frictionloss="9.53"'), "LC214", True),
    (_joint('frictionloss="9.51"'), "LC214", False),
    (_joint('frictionloss="10.1"').replace("<actuator>", '<actuator><motor joint="j"/>'), "LC110", False),
    (_joint('frictionloss="10.1" actuatorfrcrange="-9 9"').replace('"-10 10"', '"-99 99"'), "LC110", True),
    # weight
    (_drive(MOTOR.replace("-10 10", "-1.47 1.47")), "LC215", True),
    (_drive(MOTOR.replace("-10 10", "-1.48 1.48")), "LC215", False),
    (_drive(MOTOR.replace("/>", ' forcerange="-1.47 1.47"/>')), "LC215", True),
    (_drive(MOTOR.replace("-10 10", "-.1 .1")).replace("<option", '<option gravity="0 0 0"'), "LC215", False),
    (_joint('stiffness="1"').replace("-10 10", "-.1 .1"), "LC215", False),
    (_joint("").replace("-10 10", "-.1 .1").replace("<joint", "<freejoint/><!-- <joint", 1), "LC101", True),
    # flags, with something to switch off
    (_with_equality("").replace("<option", '<option><flag equality="disable"/></option><option'), "LC108", True),
    (_with_equality("").replace("<option", '<option><flag constraint="disable"/></option><option'), "LC108", True),
    (_option("").replace("<option", '<option><flag constraint="disable"/></option><option'), "LC108", False),
    (_option("").replace("<option", '<option><flag actuation="disable"/></option><option'), "LC108", True),
    (_drive("").replace("<option", '<option><flag actuation="disable"/></option><option'), "LC108", False),
    (
        _with_equality('active="false"').replace("<option", '<option><flag equality="disable"/></option><option'),
        "LC108",
        False,
    ),
    # controls of keyframes
    (_keyed("12.1"), "LC218", True),
    (_keyed("-12.1"), "LC218", True),
    (_keyed("11.9"), "LC218", False),
    (_keyed("0").replace("-10 10", "5 6"), "LC218", False),
    # angles
    (_joint('range="-1 12.6" limited="true"'), "LC219", True),
    (_joint('range="-12.6 1" limited="true"'), "LC219", True),
    (_joint('range="-12.566 12.5" limited="true"'), "LC219", False),
    (_joint('range="-1e6 1e6" limited="true"'), "LC219", False),  # a wheel
    (_joint('range="-400 400" limited="true"').replace("radian", "degree"), "LC219", False),
    (_joint('type="slide" range="-60 60" limited="true"'), "LC219", False),
    (_joint('stiffness="1" springref="6.4"'), "LC219", True),
    (_joint('stiffness="1" springref="6.2"'), "LC219", False),
    (_joint('springref="64"'), "LC219", False),
    (_servo(10.1), "LC219", True),
    (_servo(9.9), "LC219", False),
    (_servo(99, 'gear="10"'), "LC219", False),
    (_joint('range="-1 1" limited="true"').replace("-10 10", "-99 99"), "LC219", False),
    (_servo(57).replace("radian", "degree").replace('range="-1 1"', 'range="-57 57"', 1), "LC219", True),
    (_joint('range="-4.9e-4 4.9e-4" limited="true"'), "LC220", True),
    (_joint('range="-5.1e-4 5.1e-4" limited="true"'), "LC220", False),
    (_drive("").replace(JOINT, JOINT.replace("/>", ' range="-1e-5 1e-5" limited="true"/>')), "LC220", False),
    # masses and armatures
    (ARM.replace('mass="1"', 'density="23100"'), "LC216", True),
    (ARM.replace('mass="1"', 'density="22900"'), "LC216", False),
    (_cube(630), "LC216", True),
    (_cube(610), "LC216", False),
    (_cube(610).replace(".3 0 0", ".09 0 0"), "LC216", False),  # a point mass
    (_joint('armature="10.1"'), "LC309", True),
    (_joint('armature="9.9"'), "LC309", False),
    (_joint('type="slide" armature="100"'), "LC309", False),
    # time constants, in both forms
    (_with_equality('solref=".051 1"'), "LC217", True),
    (_with_equality('solref=".05 1"'), "LC217", False),
    (_with_equality('solref="-100 -39"'), "LC217", True),
    (_with_equality('solref="-100 -41"'), "LC217", False),
    (_with_equality('solref="-100 0"'), "LC217", True),
    (_with_equality('solref=".0039 1"'), "LC310", True),
    (_with_equality('solref=".0041 1"'), "LC310", False),
    (_with_equality('solref="-1e5 -510"'), "LC310", True),
    (_with_equality('solref="-1e5 -490"'), "LC310", False),
]


@pytest.mark.parametrize(("text", "code", "is_found"), EACH, ids=[f"{k}-{code}" for k, (_, code, _) in enumerate(EACH)])
def test_a_fault_beside_its_limit(text: str, code: str, is_found: bool, tmp_path: Path) -> None:
    assert (code in _codes(tmp_path, text)) == is_found


def test_a_tendon_helps_a_weak_motor_against_friction(tmp_path: Path) -> None:
    weak = _joint('frictionloss="10.1"')
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon></mujoco>'
    text = weak.replace("</actuator>", '<motor tendon="t"/></actuator>').replace("</mujoco>", tendon)
    assert "LC110" in _codes(tmp_path, weak)
    assert "LC110" not in _codes(tmp_path, text)
    rubbed = tendon.replace('name="t"', 'name="t" frictionloss="3"')
    own = ARM.replace("</actuator>", '<motor tendon="t" ctrlrange="-2 2" ctrllimited="true"/></actuator>')
    assert "LC110" in _codes(tmp_path, own.replace("</mujoco>", rubbed))


def test_equalities_of_tendons_are_loops_of_a_flag(tmp_path: Path) -> None:
    fixed = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    spatial = '<tendon><spatial name="t"><site site="s"/><site site="w"/></spatial></tendon>'
    text = ARM.replace(JOINT, f'{JOINT}<site name="s"/>').replace(
        "<worldbody>", '<worldbody><site name="w" pos="0 0 1"/>'
    )
    text = text.replace("<option", '<option><flag constraint="disable"/></option><option')
    for tendon in (fixed, spatial):
        end = f'{tendon}<equality><tendon tendon1="t"/></equality></mujoco>'
        assert "LC108" in _codes(tmp_path, text.replace("</mujoco>", end))


def test_a_heavy_base_is_no_sign_of_grams(tmp_path: Path) -> None:
    base = ARM.replace("<worldbody>", '<worldbody><body name="base"><freejoint/><geom size="9" mass="2e5"/>').replace(
        "</worldbody>", "</body></worldbody>"
    )
    assert "LC208" not in _codes(tmp_path, base)
    assert "LC208" in _codes(tmp_path, base.replace('mass="1"', 'mass="2e5"'))


PARALLELOGRAM = f"""<mujoco><compiler angle="radian"/><worldbody>
  <body name="crank"><joint name="a" axis="0 1 0"/><geom size=".01" pos=".1 0 0" mass="1"/>
    <body name="coupler" pos=".2 0 0"><joint name="b" axis="0 1 0"/><geom size=".01" pos=".1 0 .1" mass="2"/>
      <site name="end" pos="0 0 .3"/></body></body>
  <body name="rocker" pos="0 0 .3"><joint name="c" axis="0 1 0"/>{LINK.format(".2 0 0")}<site name="tip" pos=".2 0 0"/>
  </body></worldbody>
  <equality><connect name="loop" site1="end" site2="tip"/></equality>
  <actuator>DRIVES</actuator></mujoco>"""


def _limited(joint: str, limit: float, more: str = "") -> str:
    return (
        f'<motor name="{joint}{more[:3]}" joint="{joint}" ctrlrange="-{limit} {limit}" ctrllimited="true"{more[3:]}/>'
    )


def test_the_weight_in_a_loop_is_that_of_virtual_work(tmp_path: Path) -> None:
    """Crank and rocker turn alike, the coupler does not turn: g r (m/2 + 2 kg + rocker/2); two drives share it."""
    path = tmp_path / "m.xml"
    path.write_text(PARALLELOGRAM.replace("DRIVES", ""), encoding="utf-8")
    rocker = mujoco.MjModel.from_xml_path(str(path)).body("rocker").mass[0]
    weight = 9.81 * 0.2 * (1 / 2 + 2 + rocker / 2)
    alone = [_limited("a", share * weight) for share in (0.99, 1.01)]
    assert ["LC215" in _codes(tmp_path, PARALLELOGRAM.replace("DRIVES", drive)) for drive in alone] == [True, False]
    message = next(
        f.message for f in _findings(tmp_path, PARALLELOGRAM.replace("DRIVES", alone[0])) if f.code == "LC215"
    )
    assert f"needs {weight:.3g} N m" in message
    for share, is_found in ((0.49, True), (0.51, False)):
        both = _limited("a", share * weight) + _limited("c", share * weight)
        assert ("LC215" in _codes(tmp_path, PARALLELOGRAM.replace("DRIVES", both))) == is_found


@pytest.mark.parametrize(("share", "is_found"), [(0.99, True), (1.01, False)])
def test_drives_with_other_gears_share_a_weight_as_far_as_their_limits_go(
    share: float, is_found: bool, tmp_path: Path
) -> None:
    """Efforts of least norm would ask 7 % more of the drive with the larger gear."""
    limit = share * 1.4715 / 11
    drives = _limited("j", limit, "one") + _limited("j", limit, 'two gear="10"')
    assert ("LC215" in _codes(tmp_path, _drive(drives))) == is_found


def test_a_floating_robot_has_no_weight_to_hold(tmp_path: Path) -> None:
    weak = _drive(MOTOR.replace("-10 10", "-.1 .1"))
    assert "LC215" in _codes(tmp_path, weak)
    base = '<body name="base"><freejoint/><geom size=".1"/>'
    floating = weak.replace("<worldbody>", f"<worldbody>{base}").replace("</worldbody>", "</body></worldbody>")
    assert "LC215" not in _codes(tmp_path, floating)
    beside = weak.replace("</worldbody>", f"{base}</body></worldbody>")  # a loose object
    assert "LC215" in _codes(tmp_path, beside)


def test_a_negative_coefficient_of_a_tendon(tmp_path: Path) -> None:
    tendon = '<tendon><fixed name="t" damping="-1"><joint joint="j" coef="1"/></fixed></tendon></mujoco>'
    (finding,) = (f for f in _findings(tmp_path, ARM.replace("</mujoco>", tendon)) if f.code == "LC109")
    assert (finding.element, finding.advice) == ("tendon 't'", "Write 1 if the size is right.")


CHAIN = """<mujoco><worldbody><body name="l1"><joint name="a" axis="0 1 0"/>{0}
  <body name="l2" pos="{1} 0 0"><joint name="b" axis="0 1 0"/>{2}<site name="e" pos="{3} 0 0"/></body></body>
  {4}</worldbody><equality>{5}</equality><actuator><motor name="m" joint="a"/></actuator></mujoco>"""


def _chain(first: float, second: float, rest: str, closure: str = '<connect name="loop" site1="e" site2="g"/>') -> str:
    links = (LINK.format(f"{first} 0 0"), LINK.format(f"{second} 0 0"))
    return CHAIN.format(links[0], first, links[1], second, rest, closure)


GROUND = '<site name="g" pos=".5 0 0"/>'
ROCKER = '<body name="r" pos="{0} 0 0"><joint name="c" axis="0 1 0"/>' + LINK.format("{1} 0 0")
ROCKER += '<site name="g" pos="{1} 0 0"/></body>'
SLIDER = (
    '<body name="s" pos=".5 0 0"><joint name="s" type="slide" axis="1 0 0"/><geom size=".02"/><site name="g"/></body>'
)
SHAPES = {
    "two links in line": (_chain(0.3, 0.2, GROUND), True),
    "in line, a ninth digit too far": (_chain(0.3, 0.2, GROUND.replace(".5", ".500000002")), True),
    "in line, a third digit too near": (_chain(0.3, 0.2, GROUND.replace(".5", ".499")), False),
    "two links beside the line": (_chain(0.3, 0.21, GROUND), False),
    "stretched over a rocker": (_chain(0.1, 0.1, ROCKER.format(0.3, -0.1)), True),
    "flat parallelogram": (_chain(0.1, 0.3, ROCKER.format(0.3, 0.1)), False),
    "flat kite": (_chain(0.1, 0.2, ROCKER.format(0.1, 0.2)), False),
    "dead centre": (_chain(0.2, 0.3, SLIDER), False),
    "ground longest, links in line": (_chain(0.1, 0.2, ROCKER.format(0.4, -0.1)), True),
    "balls in line": (_chain(0.3, 0.2, GROUND).replace('axis="0 1 0"', 'type="ball"', 2), True),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_truss_is_told_from_a_singular_start(name: str, tmp_path: Path) -> None:
    text, is_truss = SHAPES[name]
    found = [f for f in _findings(tmp_path, text) if f.code == "LC107"]
    assert bool(found) == is_truss
    if is_truss:
        assert "'a', 'b'" in found[0].message
        assert found[0].element == "equality 'loop'"


def test_a_dead_centre_has_all_its_drives_elsewhere(tmp_path: Path) -> None:
    text = SHAPES["dead centre"][0].replace('joint="a"', 'joint="s"')
    assert _codes(tmp_path, text) == {"LC204", "LC301"}


def test_a_truss_beside_a_loop_is_named_alone(tmp_path: Path) -> None:
    """And it stays a truss on a body that moves."""
    truss = SHAPES["two links in line"][0]
    arm = '<body name="arm" pos="0 1 0"><joint name="hip" axis="1 0 0"/><geom size=".1" pos="0 .1 0"/>'
    hung = truss.replace("<worldbody>", f"<worldbody>{arm}").replace("</worldbody>", "</body></worldbody>")
    (finding,) = (f for f in _findings(tmp_path, hung) if f.code == "LC107")
    assert "'a', 'b' still" in finding.message


def test_a_truss_stays_one_if_couplings_share_its_joints(tmp_path: Path) -> None:
    """Two knobs follow the truss together; they move, it does not."""
    knobs = "".join(f'<body name="{k}" pos="0 2 0"><joint name="{k}"/><geom size=".1"/></body>' for k in "xy")
    joints = "".join(f'<joint joint="{name}" coef="1"/>' for name in ("x", "y", "a"))
    couple = f'</equality><tendon><fixed name="t">{joints}</fixed></tendon><equality><tendon tendon1="t"/></equality>'
    text = _chain(0.3, 0.2, GROUND + knobs).replace("</equality>", couple)
    (finding,) = (f for f in _findings(tmp_path, text) if f.code == "LC107")
    assert "loop of 'loop' is a truss: a self-stress holds its joints 'a', 'b' still" in finding.message


def test_a_form_holds_what_it_is_definite_on() -> None:
    """A hinge that the form leaves free moves; a spin may."""
    form, N = np.array([[[1.0, 0.0], [0.0, 0.0]]]), np.eye(2)
    assert held_dofs(form, N, np.array([False, True])).tolist() == [True, False]
    assert not held_dofs(form, N, np.array([False, False])).any()
    assert not held_dofs(0 * form, N, np.array([False, True])).any()


@pytest.mark.parametrize(
    ("forms", "is_definite"),
    [
        ([[[1.0, 0], [0, 2]]], True),
        ([[[-1.0, 0], [0, -2]]], True),
        ([[[1.0, 0], [0, -1]]], False),
        ([[[1.0, 0], [0, -0.9]], [[-0.9, 0], [0, 1]]], True),  # their sum
        ([[[1.0, 0], [0, 0]], [[0, 1], [1, 0]]], False),  # semidefinite at best
        ([[[1.0, 0], [0, -1]], [[-0.8, 0], [0, 1]]], True),  # 0.9 times the first, and the second
    ],
)
def test_a_definite_combination_of_forms(forms: list[list[list[float]]], is_definite: bool) -> None:
    assert has_definite(np.array(forms)) == is_definite


def test_rods_on_balls_in_line_are_a_truss_with_spins(tmp_path: Path) -> None:
    """A hinge and a ball, in line: the rods may spin about the line, and nothing else moves."""
    text = _chain(0.3, 0.2, GROUND).replace('name="b" axis="0 1 0"', 'name="b" type="ball"')
    path = tmp_path / "m.xml"
    path.write_text(text, encoding="utf-8")
    mechanism = describe(path).mechanism
    assert [loops.closures for loops in trusses(mechanism, mechanism.rest_position)] == [[0]]


TWICE = '<connect name="again" site1="{0}" site2="{1}"/>'


@pytest.mark.parametrize(
    ("more", "is_found"),
    [
        (TWICE.format("e", "g"), True),
        (TWICE.format("g", "e"), True),
        (TWICE.format("e2", "g2"), False),  # a second point of the pin, as exporters write it
        ('<joint joint1="b" joint2="a"/><joint name="again" joint1="b" joint2="a"/>', True),
        ('<joint joint1="b" joint2="a"/><joint name="again" joint1="c" joint2="a"/>', False),
    ],
)
def test_a_closure_that_is_stated_twice(more: str, is_found: bool, tmp_path: Path) -> None:
    text = _chain(0.1, 0.3, ROCKER.format(0.25, 0.15), f'<connect name="loop" site1="e" site2="g"/>{more}')
    for site in ("e", "g"):
        place = text.index(f'<site name="{site}" pos="') + len(f'<site name="{site}" pos="')
        x = text[place:].split(" ")[0]
        text = text[: place - len(f'<site name="{site}" pos="')] + (
            f'<site name="{site}2" pos="{x} .05 0"/>' + text[place - len(f'<site name="{site}" pos="') :]
        )
    found = [f.element for f in _findings(tmp_path, text) if f.code == "LC221"]
    assert found == (["equality 'again'"] if is_found else [])


@pytest.mark.parametrize(
    ("joints", "body", "other", "words"),
    [
        ('<joint name="x"/>', "p", ".1 0 0", "locks 'x'"),
        ('<joint name="x"/>', "p", "0 0 0", "does nothing beside 'x'"),
        ('<joint name="x" type="ball"/>', "p", "0 0 0", "does nothing beside 'x'"),
        ('<joint name="x" type="ball"/>', "p", ".1 0 0", ""),  # leaves a spin
        ('<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide"/>', "p", ".1 0 0", "locks 'x', 'y'"),
        ('<joint name="x"/>', "world", ".1 0 0", ""),  # the grandparent
    ],
)
def test_a_closure_to_the_own_parent(joints: str, body: str, other: str, words: str, tmp_path: Path) -> None:
    text = f"""<mujoco><worldbody><body name="p"><joint name="w" axis="0 1 0"/><geom size=".1"/>
      <body name="q"><geom size=".1" pos=".1 0 0"/>{joints}</body></body></worldbody>
      <equality><connect name="loop" body1="q" body2="{body}" anchor="{other}"/></equality></mujoco>"""
    findings = {f.code: f.message for f in _findings(tmp_path, text)}
    assert ("LC222" in findings) == bool(words)
    assert words in findings.get("LC222", "")
    if "nothing" in words:  # round-off is no equation
        assert "(rank 0)" in findings["LC301"]


def test_a_weld_that_holds_a_base_is_no_closure_to_the_parent(tmp_path: Path) -> None:
    base = '<body name="base"><freejoint/><geom size=".1"/></body></worldbody>'
    text = ARM.replace("</worldbody>", base).replace("</mujoco>", '<equality><weld body1="base"/></equality></mujoco>')
    assert not _codes(tmp_path, text) & {"LC222", "LC223"}


FIVE_BAR = f"""<mujoco><compiler angle="degree"/><worldbody>
  <body name="left" pos="-.05 0 0" euler="0 35 0"><joint name="hl" axis="0 1 0"/>{LINK.format("0 0 -.15")}
    <body name="sl" pos="0 0 -.15" euler="0 -67.966 0"><joint name="kl" axis="0 1 0"/>{LINK.format("0 0 -.25")}
      <site name="l" pos="0 0 -.25"/></body></body>
  <body name="right" pos=".05 0 0" euler="0 -35 0"><joint name="hr" axis="0 1 0"/>{LINK.format("0 0 -.15")}
    <body name="sr" pos="0 0 -.15" euler="0 67.966 0"><joint name="kr" axis="0 1 0"/>{LINK.format("0 0 -.25")}
      <site name="r" pos="0 0 -.25"/></body></body></worldbody>
  <equality><weld name="paw" body1="sl" body2="sr"/></equality>
  <actuator><motor name="ml" joint="hl"/><motor name="mr" joint="hr"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("old", "new", "is_found"),
    [
        ("", "", True),
        ('<weld name="paw" body1="sl" body2="sr"/>', '<connect site1="l" site2="r"/>', False),
        ('<motor name="mr" joint="hr"/>', "", False),  # one drive for the one dof
        (
            "<equality>",
            '<equality><weld body1="sl" body2="sr" relpose="0 0 0 0 0 0 0"/>',
            False,
        ),  # the other weld holds
    ],
)
def test_a_weld_in_place_of_a_pin(old: str, new: str, is_found: bool, tmp_path: Path) -> None:
    findings = {f.code: f for f in _findings(tmp_path, FIVE_BAR.replace(old, new) if old else FIVE_BAR)}
    assert ("LC223" in findings) == is_found
    if is_found:
        assert findings["LC223"].message.startswith("2 drives on 1 dof: the weld 'paw'")
        assert findings["LC223"].message.endswith("a connect gives 2 dofs")
        assert "LC302" not in findings  # the same, said once


@pytest.mark.parametrize("ends", ['body1="handle" body2="arm"', 'body1="arm" body2="handle"', 'site1="s" site2="t"'])
def test_a_handle_is_left_out(ends: str, tmp_path: Path) -> None:
    """By gate, by the reference, and by the model that engines get."""
    handle = '<body name="handle" mocap="true"><site name="s"/></body></worldbody>'
    text = ARM.replace("</worldbody>", handle).replace(JOINT, f'{JOINT}<site name="t"/>')
    text = text.replace("</mujoco>", f'<equality><weld name="grip" {ends}/></equality></mujoco>')
    findings = {f.code: f for f in _findings(tmp_path, text)}
    assert not any(code.startswith("LC1") for code in findings)
    assert findings["LC312"].message == "left out: weld 'grip' to the mocap body 'handle', which moves from outside"
    model = ModelFile(path=tmp_path / "model.xml")
    mechanism = read_mechanism(model)
    assert not mechanism.closures
    assert "weld 'grip' to the mocap body 'handle'" in mechanism.left_out
    assert not compile_model(model).eq_active0.any()


def test_a_part_of_another_file_has_no_units(tmp_path: Path) -> None:
    wide = _joint('range="-60 60" limited="true" springref="99" stiffness="1"')
    part = wide.replace('<compiler angle="radian"/>', "")
    assert "LC219" in _codes(tmp_path, wide)
    (tmp_path / "scene.xml").write_text('<mujoco><!-- <include file="model.xml"/> --></mujoco>', encoding="utf-8")
    assert "LC311" not in _codes(tmp_path, part)
    (tmp_path / "scene.xml").write_text('<mujoco><include file="model.xml"/></mujoco>', encoding="utf-8")
    findings = {f.code: f for f in _findings(tmp_path, part)}
    assert not {"LC208", "LC219"} & findings.keys()
    assert findings["LC311"].advice == "Check 'scene.xml'."
    assert "LC311" not in _codes(tmp_path, wide)
    assert "LC219" in _codes(tmp_path, wide)


def test_an_include_file_names_the_file_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / "scene.xml").write_text('<mujoco><include file="model.xml"/></mujoco>', encoding="utf-8")
    (finding,) = _findings(tmp_path, "<mujocoinclude><worldbody/></mujocoinclude>")
    assert finding.advice == "Check 'scene.xml', which includes this file."


def test_a_closure_in_a_comment(tmp_path: Path) -> None:
    comment = '<!-- cut for a test\n<equality><connect name="loop"/></equality> -->\n</mujoco>'
    (finding,) = (f for f in _findings(tmp_path, ARM.replace("</mujoco>", comment)) if f.code == "LC313")
    lines = ARM.replace("</mujoco>", comment).splitlines()
    assert lines[finding.line - 1].startswith("<equality>")
    assert "LC313" not in _codes(tmp_path, _with_equality("").replace("</mujoco>", comment))


def test_spins_of_rods_do_not_count_as_dofs_of_drives(tmp_path: Path) -> None:
    """A crank and a rocker with a rod on two balls: its spin has no drive, and needs none."""
    text = f"""<mujoco><worldbody><body name="c"><joint name="a" axis="0 1 0"/>{LINK.format("0 0 .1")}
      <body name="rod" pos="0 0 .1"><joint name="u" type="ball"/>{LINK.format(".3 0 .05")}
        <site name="e" pos=".3 0 .05"/></body></body>
      <body name="r" pos=".3 0 0"><joint name="b" axis="0 1 0"/>{LINK.format("0 0 .15")}
      <site name="g" pos="0 0 .15"/></body></worldbody><equality><connect site1="e" site2="g"/></equality>
      <actuator><motor joint="a"/>MORE</actuator></mujoco>"""
    findings = {f.code: f for f in _findings(tmp_path, text.replace("MORE", ""))}
    assert "LC302" not in findings
    assert findings["LC303"].message == "no drive: 'u' spins"
    two = {f.code: f for f in _findings(tmp_path, text.replace("MORE", '<motor joint="b"/>'))}
    assert two["LC302"].message == "2 drives for 1 dof"
    assert "--actuated a)" in two["LC302"].advice


@pytest.mark.parametrize("kind", ["joint", "tendon"])
def test_the_opening_of_a_soft_coupling_is_that_of_a_simulation(kind: str, tmp_path: Path) -> None:
    """A hinge held by an equality against a motor, after 2 s at rest."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>' if kind == "tendon" else ""
    end = 'tendon1="t"' if tendon else 'joint1="j"'
    equality = f'{tendon}<equality><{kind} name="hold" {end} solref=".04 1" solimp=".5 .9 .01"/></equality></mujoco>'
    text = _joint('damping=".5"').replace("</mujoco>", equality).replace("<option", '<option gravity="0 0 0"')
    found = [f.message for f in _findings(tmp_path, text.replace("-10 10", "-1 1")) if f.code == "LC306"]
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.0
    mujoco.mj_step(model, data, 2000)
    assert opening(model, 0, 1.0) == pytest.approx(data.qpos[0], rel=1e-6)
    assert [f"by {data.qpos[0]:.2g} rad under the full effort of 'm' in qpos0" in message for message in found] == [
        True
    ]


def test_a_soft_loop_is_judged_at_the_start_and_not_beside_singular_poses(tmp_path: Path) -> None:
    """A five-bar with full efforts: 0.2 mm at its start, several centimetres in other closed poses."""
    text = FIVE_BAR.replace('<weld name="paw" body1="sl" body2="sr"/>', '<connect name="paw" site1="l" site2="r"/>')
    for joint in ("hl", "hr"):
        text = text.replace(f'joint="{joint}"/>', f'joint="{joint}" ctrlrange="-2 2" ctrllimited="true"/>')
    (finding,) = (
        f
        for f in _findings(tmp_path, text.replace("/></equality>", ' solref=".05 1"/></equality>'))
        if f.code == "LC306"
    )
    assert finding.message.endswith("in qpos0")
    assert 1e-3 < float(finding.message.split(" by ")[1].split(" ")[0]) < 0.025


def test_a_mechanism_that_is_too_large_has_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are closed nowhere; what costs little is checked."""
    monkeypatch.setattr(closed_poses, "LONGEST", 3 * 4**2 - 1)
    text = FIVE_BAR.replace('<weld name="paw" body1="sl" body2="sr"/>', '<connect name="paw" site1="l" site2="r"/>')
    text = text.replace('name="l" pos="0 0 -.25"', 'name="l" pos="0 0 -.2"').replace(
        'name="hl" axis', 'name="hl" damping="-1" axis'
    )
    (tmp_path / "big.xml").write_text(text, encoding="utf-8")
    codes = [f.code for f in gate(str(tmp_path / "big.xml")).findings]
    assert sorted(codes) == ["LC109", "LC201", "LC224"]
    monkeypatch.setattr(closed_poses, "LONGEST", 3 * 4**2)
    assert "LC224" not in [f.code for f in gate(str(tmp_path / "big.xml")).findings]
    monkeypatch.setattr(closed_poses, "LARGEST", 20 * 4 * 6 * 4 * 8 - 1)
    assert "LC224" in [f.code for f in gate(str(tmp_path / "big.xml")).findings]


def test_many_servos_in_a_tree_are_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stiff = _drive('<position joint="j" kp="1e9"/>')
    assert "LC207" in _codes(tmp_path, stiff)
    monkeypatch.setattr(parameter_checks, "LONGEST", 0)
    assert {"LC207", "LC224"} & _codes(tmp_path, stiff) == {"LC224"}
    assert "LC224" not in _codes(tmp_path, ARM)


def test_a_baseline_excuses_no_larger_fault(tmp_path: Path) -> None:
    """A loop open by 1 % is stored; 0.5 % and 1 % are known, 30 % is new."""

    def opened(gap: float) -> GateResult:
        text = _chain(0.1, 0.3, ROCKER.format(0.25, 0.15)).replace(' pos="0.3 0 0"/>', f' pos="{0.3 + gap} 0 0"/>')
        (tmp_path / "model.xml").write_text(text, encoding="utf-8")
        return gate(str(tmp_path / "model.xml"))

    store([opened(0.003)], tmp_path / "b.json")
    for gap, is_new in ((0.0015, False), (0.003, False), (0.0031, False), (0.004, True), (0.1, True)):
        (result,) = new_findings([opened(gap)], tmp_path / "b.json")
        assert ("LC201" in [f.code for f in result.findings]) == is_new, gap
    rows = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))["rows"]
    assert {row["code"] for row in rows if "extent" in row} >= {"LC201", "LC301"}
    for row in rows:  # of an earlier version
        row.pop("extent", None)
    content = json.loads((tmp_path / "b.json").read_text(encoding="utf-8")) | {"rows": rows}
    (tmp_path / "b.json").write_text(json.dumps(content), encoding="utf-8")
    (result,) = new_findings([opened(0.003)], tmp_path / "b.json")
    assert "LC201" in [f.code for f in result.findings]


def test_a_size_without_element_is_known_by_its_words(tmp_path: Path) -> None:
    """Gravity of 200 m/s² excuses 150, not 900; a fault without bound is stored too."""
    results = []
    for value in (200.0, 150.0, 900.0, np.inf):
        finding = Finding(
            code="LC308", message=f"gravity is {value:g} m/s²", extent=value, file=str(tmp_path / "a.xml")
        )
        results.append(GateResult(target="a", file=tmp_path / "a.xml", findings=(finding,), seconds=0.0))
    store(results[:1], tmp_path / "b.json")
    assert [len(r.findings) for r in new_findings(results[:1], tmp_path / "b.json")] == [0]
    assert [len(new_findings([r], tmp_path / "b.json")[0].findings) for r in results[1:3]] == [0, 1]
    element = [Finding(code="LC217", message="m", element="equality 'e'", extent=np.inf, file=str(tmp_path / "a.xml"))]
    endless = GateResult(target="a", file=tmp_path / "a.xml", findings=tuple(element), seconds=0.0)
    store([endless], tmp_path / "b.json")
    assert not new_findings([endless], tmp_path / "b.json")[0].findings


VAGUE = ("nothing to do", "if intended", "if it is meant", "none for", "none if")


def test_remedies_are_definite(tmp_path: Path) -> None:
    assert not [code for code, rule in RULES.items() if any(words in rule.remedy.lower() for words in VAGUE)]
    for text in (PARALLELOGRAM.replace("DRIVES", ""), FIVE_BAR, SHAPES["two links in line"][0], _with_equality("")):
        for finding in _findings(tmp_path, text):
            assert not any(words in finding.remedy.lower() for words in VAGUE)


PAW = '<connect name="paw" site1="l" site2="r"/>'


@pytest.mark.parametrize(
    ("closures", "words"),
    [
        (PAW, "Leave the loops as they are: they move in a plane"),
        ('<weld name="paw" body1="sl" body2="sr"/>', "Mend the other findings"),
        ('<weld name="paw" body1="sl" body2="sr"/>1', "Leave the loops as they are: they move in a plane"),
        (f'{PAW}<connect name="more" site1="l2" site2="r2"/>', "Remove 'more', whose rows"),
    ],
)
def test_the_remedy_of_redundant_rows_is_that_of_the_file(closures: str, words: str, tmp_path: Path) -> None:
    text = FIVE_BAR.replace('<weld name="paw" body1="sl" body2="sr"/>', closures.rstrip("1"))
    if closures.endswith("1"):  # with a single drive the weld is right
        text = text.replace('<motor name="mr" joint="hr"/>', "")
    for site in "lr":  # a second point of the pin
        text = text.replace(f'<site name="{site}"', f'<site name="{site}2" pos="0 .05 -.25"/><site name="{site}"')
    advice = [f.advice for f in _findings(tmp_path, text) if f.code == "LC301"]
    assert [one.startswith(words) for one in advice] == [True]


def test_names_with_line_breaks_make_no_line(tmp_path: Path) -> None:
    """In messages and remedies, as text and as Markdown."""
    text = _joint('damping="-1"').replace('"j"', '"a&#10;::error file=x::y|z"')
    path = tmp_path / "model.xml"
    path.write_text(text.replace('ctrlrange="-10 10"', 'ctrlrange="-.1 .1"'), encoding="utf-8")
    result = gate(str(path))
    assert {"LC109", "LC215"} <= {f.code for f in result.findings}
    advice = Finding(code="LC215", message="m", advice="Raise 'a\n::error::b|c'.", file="a.xml")
    both = [result, GateResult(target="a", file=path, findings=(advice,), seconds=0.0)]
    for lines in (as_text(both, 0).splitlines(), as_markdown(both, 0).splitlines()):
        assert not any(line.startswith("::") for line in lines)
    assert all(line.count("|") == 5 for line in as_markdown(both, 0).splitlines() if line.startswith("|"))


def test_a_tree_in_a_urdf_is_said(tmp_path: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="{name}">{inertia}</link>' for name in "ab")
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    path = tmp_path / "tree.urdf"
    path.write_text(f'<robot name="r">{links}{joint}</robot>', encoding="utf-8")
    result = CliRunner().invoke(cli, ["gate", str(path)], standalone_mode=False)
    assert f"{path}: no loop (tree)" in result.output


def _urdf_link(name: str) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz=".15 0 .1"/><mass value="1"/>'
        '<inertia ixx=".01" iyy=".02" izz=".02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _urdf_joint(name: str, parent: str, child: str, at: str) -> str:
    return (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
        '<axis xyz="0 1 0"/></joint>'
    )


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
def test_no_advice_names_a_part_of_a_joint_that_closes_a_loop(kind: str, tmp_path: Path) -> None:
    """A slider-crank with two motors: its slide becomes a weld of two halves, its hinge two points."""
    motors = "".join(
        f'<transmission name="{name}"><joint name="{name}"/><actuator name="{name}"/></transmission>' for name in "ab"
    )
    tree = '<link name="base"/>' + "".join(map(_urdf_link, ("one", "two", "three")))
    tree += _urdf_joint("a", "base", "one", "0 0 0") + _urdf_joint("b", "one", "two", ".1 0 .3")
    tree += _urdf_joint("c", "two", "three", ".4 0 .1")
    loop = (
        f'<constraint name="loop" type="{kind}"><parent link="base"/><parent_origin xyz=".8 0 .2"/>'
        '<parent_axis xyz="{0}"/><child link="three"/><child_origin xyz=".3 0 -.2"/><child_axis xyz="{0}"/>'
        "</constraint>"
    ).format("1 0 0" if kind == "prismatic" else "0 1 0")
    path = tmp_path / "slider.urdf"
    path.write_text(f'<robot name="slider">{tree}{loop}{motors}</robot>', encoding="utf-8")
    findings = {finding.code: finding for finding in gate(str(path)).findings}
    assert not {"LC101", "LC102", "LC103", "LC223"} & set(findings)
    assert findings["LC301"].message.endswith(
        "closure rows are redundant (rank 3)" if kind == "prismatic" else "(rank 2)"
    )
    assert findings["LC301"].advice.startswith("Leave the loops as they are")


def _pinned(geoms: str, more: str = "") -> str:
    """A four-bar whose coupler and rocker meet at the pin of an equality; their geoms end there or before."""
    end = "0 0 0 .5 0 .1" if geoms == "to the pin" else "0 0 0 .4 0 .08"
    return f"""<mujoco><option timestep=".001"/><worldbody>
      <body name="crank" pos="0 0 1"><joint name="a" axis="0 1 0"/>{LINK.format("0 0 .2")}
        <body name="coupler" pos="0 0 .2"><joint name="b" axis="0 1 0"/><site name="end" pos=".5 0 .1"/>
          <geom type="capsule" size=".01" fromto="{end}" density="500"/></body></body>
      <body name="rocker" pos=".5 0 1"><joint name="c" axis="0 1 0"/><site name="top" pos="0 0 .3"/>
        <geom type="capsule" size=".01" fromto="0 0 0 0 0 .3" density="500"/></body>
      </worldbody><equality><connect name="pin" site1="end" site2="top"/></equality>{more}
      <actuator><motor name="m" joint="a"/></actuator></mujoco>"""


EXCLUDED = '<contact><exclude body1="coupler" body2="rocker"/></contact>'


@pytest.mark.parametrize(
    ("geoms", "more", "depth"),
    [("to the pin", "", "20 mm"), ("to the pin", EXCLUDED, ""), ("shorter", "", "")],
)
def test_geoms_that_collide_at_the_pin_of_a_loop_are_named(geoms: str, more: str, depth: str, tmp_path: Path) -> None:
    """Two capsules of 10 mm that end in the same point lie two radii in each other, by MuJoCo's own contact too."""
    text = _pinned(geoms, more)
    found = [finding for finding in _findings(tmp_path, text) if finding.code == "LC227"]
    assert [f"lie {depth} in each other" in finding.message for finding in found] == [True] * bool(depth)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert [float(contact.dist) for contact in data.contact] == pytest.approx([-0.02] * bool(depth), abs=1e-9)


def test_a_collision_of_other_bodies_is_none_at_the_pin(tmp_path: Path) -> None:
    ball = '<geom type="sphere" size=".6" density="1"/>'
    text = _pinned("shorter").replace('<joint name="a" axis="0 1 0"/>', f'<joint name="a" axis="0 1 0"/>{ball}')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon
    assert "LC227" not in _codes(tmp_path, text)


def test_a_stand_in_for_a_mesh_collides_with_nothing(tmp_path: Path) -> None:
    """The gate reads no mesh that no inertia depends on."""
    mesh = '<asset><mesh name="m" file="m.stl"/></asset>'
    inertia = '<inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/>'
    text = _pinned("shorter").replace("<worldbody>", f"{mesh}<worldbody>")
    for place in ('pos=".5 0 .1"/>', 'pos="0 0 .3"/>'):
        text = text.replace(place, f'{place}{inertia}<geom type="mesh" mesh="m" {place}')
    codes = _codes(tmp_path, text)
    assert not codes & {"LC101", "LC227"}
