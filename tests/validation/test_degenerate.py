"""Locked, coincident and nearly massless mechanisms: a verdict or a clear line, never an internal error."""

from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcheck.robots.errors import INTERNAL, HarnessError
from loopcheck.robots.robot import load
from loopcheck.validation.check.study import run
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.workers import ALONE
from loopcheck.validation.judge.library import judge
from loopcheck.validation.tune.study import Tune
from tests.validation.conftest import Command, exit_status, in_this_process
from tests.validation.degenerate import linkage, mechanisms

EXACT = ("analytic/lagrange", "mujoco/kkt", "pybullet/kkt", "pinocchio/kkt")
STRETCHED = (0.2, 0.3, 0.25, 0.75)
FOLDED = (0.2, -0.5, 0.2, -0.1)


@pytest.fixture(autouse=True)
def in_one_process() -> Iterator[None]:
    """No process is started, which would take seconds."""
    with in_this_process() as patch:
        for module in ("common.targets", "new.new_robot"):
            patch.setattr(f"loopcheck.validation.{module}.want_readable", lambda *_, **__: None)
        yield


INERTIAL = '<inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>'
LOG = "t,j.q,m.effort\n" + "".join(f"{k / 10},{k / 10},1\n" for k in range(12))


@pytest.mark.parametrize("command", ["check", "judge", "tune", "serial", "new", "list"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco/>", "must have at least 1 joint, got none on 0 bodies"),
        ('<robot name="r"><link name="l"/></robot>', "must have at least 1 joint, got none on 1 bodies"),
        (f"<mujoco><worldbody><body>{INERTIAL}</body></worldbody></mujoco>", "at least 1 joint, got none on 1 bodies"),
        (f"<mujoco><worldbody><body><joint/>{INERTIAL}</body></worldbody></mujoco>", "Name joints, for example"),
        (f"<mujoco><worldbody><body><freejoint/>{INERTIAL}</body></worldbody></mujoco>", "Add actuators to the file"),
        (
            '<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="0"/></body></worldbody></mujoco>',
            "mass and in",
        ),
        (
            f'<mujoco><option gravity="0 0 1e300"/><worldbody><body><joint/>{INERTIAL}</body></worldbody></mujoco>',
            "gravity: must be below 1e+30, got 1e+300",
        ),
    ],
)
def test_an_empty_model_is_one_line_and_bad_input(
    loopcheck: Command, tmp_path: Path, command: str, text: str, message: str
) -> None:
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "log.csv").write_text(LOG)
    arguments: dict[str, tuple[str | Path, ...]] = {
        "judge": (tmp_path / "model.xml", tmp_path / "log.csv"),
        "tune": (tmp_path / "model.xml", "--accuracy", "1%"),
        "serial": (tmp_path / "model.xml", tmp_path / "model.xml"),
        "new": ("robot", tmp_path / "model.xml"),
    }
    out = () if command == "list" else ("--out", tmp_path / "out")
    status, stdout, err = loopcheck(command, *arguments.get(command, (tmp_path / "model.xml",)), *out)
    if command == "list" and ("actuators" in message or "joints" in message):  # the joints for --actuated
        assert (status, "joints:" in stdout) == (0, True)
        return
    assert (status, err.count("\n")) == (2, 1)
    assert message in err


