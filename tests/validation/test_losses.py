"""Unread elements of a model file in the commands: named, with status 3 unless accepted."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import judge
from tests.validation.conftest import Command

BAR = '<inertial><origin xyz="0 0 .1"/><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01"/></inertial>'.replace(
    'izz=".01"', 'izz=".01" ixy="0" ixz="0" iyz="0"'
)
BUSHING = (
    "<drake:linear_bushing_rpy><drake:bushing_frameA name='upper'/><drake:bushing_frameC name='lower'/>"
    "</drake:linear_bushing_rpy>"
)
URDF = f"""<robot name="arm">
<link name="base"/><link name="upper">{BAR}</link><link name="lower">{BAR}</link>
<joint name="a" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="b" type="continuous"><parent link="upper"/><child link="lower"/>
<origin xyz="0 0 .3"/><axis xyz="0 1 0"/></joint>
<transmission name="t"><joint name="a"/><actuator name="ma"/></transmission>
<transmission name="u"><joint name="b"/><actuator name="mb"/></transmission>
{BUSHING}
<joint_speed>3</joint_speed>
</robot>
"""
LOSS = "arm.urdf:8: 'drake:linear_bushing_rpy' is not read"


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(URDF, encoding="utf-8")
    return path


@pytest.mark.extended("tests/validation/test_expected.py::test_a_command_prints_what_it_printed[unread_elements]")
@pytest.mark.usefixtures("no_figures")
def test_check_ends_with_status_3_unless_the_loss_is_accepted(arm: Path, tmp_path: Path, loopcheck: Command) -> None:
    junit = tmp_path / "junit.xml"
    command = ("check", arm, "--source", "mujoco/kkt", "--out", tmp_path / "out", "--junit", junit)
    status, out, _ = loopcheck(*command)
    assert status == 3
    assert "read: drake:linear_bushing_rpy" in junit.read_text(encoding="utf-8")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "drake:linear_bushing_rpy" in page
    assert "the results are of the model without it (exit status 3)" in page
    record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert [(loss["kind"], loss["line"]) for loss in record["losses"] if loss["path"]] == [
        ("mechanism", 8),
        ("unknown", 9),
    ]
    status, out, _ = loopcheck(*command, "--leave-out", "drake:linear_bushing_rpy", "--format", "json")
    assert status == 0
    accepted = {loss["tag"]: loss["is_accepted"] for loss in json.loads(out)["record"]["losses"] if loss["path"]}
    assert accepted == {"drake:linear_bushing_rpy": True, "joint_speed": False}


@pytest.mark.extended("tests/validation/test_expected.py::test_a_command_prints_what_it_printed[unread_elements]")
@pytest.mark.usefixtures("tables_only")
def test_judge_does_not_agree_with_a_robot_that_is_not_read(arm: Path, tmp_path: Path, loopcheck: Command) -> None:
    log = tmp_path / "log.csv"
    a, b = 0.3, 0.2
    at_rest = {"a.q": a, "b.q": b, "a.qd": 0.0, "b.qd": 0.0}
    outer = -9.81 * 0.1 * np.sin(a + b)  # masses of 1 kg at 0.1 m, the second bar at 0.3 m, by hand
    efforts = {"ma.effort": outer - 9.81 * 0.4 * np.sin(a), "mb.effort": outer}
    pd.DataFrame({"t": np.arange(0, 1, 0.01), **at_rest, **efforts}).to_csv(log, index=False)
    given = judge(arm, log)
    assert given.verdict == "not comparable"
    assert all(note.startswith(f"{arm}:8: 'drake:linear_bushing_rpy'") for note in given.notes.values())
    accepted = judge(arm, log, leave_out=["drake:linear_bushing_rpy"])
    assert accepted.verdict == "agree"
    status, out, _ = loopcheck("judge", arm, log, "--out", tmp_path / "judged")
    assert status == 3
    assert LOSS in out.replace("\n", " ")
