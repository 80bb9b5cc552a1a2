"""Files of repaired serial models as MuJoCo reads them, against efforts of its inverse dynamics and figures by hand."""

import xml.etree.ElementTree as ET
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import mujoco  # noqa: TID251 - its own reader and dynamics
import numpy as np
import pytest

from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.constants import Constants, Kind, fitted_constants, with_armatures
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.motions import (
    MotionEfforts,
    choosing_motions,
    efforts_along,
    fitting_motions,
    random_course,
    stated_motions,
)
from loopcheck.analytic.transmission.recognition import crank_rod_of
from loopcheck.analytic.transmission.twin import Twin
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import OutputError
from loopcheck.validation.serial import writing
from loopcheck.validation.serial.rows.transmission_rows import _constants, proven, rounded_down
from loopcheck.validation.serial.writing import Motions, Repair, Repairs
from tests.analytic.test_transmission import LEGS, twin_of

Written: TypeAlias = tuple[Repairs, tuple[Repair, Repair, Repair]]
BOX = np.array([[-0.4, 0.35], [-0.2, 0.2]])
LIMITS = Box(low=np.array([-12.5, -7.25]), high=np.array([20.5, 6.5]))
SPRING = ('name="roll" axis="1 0 0"', 'name="roll" axis="1 0 0" stiffness="4" springref="0.1"')
OTHER_WAY = (
    ('<compiler angle="radian"/>', ""),
    ('range="-0.5 0.4"', 'range="-28 22"'),
    ('<body name="foot">', '<body name="foot" pos="0 0 0.01">'),
    ('name="roll" axis="1 0 0" range="-0.25 0.25"', 'name="roll" axis="-1 0 0" pos="0 0 -0.01" range="-14 14"'),
    ('pos="0.03 0 -0.03"', 'pos="0.03 0 -0.04"'),
)
"""The serial ankle in degrees, with a foot whose joint is beside its origin and turns the other way."""


