"""`from loopcheck import judge`, as a test in a robot's own repository would use it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco  # noqa: TID251
import numpy as np
import pandas as pd
import pytest

import loopcheck
from loopcheck import acted_effort, engines, judge
from loopcheck.engines.mujoco.acted_effort import integration_state
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.common.limits import INTERNAL_LOAD
from loopcheck.validation.judge import library
from loopcheck.validation.judge.library import Judgement
from tests import planar_four_bar
from tests.cpu_time import extended_but

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    """Arrays kept by a user's own simulation of the four-bar."""
    log = planar_four_bar.exact_log(0.02, 51)
    return {"t": log.t, "crank.q": log.q[:, 0], "crank.effort": log.effort[:, 0]}


def test_my_simulation_gets_the_torque_right(columns: dict[str, np.ndarray]) -> None:
    """The example of the README: all that a test in another project needs."""
    judgement = judge(MODEL, columns, configuration="vertical", effort_time="instantaneous", accuracy=1e-3)
    assert judgement.agrees, str(judgement)


@pytest.mark.extended("test_my_simulation_gets_the_torque_right")
def test_a_data_frame_a_log_and_a_file_are_judged_alike(columns: dict[str, np.ndarray], tmp_path: Path) -> None:
    wrong = pd.DataFrame({**columns, "crank.effort": 1.1 * columns["crank.effort"]})
    path = tmp_path / "run.csv"
    wrong.to_csv(path, index=False)
    frame, file = (judge(MODEL, log, configuration="vertical", effort_time="instantaneous") for log in (wrong, path))
    assert (frame.verdict, file.verdict) == ("disagree", "disagree")
    assert not frame.agrees
    assert "crank: disagree: error 0.1, noise floor" in str(frame)
    residual = frame.efforts["crank.effort"] - frame.efforts["crank.needed"]
    np.testing.assert_allclose(residual, frame.efforts["crank.residual"], rtol=1e-9)
    assert frame.figures["largest"][0] == pytest.approx(residual.abs().max())
    assert set(np.round(frame.efforts["t"], 9)) <= set(np.round(columns["t"], 9))
    np.testing.assert_allclose(residual / frame.efforts["crank.needed"], 0.1, rtol=1e-5)


def test_a_column_of_another_tool_is_not_added_to_the_effort(columns: dict[str, np.ndarray]) -> None:
    """Half of the torque in `crank.left_out` read `agree` at 1e-3; logs of loopcheck's own runs have a longer name."""
    half = {**columns, "crank.effort": columns["crank.effort"] / 2, "note": columns["t"]}
    options: Any = {"configuration": "vertical", "effort_time": "instantaneous"}
    judgement = judge(MODEL, half | {"crank.left_out": half["crank.effort"]}, **options)
    assert judgement.verdict == "disagree"
    assert judgement.columns == {
        **{name: name for name in ("t", "crank.q", "crank.effort")},
        **dict.fromkeys(("note", "crank.left_out"), ""),
    }
    ours = judge(MODEL, half | {"crank.loopcheck_left_out": half["crank.effort"]}, **options)
    assert ours.agrees
    assert "dry friction are taken from the log unchecked: crank.loopcheck_left_out" in ours.notes["crank"]
    assert ours.columns["crank.loopcheck_left_out"] == "crank.loopcheck_left_out"


@pytest.mark.extended("tests/validation/test_gate.py::test_open_start_poses_are_listed_up_to_three")
def test_a_loop_that_is_open_in_the_start_pose_is_reported(columns: dict[str, np.ndarray], tmp_path: Path) -> None:
    """By 0.3 m without the key frame: 1.5 m of crank and coupler end 0.3 m short of the rocker at 1.8 m."""
    path = tmp_path / "robot.xml"
    path.write_text(re.sub("<keyframe>.*</keyframe>", "", MODEL.read_text(encoding="utf-8")), encoding="utf-8")
    texts = [str(judge(model, columns, effort_time="instantaneous")) for model in (MODEL, path)]
    opening = "start pose of the file: closure 'C' is open by 0.3 (m or rad)"
    assert [opening in text for text in texts] == [False, True], texts


