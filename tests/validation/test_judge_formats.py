"""Logs as their tools write them, judged: the right log agrees, the same with wrong efforts does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from loopcheck import judge
from loopcheck.robots.arrays import Array
from tests import planar_four_bar
from tests.bags import write_bag
from tests.cpu_time import extended_but

mujoco = pytest.importorskip("mujoco")
MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
GEAR = 40


EPOCH = 1_760_000_000 * 10**9
"""Time of the first stamp [ns]."""
NOISE = {"q": 1e-6, "qd": 1e-5, "effort": 1e-3}
"""Standard deviations [rad, rad/s, N m]."""
ACCURACY = 0.01
FAULT = 1 + 3 * ACCURACY
"""Factor of efforts with a fault of three times the limit."""
KINDS = {"q": "position", "qd": "velocity", "effort": "effort"}


def noisy(gain: float) -> tuple[Array, dict[str, Array]]:
    """Times [s], and columns of the crank with noise, its efforts multiplied by a factor; by a closed form."""
    log, random = planar_four_bar.exact_log(0.004, 376), np.random.default_rng(0)
    assert log.qd is not None
    exact = {"q": log.q[:, 0], "qd": log.qd[:, 0], "effort": gain * log.effort[:, 0]}
    return log.t, {name: values + NOISE[name] * random.standard_normal(len(log.t)) for name, values in exact.items()}


def stamped(t: Array) -> list[str]:
    """Times as seconds since the epoch, to the nanosecond."""
    return [f"{stamp // 10**9}.{stamp % 10**9:09d}" for stamp in (EPOCH + round(1e9 * time) for time in t)]


def bag(storage: str) -> Callable[[Path, Array, dict[str, Array]], Path]:
    def write(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
        stamps = [EPOCH + round(1e9 * time) for time in t]
        return write_bag(
            folder / "bag", ("crank",), stamps, [columns[name][:, None] for name in KINDS], storage=storage
        )

    return write


def echo(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    """As `ros2 topic echo --csv`."""
    lines = [
        ",".join([*stamp.split("."), "base", "crank", *(repr(float(columns[name][k])) for name in KINDS)])
        for k, stamp in enumerate(stamped(t))
    ]
    return written(folder / "echo.csv", "\n".join(lines))


def plotjuggler(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    frame = pd.DataFrame({f"/joint_states/crank/{kind}": columns[name] for name, kind in KINDS.items()})
    frame.insert(0, "__time", stamped(t))
    return written(folder / "plot.csv", frame.to_csv(index=False))


def foxglove(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    """Its plots number the joints; a description names them."""
    lines = ["elapsed time,receive time,header.stamp,topic,value"]
    for name, kind in KINDS.items():
        for time, stamp, value in zip(t, stamped(t), columns[name], strict=True):
            lines.append(f"{time},{stamp},{stamp},/joint_states.{kind}[0],{float(value)!r}")
    names = ", ".join(f'"crank.{name}" = "/joint_states.{kind}[0]"' for name, kind in KINDS.items())
    written(folder / "plot.toml", f"columns = {{ {names} }}")
    return written(folder / "plot.csv", "\n".join(lines))


def simulink(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    """As `writetimetable`, angles in degrees."""
    degrees = {f"crank_{name} (deg{rate})": np.rad2deg(columns[name]) for name, rate in (("q", ""), ("qd", "/s"))}
    frame = pd.DataFrame({"Time": [f"{time:.4f} sec" for time in t], **degrees, "crank_effort": columns["effort"]})
    return written(folder / "run.csv", frame.to_csv(index=False))


def matlab(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    savemat(folder / "run.mat", {"out": {"time": t, **{f"crank_{name}": values for name, values in columns.items()}}})
    return folder / "run.mat"


def numpy(folder: Path, t: Array, columns: dict[str, Array]) -> Path:
    arrays: dict[str, Any] = {f"crank.{name}": values for name, values in columns.items()}
    np.savez(folder / "run.npz", time=t, **arrays)
    return folder / "run.npz"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("write", "gain", "verdict"),
    [
        *((write, 1.0, "agree") for write in (bag("MCAP"), bag("SQLITE3"), echo, plotjuggler, foxglove, simulink)),
        *((write, 1.0, "agree") for write in (matlab, numpy)),
        # efforts of a fault are read as right efforts are: a text and arrays stand for all
        *extended_but(
            [], [(plotjuggler, FAULT, "disagree"), (numpy, FAULT, "disagree")], "test_every_kind_of_log_is_judged"
        ),
    ],
)
def test_every_kind_of_log_is_judged(
    write: Callable[[Path, Array, dict[str, Array]], Path], gain: float, verdict: str, tmp_path: Path
) -> None:
    path = write(tmp_path, *noisy(gain))
    judged = judge(MODEL, path, configuration="vertical", effort_time="instantaneous", accuracy=ACCURACY)
    assert judged.verdict == verdict, str(judged)


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
    assert ("agrees with --effort-side joint" in str(judged)) == (side == "motor")


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
