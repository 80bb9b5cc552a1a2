"""`loopcheck serial`: errors before and after, limits against a search, and files with the stated effect."""

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from loopcheck.analytic.transmission.constants import Kind, fitted_constants
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.motions import (
    choosing_motions,
    efforts_along,
    fitting_motions,
    random_course,
    stated_motions,
)
from loopcheck.analytic.transmission.terms import joint_terms
from loopcheck.analytic.transmission.twin import Workspace, make_twin, sound_poses, workspace
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import NotFoundError, ToleranceError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, MotionSpec, Robot, make_case
from loopcheck.validation.check.closed_twins import possible_twins
from loopcheck.validation.check.sections.robots import robots
from loopcheck.validation.common.results import read as results_in
from loopcheck.validation.execution.tables import read_tables
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.report.blocks import Section
from loopcheck.validation.serial import study
from loopcheck.validation.serial.beside import closed_twin
from loopcheck.validation.serial.comparison import pace_of
from loopcheck.validation.serial.rows.limit_rows import limit_rows
from loopcheck.validation.serial.rows.rows import workspace_rows
from loopcheck.validation.serial.study import Serial
from loopcheck.validation.serial.writing import Motions, Repairs
from tests.analytic.test_transmission import crank_angle
from tests.json_outputs import valid_result
from tests.pageless import leave_pages_out
from tests.validation.conftest import Command, Once, in_this_process

LEGS = CATALOGUE / "legs"
KNEE = (LEGS / "knee.xml", LEGS / "knee_serial.xml")
ANKLE = (LEGS / "ankle.xml", LEGS / "ankle_serial.xml")
Comparison: TypeAlias = tuple[Path, Mapping[str, pd.DataFrame]]
"""Folder and tables."""


def compared(folder: Path, closed: Path, serial: Path, with_functions: bool = True, **options: Any) -> Comparison:
    """A comparison in this process, without a page."""
    with in_this_process() as patch:
        if not with_functions:
            patch.setattr(study, "fitted", no_functions)
        leave_pages_out(patch)
        asked = Serial(closed=case_of(closed), serial=case_of(serial), samples=32, **options)
        result, conclusion = run_study(asked, folder, workers=Workers(1))
    assert valid_result(asked, result, conclusion)["exit_status"] == 0, result.record
    return folder, result.tables


def known(folder: Path) -> Comparison:
    """A comparison that is in a folder."""
    return folder, read_tables(folder, Serial.tables)


def no_functions(*_: Any) -> str:
    return "no functions wanted here"


def case_of(path: Path) -> Case:
    spec = MotionSpec(law="automatic")
    robot = Robot(name=path.stem, folder=path.parent, title="", mjcf=path.name, motion=spec, source="test")
    return make_case(robot, variant="default", mode="home", configuration="horizontal")


@pytest.fixture(scope="module")
def knee(once: Once) -> Comparison:
    return known(once(lambda folder: compared(folder, *KNEE, speeds={"knee_motor": 12.0}), "knee"))


@pytest.fixture(scope="module")
def ankle(once: Once) -> Comparison:
    return known(once(lambda folder: compared(folder, *ANKLE), "ankle"))


def read(path: Path) -> Mechanism:
    return read_mechanism(ModelFile(path=path))


def rows_of(table: pd.DataFrame, **where: str) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table), where
    return table


@pytest.mark.extended("test_the_exported_file_needs_numpy_alone")
@pytest.mark.parametrize("name", ["knee", "ankle"])
def test_functions_repair_what_the_stand_in_loses(name: str, request: pytest.FixtureRequest) -> None:
    _, tables = request.getfixturevalue(name)
    efforts = rows_of(tables["serial"], quantity="effort at motor")
    random = efforts[efforts["motion"].str.startswith("random")]
    assert (random["plain_rms"] > 0.05).all()
    assert (random["function_rms"] < 1e-6).all()
    assert (random["constant_rms"] < 0.05).all()
    assert (efforts["constant_rms"] < efforts["plain_rms"]).all()
    assert (efforts["armature_rms"] < efforts["plain_rms"] + 1e-3).all()
    rest = rows_of(tables["serial"], quantity="effort at rest")
    assert (rest["constant_rms"] < 0.3 * rest["plain_rms"]).all()
    inertia = rows_of(tables["serial"], quantity="inertia")
    diagonal = inertia[~inertia["part"].str.contains("×")]
    assert (diagonal["plain_rms"] > 0.1).all()
    assert (diagonal["constant_rms"] < 0.15 * diagonal["plain_rms"] + 0.03).all()


