"""Motion files: the law between the samples and past the ends."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.continuation import close
from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.recorded import read_recording
from loopcheck.robots.errors import HarnessError, MechanismError, SingularityError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import MotionSpec, load
from loopcheck.validation.common.targets import case_of
from tests.conftest import MODELS


@pytest.fixture(scope="module")
def four_bar() -> Mechanism:
    return read_mechanism(ModelFile(path=MODELS / "four_bar.xml"))


def law_of(t: np.ndarray, four_bar: Mechanism, folder: Path) -> Drive:
    """At times t, the law of a file of a cubic from 1 s to 2 s: its acceleration changes all the time."""
    samples = np.linspace(1.0, 2.0, 11)
    columns = np.stack([samples, samples**3, 3 * samples**2, 6 * samples], axis=1)
    header = "t,crank.q,crank.qd,crank.qdd"
    np.savetxt(folder / "m.csv", columns, delimiter=",", header=header, comments="", fmt="%.17g")
    return read_recording(folder / "m.csv", four_bar).law(t)


def test_between_the_samples_a_cubic_is_met(four_bar: Mechanism, tmp_path: Path) -> None:
    t = np.linspace(1.0, 2.0, 37)
    for values, exact in zip(law_of(t, four_bar, tmp_path), (t**3, 3 * t**2, 6 * t), strict=True):
        np.testing.assert_allclose(values[:, 0], exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("end", [1.0, 2.0])
def test_past_its_ends_the_acceleration_stays_what_it_is_there(four_bar: Mechanism, tmp_path: Path, end: float) -> None:
    ahead = np.array([0.01, 0.1, 0.5]) * (1 if end == 2.0 else -1)
    q, qd, qdd = law_of(end + ahead, four_bar, tmp_path)
    np.testing.assert_allclose(qdd[:, 0], 6 * end, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(qd[:, 0], 3 * end**2 + 6 * end * ahead, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(q[:, 0], end**3 + 3 * end**2 * ahead + 3 * end * ahead**2, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("amplitude", "unit", "error"), [(0.05, 180 / np.pi, MechanismError), (5.0, 1.0, SingularityError)]
)
def test_degrees_are_suspected_before_a_singularity(
    tmp_path: Path, amplitude: float, unit: float, error: type[HarnessError]
) -> None:
    """The rocker turns by less than a turn; a motion in radians that is too large is no matter of units."""
    t = np.linspace(0, 1, 41)
    case = case_of(load("four_bar").folder / "four_bar.xml", actuated="rocker")
    start = close(case.mechanism, case.guess[None], np.ones(3, dtype=bool))[0][0, 2]
    columns = unit * np.stack([start + amplitude * (1 - np.cos(t)), amplitude * np.sin(t), amplitude * np.cos(t)])
    rows = [",".join(map(str, row)) for row in np.stack([t, *columns], axis=1).tolist()]
    path = written(tmp_path, "\n".join(["t,rocker.q,rocker.qd,rocker.qdd", *rows, ""]))
    moved = case.robot.model_copy(update={"motion": MotionSpec(law="recorded", parameters={"file": str(path)})})
    with pytest.raises(error) as of_file:
        prescribe(replace(case, robot=moved))
    log = Log(
        name="bench",
        t=t,
        joints=("rocker",),
        kinds=("hinge",),
        q=columns[0][:, None],
        actuators=("rocker",),
        effort=np.zeros((len(t), 1)),
    )
    with pytest.raises(error) as of_log:
        closed_log(case.mechanism, log, case.guess)
    for message in map(str, (of_file.value, of_log.value)):
        assert (f"'rocker.q' (up to {columns[0].max():.3g})" in message) == (unit != 1)
    assert ("bench.toml: units.angle = 'deg'" in str(of_log.value)) == (unit != 1)


PLAIN = "t,crank.q,crank.qd,crank.qdd\n0,0.5,0,1\n0.1,0.505,0.1,1\n0.2,0.52,0.2,1\n"


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    (folder / "m.csv").write_bytes(text.encode(encoding))
    return folder / "m.csv"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (PLAIN, "utf-8-sig"),
        (PLAIN.replace("\n", "\r\n"), "utf-8"),
        (PLAIN.replace(",", ";"), "utf-8"),
        (PLAIN.replace(",", " ,\t"), "utf-8"),
        ("# of last week\n" + PLAIN, "utf-8"),
        (PLAIN.replace("crank.qdd\n", "crank.qdd,remark\n").replace(",1\n", ",1,fine\n"), "utf-8"),
    ],
)
def test_tables_of_other_programs_are_read(text: str, encoding: str, four_bar: Mechanism, tmp_path: Path) -> None:
    q, qd, qdd = read_recording(written(tmp_path, text, encoding), four_bar).law(np.array([0.1]))
    np.testing.assert_allclose([q, qd, qdd], [[[0.505]], [[0.1]], [[1.0]]], rtol=1e-12)


STATE = "t," + ",".join(f"{name}.{k}" for name in ("qpos", "qvel", "qacc") for k in range(3)) + "\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "a motion file must be CSV: must have a header line with the column names"),
        (
            PLAIN.replace("crank.qdd", "crank.q"),
            "a motion file must be CSV: column names must be unique, got 'crank.q' 2 times",
        ),
        (PLAIN.replace("0.1,1\n", "0.1\n"), "column 'crank.qdd': numbers must be finite, got 'nan' in row 2"),
        (PLAIN.replace("0.1,1\n", "0.1,1,2\n"), "a motion file must be CSV: .* Expected 4 fields in line 3, saw 5"),
        (
            PLAIN.replace(",1\n", ",1,2\n"),
            "a motion file must be CSV: rows must not have more cells than the header .4 names",
        ),
        (PLAIN.replace("0.505", "x"), "column 'crank.q': numbers must be finite, got 'x' in row 2"),
        (
            PLAIN.replace("0.2,0.52", "0.25,0.52"),
            "'t': all time steps must be equal to the median step .* got 0.1 s after row 1",
        ),
        (PLAIN.replace("0.2,0.52", "0.05,0.52"), "'t': times must increase, got a time that goes back: 0.1 s in row"),
        (PLAIN.split("0.1")[0], "column 't': must have at least 2 samples, got 1"),
        (STATE.replace("qvel.0", "qpos.3,qvel.0") + "0" + 10 * ",1" + "\n.1" + 10 * ",1" + "\n", "got more: 'qpos.3'"),
    ],
)
def test_a_bad_file_gets_one_line(text: str, line: str, four_bar: Mechanism, tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=f"m.csv: .*{line}") as caught:
        read_recording(written(tmp_path, text), four_bar)
    assert "\n" not in str(caught.value)
