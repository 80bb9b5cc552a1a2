"""`loopcheck serial --audit`: transmissions with seeded faults, written here by plane and space trigonometry."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.transmission import load_transmission
from tests.json_outputs import valid_output
from tests.robots.test_transmission_data import FIGURES
from tests.validation.conftest import Command

NAME = "limx_hu_d04_ankle_left"
KNEE = "kuavo_5_knee_left"
WRITTEN = """
import numpy as np
JOINTS, LEGS = {joints!r}, {legs!r}

def cross(a, b):
    (a0, a1, a2), (b0, b1, b2) = a, b
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])

def turned(v, axis, angle):
    axis = np.asarray(axis)
    return v * np.cos(angle) + cross(axis, v) * np.sin(angle) + axis * (axis @ v) * (1 - np.cos(angle))

def leg(x, anchor, axis, pin, end, length):
    p = np.asarray(end)
    for (a, u), angle in zip(JOINTS[::-1], x[::-1]):
        p = np.asarray(a) + turned(p - np.asarray(a), u, angle)
    r, away = np.asarray(pin) - anchor, p - np.asarray(anchor)
    f = lambda y: np.sum((away - turned(r, axis, y)) ** 2) - length ** 2
    y = 0.0
    for _ in range(8):
        y -= f(y) * 1e-6 / (f(y + 5e-7) - f(y - 5e-7))
    return y, p, away, turned(r, axis, y)

def exact(x):
    y, T = [], []
    for anchor, axis, pin, end, length in LEGS:
        angle, p, away, r = leg(x, anchor, axis, pin, end, length)
        d = away - r
        columns = []
        for k, (a, u) in enumerate(JOINTS):
            u = np.asarray(u)
            for (b, w), before in zip(JOINTS[:k][::-1], x[:k][::-1]):
                u = turned(u, w, before)
            columns.append(cross(u, p - np.asarray(a)) @ d)
        y.append(angle)
        T.append(np.array(columns) / (d @ cross(axis, r)))
    return np.array(y), np.array(T)

def right(x, xd, tau):
    y, T = exact(x)
    return y, T @ xd, np.linalg.solve(T.T, tau)

def velocity_for_effort(x, xd, tau):
    y, T = exact(x)
    return y, T @ xd, np.linalg.solve(T.T, xd)

def too_strong(x, xd, tau):
    y, yd, motor = right(x, xd, tau)
    return y, yd, motor * np.array([1.0, 1.25])

def exchanged(x, xd, tau):
    return tuple(part[::-1] for part in right(x, xd, tau))

def wrong_sign(x, xd, tau):
    y, yd, motor = right(x, xd, tau)
    return y * [1, -1], yd * [1, -1], motor

def at_rest_only(x, xd, tau):
    y, yd, motor = right(x, xd, tau)
    return y, yd, motor + 0.1 * xd ** 2

def first_pose(x, xd, tau):
    T = exact(np.zeros(2))[1]
    return exact(x)[0], T @ xd, np.linalg.solve(T.T, tau)

def own_jacobian(x, xd, tau):
    y, T = exact(x)
    T = T * (1 + 0.3 * x[0])
    return y, T @ xd, np.linalg.solve(T.T, tau)

def transposed(x, xd, tau):
    y, T = exact(x)
    return y, T @ xd, T @ tau

def offset(x, xd, tau):
    y, yd, motor = right(x, xd, tau)
    return y + [0.0, 0.05], yd, motor

def broken(x, xd, tau):
    return x, xd