@pytest.mark.extended(
    "tests/validation/test_serial_writing.py::test_mjcf_has_the_limits_and_the_error_that_it_is_said_to_have"
)
def test_the_repaired_file_has_the_error_that_was_foretold(ankle: Comparison, tmp_path: Path) -> None:
    folder, before = ankle
    repaired = folder / "serial_repaired.xml"
    _, after = compared(tmp_path, ANKLE[0], repaired, with_functions=False)
    for motion in ("automatic", "random 0", "slow", "tilted 45°"):
        foretold, measured = (
            rows_of(tables["serial"], quantity="effort at joint", motion=motion) for tables in (before, after)
        )
        assert measured["plain_rms"].to_numpy() == pytest.approx(foretold["constant_rms"].to_numpy(), rel=1e-6)
        assert (measured["plain_rms"].to_numpy() < foretold["plain_rms"].to_numpy()).all()
    broken = rows_of(after["serial_limits"], kind="motor at the serial file's limits")
    assert 0.95 < broken["ratio"].max() <= 1  # proven for all poses, not for those of the table alone
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (ANKLE[1], repaired))
    changed = [line for line, other in zip(old, new, strict=True) if line != other]
    assert len(changed) == 4
    assert all("<joint" in line or "<inertial" in line for line in changed)
    old_masses, new_masses = ([body.mass for body in read(path).bodies] for path in (ANKLE[1], repaired))
    assert old_masses == new_masses


@pytest.mark.extended("tests/validation/test_serial_writing.py::test_each_format_is_asked_for_the_kinds_that_it_holds")
def test_links_of_a_file_that_computes_their_inertia_stay(tmp_path: Path) -> None:
    """Angles in degrees too, in which the rest position of a spring is written."""
    text = KNEE[1].read_text(encoding="utf-8")
    serial, springy = tmp_path / "knee_serial.xml", tmp_path / "knee.xml"
    shank = '<inertial mass="2" pos="0 0 -0.18" diaginertia="0.02 0.02 0.004"/>'
    assert shank in text
    geometry = '<geom type="capsule" fromto="0 0 0 0 0 -.36" size=".03" mass="2"/>'
    text = text.replace(shank, geometry).replace('range="-0.5 0.7"', 'range="-28 40"')
    closed_text = KNEE[0].read_text(encoding="utf-8")
    assert 'name="knee" axis="0 1 0"' in closed_text
    springy.write_text(
        closed_text.replace('name="knee" axis="0 1 0"', 'name="knee" axis="0 1 0" stiffness="20" springref="0.3"'),
        encoding="utf-8",
    )
    closed, box = read(springy), np.array([[-0.4, 0.6]])
    for compiler, has_links in (("", True), (' inertiafromgeom="true"', False)):
        serial.write_text(text.replace(' angle="radian"', compiler), encoding="utf-8")
        other = read(serial)
        twin = make_twin(closed, closed.rest_position, other, other.rest_position, {})
        stated, choice, fit = (
            [efforts_along(side, name, course) for name, side, course in make(twin, box)]
            for make in (stated_motions, choosing_motions, fitting_motions)
        )
        motions = Motions(stated=stated, choice=choice, fit=fit)
        repairs = Repairs(twin=twin, box=box, motions=motions, limits=None, closures=(), folder=tmp_path)
        _, repaired, _ = repairs.written()
        assert (Kind.LINKS in repaired.kinds) == has_links
        assert Kind.SPRINGS in repaired.kinds
        constants = fitted_constants(twin, box, fit, choice, set(repaired.kinds))
        written = read(tmp_path / "serial_repaired.xml")
        assert written.joints[0].stiffness == pytest.approx(constants.mechanism.joints[0].stiffness, rel=1e-12)
        assert written.joints[0].stiffness == pytest.approx(20, rel=1e-9)
        assert written.joints[0].spring_reference == pytest.approx([0.3], rel=1e-9)
        for body, meant in zip(written.bodies, constants.mechanism.bodies, strict=True):
            assert body.center == pytest.approx(meant.center, abs=1e-12)
            assert body.inertia == pytest.approx(meant.inertia, abs=1e-9)
        assert np.allclose(written.bodies[-1].center, other.bodies[-1].center) != has_links