def test_a_locked_linkage_cannot_be_tuned(loopcheck: Command, tmp_path: Path) -> None:
    (tmp_path / "linkage.xml").write_text(linkage(STRETCHED))
    status, _, err = loopcheck("tune", tmp_path / "linkage.xml", "--accuracy", "1%", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert "the loops lock the mechanism: of" in err


@pytest.mark.extended("tests/validation/test_gate.py::test_open_start_poses_are_listed_up_to_three")
def test_a_loop_that_is_open_in_the_start_pose_is_reported(tmp_path: Path) -> None:
    """The ground is 0.1 m longer than the pose of the keyframe needs, and then as long as the coupler: 1.1 m."""
    text = (load("four_bar").folder / "four_bar.xml").read_text()
    (tmp_path / "linkage.xml").write_text(text.replace('"rocker" pos="1 0 0"', '"rocker" pos="1.1 0 0"'))
    words = "closure 'C' is open by 0.1 (m or rad), 0.091 of the size of the robot"
    (case, *_) = cases_of([tmp_path / "linkage.xml"])
    results = run([case], source_names=EXACT[:1], dt=0.1, workers=ALONE)
    assert [words in note for note in results.summary["note"]] == [
        row == "analytic/noc" for row in results.summary["source"]
    ]
    assert words in results.run["robots"]["linkage"]["oddities"][0]  # of the terminal and the report
    t = np.linspace(0, 0.3, 31)
    log = {"t": t, "crank.q": 0.6 + t**2, "crank.effort": np.ones(31)}
    assert words in judge(tmp_path / "linkage.xml", log).notes["crank"]


@pytest.mark.extended("tests/validation/test_gate.py::test_open_start_poses_are_listed_up_to_three")
def test_tune_reports_an_open_start_pose(loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tune, "_tuned", lambda *_: {"verdict": "agree", "answer": "not searched"})
    text = (load("four_bar").folder / "four_bar.xml").read_text()
    (tmp_path / "linkage.xml").write_text(text.replace('"rocker" pos="1 0 0"', '"rocker" pos="1.1 0 0"'))
    out = tmp_path / "out"
    _, stdout, _ = loopcheck("tune", tmp_path / "linkage.xml", "--accuracy", "90%", "--out", out)
    for shown in (stdout, (out / "tune.html").read_text()):
        assert "is open by 0.1 (m or rad), 0.091 of the size" in " ".join(unescape(shown).split())


@pytest.mark.parametrize("drives", [("crank",), ("coupler",), ("crank", "rocker")], ids="+".join)
@pytest.mark.parametrize("lengths", [STRETCHED, FOLDED, (0.002, 0.003, 0.0025, 0.0075), (2.0, 3.0, 2.5, 7.5)])
def test_a_linkage_without_play_is_locked(
    tmp_path: Path, lengths: tuple[float, float, float, float], drives: tuple[str, ...]
) -> None:
    """To first order two dofs are free; not even the loops that close to a millionth of a metre make a motion of it."""
    (tmp_path / "linkage.xml").write_text(linkage(lengths, drives))
    with pytest.raises(
        HarnessError, match=r"linkage\.xml, mode home: the loops lock the mechanism: .* crank, coupler, rocker$"
    ):
        run(cases_of([tmp_path / "linkage.xml"]), source_names=EXACT[:1], workers=ALONE)


def test_a_locked_linkage_is_one_line_and_bad_input(loopcheck: Command, tmp_path: Path) -> None:
    (tmp_path / "linkage.xml").write_text(linkage(STRETCHED))
    status, _, err = loopcheck("check", tmp_path / "linkage.xml", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert "the loops lock the mechanism: of" in err


def test_what_is_locked_beside_a_robot_that_moves_is_named(tmp_path: Path) -> None:
    locked = linkage(STRETCHED)
    free = (
        '<body name="arm" pos="0 1 0"><joint name="arm"/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/></body>'
    )
    text = locked.replace("</worldbody>", f"{free}</worldbody>").replace('joint="crank"', 'joint="arm"')
    (tmp_path / "two.xml").write_text(text)
    with pytest.raises(
        HarnessError, match=r"the loops lock part of the mechanism: of \d degrees .* at joints crank, coupler, rocker$"
    ):
        run(cases_of([tmp_path / "two.xml"]), source_names=EXACT[:1], workers=ALONE)


@pytest.mark.extended("test_a_linkage_without_play_is_locked")
def test_a_linkage_at_its_change_point_moves(tmp_path: Path) -> None:
    (tmp_path / "linkage.xml").write_text(linkage((0.2, 0.5, -0.2, 0.5)))
    results = run(cases_of([tmp_path / "linkage.xml"]), source_names=EXACT[:2], workers=ALONE)
    assert exit_status(results) == 0


def test_a_tip_that_comes_to_rest_at_once_is_followed(tmp_path: Path) -> None:
    """A damper on next to no inertia slows it within a hundredth of a nanosecond; explicit steps would take hours."""
    inertial = '<inertial pos="0 0 0" mass="1e-12" diaginertia="1e-12 1e-12 1e-12"/>'
    tip = f'<body pos=".1 0 0"><joint name="tip" damping=".1" stiffness="20"/>{inertial}</body>'
    body = f'<body><joint name="j"/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>{tip}</body>'
    motor = '<actuator><motor name="m" joint="j"/></actuator>'
    (tmp_path / "tip.xml").write_text(f"<mujoco><worldbody>{body}</worldbody>{motor}</mujoco>")
    assert exit_status(run(cases_of([tmp_path / "tip.xml"]), source_names=EXACT[:2], dt=0.1, workers=ALONE)) == 0


def test_a_single_hinge_is_a_robot(tmp_path: Path) -> None:
    """Pinocchio gives matrices of a single column as vectors."""
    body = '<body><joint name="j"/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/></body>'
    motor = '<actuator><motor name="m" joint="j"/></actuator>'
    (tmp_path / "hinge.xml").write_text(f"<mujoco><worldbody>{body}</worldbody>{motor}</mujoco>")
    results = run(cases_of([tmp_path / "hinge.xml"]), source_names=EXACT, dt=0.1, workers=ALONE)
    assert set(results.summary["verdict"]) <= {"agree", "reference", "not run"}
    assert all("is not installed" in note for note in _notes(results) if "not" in note)


@pytest.mark.extended("test_a_linkage_without_play_is_locked", "test_what_is_locked_beside_a_robot_that_moves_is_named")
@pytest.mark.filterwarnings("default::RuntimeWarning")  # a worker process makes no errors of them either
@given(text=mechanisms() | st.builds(linkage, st.tuples(*[st.sampled_from((-0.5, -0.2, 0.0, 0.2, 0.3, 0.5))] * 4)))
def test_no_verdict_on_a_readable_model_is_an_error_of_our_own(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("degenerate") / "model.xml"
    path.write_text(text)
    results = _results(path)
    if isinstance(results, HarnessError):
        assert str(results).startswith(str(path))
        assert "\n" not in str(results)
    else:
        assert not [note for note in _notes(results) if INTERNAL in note]
        assert exit_status(results) in (0, 1, 3)


def _notes(results: Results) -> list[str]:
    return [str(note) for table in (results.summary, results.audit) for note in table["note"]]


def _results(path: Path) -> Results | HarnessError:
    """Result of checking a file, in this process."""
    try:
        return run(cases_of([path]), source_names=EXACT, dt=0.1, workers=ALONE)
    except HarnessError as error:
        return error