"""
FAULTS = {
    "velocity_for_effort": "efforts are computed from velocities",
    "too_strong": "1.25 times those that conserve power",
    "exchanged": "motors are exchanged",
    "wrong_sign": "wrong sign of left_B_achilles_joint",
    "at_rest_only": "right at rest only",
    "first_pose": "are those of the transmission at the first pose",
    "own_jacobian": "rates do not follow from the positions, which are right",
    "transposed": "use T, as rates do, in place of its inverse transpose",
    "offset": "left_B_achilles_joint is 0.05 too large at every pose",
}
ALONE = {
    "velocity_for_effort": "efforts are computed from velocities",
    "too_strong": "1.25 times those that conserve power",
    "at_rest_only": "right at rest only",
    "first_pose": "rates are not the derivative of the positions",
    "own_jacobian": "rates are not the derivative of the positions",
    "transposed": "use T, as rates do, in place of its inverse transpose",
}


def both(said: tuple[int, str, str]) -> tuple[int, str]:
    """Exit status, and all that was said."""
    return said[0], said[1] + said[2]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transmission = load_transmission(NAME)
    joints = [(joint.anchor, joint.axis) for joint in transmission.joint]
    legs = [
        (leg.anchor, leg.axis, leg.pin, leg.end, float(np.linalg.norm(np.subtract(leg.end, leg.pin))))
        for leg in transmission.leg
    ]
    path = tmp_path_factory.mktemp("audit") / "ankle.py"
    path.write_text(WRITTEN.replace("{joints!r}", repr(joints)).replace("{legs!r}", repr(legs)), encoding="utf-8")
    return path


@pytest.mark.extended("test_a_table_is_audited_by_its_columns")
@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("fault", ["right", *FAULTS])
def test_faults_are_found_against_the_closed_mechanism(
    fault: str, written: Path, loopcheck: Command, tmp_path: Path
) -> None:
    status, text = both(
        loopcheck("serial", NAME, "--audit", f"{written}:{fault}", "--accuracy", "1e-6", "--out", tmp_path)
    )
    assert status == int(fault != "right"), text
    assert ("Finding" in text) == (fault != "right"), text
    if fault != "right":
        assert FAULTS[fault] in " ".join(text.split()), text
    assert "Audit of a transmission" in (tmp_path / "audit.html").read_text(encoding="utf-8")


@pytest.mark.extended("test_a_table_is_audited_by_its_columns")
@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("fault", ["right", *ALONE])
def test_faults_are_found_without_a_closed_mechanism(
    fault: str, written: Path, loopcheck: Command, tmp_path: Path
) -> None:
    audit = ("serial", "--audit", f"{written}:{fault}", "--accuracy", "1e-6", "--out", tmp_path)
    status, text = both(loopcheck(*audit))
    assert status == int(fault != "right"), text
    assert ("Finding" in text) == (fault != "right"), text
    if fault != "right":
        assert ALONE[fault] in " ".join(text.split()), text
    else:
        assert valid_output(loopcheck(*audit, "--format", "json")[1])["exit_status"] == 0
        assert loopcheck("report", tmp_path)[0] == 0


@pytest.mark.extended("test_a_table_is_audited_by_its_columns")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.usefixtures("tables_only")
def test_our_own_header_passes_as_a_library(loopcheck: Command, tmp_path: Path) -> None:
    status, text = both(loopcheck("serial", KNEE, "--out", tmp_path / "made", "--samples", "8"))
    assert status == 0, text
    figures = pd.read_csv(tmp_path / "made" / "serial_transmission.csv").set_index("quantity")
    assert figures.loc["armature factor", "at_zero"] == pytest.approx(FIGURES[KNEE][0][0][0], abs=0.005)
    source = tmp_path / "made" / "all.c"
    source.write_text(
        '#include "transmission.h"\n'
        "int knee(const double *x, const double *xd, const double *tau, double *y, double *yd, double *motor)\n"
        "{ double zero[1] = {0}, T[1], ydd[1], own[1], still[1];\n"
        "  transmission_motors(x, zero, zero, zero, y, still, ydd, own, T);\n"
        "  int status = transmission_motors(x, zero, zero, tau, y, yd, ydd, motor, T);\n"
        "  motor[0] -= own[0]; yd[0] = T[0] * xd[0]; return status; }\n"
    )
    library = tmp_path / "knee.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True)
    status, text = both(
        loopcheck("serial", KNEE, "--audit", f"{library}:knee", "--accuracy", "1e-8", "--out", tmp_path / "audit")
    )
    assert status == 0, text


def test_a_table_is_audited_by_its_columns(written: Path, loopcheck: Command, tmp_path: Path) -> None:
    space: dict[str, object] = {}
    exec(written.read_text(encoding="utf-8"), space)
    right = space["right"]
    assert callable(right)
    transmission = load_transmission(NAME)
    generator = np.random.default_rng(0)
    lines = []
    names = [f"{joint.name}.{kind}" for kind in ("q", "qd", "effort") for joint in transmission.joint]
    names += [f"{leg.motor}.{kind}" for kind in ("q", "qd", "effort") for leg in transmission.leg]
    for _ in range(20):
        x, xd, tau = generator.uniform(-0.3, 0.3, (3, 2))
        values = np.concatenate([x, xd, tau, *right(x, xd, tau)])
        lines.append(",".join(map(repr, values.tolist())))
    table = tmp_path / "ankle.csv"
    table.write_text("\n".join([",".join(names), *lines]), encoding="utf-8")
    command = ("serial", NAME, "--audit", table, "--accuracy", "1e-6", "--out", tmp_path / "out")
    status, text = both(loopcheck(*command))
    assert status == 0, text
    table.write_text(table.read_text(encoding="utf-8").replace("left_A_achilles_joint.qd", "speed"), encoding="utf-8")
    status, text = both(loopcheck(*command))
    assert status == 2
    assert "left_A_achilles_joint.qd" in text


@pytest.mark.parametrize(
    ("audit", "reason"),
    [
        ("missing.py:ankle", "must exist"),
        ("{path}", "must name a function"),
        ("{path}:ankles", "ankles"),
        ("{path}:broken", "failed at"),
    ],
)
def test_bad_files_get_one_line(audit: str, reason: str, written: Path, loopcheck: Command, tmp_path: Path) -> None:
    status, text = both(loopcheck("serial", "--audit", audit.format(path=written), "--out", tmp_path))
    assert status == 2
    assert reason in text
    assert "Traceback" not in text
