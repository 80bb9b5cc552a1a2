"""Logs as files: written data is read back, other units and names are converted, and an invalid file gets one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.logs.log_description import in_text, in_words
from loopcheck.robots.logs.log_files import log_of_frame, read_log, write_log
from loopcheck.robots.mechanism import Mechanism
from tests.conftest import MODELS

SLIDER = """<mujoco><worldbody><body name="crank"><joint name="hip" axis="0 0 1"/><geom size="1" mass="1"/>
<body name="rod"><joint name="rail" type="slide" axis="1 0 0"/><geom size="1" mass="1"/></body></body></worldbody>
<actuator><motor name="turn" joint="hip"/><motor name="push" joint="rail"/></actuator></mujoco>"""
T = np.linspace(0, 0.19, 20)
COLUMNS = {
    "t": T,
    "hip.q": np.sin(T),
    "hip.qd": np.cos(T),
    "rail.q": T**2,
    "rail.qd": 2 * T,
    "turn.effort": 1 + T,
    "push.effort": 2 - T,
}


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    path = tmp_path_factory.mktemp("model") / "slider.xml"
    path.write_text(SLIDER)
    return read_mechanism(ModelFile(path=path))


def text(columns: dict[str, np.ndarray], separator: str = ",") -> str:
    rows = [separator.join(f"{x:.17g}" for x in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join([separator.join(columns), *rows]) + "\n"


def read(tmp_path: Path, mechanism: Mechanism, content: str, description: str = "") -> Log:
    path = tmp_path / "run.csv"
    path.write_text(content)
    if description:
        path.with_suffix(".toml").write_text(description)
    return read_log(path, mechanism)


def want_motion(log: Log) -> None:
    assert (log.name, log.joints, log.actuators) == ("run", ("hip", "rail"), ("turn", "push"))
    assert log.qd is not None
    np.testing.assert_allclose(log.t, T, atol=1e-15)
    np.testing.assert_allclose(log.q, np.stack([np.sin(T), T**2], axis=1), rtol=1e-14)
    np.testing.assert_allclose(log.qd, np.stack([np.cos(T), 2 * T], axis=1), rtol=1e-14)
    np.testing.assert_allclose(log.effort, np.stack([1 + T, 2 - T], axis=1), rtol=1e-14)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_plain_columns_are_read(separator: str, tmp_path: Path, mechanism: Mechanism) -> None:
    log = read(tmp_path, mechanism, text(COLUMNS, separator))
    want_motion(log)
    assert log.effort_time is None
    assert log.qdd is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_is_read(suffix: str, tmp_path: Path, mechanism: Mechanism) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    log = read(tmp_path, mechanism, text(COLUMNS))
    held = Held(0.1 + 0.2)
    gaps = np.where(np.arange(40).reshape(20, 2) % 3, log.effort / 3, np.nan)
    whole = replace(log, readings={"sensor": gaps}, effort_time=held, source='a "bench"', qdd=log.q / 7)
    path = tmp_path / f"again{suffix}"
    write_log(whole, path)
    again = read_log(path, mechanism)
    for name in ("t", "q", "qd", "qdd", "effort"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))
    assert (again.effort_time, again.source) == (held, 'a "bench"')
    assert in_text(Held(0.005)) == "held:0.005"
    assert in_words(Held(0.00019438150000537305)) == "held:0.000194382"
    assert np.isnan(again.readings["sensor"]).sum() == 14


def test_a_state_with_quaternions_is_written_as_mujoco_has_it(tmp_path: Path) -> None:
    mechanism = read_mechanism(ModelFile(path=MODELS / "spinning_rod.xml"))
    rng = np.random.default_rng(0)
    log = Log(
        name="spin",
        t=T,
        joints=tuple(joint.name for joint in mechanism.joints),
        kinds=tuple(joint.kind for joint in mechanism.joints),
        q=rng.normal(size=(20, mechanism.nq)),
        qd=rng.normal(size=(20, mechanism.nv)),
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        effort=rng.normal(size=(20, mechanism.na)),
        effort_time=Instantaneous(),
    )
    path = tmp_path / "spin.csv"
    write_log(log, path)
    assert "qpos.0,qpos.1" in path.read_text()
    again = read_log(path, mechanism)
    np.testing.assert_array_equal(again.q, log.q)
    assert again.kinds == log.kinds


def test_units_signs_and_names_are_converted(tmp_path: Path, mechanism: Mechanism) -> None:
    theirs = {
        "Time (ms)": 1e3 * T,
        "Hip Angle": -np.rad2deg(np.sin(T)),
        "hip.qd [deg/s]": np.rad2deg(np.cos(T)),
        "rail.q": 1e3 * T**2,
        "rail.qd": 2e3 * T,
        "hip.effort": (1 + T) * 1e3,
        "push.effort (kN)": (2 - T) / 1e3,
        "Temperature": T,
    }
    description = """
        effort_time = "held:0.004"
        source = "test bench"
        columns = { t = "Time (ms)", "hip.q" = "Hip Angle" }
        signs = { "hip.q" = -1 }
        units = { angle = "degrees", length = "mm", torque = "N*mm" }
    """
    log = read(tmp_path, mechanism, text(theirs), description)
    want_motion(log)
    assert log.effort_time == Held(0.004)


@pytest.mark.parametrize(
    "names",
    [
        ("time", "rig.hip.Rz.q", "rig.hip.Rz.w", "rig.rail.Px.p", "rig.rail.Px.v", "rig.hip.Rz.t", "rig.rail.Px.f"),
        ("__time", *(f"/joint_states/{x}" for x in (
            "hip/position", "hip/velocity", "rail/position", "rail/velocity", "hip/effort", "rail/effort"))),
        ("TIME", "Pos1_Relative@hip", "Vel1_Relative@hip", "Joints/rail/Pos1_Relative", "Joints/rail/Vel1_Relative",
         "hip.effort", "rail.effort"),
    ],
    ids=["simscape", "ros", "recurdyn"],
)  # fmt: skip
def test_names_of_exporters_are_known(names: tuple[str, ...], tmp_path: Path, mechanism: Mechanism) -> None:
    want_motion(read(tmp_path, mechanism, text(dict(zip(names, COLUMNS.values(), strict=True)))))


PLAIN = text(COLUMNS)


@pytest.mark.parametrize(
    ("content", "description", "line"),
    [
        (PLAIN.replace("turn.effort", "turn").replace("push.effort", "push"), "", (
            "must have the columns 'turn.effort', 'push.effort'; understood: t, hip.q"
        )),
        (PLAIN.replace(".q,", ".p,").replace(".qd,", ".v,"), "", (
            "must have the columns 'hip.q', 'rail.q' .or 'qpos.0'"
        )),
        (PLAIN.replace("0.01,", "x,", 1), "", "column 't': numbers must be finite, got 'x' in row 2"),
        (PLAIN, 'units = { angle = "mm" }', "unit of angle must be among rad, deg, .*, got 'mm'"),
        (PLAIN.replace("hip.q,", "hip.q [N],"), "", "column 'hip.q .N.': unit of angle must be"),
        (PLAIN, 'effort_time = "sometimes"', "effort_time must be held:SECONDS, .* or instantaneous, got 'sometimes'"),
        (PLAIN, 'effort_time = "held:x"', "effort_time must be held:SECONDS, .* or instantaneous, got 'held:x'"),
        (PLAIN, 'effort_time = "held:-1"', "effort_time: hold time of the efforts: must be above 0 s, got -1 s"),
        (PLAIN, 'signs = { "hpi.q" = -1 }', "signs: names must be columns .t, hip.q, .*, got 'hpi.q'"),
        (PLAIN, "unit = 3", "run.toml: unit: unknown key. Did you mean 'units'"),
        (PLAIN, "unit", "run.toml: the description of a log must be TOML"),
        (PLAIN, 'columns = { "hip.q" = "Hip" }', "must have the column 'Hip', declared for 'hip.q' in its"),
        ("# only a comment\n", "", "a log must be a table or a bag: must have a header line"),
        (PLAIN.replace("hip.qd", "hip.q"), "", "column names must be unique, got 'hip.q' 2 times"),
        (PLAIN.replace("\n", ",1\n").replace("effort,1", "effort"), "", (
            "rows must not have more cells than the header .7 names"
        )),
        (PLAIN + "1,2\n", "", "numbers must be finite"),
        (PLAIN + "1,2,3,4,5,6,7,8,9\n", "", "a log must be a table or a bag"),
    ],
)  # fmt: skip
def test_a_bad_file_gets_one_line(
    content: str, description: str, line: str, tmp_path: Path, mechanism: Mechanism
) -> None:
    with pytest.raises(HarnessError, match=line) as caught:
        read(tmp_path, mechanism, content, description)
    assert "\n" not in str(caught.value)
    assert "run." in str(caught.value)


@pytest.mark.parametrize(
    ("values", "got"),
    [
        (pd.date_range("2026-01-01", periods=20, freq="10ms"), "2026-01-01 00:00:00"),
        (pd.timedelta_range(0, periods=20, freq="10ms"), "0 days 00:00:00"),
        (T + 1j, "1j"),
    ],
)
def test_dates_are_no_times(values: Any, got: str, mechanism: Mechanism) -> None:
    frame = pd.DataFrame({**COLUMNS, "t": values})
    with pytest.raises(HarnessError, match=f"log: column 't': numbers must be finite, got '{got}' in row 1"):
        log_of_frame(frame, mechanism, name="log")


def test_an_index_of_pandas_is_a_column(tmp_path: Path, mechanism: Mechanism) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame(COLUMNS).set_index("t").to_parquet(tmp_path / "run.parquet")
    want_motion(read_log(tmp_path / "run.parquet", mechanism))


def test_lines_above_the_names_may_be_empty(tmp_path: Path, mechanism: Mechanism) -> None:
    log = read(tmp_path, mechanism, '\n# effort_time = "held:0.5"\n\n' + PLAIN)
    want_motion(log)
    assert log.effort_time == Held(0.5)


def test_files_that_are_no_tables_get_one_line(tmp_path: Path, mechanism: Mechanism) -> None:
    pytest.importorskip("pyarrow")
    for name, content in (("a.parquet", b"no"), ("b.csv", b"\xff\xfe\x00"), ("c.csv", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HarnessError, match=f"{name}: a log must be a table or a bag"):
            read_log(tmp_path / name, mechanism)
    with pytest.raises(HarnessError, match=r"gone.csv: a log must be"):
        read_log(tmp_path / "gone.csv", mechanism)
