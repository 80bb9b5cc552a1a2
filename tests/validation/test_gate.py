"""The gate: findings with places, formats, repairs, exit statuses, and what it imports."""

import json
import subprocess
import sys
from pathlib import Path

import mujoco  # noqa: TID251
import numpy as np
import pytest
from click.testing import CliRunner

from loopcheck.robots.formats.mjcf import describe
from loopcheck.validation.cli import cli
from loopcheck.validation.gate.checks.softness import closure_forces, opening
from loopcheck.validation.gate.closed_poses import closed_poses
from loopcheck.validation.gate.findings import RULES
from loopcheck.validation.gate.gate import gate
from tests.conftest import MODELS
from tests.json_outputs import valid_output
from tests.validation.gate_faults import FAULTS, models, trials

ROOT = Path(__file__).parents[2]
FOUR_BAR = """<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 0 1"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
      <body name="coupler" pos=".2 0 0">
        <joint name="coupler" axis="0 0 1"/><geom type="capsule" size=".02" fromto="0 0 0 .4 .3 0"/>
        <site name="end" pos=".4 .3 0"/>
      </body>
    </body>
    <body name="rocker" pos=".6 0 0">
      <joint name="rocker" axis="0 0 1"/><geom type="capsule" size=".02" fromto="0 0 0 0 .3 0"/>
      <site name="tip" pos="0 .3 0"/>
    </body>
  </worldbody><contact><exclude body1="coupler" body2="rocker"/></contact>
  <equality>
    <connect name="loop" site1="end" site2="tip"/>
  </equality>
  <actuator>
    <motor name="motor" joint="crank" gear="50"/>
  </actuator>
</mujoco>
"""


def _codes(path: Path) -> dict[str, str]:
    return {finding.code: finding.element for finding in gate(str(path)).findings}


