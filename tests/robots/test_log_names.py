"""Names that people give to columns: one log in many spellings is one log, and what is missing is named at once."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import Log
from loopcheck.robots.logs.log_files import log_of_frame, read_log
from loopcheck.robots.mechanism import Mechanism

MODEL = """<mujoco><worldbody><body name="crank"><joint name="hip" axis="0 0 1"/><geom size="1" mass="1"/>
<body name="rod"><joint name="rail" type="slide" axis="1 0 0"/><geom size="1" mass="1"/>
<body name="end"><joint name="tip" axis="0 0 1"/><geom size="1" mass="1"/></body></body></body></worldbody>
<actuator>{}</actuator></mujoco>"""
MOTORS = '<motor name="push" joint="rail" gear="1"/><motor name="turn" joint="hip"/>'
"""In another order than the joints."""
T: Array = 0.01 * np.arange(20.0)
Q: Array = np.stack([np.sin(T), T**2, 1 + T], axis=1)
QD: Array = np.stack([np.cos(T), 2 * T, 1 + 0 * T], axis=1)
PUSH: Array = 2 - T
TURN: Array = 1 + T
EFFORT: Array = np.stack([PUSH, TURN], axis=1)
OF_JOINTS: Array = np.stack([TURN, PUSH, 0 * T], axis=1)
NAMES = ("hip", "rail", "tip")
STAMP = 1_716_239_022
"""A date [s]."""


def model(tmp_path: Path, actuators: str = MOTORS) -> Mechanism:
    path = tmp_path / "robot.xml"
    path.write_text(MODEL.format(actuators))
    return read_mechanism(ModelFile(path=path))


def numbered(form: str, values: Array, first: int = 0) -> dict[str, Array]:
    return {form.format(k + first): column for k, column in enumerate(values.T)}


def named(form: str, names: tuple[str, ...], values: Array) -> dict[str, Array]:
    return {form.format(name): column for name, column in zip(names, values.T, strict=True)}


def want(log: Log, joints: tuple[str, ...] = NAMES) -> None:
    np.testing.assert_allclose(log.t, T, atol=1e-9)
    places = [NAMES.index(name) for name in joints]
    found = [log.joints.index(name) for name in joints]
    np.testing.assert_allclose(log.q[:, found], Q[:, places], rtol=1e-12)
    if log.qd is not None:
        np.testing.assert_allclose(log.qd[:, found], QD[:, places], rtol=1e-12)
    assert log.actuators == ("push", "turn")
    np.testing.assert_allclose(log.effort, EFFORT, rtol=1e-12)


SPELLINGS: Mapping[str, Mapping[str, Array]] = {
    "pandas": {"time": T, **numbered("qpos_{}", Q), **numbered("qvel_{}", QD), **numbered("ctrl_{}", EFFORT)},
    "brackets": {"t": T, **numbered("qpos[{}]", Q), **numbered("qvel[{}]", QD), **numbered("tau[{}]", EFFORT)},
    "mj_data": {
        "data.time": T,
        **numbered("data.qpos[{}]", Q),
        **numbered("data.qvel[{}]", QD),
        **numbered("data.ctrl[{}]", EFFORT),
    },
    "short": {"timestamp": T, **numbered("q{}", Q), **numbered("dq{}", QD), **numbered("u{}", EFFORT)},
    "from one": {"Time": T, **numbered("q{}", Q, 1), **numbered("qd{}", QD, 1), **numbered("tau{}", EFFORT, 1)},
    "long": {
        "sim_time": T,
        **numbered("joint_positions_{}", Q),
        **numbered("joint_velocities_{}", QD),
        **numbered("joint_torques_{}", EFFORT),
    },
    "of dofs": {"t": T, **numbered("q_{}", Q), **numbered("qfrc_actuator_{}", OF_JOINTS)},
    "reported": {"t": T, **numbered("q.{}", Q), **numbered("actuator_force.{}", EFFORT)},
    "words behind": {"t": T, **named("{}_pos", NAMES, Q), **named("{}_torque", ("rail", "hip"), EFFORT)},
    "words in front": {"t": T, **named("position_{}", NAMES, Q), **named("tau_{}", ("push", "turn"), EFFORT)},
    "dictionary": {"t": T, **named("q[{}]", NAMES, Q), **named("dq['{}']", NAMES, QD), **numbered("tau_{}", EFFORT)},
    "with a target": {
        "t": T,
        **numbered("qpos_{}", Q),
        **numbered("q_des_{}", Q + 1),
        **named("{}.effort", ("push", "turn"), EFFORT),
    },
    "own names first": {"t": T, **named("{}.q", NAMES, Q), "hip_pos": T, **numbered("effort.{}", EFFORT)},
    "ms": {"time_ms": 1e3 * T, **numbered("qpos_{}", Q), **numbered("ctrl_{}", EFFORT)},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_one_log_in_many_spellings_is_one_log(spelling: str, tmp_path: Path) -> None:
    want(log_of_frame(pd.DataFrame(SPELLINGS[spelling]), model(tmp_path), name="run"))


def test_numbers_of_drives_are_in_the_order_of_the_actuators(tmp_path: Path) -> None:
    columns = {"t": T, **numbered("q{}", Q[:, [1, 0]]), **numbered("dq{}", QD[:, [1, 0]]), **numbered("tau{}", EFFORT)}
    want(log_of_frame(pd.DataFrame(columns), model(tmp_path), name="run"), ("rail", "hip"))


@pytest.mark.parametrize("keys", ["t q dq tau", "time qpos qvel ctrl", "timestamps qpos qvel u"])
def test_arrays_of_numpy_are_read_and_state_no_time_of_efforts(keys: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = dict(zip(keys.split(), (T, Q, QD, EFFORT), strict=True))
    np.savez(tmp_path / "run.npz", **arrays)
    log = read_log(tmp_path / "run.npz", model(tmp_path))
    want(log)
    assert log.effort_time is None


def rows(separator: str, header: str, values: Array, form: Callable[[float], str] = repr) -> str:
    lines = [separator.join(form(float(x)) for x in row) for row in values]
    return "\n".join([header, *lines]) + "\n"


WHOLE = np.column_stack([T, Q, EFFORT])
HEADER = ["t", "hip.q", "rail.q", "tip.q", "push.effort", "turn.effort"]


@pytest.mark.parametrize(
    "text",
    [
        rows(";", ";".join(HEADER), WHOLE, lambda x: repr(x).replace(".", ",")),
        rows("\t", "\t".join(HEADER), WHOLE, lambda x: repr(x).replace(".", ",")),
        rows(" ", f"# {' '.join(HEADER)}", WHOLE),
        rows(",", f"# {','.join(HEADER)}", WHOLE),
        "% exported by a script\n" + rows(", ", ",".join(HEADER), WHOLE),
    ],
    ids=["decimal commas", "decimal commas and tabs", "savetxt", "savetxt with commas", "percent"],
)
def test_tables_as_people_write_them_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(text, encoding="utf-8")
    (tmp_path / "run.toml").write_text("")
    want(read_log(tmp_path / "run.csv", model(tmp_path)))


ORDER = ("rail", "tip", "hip")
"""Of a message of ROS."""
OF_MESSAGE = [1, 2, 0]


def rostopic() -> str:
    parts = [("name", "{}"), ("position", "{!r}"), ("velocity", "{!r}"), ("effort", "{!r}")]
    header = ["%time", "field.header.seq", "field.header.stamp", "field.header.frame_id"]
    header += [f"field.{part}{k}" for part, _ in parts for k in range(3)]
    lines = [",".join(header)]
    for k, t in enumerate(T):
        stamp = STAMP * 10**9 + round(1e9 * t)
        values = [*ORDER, *(float(x[k, j]) for x in (Q, QD, OF_JOINTS) for j in OF_MESSAGE)]
        lines.append(",".join(map(str, [stamp + 700 * (k % 3), k, stamp, "", *values])))
    return "\n".join(lines) + "\n"


def bagpy() -> str:
    columns: dict[str, Any] = {
        "Time": STAMP + T + 0.001 * (np.arange(20) % 2),
        "header.seq": np.arange(20),
        "header.stamp.secs": STAMP,
        "header.stamp.nsecs": np.round(1e9 * T).astype(int),
        "header.frame_id": "",
        "name": str(list(ORDER)),
    }
    for part, values in (("position", Q), ("velocity", QD), ("effort", OF_JOINTS)):
        columns |= numbered(f"{part}_{{}}", values[:, OF_MESSAGE])
    return pd.DataFrame(columns).to_csv(index=False)


@pytest.mark.parametrize("text", [rostopic, bagpy])
def test_joint_states_of_ros_1_are_read_in_the_order_of_their_names(text: Callable[[], str], tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(text(), encoding="utf-8")
    want(read_log(tmp_path / "run.csv", model(tmp_path)))


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_the_unit_of_a_date_is_known_by_its_size(unit: int, tmp_path: Path) -> None:
    stamps = [str(STAMP * unit + round(unit * t)) if unit > 1 else repr(STAMP + float(t)) for t in T]
    columns = {"stamp": stamps, **numbered("qpos_{}", Q), **numbered("ctrl_{}", EFFORT)}
    log = log_of_frame(pd.DataFrame(columns), model(tmp_path), name="run")
    np.testing.assert_allclose(log.t, T, atol=3e-7)


def test_commands_of_motors_are_clipped_and_multiplied_as_mujoco_does(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    motors = (
        '<motor name="push" joint="rail" ctrlrange="-1.9 1.9"/>'
        '<general name="turn" joint="hip" gainprm="3" forcerange="-3.3 3.3"/>'
    )
    mechanism = model(tmp_path, motors)
    log = log_of_frame(
        pd.DataFrame({"t": T, **numbered("qpos_{}", Q), **numbered("ctrl_{}", EFFORT)}), mechanism, name="run"
    )
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(m)
    for k in range(len(T)):
        data.ctrl[:] = EFFORT[k]
        mujoco.mj_forward(m, data)
        assert log.effort[k] == pytest.approx(data.actuator_force)


def test_a_command_of_a_servo_is_no_effort(tmp_path: Path) -> None:
    servos = '<position name="push" joint="rail" kp="9"/><motor name="turn" joint="hip"/>'
    frame = pd.DataFrame({"t": T, **numbered("qpos_{}", Q), **numbered("ctrl_{}", EFFORT)})
    with pytest.raises(HarnessError, match=r"must have the columns 'push.effort' \(a servo is told a target: its ctrl"):
        log_of_frame(frame, model(tmp_path, servos), name="run")


def test_all_missing_columns_are_named_at_once_with_lines_that_declare_them(tmp_path: Path) -> None:
    columns = {"Hip": Q[:, 0], "Rail": Q[:, 1], "tip.q": Q[:, 2], "push.effort": PUSH, "Current": TURN, "clock": T}
    path = tmp_path / "run.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    with pytest.raises(HarnessError) as caught:
        read_log(path, model(tmp_path))
    assert str(caught.value) == (
        f"{path}: must have the columns 't', 'rail.q', 'hip.q', 'turn.effort' (or 'qpos.0' ... of all joints); "
        "understood: tip.q, push.effort; not understood: Hip, Rail, Current, clock. Declare them in run.toml"
    )
    assert caught.value.example.splitlines()[:2] == ["[columns]", '"t" = "Hip"  # the name in the file']
    assert len(caught.value.example.splitlines()) == 5
    declared = ("t = 'clock'", '"rail.q" = "Rail"', '"hip.q" = "Hip"', '"turn.effort" = "Current"')
    path.with_suffix(".toml").write_text("\n".join(["[columns]", *declared]))
    want(read_log(path, model(tmp_path)))


def test_a_numbered_quantity_with_another_count_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": T, **numbered("qpos_{}", np.tile(Q, 2)), **numbered("ctrl_{}", EFFORT)})
    with pytest.raises(HarnessError, match="qpos must have a column for each of 3 entries of qpos, or of 2 drives, go"):
        log_of_frame(frame, model(tmp_path), name="run")


def test_a_quantity_of_two_origins_must_be_declared(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": T, **numbered("qpos_{}", Q), **numbered("d.qpos_{}", Q), **numbered("u{}", EFFORT)})
    with pytest.raises(HarnessError, match=r"must have a single column for 'qpos.0', got 'qpos_0' and 'd.qpos_0'"):
        log_of_frame(frame, model(tmp_path), name="run")