def changed(path: Path, name: str, *changes: tuple[str, str]) -> Path:
    text = (LEGS / f"{name}.xml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def repairs_of(twin: Twin, folder: Path, box: Array = BOX, limits: Box | None = LIMITS) -> Repairs:
    """With a tenth of the samples of each motion."""
    stated, choice, fit = (
        [efforts_along(side, name, (x[::10], xd[::10], xdd[::10])) for name, side, (x, xd, xdd) in make(twin, box)]
        for make in (stated_motions, choosing_motions, fitting_motions)
    )
    motions = Motions(stated=stated, choice=choice, fit=fit)
    return Repairs(twin=twin, box=box, motions=motions, limits=limits, closures=(), folder=folder)


@pytest.fixture(scope="module")
def ankle(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """An ankle and its stand-in, with the repairs."""
    folder = tmp_path_factory.mktemp("ankle")
    repairs = repairs_of(twin_of("ankle", changed(folder / "a.xml", "ankle_serial", *OTHER_WAY)), folder / "out")
    return repairs, repairs.written()


def knee_repairs(folder: Path, *changes: tuple[str, str], file: str = "plain.xml") -> Repairs:
    serial = changed(folder / file, "knee_serial", *changes)
    closed = changed(folder / "closed.xml", "knee", ('armature="0.02"', 'armature="0.2"'))
    return repairs_of(twin_of(closed, serial), folder, np.array([[-0.4, 0.6]]), None)


def repaired(repairs: Repairs) -> Repair:
    return repairs._repair("serial_repaired.xml", set(Kind), repairs.mjcf)


def compiled(path: Path) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(path))


def errors(model: mujoco.MjModel, stated: Sequence[MotionEfforts], signs: Array) -> Array:
    """Of the motors, root mean square over the peak in each motion; pitch and roll are the joints of the model."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, found = mujoco.MjData(model), []
    dofs = [model.joint(name).dofadr[0] for name in ("pitch", "roll")]
    for motion in stated:
        model.opt.gravity = motion.twin.closed.mechanism.gravity
        efforts = []
        for x, xd, xdd in zip(*motion.course, strict=True):
            data.qpos[dofs], data.qvel[dofs], data.qacc[dofs] = x * signs, xd * signs, xdd * signs
            mujoco.mj_inverse(model, data)
            efforts.append(data.qfrc_inverse[dofs] * signs)
        own, closed = (
            np.linalg.solve(motion.transmission.swapaxes(1, 2), each[..., None])[..., 0]
            for each in (np.array(efforts), motion.closed)
        )
        found.append(np.sqrt(((own - closed) ** 2).mean(axis=0)) / np.abs(closed).max(axis=0))
    return np.array(found)


def stated_error(text: str, before: str) -> float:
    """The error in percent that follows some words."""
    assert before in text
    return float(text.partition(before)[2].split()[0])


SIGNS = np.array([1.0, -1.0])


def test_mjcf_has_the_limits_and_the_error_that_it_is_said_to_have(ankle: Written) -> None:
    repairs, (_, repair, _) = ankle
    model, plain = compiled(repairs.folder / "serial_repaired.xml"), compiled(repairs.twin.serial.mechanism.model.path)
    assert model.jnt_actfrclimited.tolist() == [1, 1]
    assert model.jnt_actfrcrange.tolist() == [[-12.5, 20.5], [-6.5, 7.25]]
    assert {Kind.ARMATURE, Kind.LINKS} <= set(repair.kinds)
    assert (model.dof_armature > plain.dof_armature).all()
    assert not model.jnt_stiffness.any()
    assert model.body_mass.tolist() == plain.body_mass.tolist()
    own, before = (100 * errors(each, repairs.motions.stated, SIGNS) for each in (model, plain))
    assert stated_error(repair.note, "efforts within ") == pytest.approx(own.max(), rel=0.05)
    assert repair.note.startswith(f"wrote serial_repaired.xml: {', '.join(repair.kinds)}; ")
    assert own.max() < 0.5 * before.max()
    assert (own < before + 0.1).all()


def test_settings_have_symmetric_limits_and_the_error_that_they_are_said_to_have(
    ankle: Written, tmp_path: Path
) -> None:
    """On random motions: on slow ones, armatures have no effect."""
    repairs, (repair, _, _) = ankle
    names: dict[str, Any] = {}
    repairs = replace(repairs, folder=tmp_path, motions=replace(repairs.motions, stated=repairs.motions.stated[:5]))
    assert repair.mechanism is not None
    repairs._settings(Constants(mechanism=repair.mechanism, kinds=repair.kinds))
    text = (tmp_path / "serial_settings.py").read_text(encoding="utf-8")
    assert repair.note.startswith("wrote serial_settings.py: armature; motor efforts within ")
    exec(text, names)
    isaac, mjlab, limits = names["ISAAC_LAB"], names["MJLAB"], {"pitch": 12.5, "roll": 6.5}
    armature = isaac["armature"]
    assert isaac == {"joint_names_expr": ["pitch", "roll"], "armature": armature, "effort_limit_sim": limits}
    assert mjlab == [
        {"target_names_expr": (name,), "armature": armature[name], "effort_limit": limits[name]} for name in limits
    ]
    assert repair.kinds == (Kind.ARMATURE,)
    plain = compiled(repairs.twin.serial.mechanism.model.path)
    before = 100 * errors(plain, repairs.motions.stated, SIGNS).max()
    for name, value in armature.items():
        plain.joint(name).armature[0] = value
    after = 100 * errors(plain, repairs.motions.stated, SIGNS).max()
    assert stated_error(text, "with exactly these armatures: ") == pytest.approx(after, rel=0.05)
    assert stated_error(text, "without them ") == pytest.approx(before, rel=0.05)
    assert after < before - 1
    assert f"of {len(repairs.motions.stated)} motions" in text


def test_settings_hold_exactly_the_armatures_of_their_error_and_no_limit_without_motors(
    ankle: Written, tmp_path: Path
) -> None:
    repairs, _ = ankle
    third = replace(repairs, folder=tmp_path, limits=None)
    constants = Constants(mechanism=with_armatures(repairs.twin, np.array([1 / 3, 2 / 3])), kinds=(Kind.ARMATURE,))
    mechanism = third._settings(constants)
    names: dict[str, Any] = {}
    exec((tmp_path / "serial_settings.py").read_text(encoding="utf-8"), names)
    assert names["ISAAC_LAB"] == {
        "joint_names_expr": ["pitch", "roll"],
        "armature": {"pitch": 0.3333333333, "roll": 0.6666666667},
    }
    assert [set(joint) for joint in names["MJLAB"]] == [{"target_names_expr", "armature"}] * 2
    assert [joint.armature for joint in mechanism.joints] == [0.3333333333, 0.6666666667]


def test_urdf_has_links_beside_their_origins_the_limits_and_its_error(ankle: Written, tmp_path: Path) -> None:
    """The links of the MJCF without rotors, since links alone would not help."""
    repairs, _ = ankle
    other = replace(repairs, folder=tmp_path)
    search = fitted_constants(
        repairs.twin,
        repairs.box,
        repairs.motions.fit,
        repairs.motions.choice,
        {Kind.ARMATURE, Kind.DAMPING, Kind.LINKS},
    )
    mechanism = other._urdf(search)
    path = tmp_path / "serial_repaired.urdf"
    root = ET.parse(path).getroot()
    limits = {joint.get("name"): joint.find("limit") for joint in root.iter("joint")}
    assert {name: float(limits[name].attrib["effort"]) for name in ("pitch", "roll")} == {"pitch": 12.5, "roll": 6.5}  # type: ignore[union-attr]
    model, closed = compiled(path), repairs.twin
    own = errors(model, repairs.motions.stated, SIGNS)
    for k, motion in enumerate(repairs.motions.stated):
        assert motion.errors(motion.with_constants(mechanism)) == pytest.approx(own[k], abs=1e-6)
    assert [model.joint(name).damping[0] for name in ("pitch", "roll")] == pytest.approx(
        [search.mechanism.joints[j].damping for j in closed.serial.joints], rel=1e-6
    )
    assert not any(joint.armature for joint in mechanism.joints)


def test_urdf_gets_limits_of_joints_without_range(ankle: Written, tmp_path: Path) -> None:
    twin = ankle[0].twin
    joints = tuple(replace(joint, limits=None) for joint in twin.serial.mechanism.joints)
    mechanism = replace(twin.serial.mechanism, joints=joints, actuators=())
    own = replace(ankle[0], folder=tmp_path, twin=replace(twin, serial=replace(twin.serial, mechanism=mechanism)))
    own._urdf(Constants(mechanism=mechanism, kinds=()))
    root = ET.parse(tmp_path / "serial_repaired.urdf").getroot()
    efforts = {
        joint.get("name"): [limit.get("effort") for limit in joint.iter("limit")] for joint in root.iter("joint")
    }
    assert efforts["pitch"] == ["12.5"]
    assert efforts["roll"] == ["6.5"]


def test_springs_are_written_in_the_angles_and_the_sense_of_the_file(tmp_path: Path) -> None:
    closed = changed(tmp_path / "closed.xml", "ankle", SPRING)
    repairs = repairs_of(
        twin_of(closed, changed(tmp_path / "a.xml", "ankle_serial", *OTHER_WAY)), tmp_path / "out", limits=None
    )
    repair = repaired(repairs)
    assert Kind.SPRINGS in repair.kinds
    model = compiled(repairs.folder / "serial_repaired.xml")
    assert model.jnt_stiffness.tolist() == pytest.approx([0, 4], abs=1e-9)
    assert model.qpos_spring[1] == pytest.approx(-0.1, abs=1e-9)
    assert not model.jnt_actfrclimited.any()
    own = 100 * errors(model, repairs.motions.stated, SIGNS)
    assert stated_error(repair.note, "efforts within ") == pytest.approx(own.max(), rel=0.05)


def test_each_format_is_asked_for_the_kinds_that_it_holds(ankle: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def none(twin: Twin, box: Array, fit: object, choice: object, able: Collection[Kind]) -> Constants:
        assert fit is ankle[0].motions.fit
        assert choice is ankle[0].motions.choice
        asked.append(set(able))
        return Constants(mechanism=twin.serial.mechanism, kinds=())

    monkeypatch.setattr(writing, "fitted_constants", none)
    repairs = [repair.note for repair in replace(ankle[0], folder=Path("nowhere")).written()]
    assert asked == [{Kind.ARMATURE}, set(Kind), {Kind.DAMPING, Kind.LINKS}]
    assert repairs[0] == "no serial_settings.py: armature would not lower the error"
    assert repairs[2] == "no serial_repaired.urdf: damping or links would not lower the error"
    kept = Constants(mechanism=ankle[0].twin.serial.mechanism, kinds=(Kind.ARMATURE,))
    monkeypatch.setattr(writing, "fitted_constants", lambda *_: kept)
    unstated = replace(ankle[0], folder=Path("nowhere"), motions=replace(ankle[0].motions, stated=[]))
    assert [repair.mechanism for repair in unstated.written()] == [None, None, None]


@pytest.mark.extended("test_mjcf_has_the_limits_and_the_error_that_it_is_said_to_have")
def test_a_file_that_is_worse_on_a_stated_motion_is_not_left_there(tmp_path: Path) -> None:
    repairs = knee_repairs(tmp_path)
    stated = [replace(motion, closed=motion.serial) for motion in repairs.motions.stated]
    own = replace(repairs, motions=replace(repairs.motions, stated=stated))
    for name, repair in (("serial_settings.py", own.written()[0]), ("serial_repaired.xml", repaired(own))):
        assert not (tmp_path / name).exists()
        assert (repair.mechanism, repair.kinds) == (None, ())
        assert repair.note.startswith(f"no {name}: it would raise the error of 'knee_motor' in the motion '")
    assert (tmp_path / "plain.xml").exists()


@pytest.mark.extended("test_each_format_is_asked_for_the_kinds_that_it_holds")
def test_links_stay_where_the_file_computes_them_and_springs_where_it_computes_damping(tmp_path: Path) -> None:
    shank = '<inertial mass="2" pos="0 0 -0.18" diaginertia="0.02 0.02 0.004"/>'
    by_geoms = (
        ('<compiler angle="radian"/>', '<compiler angle="radian" inertiafromgeom="true"/>'),
        (shank, '<geom type="capsule" fromto="0 0 0 0 0 -.36" size=".03" mass="2"/>'),
        ('<inertial mass="4.4" pos="0 0 -0.15" diaginertia="0.04 0.04 0.01"/>', '<geom size=".1" mass="4.4"/>'),
    )
    repair = repaired(knee_repairs(tmp_path, *by_geoms))
    assert repair.mechanism is not None, repair.note
    plain, model = (compiled(tmp_path / name) for name in ("plain.xml", "serial_repaired.xml"))
    assert Kind.ARMATURE in repair.kinds
    assert Kind.LINKS not in repair.kinds
    assert repair.note.startswith("wrote serial_repaired.xml: armature")
    assert model.body_inertia.tolist() == plain.body_inertia.tolist()
    assert model.dof_armature[0] > 0.01
    computed = ('damping="0.05"', 'springdamper="0.5 0.01"')
    repair = repaired(knee_repairs(tmp_path, computed))
    assert repair.mechanism is None
    assert "serial_repaired.xml: damping of joint 'knee' must be " in repair.note
    assert "another element of the file sets it or adds to it" in repair.note
    assert not (tmp_path / "serial_repaired.xml").exists()


@pytest.mark.extended("test_mjcf_has_the_limits_and_the_error_that_it_is_said_to_have")
def test_a_model_in_parts_and_one_of_the_same_name_stay_as_they_are(tmp_path: Path) -> None:
    repairs = knee_repairs(tmp_path, file="serial_repaired.xml")
    before = (tmp_path / "serial_repaired.xml").read_bytes()
    with pytest.raises(OutputError, match=r"contains the input serial_repaired\.xml; name another folder"):
        repaired(repairs)
    assert (tmp_path / "serial_repaired.xml").read_bytes() == before
    text = before.decode()
    begin, end = text.index("<worldbody>"), text.index("</worldbody>") + len("</worldbody>")
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{text[begin:end]}</mujocoinclude>", encoding="utf-8")
    whole = text[:begin] + '<include file="part.xml"/>' + text[end:]
    (tmp_path / "whole.xml").write_text(whole, encoding="utf-8")
    twin = twin_of("knee", tmp_path / "whole.xml")
    repair = repaired(repairs_of(twin, tmp_path / "out", np.array([[-0.4, 0.6]]), None))
    assert repair.mechanism is None
    assert repair.note.endswith("whole.xml: its joints must be in the file itself, not in an included file")
    (tmp_path / "blocked").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be written"):
        replace(repairs, folder=tmp_path / "blocked").written()


def test_limits_are_rounded_towards_zero_to_three_digits() -> None:
    values = np.random.default_rng(0).uniform(0.1, 1, 300) * 10.0 ** np.arange(-3, 7).repeat(30)
    found = rounded_down(Box(low=-values, high=values))
    assert found.low.tolist() == (-found.high).tolist()
    assert found.high.tolist() == [float(f"{value:.3g}") for value in found.high]
    unit = 10.0 ** (np.floor(np.log10(values)) - 2)
    assert ((values - found.high >= 0) & (values - found.high < unit)).all()
    short = np.array([0.0, np.inf, 28.445, *(k / 10 for k in range(100, 1000))])
    kept = rounded_down(Box(low=-short, high=short))
    assert kept.high.tolist() == [0.0, np.inf, 28.4, *(k / 10 for k in range(100, 1000))]
    assert kept.low.tolist() == (-kept.high).tolist()


def test_proven_limits_are_the_bounds_of_their_quantity() -> None:
    rows = [{"quantity": quantity, "bound": bound} for quantity, bound in (("a", 3.0), ("b", 5.0), ("a", 4.0))]
    box = proven(rows, "a")
    assert box is not None
    assert (box.low.tolist(), box.high.tolist()) == ([-3, -4], [3, 4])
    assert proven(rows, "c") is None


def test_errors_of_constant_armatures_are_those_of_rotors_whose_positions_are_differentiated() -> None:
    twin = twin_of("ankle", "ankle_serial")
    crank_rod = crank_rod_of(twin.closed, twin.motors)
    domain = Domain(transmission=crank_rod, low=np.array([-0.4, -0.1]), high=np.array([0.3, 0.2]))
    box = domain.inner_box()
    rows = {(row["quantity"], row["part"]): row for row in _constants(domain, (2.0, 1.5))}
    points = np.cos((2 * np.arange(9) + 1) / 18 * np.pi)
    u, half = np.array(list(product(points, points))), np.ptp(box, axis=1) / 2
    T = crank_rod.motor_state(box.mean(axis=1) + u * half).transmission
    share = np.exp(-((u / 0.35) ** 2).sum(axis=1) / 4)[:, None, None]
    used = np.sqrt(((T * half * share) ** 2).sum(axis=(0, 2)))[:, None]  # efforts of rotors of 1 are T ẍ
    inverse = np.linalg.inv(T).swapaxes(1, 2)
    columns = [(inverse @ np.diag(unit) * half * share / used).ravel() for unit in np.eye(2)]
    best = np.linalg.lstsq(np.transpose(columns), (T * half * share / used).ravel())[0]
    names = [joint.name for joint in crank_rod.joints]
    assert [rows["best constant factor", name]["median"] for name in names] == pytest.approx(best, rel=1e-9)
    given = {"best": best, "public": np.array([2.0, 1.5]), "none": np.zeros(2)}
    found: dict[str, list[Array]] = {name: [] for name in given}
    for seed in range(5):
        (x, xd, xdd), h = random_course(box, seed), 1e-4
        before, after = (crank_rod.motor_state(x + s * h * xd + h**2 / 2 * xdd) for s in (-1, 1))
        state = crank_rod.motor_state(x)
        ydd = (after.y - 2 * state.y + before.y) / h**2
        for name, factors in given.items():
            held = np.linalg.solve(state.transmission.swapaxes(1, 2), (factors * xdd)[..., None])[..., 0]
            found[name].append(np.sqrt(((held - ydd) ** 2).mean(axis=0)) / np.abs(ydd).max(axis=0))
    words = ("error of the best constants", "error of the public constants", "error without armature")
    for quantity, errors_of in zip(words, found.values(), strict=True):
        row = rows[quantity, "motors"]
        assert row["median"] == pytest.approx(np.mean(errors_of), rel=1e-3)
        assert row["high"] == pytest.approx(np.max(errors_of), rel=1e-3)
    assert [row[0] for row in _constants_rows(domain)] == ["best constant factor"] * 2 + list(words[::2])


def _constants_rows(domain: Domain) -> list[tuple[str, str]]:
    """Quantity and part, without factors of public configurations."""
    return [(row["quantity"], row["part"]) for row in _constants(domain, ())]