@pytest.mark.extended("test_dropping_the_mass_of_rods_is_seen")
def test_errors_pose_by_pose_are_those_of_many_motions_there() -> None:
    twin = make_twin(*pair(ANKLE), {})
    samples = workspace(twin, np.array([[0.3, 0.2], [-0.4, -0.1]]))
    box = np.array([[-0.5, 0.4], [-0.25, 0.25]])
    pace = replace(pace_of(box), rates=np.zeros(2))
    choice = [efforts_along(side, name, course) for name, side, course in choosing_motions(twin, 0.9 * box)]
    constants = fitted_constants(twin, 0.9 * box, (), choice, {Kind.ARMATURE, Kind.DAMPING})
    repaired = joint_terms(constants.space(twin.serial), samples.serial_q)
    rows = [row for row in workspace_rows(twin, samples, repaired, pace, ()) if row["quantity"] == "effort error"]
    generator, needed, errors, after = np.random.default_rng(0), [], [], []
    for x, T in zip(samples.x, samples.closed.transmission, strict=True):
        many = np.tile(x, (4000, 1))
        xdd = generator.normal(0, 1, many.shape) * pace.accelerations + pace.pull * (many - pace.middle)
        closed, serial, other = (
            joint_efforts(space, q, *moved(space, q, 0 * xdd, xdd)) @ np.linalg.inv(T)
            for space in (twin.closed, twin.serial, constants.space(twin.serial))
            for q in (np.tile(sound_poses(space, x[None])[0], (4000, 1)),)
        )
        needed.append(np.sqrt(np.mean(closed**2, axis=0)))
        errors.append(np.sqrt(np.mean((serial - closed) ** 2, axis=0)))
        after.append(np.sqrt(np.mean((other - closed) ** 2, axis=0)))
    for column, expected in (("serial", errors), ("repaired", after)):
        values = [[row[column] for row in rows if row["part"] == motor] for motor in twin.motor_names]
        assert np.transpose(values) == pytest.approx(np.array(expected) / np.max(needed, axis=0), rel=0.05)


def test_motor_limits_at_the_joint_are_those_of_a_search(knee: Comparison) -> None:
    _, tables = knee
    ratio = rows_of(tables["serial_workspace"], quantity="transmission")["closed"].to_numpy()
    torques, speeds = np.linspace(0, 100, 4001), np.linspace(0, 30, 1201)
    limits = tables["serial_limits"]
    safe = [torques[np.abs(torques / T) <= 60].max() for T in ratio]
    assert 0.98 * min(safe) < rows_of(limits, quantity="effort", kind="safe box")["high"].item() <= min(safe)
    fastest = [speeds[np.abs(T * speeds) <= 12].max() for T in ratio]
    speed = rows_of(limits, quantity="speed", kind="safe box")["high"].item()
    assert 0.98 * min(fastest) < speed < min(fastest) + 0.03  # rounded down to three digits
    effort, speed = (
        rows_of(limits, quantity=q, kind="safe box, torque–speed line")["high"].item() for q in ("effort", "speed")
    )
    used = [np.abs(torques[:, None] / T) / 60 + np.abs(T * speeds) / 12 for T in np.sort(ratio)[[0, 16, -1]]]
    area = np.where(np.max(used, axis=0) <= 1, torques[:, None] * speeds, 0).max()
    assert effort * speed == pytest.approx(area, rel=0.02)
    assert 0.99 < max(effort / T / 60 + T * speed / 12 for T in np.abs(ratio)) <= 1
    broken = rows_of(limits, kind="motor at the serial file's limits")
    assert broken["ratio"].item() == pytest.approx(1 / np.abs(ratio).min(), rel=1e-9)
    assert broken["share"].item() == 1


def test_redundant_motors_share_what_joint_limits_ask_as_a_linear_program_does(tmp_path: Path) -> None:
    path = tmp_path / "ankle.xml"
    motor = '<motor name="third" joint="pitch" forcerange="-5 12"/></actuator>'
    path.write_text(ANKLE[0].read_text(encoding="utf-8").replace("</actuator>", motor), encoding="utf-8")
    closed, serial = read(path), read(ANKLE[1])
    twin = make_twin(closed, closed.rest_position, serial, serial.rest_position, {})
    samples = workspace(twin, np.array([[0.3, 0.2], [-0.4, -0.1], [0.0, 0.0]]))
    rows = {(row["kind"], row["part"]): row for row in limit_rows(twin, samples, {})}
    low, high = np.array([-30.0, -30.0, -5.0]), np.array([30.0, 30.0, 12.0])
    needed = []
    for T in samples.closed.transmission:
        for corner in product((-50, 50), (-35, 35)):  # the least part of all limits with which motors give it
            within = np.vstack([np.c_[np.eye(3), -high], np.c_[-np.eye(3), low]])
            share = linprog([0, 0, 0, 1], within, np.zeros(6), np.c_[T.T, np.zeros(2)], corner, bounds=(None, None))
            assert share.x is not None
            needed.append(share.x[3])
    together = rows["motor at the serial file's limits", "all motors together"]
    assert together["ratio"] == pytest.approx(max(needed), rel=1e-9)
    assert together["share"] == 1
    alone = rows["alone", "pitch"]
    without = limit_rows(make_twin(*pair(ANKLE), {}), samples_of(ANKLE, samples.x), {})
    (before,) = (row for row in without if (row["kind"], row["part"]) == ("alone", "pitch"))
    assert before["high"] + 11 < alone["high"] < before["high"] + 13  # the third motor's 12 N m on top