@pytest.mark.evidence("the force of a user's own loop, from the model to the cause", seconds=2)
@pytest.mark.parametrize(
    "integrator",
    extended_but(
        ["Euler"],
        ["Euler", "implicitfast", "RK4"],
        "test_the_force_at_the_beginning_of_a_step_is_named_as_the_cause",
    ),
)
def test_the_force_at_the_beginning_of_a_step_is_named_as_the_cause(integrator: str, tmp_path: Path) -> None:
    """A servo's reading disagrees under integrators that change its force within the step, what acted does not."""
    servo = '<position name="crank" joint="crank" kp="300" kv="60"/>'
    text = MODEL.read_text(encoding="utf-8").replace('<motor name="crank" joint="crank"/>', servo)
    path = tmp_path / "robot.xml"
    path.write_text(text.replace("<option ", f'<option integrator="{integrator}" '), encoding="utf-8")
    model: Any = mujoco.MjModel.from_xml_path(str(path))
    data: Any = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    begin, rows = float(data.qpos[0]), []
    for _ in range(300):
        data.ctrl[0] = begin + 0.5 * (1 - np.cos(6 * data.time))
        state = integration_state(model, data)
        mujoco.mj_step(model, data)
        rows.append([data.time, *data.qpos, *data.qvel, data.actuator_force[0], acted_effort(model, state).effort[0]])
    t, *states, reported, acted = np.transpose(rows)
    kept = {"t": t, **{f"{name}.{k}": states[3 * n + k] for n, name in enumerate(("qpos", "qvel")) for k in range(3)}}
    options: Any = {"effort_time": f"held:{model.opt.timestep}", "accuracy": 0.01, "start": 0.05}
    wrong = judge(path, {**kept, "actuator_force.0": reported}, **options)
    right = judge(path, {**kept, "effort.0": acted}, **options)
    assert right.agrees, str(right)
    assert (wrong.verdict == "disagree") == (integrator != "Euler")
    cause = f"the log agrees with the effort that acted under {integrator.lower()} instead of actuator_force"
    assert (cause in str(wrong)) == (integrator != "Euler")
    other = judge(path, {**kept, "effort.0": 1.2 * acted}, **options)
    assert other.verdict == "disagree"
    assert "instead of actuator_force" not in str(other)


def test_friction_is_fitted_in_the_same_call() -> None:
    judgement = judge(
        str(MODEL), planar_four_bar.LOGS / "friction.csv", configuration="vertical", fit=["friction"], accuracy=0.05
    )
    assert judgement.agrees
    assert [estimate.unit for estimate in judgement.estimates] == ["N m", "N m s/rad"]


