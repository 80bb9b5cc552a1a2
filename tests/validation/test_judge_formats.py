"""Logs as their tools write them, judged: the right log agrees, the same with wrong efforts does not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from loopcheck import judge
from tests import planar_four_bar
from tests.bags import write_bag

mujoco = pytest.importorskip("mujoco")
MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
GEAR = 40


@pytest.fixture(scope="module")
def geared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four-bar with a gear between motor and crank."""
    path = tmp_path_factory.mktemp("model") / "geared.xml"
    text = MODEL.read_text(encoding="utf-8")
    assert '<motor name="crank" joint="crank"/>' in text
    path.write_text(text.replace('joint="crank"/>', f'joint="crank" gear="{GEAR}"/>'), encoding="utf-8")
    return path


@pytest.mark.parametrize(("side", "verdict"), [("joint", "agree"), ("motor", "disagree")])
def test_joint_states_of_a_geared_drive_are_judged(side: str, verdict: str, geared: Path, tmp_path: Path) -> None:
    """A bag as of ros2_control: torques at the joint, one joint of the linkage not measured."""
    log = planar_four_bar.exact_log(0.02, 51)
    assert log.qd is not None
    nothing = np.full((len(log.t), 1), np.nan)
    values = (log.q[:, [1, 0]], log.qd[:, [1, 0]], np.hstack([nothing, log.effort]))
    stamps = [1_760_000_000_000_000_000 + round(1e9 * t) for t in log.t]
    bag = write_bag(tmp_path / "bag", ("coupler", "crank"), stamps, values)
    judged = judge(geared, bag, configuration="vertical", effort_time="instantaneous", effort_side=side)  # type: ignore[arg-type]
    assert judged.verdict == verdict, str(judged)
    assert ("behind the gear" in str(judged)) == (side == "motor")


PENDULUM = """<mujoco><option timestep="0.0005" integrator="Euler"/><worldbody><body><joint name="hip" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/><body pos=".3 0 0"><joint name="knee" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body></worldbody>
<actuator><motor name="hip" joint="hip" gear="3"/><motor name="knee" joint="knee"/></actuator></mujoco>"""


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize(("when", "verdict"), [("", "agree"), ("held:0.0005", "disagree")])
def test_arrays_kept_after_mj_step_are_judged(every: int, when: str, verdict: str, tmp_path: Path) -> None:
    """Steps of MuJoCo with efforts that change fast; taken as those of the following step, they are wrong."""
    (tmp_path / "pendulum.xml").write_text(PENDULUM, encoding="utf-8")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "pendulum.xml"))
    data = mujoco.MjData(model)
    rows: dict[str, list[np.ndarray]] = {name: [] for name in ("time", "qpos", "qvel", "actuator_force")}
    for step in range(800):
        data.ctrl = [-1.5 + 2 * np.sin(150 * data.time), -0.7 + np.cos(100 * data.time)]
        mujoco.mj_step(model, data)
        if step % every == 0:
            for name, values in rows.items():
                values.append(np.copy(getattr(data, name)))
    arrays: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
    np.savez(tmp_path / "run.npz", timestep=0.0005, **arrays)
    judged = judge(tmp_path / "pendulum.xml", tmp_path / "run.npz", accuracy=0.03, effort_time=when)
    assert judged.verdict == verdict, str(judged)


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "agree"), (1.1, "disagree")])
def test_a_mat_file_is_judged(gain: float, verdict: str, tmp_path: Path) -> None:
    log = planar_four_bar.exact_log(0.02, 51)
    out = {"time": log.t, "crank_q": log.q[:, 0], "crank_effort": gain * log.effort[:, 0], "side": "motor"}
    savemat(tmp_path / "run.mat", {"out": out})
    judged = judge(MODEL, tmp_path / "run.mat", configuration="vertical", effort_time="instantaneous", accuracy=1e-3)
    assert judged.verdict == verdict, str(judged)