def pair(paths: tuple[Path, Path]) -> tuple[Mechanism, Array, Mechanism, Array]:
    closed, serial = map(read, paths)
    return closed, closed.rest_position, serial, serial.rest_position


def samples_of(paths: tuple[Path, Path], x: Array) -> Workspace:
    return workspace(make_twin(*pair(paths), {}), x)


def test_the_exported_file_needs_numpy_alone(knee: Comparison) -> None:
    folder, _ = knee
    x = np.linspace(-0.4, 0.6, 7)[:, None]
    program = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); from joint_map import MAP\n"
        "x = np.linspace(-0.4, 0.6, 7)[:, None]\n"
        "print(*map(repr, map(float, MAP.motor_positions(x)[:, 0])))\n"
        "assert not {'scipy', 'robots', 'analytic'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(folder)], capture_output=True, text=True, check=True
    )
    closed, serial = map(read, KNEE)
    twin = make_twin(closed, closed.rest_position, serial, serial.rest_position, {})
    expected = sound_poses(twin.closed, x)[0][:, 1]
    assert [float(value) for value in done.stdout.split()] == pytest.approx(expected, abs=1e-9)


@pytest.mark.extended("test_the_exported_file_needs_numpy_alone")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
def test_the_c_is_the_closed_model(knee: Comparison, ankle: Comparison, tmp_path: Path) -> None:
    """Against planar trigonometry, and against the equations of all bodies."""
    library = compiled_map(knee[0], tmp_path / "knee.so")
    x, y, T = np.array([0.3]), np.zeros(1), np.zeros(1)
    assert library.joint_map(*addresses(x, y, T)) == 0
    step = 1e-5
    slope = (crank_angle(x + step) - crank_angle(x - step)) / (2 * step)
    assert y == pytest.approx(crank_angle(x), abs=1e-9)
    assert pytest.approx(slope, abs=1e-7) == T
    y[:] = T[:] = 7.0
    for outside in (0.71, -0.51, np.nan):
        assert library.joint_map(*addresses(np.array([outside]), y, T)) == 1
    assert (y[0], T[0]) == (7.0, 7.0)
    library = compiled_map(ankle[0], tmp_path / "ankle.so")
    closed, serial = map(read, ANKLE)
    twin = make_twin(closed, closed.rest_position, serial, serial.rest_position, {})
    x, xd, xdd = np.array([[0.2, -0.1]]), np.array([[2.0, -3.0]]), np.array([[-20.0, 30.0]])
    expected = [
        joint_efforts(space, q, *moved(space, q, xd, xdd))[0]
        for space in (twin.closed, twin.serial)
        for q in (sound_poses(space, x)[0],)
    ]
    tau = np.zeros(2)
    assert library.joint_map_missing_efforts(*addresses(x, xd, xdd, tau)) == 0
    assert tau == pytest.approx(expected[0] - expected[1], abs=1e-8 * np.abs(expected).max())
    accuracy = json.loads((ankle[0] / "run.json").read_text(encoding="utf-8"))["accuracy"]
    assert len([name for name in accuracy if "joint_map.c" in name]) == 3
    assert max(accuracy.values()) < 1e-8


def compiled_map(folder: Path, library: Path) -> ctypes.CDLL:
    """The file of a comparison, with its warnings as errors."""
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", library, folder / "joint_map.c", "-lm"], check=True)
    functions = ctypes.CDLL(str(library))
    functions.joint_map.argtypes = [ctypes.c_void_p] * 3
    functions.joint_map_missing_efforts.argtypes = [ctypes.c_void_p] * 4
    return functions


def addresses(*arrays: Array) -> list[int]:
    return [array.ctypes.data for array in arrays]