def _written(folder: Path, text: str) -> Path:
    path = folder / "model.xml"
    path.write_text(text, encoding="utf-8")
    return path


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["gate", *arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


@pytest.mark.parametrize("path", [*models(), *sorted(MODELS.glob("*.xml"))], ids=lambda path: Path(path).stem)
def test_models_of_the_repository_have_no_error(path: Path) -> None:
    assert not [f for f in gate(str(path)).findings if f.severity == "error"], path


@pytest.mark.evidence("all seeded faults of all codes", seconds=2.5)
def test_seeded_faults_are_found_and_named(tmp_path: Path) -> None:
    """The 13 kinds of faults, twice; `python -m tests.validation.gate_faults` tries 200."""
    done = list(trials(2 * len(FAULTS), tmp_path, seed=1))
    assert {trial.fault for trial in done} == FAULTS.keys()
    assert not [trial for trial in done if not trial.found or trial.others]


def test_a_finding_has_the_line_of_its_element(tmp_path: Path) -> None:
    path = _written(tmp_path, FOUR_BAR.replace('pos=".4 .3 0"', 'pos=".4 .35 0"'))
    lines = path.read_text(encoding="utf-8").splitlines()
    places = {f.code: lines[f.line - 1] for f in gate(str(path)).findings}
    assert 'name="loop"' in places["LC201"]
    assert 'name="motor"' in places["LC206"]


def test_a_finding_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    actuators = FOUR_BAR[FOUR_BAR.index("  <actuator>") : FOUR_BAR.index("</mujoco>")]
    (tmp_path / "drives.xml").write_text(f"<mujocoinclude>\n{actuators}</mujocoinclude>", encoding="utf-8")
    named = FOUR_BAR.replace("<geom", '<geom name="motor"', 1)  # another element with the name of the actuator
    path = _written(tmp_path, named.replace(actuators, '  <include file="drives.xml"/>\n'))
    (finding,) = (f for f in gate(str(path)).findings if f.code == "LC206")
    assert (Path(finding.file).name, finding.line) == ("drives.xml", 3)


def test_a_finding_without_its_name_in_the_line_stays_in_a_file_longer_than_the_included(tmp_path: Path) -> None:
    """The name stands in the line after that of the element, and an included file has fewer lines."""
    (tmp_path / "more.xml").write_text("<mujocoinclude><option/></mujocoinclude>", encoding="utf-8")
    text = FOUR_BAR.replace('<connect name="loop"', '<connect\n      name="loop"').replace(
        'pos=".4 .3 0"', 'pos=".4 .35 0"'
    )
    path = _written(tmp_path, text.replace("</mujoco>", '  <include file="more.xml"/>\n</mujoco>'))
    (finding,) = (f for f in gate(str(path)).findings if f.code == "LC201")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert (Path(finding.file), lines[finding.line - 1].strip()) == (path, "<connect")


def test_many_floating_bodies_are_one_note(tmp_path: Path) -> None:
    """A scene has hundreds; other motions without a drive keep a note each."""
    bodies = "".join(f'<body name="b{k}"><freejoint name="f{k}"/><geom size=".1"/></body>' for k in range(5))
    rod = '<body name="rod"><joint name="swing"/><geom size=".1" pos=".3 0 0"/></body>'
    text = FOUR_BAR.replace("</worldbody>", f"{bodies}{rod}</worldbody>")
    notes = {f.element: f.message for f in gate(str(_written(tmp_path, text))).findings if f.code == "LC303"}
    assert notes.pop("joint 'f0'") == "5 floating bodies have no drive: 'f0', 'f1', 'f2', and 2 more"
    assert notes == {"joint 'swing'": "no drive: 'swing' moves freely"}
    one = FOUR_BAR.replace("</worldbody>", f"{bodies.split('</body>')[0]}</body></worldbody>")
    assert "no drive: 'f0' floats (6 dof)" in [f.message for f in gate(str(_written(tmp_path, one))).findings]


def test_every_second_start_lies_anywhere_inside_the_limits(tmp_path: Path) -> None:
    """Starts around the pose of the file reach one radian; a loop may close in another half turn."""
    text = FOUR_BAR[: FOUR_BAR.index("  <equality>")] + "</mujoco>"
    limited = text.replace('"crank" axis', '"crank" range="100 170" axis')
    starts = closed_poses(describe(_written(tmp_path, limited)).mechanism).q[:, 0]
    low, high = np.deg2rad([100, 170])
    inside = (starts > low) & (starts < high)
    assert list(inside[1:]) == [False, True] * 9 + [False]  # the first is the pose of the file
    assert np.ptp(starts[inside]) > (high - low) / 2
    assert np.abs(starts[~inside]).max() <= 1


def test_rows_of_a_planar_loop_are_not_scaled_one_by_one(tmp_path: Path) -> None:
    """A loop turned out of the axes of the world, with the gap of a drawing: its row across the plane is round-off."""
    turned = FOUR_BAR.replace("<worldbody>", '<worldbody><body euler="20 30 40">').replace(
        "</worldbody>", "</body></worldbody>"
    )
    path = _written(tmp_path, turned.replace('pos=".4 .3 0"', 'pos=".4 .3 1e-9"'))
    codes = _codes(path)
    assert "LC301" in codes
    assert not {code for code in codes if code.startswith("LC1")}


def test_a_weld_in_place_of_a_pin_locks(tmp_path: Path) -> None:
    moved = FOUR_BAR.replace('name="rocker" pos=".6 0 0"', 'name="rocker" pos=".6 .1 0"')  # no pivots in line
    path = _written(tmp_path, moved.replace('pos="0 .3 0"', 'pos="-.2 .2 0"').replace("<connect", "<weld"))
    assert "LC103" in _codes(path)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ('pos=".4 .3 1e-3"', "LC225"),  # across the plane, along the pin: 2e-3 of the size of the robot
        ('pos=".4 .3 1e-5"', ""),
        ('pos="1.4 .3 0"', "LC102"),  # in the plane, out of reach
        ('pos=".4 .3 0" euler="6 0 0"', "LC102"),  # a weld that is turned out of the plane
    ],
)
def test_a_loop_that_no_pose_closes(change: str, code: str, tmp_path: Path) -> None:
    text = FOUR_BAR.replace('pos=".4 .3 0"', change)
    codes = _codes(_written(tmp_path, text.replace("<connect", "<weld") if "euler" in change else text))
    assert {found: element for found, element in codes.items() if found in ("LC102", "LC225")} == (
        {code: "equality 'loop'"} if code else {}
    )