LIFT_AND_DIAL = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="lift">
    <joint name="lift" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1000" diaginertia="1 1 1"/>
    <body name="dial"><joint name="dial" axis="0 0 1"/><inertial pos="0 0 0" mass=".001" diaginertia="1e-9 1e-9 1e-9"/>
    </body></body></worldbody>
  <actuator><motor name="lift" joint="lift"/><motor name="dial" joint="dial"/></actuator></mujoco>"""


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "agree"), (1.01, "disagree"), (-1.0, "disagree")])
def test_a_small_motor_beside_a_large_one_is_judged_by_its_own(factor: float, verdict: str, tmp_path: Path) -> None:
    """10 kN beside 8 nN m, by closed forms: whatever is below a thousandth was taken for rounded to a whole number."""
    (tmp_path / "m.xml").write_text(LIFT_AND_DIAL, encoding="utf-8")
    t = np.linspace(0, 1, 201)
    q, qd, qdd = np.sin(5 * t), 5 * np.cos(5 * t), -25 * np.sin(5 * t)
    columns = {"t": t, "lift.q": 0.1 * q, "lift.qd": 0.1 * qd, "dial.q": 0.3 * q, "dial.qd": 0.3 * qd}
    efforts = {"lift.effort": 1000.001 * (9.81 + 0.1 * qdd), "dial.effort": factor * 1e-9 * 0.3 * qdd}
    judgement = judge(tmp_path / "m.xml", {**columns, **efforts}, effort_time="instantaneous")
    assert judgement.verdicts == {"lift": "agree", "dial": verdict}
    assert judgement.verdict == verdict
    assert judgement.agrees is (verdict == "agree")


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (["agree", "agree"], "agree"),
        (["agree", "not comparable"], "not comparable"),
        (["disagree", "not comparable", "agree"], "disagree"),
    ],
)
def test_a_judgement_is_the_worst_of_its_actuators(verdicts: list[str], worst: str) -> None:
    by_actuator = {f"motor {k}": verdict for k, verdict in enumerate(verdicts)}
    empty = pd.DataFrame()
    judgement = Judgement(
        verdicts=by_actuator,
        notes={},
        columns={},
        figures=empty,
        efforts=empty,
        estimates=(),
        _judged=None,  # type: ignore[arg-type]
        _asked=None,  # type: ignore[arg-type]
    )
    assert judgement.verdict == worst
    assert judgement.agrees is (worst == "agree")


def test_bad_logs_raise_one_line(columns: dict[str, np.ndarray]) -> None:
    for changes, line in (
        ({"t": columns["t"][::-1]}, "log, t: times must increase, got a time that goes back"),
        ({"crank.effort": np.full(51, np.nan)}, "column 'crank.effort': numbers must be finite, got 'nan' in row 1"),
        ({"knee.q": columns["t"]}, "unknown joint of four_bar.xml in log 'log': 'knee'"),
    ):
        with pytest.raises(HarnessError, match=line) as caught:
            judge(MODEL, {**columns, **changes})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"accuracy": np.inf}, "accuracy must be positive and finite, got inf"),
        ({"accuracy": np.nan}, "accuracy must be positive and finite, got nan"),
        ({"accuracy": -1e-3}, "accuracy must be positive and finite, got -0.001"),
        (
            {"acuracy": 1e-9},
            "unknown option of judge: 'acuracy'. Did you mean 'accuracy'. Known: effort_time, effort_side, accuracy",
        ),
        ({"start": np.nan}, "from must be a finite time in s, got nan"),
        ({"start": np.inf}, "from must be a finite time in s, got inf"),
        ({"fit": "stiction"}, "unknown parameter to fit: 'stiction'. Did you mean 'friction'. Known: friction"),
        ({"effort_side": "gear"}, "judge: side must be motor or joint, got 'gear'"),
        ({"effort_time": "held:0"}, "judge: effort_time: hold time of the efforts: must be above 0 s, got 0 s"),
    ],
)
def test_bad_options_raise_one_line(options: dict[str, Any], line: str, columns: dict[str, np.ndarray]) -> None:
    """An accuracy that cannot be missed would agree with a log that is 10 % off."""
    wrong = {**columns, "crank.effort": 1.1 * columns["crank.effort"]}
    with pytest.raises(HarnessError, match=line):
        judge(MODEL, wrong, **{"configuration": "vertical", "effort_time": "instantaneous", **options})


def test_columns_of_several_lengths_raise_one_line(columns: dict[str, np.ndarray]) -> None:
    for name, wrong, shape in (
        ("crank.q", columns["t"][:-1], r"\(50,\)"),
        ("crank.effort", np.zeros((51, 2)), "51, 2"),
    ):
        with pytest.raises(
            HarnessError, match=f"log, {name}: must have a number for each sample, .* got shape .?{shape}"
        ):
            judge(MODEL, {**columns, name: wrong})


def test_an_allowed_internal_load_is_taken() -> None:
    assert library._log_options({"internal_load": 3.0}).internal_load == 3.0
    assert library._log_options({}).internal_load == INTERNAL_LOAD


def test_options_hold_of_a_log_too() -> None:
    """The efforts of this log acted a step each: of all times, taken as instantaneous, they must not agree."""
    log = replace(planar_four_bar.held_log(1e-3, 100), effort_time=None)
    held = judge(MODEL, log, configuration="vertical", accuracy=1e-4, effort_time="held:0.001")
    other = judge(MODEL, log, configuration="vertical", accuracy=1e-4, effort_time="instantaneous", name="mine")
    assert held.agrees
    assert set(other.figures["effort_time"]) == {"instantaneous"}
    assert set(other.figures["source"]) == {"log/mine"}
    assert not other.agrees


def test_its_import_is_light() -> None:
    """Neither the report nor the tables nor an engine besides MuJoCo; pandas would import pyarrow."""
    program = "import sys; from loopcheck import judge; print(judge.__name__, *sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    name, *modules = done.stdout.split()
    assert name == "judge"
    heavy = {"matplotlib", "pandas", "pandera", "plotly", "pyarrow", "rich"}
    engine_modules = {engines.engine(name).requires.split(".")[0] for name in engines.engine_names()} - {"mujoco"}
    assert not {module.split(".")[0] for module in modules} & (heavy | engine_modules)
    assert "mujoco" in modules
    ours = [module for module in modules if module.startswith("loopcheck.validation.")]
    assert not [module for module in ours if "report" in module or module.endswith((".study", ".command"))]


def test_nothing_else_is_promised() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'jugde'"):
        loopcheck.jugde  # noqa: B018