def test_dropping_the_mass_of_rods_is_seen(tmp_path: Path) -> None:
    """Beside the same mechanism with a rod as heavy, and with a rod of almost no weight."""
    light = tmp_path / "knee_light.xml"
    text = KNEE[0].read_text(encoding="utf-8")
    rod = 'mass="0.25" pos="0.005 0 -0.17" diaginertia="2.5e-3 2.5e-3 2e-5"'
    assert rod in text
    light.write_text(
        text.replace(rod, 'mass="1e-6" pos="0.005 0 -0.17" diaginertia="1e-9 1e-9 1e-9"'), encoding="utf-8"
    )
    closed, hollow = read(KNEE[0]), read(light)
    errors = {}
    for name, other in (("same", closed), ("light", hollow)):
        twin = make_twin(closed, closed.rest_position, other, other.rest_position, {})
        motion = efforts_along(twin, "random 0", random_course(np.array([[-0.4, 0.6]]), 0))
        errors[name] = np.abs(motion.serial - motion.closed).max() / np.abs(motion.closed).max()
    assert errors["same"] < 1e-12
    assert errors["light"] > 0.01


@pytest.mark.extended("test_dropping_the_mass_of_rods_is_seen")
def test_an_accuracy_is_judged(
    loopcheck: Command, tmp_path: Path, tables_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "fitted", no_functions)
    with in_this_process():
        status, out, err = loopcheck("serial", *KNEE, "--accuracy", "0.01", "--samples", "8", "--out", tmp_path)
    assert (status, err) == (1, ""), out
    assert "knee_motor" in out


def test_bad_input_is_named(tmp_path: Path) -> None:
    case, other = map(case_of, KNEE)
    with pytest.raises(ToleranceError, match="accuracy must be positive and finite"):
        Serial(closed=case, serial=other, accuracy=-1.0)
    with pytest.raises(NotFoundError, match=r"unknown motor: 'motor'. Known: knee_motor"):
        compared(tmp_path, *KNEE, speeds={"motor": 3.0})


@pytest.mark.extended(
    "test_bad_input_is_named", "tests/validation/test_serial_advice.py::test_constants_of_a_differential_are_exact"
)
def test_a_check_says_what_a_file_loses_against_its_closed_twin(
    loopcheck: Command, tmp_path: Path, knee: Comparison, tables_only: None
) -> None:
    with in_this_process():
        status, out, err = loopcheck(
            "check", KNEE[1], "--source", "analytic/lagrange", "--dt", "0.1", "--out", tmp_path
        )
    assert (status, err) == (0, ""), out
    plain = rows_of(knee[1]["serial"], quantity="effort at motor", motion="random 0")["plain_rms"].item()
    said = " ".join(out.split())
    assert f"Serial model: rms error {100 * plain:.2g} % of the peak against knee.xml" in said
    assert "Next: loopcheck serial knee.xml knee_serial.xml" in said
    (robot,) = (section for section in robots(results_in(tmp_path)).blocks if isinstance(section, Section))
    assert any("Its closed-loop version is knee.xml" in block for block in robot.blocks if isinstance(block, str))


@pytest.mark.extended("test_bad_input_is_named")
def test_a_closed_twin_has_the_same_joints_on_the_same_bodies(tmp_path: Path) -> None:
    for path in KNEE:
        shutil.copy(path, tmp_path)
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "gone.xml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "broken.xml").write_text('<mujoco><connect a="1"/> name="knee"', encoding="utf-8")
    (tmp_path / "other.xml").write_text(ANKLE[0].read_text(encoding="utf-8"), encoding="utf-8")
    closed, serial = (case_of(tmp_path / path.name) for path in KNEE)
    assert possible_twins(closed.mechanism) == ()
    candidates = possible_twins(serial.mechanism)
    assert [path.name for path in candidates] == ["broken.xml", "knee.xml"]
    twin = closed_twin(serial, candidates)
    assert (twin["file"], twin["model"]) == ("knee.xml", "knee_serial.xml")
    assert twin["motors"][0]["at the limits here, of its own [-]"] > 1.5
    text = (tmp_path / "knee.xml").read_text(encoding="utf-8")
    (tmp_path / "knee.xml").write_text(text.replace('body name="shank"', 'body name="calf"'), encoding="utf-8")
    assert closed_twin(serial, candidates) == {}
    idle = text.replace('<motor name="knee_motor" joint="crank" forcerange="-60 60"/>', "")
    assert idle != text
    (tmp_path / "knee.xml").write_text(idle, encoding="utf-8")
    assert "must have an actuator" in closed_twin(serial, candidates)["reason"]