def test_a_dead_point_is_a_warning_of_the_start(tmp_path: Path) -> None:
    """Crank and coupler in line at the start: the drive at the rocker cannot move them, elsewhere it can."""
    folded = FOUR_BAR.replace('name="end" pos=".4 .3 0"', 'name="end" pos=".4 0 0"').replace(
        'name="rocker" pos=".6 0 0"', 'name="rocker" pos=".6 -.3 0"'
    )
    path = _written(tmp_path, folded.replace('joint="crank"', 'joint="rocker"'))
    codes = _codes(path)
    assert codes["LC204"] == "actuator 'motor'"
    assert "LC104" not in codes


@pytest.mark.parametrize(
    ("solref", "solimp", "is_soft"),
    [
        (".05 1", ".5 .9 .01", True),
        (".0005 1", ".5 .9 .01", False),
        ("-900 -60", ".5 .9 .01", True),
        (".05 1", "1 1 .01", False),  # MuJoCo limits the impedance, and where its curve bends, to 0.9999
        (".05 1", ".5 .9 .01 1 2", True),
    ],
)
def test_the_opening_of_a_soft_loop_is_that_of_a_simulation(
    solref: str, solimp: str, is_soft: bool, tmp_path: Path
) -> None:
    """A slide held by a connect, pushed by two motors: after 2 s at rest the gap is that of the gate.

    The second time constant is below two steps, which MuJoCo uses instead. Sites and bodies have different numbers.
    """
    text = """<mujoco><option gravity="0 0 0" timestep="0.001"/><worldbody><body name="b">
      <joint name="x" type="slide" axis="1 0 0" damping="5"/><geom size=".1" mass="3"/><site name="p" pos=".5 0 0"/>
      </body><site name="v"/><site name="w" pos=".5 0 0"/></worldbody>
      <equality><connect name="loop" site1="p" site2="w" solref="SOLREF" solimp="SOLIMP"/></equality>
      <actuator><motor name="motor" joint="x" ctrlrange="-40 40" forcerange="-20 20"/>
      <motor name="second" joint="x" ctrlrange="-5 5" gear="2"/></actuator></mujoco>"""
    path = _written(tmp_path, text.replace("SOLREF", solref).replace("SOLIMP", solimp))
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.ctrl[:] = 40
    mujoco.mj_step(model, data, 2000)
    assert opening(model, 0, 30.0) == pytest.approx(data.qpos[0], rel=1e-6)
    messages = [f.message for f in gate(str(path)).findings if f.code == "LC306"]
    shown = f"by {data.qpos[0]:.2g} m (" if data.qpos[0] < 0.05 else "far, by more than 0.05 m,"
    assert [shown in message for message in messages] == [True] * is_soft


def test_forces_of_closures_are_those_of_mujoco() -> None:
    """At rest in a closed pose with gravity off; hard loops, so that the softness of MuJoCo's does not count."""
    description = describe(ROOT / "robots/legs/ankle.xml")
    mechanism = description.mechanism
    q, efforts = closed_poses(mechanism).q[:1], np.array([1.0, 0.0])
    model = mujoco.MjModel.from_xml_path(str(ROOT / "robots/legs/ankle.xml"))
    model.opt.gravity[:] = 0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    model.eq_solimp[:, :2] = 0.9999
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = q[0], efforts
    mujoco.mj_forward(model, data)
    forces = closure_forces(mechanism, q, efforts)[0, :, 0]
    assert data.efc_force == pytest.approx(forces, rel=1e-2, abs=1e-2 * np.abs(forces).max())


