"""Logs as other tools write them: the same numbers in every format give the same log, and a bad file gets one line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import Held, Instantaneous
from loopcheck.robots.logs.log_description import in_text
from loopcheck.robots.logs.log_files import read_log
from loopcheck.robots.mechanism import Mechanism
from tests.bags import write_bag

GEARED = """<mujoco><worldbody><body name="crank"><joint name="hip" axis="0 0 1"/><geom size="1" mass="1"/>
<body name="rod"><joint name="rail" type="slide" axis="1 0 0"/><geom size="1" mass="1"/></body></body></worldbody>
<actuator><motor name="turn" joint="hip" gear="50"/><motor name="push" joint="rail"/></actuator></mujoco>"""
T = 0.01 * np.arange(20)
JOINTS = ("rail", "gripper", "hip")
"""Joints of the messages, in their order; the model does not have the second."""
Q = np.stack([T**2, 0 * T, np.sin(T)], axis=1)
QD = np.stack([2 * T, 0 * T, np.cos(T)], axis=1)
EFFORT = np.stack([2 - T, np.nan * T, 50 * (1 + T)], axis=1)
EPOCH = 1_760_000_000 * 10**9
"""Time of the first stamp [ns]."""
STAMPS = [EPOCH + 10_000_000 * k for k in range(len(T))]


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    path = tmp_path_factory.mktemp("model") / "geared.xml"
    path.write_text(GEARED)
    return read_mechanism(ModelFile(path=path))


def want_log(path: Path, mechanism: Mechanism, *, velocities: bool = True) -> None:
    log = read_log(path, mechanism, side="joint")
    order = [log.joints.index(name) for name in ("hip", "rail")]
    np.testing.assert_allclose(log.t, T, atol=1e-12)
    np.testing.assert_array_equal(log.q[:, order], Q[:, [2, 0]])
    if velocities:
        assert log.qd is not None
        np.testing.assert_array_equal(log.qd[:, order], QD[:, [2, 0]])
    assert log.actuators == ("turn", "push")
    np.testing.assert_allclose(log.effort, np.stack([1 + T, 2 - T], axis=1), rtol=1e-15)


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
@pytest.mark.parametrize("as_file", [False, True])
def test_bags_of_ros_are_read(storage: str, as_file: bool, tmp_path: Path, mechanism: Mechanism) -> None:
    folder = write_bag(tmp_path / "bag", JOINTS, STAMPS, (Q, QD, EFFORT), storage=storage)
    file = next(path for path in folder.iterdir() if path.suffix in (".mcap", ".db3"))
    want_log(file if as_file else folder, mechanism)


def test_messages_are_in_the_order_of_their_stamps_not_of_their_arrival(tmp_path: Path, mechanism: Mechanism) -> None:
    swapped = [1, 0, *range(2, len(T))]
    stamps = [STAMPS[k] for k in swapped]
    folder = write_bag(tmp_path / "bag", JOINTS, stamps, (Q[swapped], QD[swapped], EFFORT[swapped]), received=STAMPS)
    want_log(folder, mechanism)


def test_messages_without_stamps_have_the_times_of_their_arrival(tmp_path: Path, mechanism: Mechanism) -> None:
    want_log(write_bag(tmp_path / "bag", JOINTS, [0] * 20, (Q, QD, EFFORT), received=STAMPS), mechanism)


def test_stamps_of_a_simulation_start_at_zero(tmp_path: Path, mechanism: Mechanism) -> None:
    """Its clock runs at a third of the time of the arrival."""
    stamps, received = ([EPOCH * far + rate * 10**7 * k for k in range(len(T))] for far, rate in ((0, 1), (1, 3)))
    want_log(write_bag(tmp_path / "bag", JOINTS, stamps, (Q, QD, EFFORT), received=received), mechanism)


def test_a_second_topic_of_the_same_joints_must_be_chosen(tmp_path: Path, mechanism: Mechanism) -> None:
    folder = write_bag(
        tmp_path / "bag", JOINTS, STAMPS, (Q, QD, EFFORT), also=("/commands", [s + 5_000_000 for s in STAMPS], 1 + Q)
    )
    with pytest.raises(HarnessError, match=r"single column for '\w+.q', got .*'/commands/\w+/position'. Declare one"):
        read_log(folder, mechanism)
    chosen = ", ".join(f'"{name}.q" = "/joint_states/{name}/position"' for name in ("hip", "rail"))
    folder.with_suffix(".toml").write_text(f"columns = {{ {chosen} }}")
    want_log(folder, mechanism)


def test_rows_of_ros2_topic_echo_are_read(tmp_path: Path, mechanism: Mechanism) -> None:
    path = tmp_path / "echo.csv"
    path.write_text(echo(JOINTS, (Q, QD, EFFORT)))
    want_log(path, mechanism)


def test_times_of_plotjuggler_are_read_to_the_nanosecond(tmp_path: Path, mechanism: Mechanism) -> None:
    names = [f"/joint_states/{joint}/{kind}" for kind in ("position", "velocity", "effort") for joint in JOINTS]
    rows = [["__time", *names, "/diagnostics/load"]]
    for k, stamp in enumerate(STAMPS):
        values = [*Q[k], *QD[k], *EFFORT[k]]
        rows.append([seconds(stamp), *("" if np.isnan(x) else repr(float(x)) for x in values), ""])
        rows.append([seconds(stamp + 3_000_000), *[""] * len(values), "0.5"])  # another topic has its own rows
    path = tmp_path / "plot.csv"
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    want_log(path, mechanism)


@pytest.mark.parametrize("has_stamps", [True, False])
def test_plots_of_foxglove_are_read(has_stamps: bool, tmp_path: Path, mechanism: Mechanism) -> None:
    lines = ["elapsed time,receive time,header.stamp,topic,value"]
    for kind, values in (("position", Q), ("effort", EFFORT)):
        for place in (0, 2):
            for k, stamp in enumerate(STAMPS):
                received = seconds(stamp + (k % 3) * 1_000_000 * has_stamps)
                stamped = seconds(stamp) if has_stamps else ""
                lines.append(f"{T[k]},{received},{stamped},/joint_states.{kind}[{place}],{float(values[k, place])!r}")
    path = tmp_path / "plot_data.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(
        HarnessError,
        match=r"must have the columns 'hip.q', 'rail.q', .*understood: /joint_states.position.0., .*Declare them",
    ):
        read_log(path, mechanism)
    kinds = {"q": "position", "effort": "effort"}
    declared = [
        f'"{joint}.{ours}" = "/joint_states.{kind}[{place}]"'
        for ours, kind in kinds.items()
        for joint, place in (("rail", 0), ("hip", 2))
    ]
    path.with_suffix(".toml").write_text(f"columns = {{ {', '.join(declared)} }}")
    want_log(path, mechanism, velocities=False)


def arrays() -> dict[str, Any]:
    """Columns as variables of MATLAB, whose names have no dots."""
    return {
        "time": T,
        "hip_q": Q[:, 2],
        "hip_qd": QD[:, 2],
        "rail_q": Q[:, 0],
        "rail_qd": QD[:, 0],
        "hip_effort": EFFORT[:, 2],
        "rail_effort": EFFORT[:, 0],
        "comment": "run 3",
    }


@pytest.mark.parametrize("is_structure", [False, True])
def test_variables_of_matlab_are_read(is_structure: bool, tmp_path: Path, mechanism: Mechanism) -> None:
    savemat(tmp_path / "run.mat", {"out": arrays()} if is_structure else arrays())
    want_log(tmp_path / "run.mat", mechanism)


def test_signals_with_time_of_simulink_are_read(tmp_path: Path, mechanism: Mechanism) -> None:
    columns = arrays()
    signals = [{"label": name, "values": columns[name][:, None]} for name in columns if name not in ("time", "comment")]
    savemat(tmp_path / "run.mat", {"out": {"time": T[:, None], "signals": signals}})
    want_log(tmp_path / "run.mat", mechanism)


def test_files_of_matlab_without_numbers_get_one_line(tmp_path: Path, mechanism: Mechanism) -> None:
    savemat(tmp_path / "names.mat", {"comment": "run 3"})
    (tmp_path / "new.mat").write_bytes(b"MATLAB 7.3 MAT-file" + b" " * 105 + b"\x00\x02IM" + b" " * 500)
    (tmp_path / "no.mat").write_bytes(b"no")
    for name, line in (
        ("names", "must have an array of times .t, time, .*, got no arrays"),
        ("new", "up to version 7, got 7.3; save numbers: s = table2struct"),
        ("no", "must be a MAT file"),
    ):
        with pytest.raises(HarnessError, match=line) as caught:
            read_log(tmp_path / f"{name}.mat", mechanism)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("clock", [False, True])
def test_timetables_as_text_are_read(clock: bool, tmp_path: Path, mechanism: Mechanism) -> None:
    """`writetimetable` writes the unit of a duration into every cell."""
    columns = {name: x for name, x in arrays().items() if isinstance(x, np.ndarray)}
    columns |= {"hip_q (deg)": np.rad2deg(columns.pop("hip_q")), "rail_q [mm]": 1e3 * columns.pop("rail_q")}
    frame = pd.DataFrame(columns).rename(columns={"time": "Time"})
    frame["Time"] = [f"00:00:{t:05.2f}" if clock else f"{t:.2f} sec" for t in T]
    frame.to_csv(tmp_path / "run.csv", index=False, float_format="%.17g")
    log = read_log(tmp_path / "run.csv", mechanism, side="joint")
    np.testing.assert_allclose(log.t, T, atol=1e-12)
    np.testing.assert_allclose(log.q[:, [log.joints.index("hip"), log.joints.index("rail")]], Q[:, [2, 0]], rtol=1e-14)
    np.testing.assert_allclose(log.effort, np.stack([1 + T, 2 - T], axis=1), rtol=1e-15)


def test_units_below_the_names_are_read(tmp_path: Path, mechanism: Mechanism) -> None:
    """As the Simulation Data Inspector exports them with metadata."""
    columns = {name: x for name, x in arrays().items() if isinstance(x, np.ndarray)}
    columns["hip_q"] = np.rad2deg(columns["hip_q"])
    rows = ["," + ",".join(["Type: double"] * (len(columns) - 1)), "," + ",".join(["Unit: deg"] + [""] * 5)]
    text = pd.DataFrame(columns).to_csv(index=False, float_format="%.17g").split("\n", 1)
    (tmp_path / "run.csv").write_text("\n".join([text[0], *rows, text[1]]), encoding="utf-8")
    log = read_log(tmp_path / "run.csv", mechanism)
    np.testing.assert_allclose(log.q[:, log.joints.index("hip")], Q[:, 2], rtol=1e-14)


@pytest.mark.parametrize("name", ["actuator_force", "effort"])
def test_arrays_kept_after_each_step_are_read(name: str, tmp_path: Path, mechanism: Mechanism) -> None:
    """The force of a row acted in the step that ends there, which the file states by the length of the step."""
    motion: dict[str, Any] = {"qpos": Q[:, [2, 0]], "qvel": QD[:, [2, 0]], "ctrl": np.ones((20, 2))}
    efforts: dict[str, Any] = {"actuator_force": 7 * np.ones((20, 2)), name: EFFORT[:, [2, 0]]}
    np.savez(tmp_path / "run.npz", time=T, timestep=np.array(0.01), **motion, **efforts)
    log = read_log(tmp_path / "run.npz", mechanism)
    assert (log.joints, log.actuators) == (("hip", "rail"), ("turn", "push"))
    assert in_text(log.effort_time or Instantaneous()).startswith("held-until:0.01")
    np.testing.assert_array_equal(log.effort, EFFORT[:, [2, 0]])
    assert (log.columns["actuator_force.0"] == "turn.reported") == (name == "effort")
    from_there = log.from_their_times()
    assert in_text(from_there.effort_time or Instantaneous()).startswith("held:0.01")
    np.testing.assert_array_equal(from_there.q, Q[:-1, [2, 0]])
    np.testing.assert_array_equal(from_there.effort, EFFORT[1:, [2, 0]])


def test_arrays_state_the_time_of_their_efforts(tmp_path: Path, mechanism: Mechanism) -> None:
    columns: dict[str, Any] = {"time": T, "qpos": Q[:, [2, 0]], "effort": EFFORT[:, [2, 0]]}
    np.savez(tmp_path / "run.npz", **columns, effort_time=np.array("held:0.002"))
    assert read_log(tmp_path / "run.npz", mechanism).effort_time == Held(0.002)
    np.savez(tmp_path / "run.npz", **columns, timestep=np.array(0.001))
    assert read_log(tmp_path / "run.npz", mechanism).effort_time == Held(0.001, until=True)
    np.savez(tmp_path / "run.npz", **{**columns, "effort": EFFORT})
    with pytest.raises(HarnessError, match="effort must have a column for each of 2 actuators of this model"):
        read_log(tmp_path / "run.npz", mechanism)
    (tmp_path / "no.npz").write_bytes(b"no")
    with pytest.raises(HarnessError, match=r"no.npz: a log must be a table or a bag: must be arrays by name"):
        read_log(tmp_path / "no.npz", mechanism)


def test_the_header_states_the_side_of_the_gear_and_the_option_replaces_it(
    tmp_path: Path, mechanism: Mechanism
) -> None:
    path = tmp_path / "echo.csv"
    path.write_text('# side = "joint"\n' + echo(JOINTS, (Q, QD, EFFORT)))
    np.testing.assert_allclose(read_log(path, mechanism).effort[:, 0], 1 + T, rtol=1e-15)
    np.testing.assert_array_equal(read_log(path, mechanism, side="motor").effort[:, 0], 50 * (1 + T))


def test_bags_and_rows_without_joint_states_get_one_line(tmp_path: Path, mechanism: Mechanism) -> None:
    def want_line(path: Path, line: str) -> None:
        with pytest.raises(HarnessError, match=line) as caught:
            read_log(path, mechanism)
        assert "\n" not in str(caught.value)

    none = np.zeros((20, 0))
    want_line(write_bag(tmp_path / "a", JOINTS, STAMPS, (Q, QD, none)), "must have the columns 'turn.effort', ")
    want_line(write_bag(tmp_path / "b", ("left", "x"), STAMPS, (Q[:, 1:],) * 3), "must have the columns 'hip.q', ")
    want_line(write_bag(tmp_path / "c", JOINTS, [], (Q, QD, EFFORT)), "must have messages of sensor_msgs/msg/JointSta")
    (tmp_path / "broken.mcap").write_bytes(b"no")
    want_line(tmp_path / "broken.mcap", "broken.mcap: a log must be a table or a bag")
    (tmp_path / "half.csv").write_text(echo(JOINTS, (Q, QD)))
    want_line(tmp_path / "half.csv", "must have position, velocity, effort of each of 3 joints, got 6 numbers")
    (tmp_path / "other.csv").write_text(echo(JOINTS, (Q,) * 3) + echo(JOINTS[::-1], (Q,) * 3))
    want_line(tmp_path / "other.csv", "every row must have the joints rail, gripper, hip")


def test_a_joint_with_two_actuators_has_no_effort_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "twice.xml"
    path.write_text(GEARED.replace('<motor name="push"', '<motor name="help" joint="hip"/><motor name="push"'))
    folder = write_bag(tmp_path / "bag", JOINTS, STAMPS, (Q, QD, EFFORT))
    with pytest.raises(HarnessError, match=r"'hip.effort' must name one of the actuators of joint 'hip' .turn, help."):
        read_log(folder, read_mechanism(ModelFile(path=path)))


def echo(joints: Sequence[str], values: Sequence[Any]) -> str:
    """Rows as `ros2 topic echo --csv` prints them."""
    return "".join(
        ",".join(
            [
                *(str(part) for part in divmod(stamp, 10**9)),
                "base",
                *joints,
                *(repr(float(x)) for of_one in values for x in of_one[k]),
            ]
        )
        + "\n"
        for k, stamp in enumerate(STAMPS)
    )


def seconds(stamp: int) -> str:
    """Nanoseconds as seconds, without rounding."""
    return f"{stamp // 10**9}.{stamp % 10**9:09d}"