def _diverges(path: Path) -> bool:
    """Whether steps of MuJoCo make a small motion grow."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = 1e-6, 1e-6
    for _ in range(300):  # beyond, MuJoCo resets the state
        mujoco.mj_step(model, data)
        if np.abs(data.qpos).max() > 1e-3:
            return True
    return False


@pytest.mark.parametrize("share", [0.95, 1.05])
@pytest.mark.parametrize("servo", ["position", "velocity"])
def test_the_limit_of_the_time_step_is_that_of_a_simulation(servo: str, share: float, tmp_path: Path) -> None:
    """A step times a frequency, or times a decay rate, of 2; the inertia at the servo is 3 kg."""
    rate = share * 2 / 0.01
    gain = f'kp="{3 * rate**2}"' if servo == "position" else f'kv="{3 * rate}"'
    path = _written(
        tmp_path,
        f"""<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"/>
        <geom size=".1" mass="3"/></body></worldbody><actuator><{servo} joint="x" {gain}/></actuator></mujoco>""",
    )
    assert ("LC207" in _codes(path), _diverges(path)) == (share > 1, share > 1)


@pytest.mark.parametrize("refsafe", ["enable", "disable"])
def test_a_stiff_loop_needs_a_short_step_unless_mujoco_limits_its_stiffness(refsafe: str, tmp_path: Path) -> None:
    """A time constant of a third of the step, which MuJoCo makes two steps if the flag is on."""
    path = _written(
        tmp_path,
        f"""<mujoco><option gravity="0 0 0" timestep=".003"><flag refsafe="{refsafe}"/></option><worldbody>
        <body name="b"><joint type="slide"/><geom size=".1"/></body></worldbody>
        <equality><connect body1="b" anchor="0 0 0" solref=".001 1"/></equality></mujoco>""",
    )
    assert ("LC207" in _codes(path), _diverges(path)) == (refsafe == "disable", refsafe == "disable")


@pytest.mark.parametrize(("factor", "is_found"), [(900, False), (1100, True), (1 / 900, False), (1 / 1100, True)])
def test_an_inertia_is_compared_with_that_of_a_rod(factor: float, is_found: bool, tmp_path: Path) -> None:
    """A rod of 2 kg and 0.3 m between its joint and its loop: m L²/12 by hand."""
    moment = factor * 2 * 0.3**2 / 12
    inertial = f'<inertial pos="0 .15 0" mass="2" diaginertia="{moment} {moment} {moment}"/>'
    text = FOUR_BAR.replace('<joint name="rocker" axis="0 0 1"/>', f'<joint name="rocker" axis="0 0 1"/>{inertial}')
    assert ("LC205" in _codes(_written(tmp_path, text))) == is_found


@pytest.mark.parametrize(("slope", "is_dead"), [("1e-4", False), ("1e-7", True)])
def test_a_drive_with_a_small_motion_is_not_dead(slope: str, is_dead: bool, tmp_path: Path) -> None:
    """A coupling leaves a motor a ten thousandth of the crank's motion."""
    body = '<body name="{0}"><joint name="{0}"/><geom size=".1"/></body>'
    path = _written(
        tmp_path,
        f"""<mujoco><worldbody>{body.format("crank")}{body.format("knob")}</worldbody>
        <equality><joint joint1="knob" joint2="crank" polycoef="0 {slope} 0 0 0"/></equality>
        <actuator><motor name="motor" joint="knob"/></actuator></mujoco>""",
    )
    assert ("LC104" in _codes(path)) == is_dead


VELOCITY, POSITION = '<velocity joint="crank" kv="1e4"/>', '<position joint="crank" kp="1e7"/>'


@pytest.mark.parametrize(
    ("integrator", "servo", "is_too_long"),
    [
        ("Euler", VELOCITY, True),
        ("implicitfast", VELOCITY, False),
        ("implicitfast", POSITION, True),
        ("discrete", POSITION, False),
    ],
)
def test_a_servo_needs_a_short_step_unless_its_gain_is_implicit(
    integrator: str, servo: str, is_too_long: bool, tmp_path: Path
) -> None:
    text = FOUR_BAR.replace("<option", f'<option integrator="{integrator}"').replace(
        "</actuator>", f"{servo}</actuator>"
    )
    assert ("LC207" in _codes(_written(tmp_path, text))) == is_too_long


@pytest.mark.parametrize(
    ("old", "new", "code", "is_found"),
    [
        ('gear="50"', 'gear="-50"', "LC206", True),
        ('gear="50"', 'gear="1"', "LC206", False),
        ('name="crank" axis', 'name="crank" armature="1" axis', "LC206", False),
        ('size=".02"', 'size=".02" density="2e9"', "LC208", True),
        ('pos=".6 0 0"', 'pos="60 0 0"', "LC208", True),
        ('size=".02"', 'size=".02" density="2e6"', "LC208", False),
        ("<option", '<default><joint frictionloss="1"/></default><option noslip_iterations="1"', "LC210", True),
        ("<option", '<option noslip_iterations="1"', "LC210", False),
        ("<option", '<default><joint frictionloss="1"/></default><option', "LC210", False),
    ],
)
def test_numbers_that_are_suspicious(old: str, new: str, code: str, is_found: bool, tmp_path: Path) -> None:
    assert (code in _codes(_written(tmp_path, FOUR_BAR.replace(old, new)))) == is_found


def test_a_finding_on_an_option_is_at_the_line_of_the_option(tmp_path: Path) -> None:
    path = _written(tmp_path, FOUR_BAR.replace("<option", '<default><joint frictionloss="1"/></default>\n<option'))
    text = path.read_text(encoding="utf-8").replace("<option", '<option noslip_iterations="1"')
    path.write_text(text, encoding="utf-8")
    (finding,) = (one for one in gate(str(path)).findings if one.code == "LC210")
    assert text.splitlines()[finding.line - 1].lstrip().startswith("<option noslip")


@pytest.mark.parametrize(
    ("compiler", "limit", "is_found"), [("", "3", True), ('<compiler angle="radian"/>', ".0523599", False)]
)
def test_ranges_of_less_than_a_turn_are_suspicious_in_degrees(
    compiler: str, limit: str, is_found: bool, tmp_path: Path
) -> None:
    """The compiled ranges of both files are equal."""
    ranged = FOUR_BAR.replace('axis="0 0 1"', f'axis="0 0 1" range="-{limit} {limit}"')
    text = ranged.replace("<option", f"{compiler}<option")
    assert ("LC208" in _codes(_written(tmp_path, text))) == is_found


def test_a_parallelogram_in_line_starts_singular(tmp_path: Path) -> None:
    text = FOUR_BAR.replace('pos=".4 .3 0"', 'pos=".4 0 0"').replace('name="rocker" pos=".6', 'name="rocker" pos=".4')
    assert "LC203" in _codes(_written(tmp_path, text.replace('pos="0 .3 0"', 'pos=".2 0 0"')))
    assert "LC203" not in _codes(_written(tmp_path, FOUR_BAR))


def test_a_drive_that_never_moves_anything_is_no_warning_of_the_start(tmp_path: Path) -> None:
    arm = '<body name="arm"><joint name="arm"/><geom size=".1"/></body></worldbody>'
    text = FOUR_BAR.replace("</worldbody>", arm).replace("<equality>", '<equality><joint joint1="arm"/>')
    codes = _codes(_written(tmp_path, text.replace("</actuator>", '<motor name="held" joint="arm"/></actuator>')))
    assert codes["LC104"] == "actuator 'held'"
    assert "LC204" not in codes


def test_open_start_poses_are_listed_up_to_three(tmp_path: Path) -> None:
    keys = "".join(f'<key name="k{k}" qpos="0 0 .{k + 1}"/>' for k in range(4))
    path = _written(tmp_path, FOUR_BAR.replace("</mujoco>", f"<keyframe>{keys}</keyframe></mujoco>"))
    (message,) = (f.message for f in gate(str(path)).findings if f.code == "LC201")
    assert message.endswith("k0, k1, k2, and 1 more")


def test_formats(tmp_path: Path) -> None:
    path = str(_written(tmp_path, FOUR_BAR))
    table = valid_output(_run(path, "--format", "json")[1])
    assert (table["schema"], table["exit_status"]) == ("loopcheck.gate/1", 0)
    assert [row["line"] for row in table["targets"][0]["findings"] if row["code"] == "LC206"] == [20]
    log = json.loads(_run(path, "--format", "sarif")[1])["runs"][0]
    known = {rule["id"] for rule in log["tool"]["driver"]["rules"]}
    assert known == RULES.keys()
    assert {result["ruleId"] for result in log["results"]} <= known
    (tmp_path / "gate.sarif").write_text(_run(path, "--format", "sarif")[1], encoding="utf-8")
    reader = pytest.importorskip("sarif.loader")  # an independent one
    records = reader.load_sarif_file(str(tmp_path / "gate.sarif")).get_records()
    read = [(record["Location"], record["Line"], record["Severity"], record["Code"]) for record in records]
    findings = table["targets"][0]["findings"]
    assert read == [(row["file"], row["line"], row["severity"], row["code"]) for row in findings]


@pytest.mark.parametrize("ends", [("\n", ""), ("\r\n", ""), ("\r\n", "\r\n")])
def test_a_fix_adds_a_closed_keyframe_and_nothing_else(tmp_path: Path, ends: tuple[str, str]) -> None:
    """Named by a symbolic link; line ends stay, and so does a last line without one."""
    path = _written(tmp_path, FOUR_BAR.replace('pos=".4 .3 0"', 'pos=".4 .32 0"'))
    before = path.read_text(encoding="utf-8").strip().replace("\n", ends[0]).encode() + ends[1].encode()
    path.write_bytes(before)
    (link := tmp_path / "link.xml").symlink_to(path)
    result = CliRunner().invoke(cli, ["gate", str(path), str(link), "--fix"], standalone_mode=False)
    apply = ["git", "apply", "--unsafe-paths", "--directory=/"]
    subprocess.run(apply, input=result.stdout_bytes, check=True, cwd="/")
    after = path.read_bytes().splitlines(keepends=True)
    assert all(line.endswith(ends[0].encode()) for line in after[:-1])
    assert result.stdout.startswith("--- a/")
    kept = [line for line in after if b"key" not in line]
    assert (b"".join(kept), len(after) - len(kept)) == (before, 3)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert np.abs(data.site("end").xpos - data.site("tip").xpos).max() < 1e-9
    assert not list(tmp_path.glob(".*"))


def test_elements_that_are_not_checked_are_counted(tmp_path: Path) -> None:
    """Seven motors at a site; the reader names five of them and counts the others."""
    motors = "".join(f'<motor name="s{k}" site="tip" gear="0 0 1 0 0 0"/>' for k in range(7))
    text = FOUR_BAR.replace("</actuator>", f"{motors}</actuator>")
    (finding,) = (f for f in gate(str(_written(tmp_path, text))).findings if f.code == "LC305")
    assert [f"'s{k}'" in finding.message for k in range(7)] == [True] * 5 + [False] * 2
    assert finding.message.endswith("; and 2 more")


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_ctrlnum"), reason="each actuator has one control")
def test_an_actuator_with_several_controls_is_one(tmp_path: Path) -> None:
    """The servo after it has the gains that the time step does not follow."""
    ball = '<body name="head"><joint name="neck" type="ball"/><geom size=".1"/></body>'
    text = FOUR_BAR.replace("</worldbody>", f"{ball}</worldbody>").replace(
        '<motor name="motor" joint="crank" gear="50"/>',
        '<orientation joint="neck" kp="1"/><position name="stiff" joint="crank" kp="1e9"/>',
    )
    assert _codes(_written(tmp_path, text))["LC207"] == "actuator 'stiff'"


def test_a_urdf_with_an_unknown_joint_is_an_error_of_the_file(tmp_path: Path) -> None:
    """And no end of the gate: other files follow."""
    path = tmp_path / "robot.urdf"
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="a"><inertial><mass value="1"/>{inertia}</inertial></link>'
    transmission = '<transmission name="t"><joint name="none"/><actuator name="m"/></transmission>'
    path.write_text(f'<robot name="r">{link}{transmission}</robot>', encoding="utf-8")
    assert list(_codes(path)) == ["LC101"]


def test_meshes_that_no_inertia_needs_are_not_read(tmp_path: Path) -> None:
    """The file of the mesh is missing, and masses stay; a body that takes its inertia from it does not compile."""
    inertial = '<inertial mass="2" pos="0 0 0" diaginertia="1 2 2"/>'
    body = f'<body name="b"><joint/>{inertial}<geom type="mesh" mesh="m"/></body>'
    text = f'<mujoco><asset><mesh name="m" file="none.stl"/></asset><worldbody>{body}</worldbody></mujoco>'
    assert describe(_written(tmp_path, text)).mechanism.bodies[0].mass == 2
    without = text.replace(inertial, "")
    assert list(_codes(_written(tmp_path, without))) == ["LC101"]


def test_every_code_has_a_section_in_the_documentation() -> None:
    page = (ROOT / "docs/how_to/gate_a_model.md").read_text(encoding="utf-8")
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(RULES)


def test_imports_of_the_gate() -> None:
    program = (
        "import sys; from loopcheck.validation.cli import cli; "
        f"cli(['gate', {str(MODELS / 'four_bar.xml')!r}], standalone_mode=False); print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    modules = {name.split(".")[0] for name in ended.stdout.splitlines()[-1].split()}
    installed = {"numpy", "scipy", "mujoco", "click"}
    assert not modules & {"pandas", "matplotlib", "pydantic", "jinja2", "rich", "pebble", "joblib", "PIL"}
    assert installed <= modules
