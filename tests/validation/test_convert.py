"""Conversions are proven; every seeded fault of a conversion is found and named."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco  # noqa: TID251 - its own reader of URDF
import numpy as np
import pytest

from loopcheck.analytic.kinematics.closing import with_closing
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.random_states import RandomStates, random_states
from loopcheck.robots.catalogue import LOOP_DIALECTS
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.carried import SDF, URDF, USD, Features, carried_by
from loopcheck.robots.formats.linkage_from_mechanism import closed_exactly, linkage_of
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.mjcf_writer import mjcf_text
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.rigid_frames import angles_of, of_angles, of_axis
from loopcheck.robots.formats.sdf_writer import sdf_text
from loopcheck.robots.formats.urdf_writer import urdf_texts
from loopcheck.robots.formats.usd_writer import usd_text, write_without_doubles
from loopcheck.robots.mechanism import (
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    EffortLimit,
    Mechanism,
    WeldClosure,
)
from loopcheck.robots.robot import modes
from loopcheck.validation.common import sources
from loopcheck.validation.convert.conversion import LIMIT, Proof, Row, proof
from loopcheck.validation.convert.converting import (
    ENGINE,
    FLOATS,
    FORMATS,
    STEPS,
    _fitting,
    _rounded,
    closed_states,
    conversion_steps,
    convert,
)
from tests.urdf_models import DIALECTS, write_urdf
from tests.validation.conftest import Command

MODELS = Path(__file__).parents[1] / "models"
ZOO = ("four_bar", "welded_four_bar", "ball_and_universal", "floating_rotors", "geared_pair", "strutted_four_bar")
COUNT = 20


@cache
def model(name: str) -> Mechanism:
    return read_mechanism(ModelFile(path=MODELS / f"{name}.xml"))


@cache
def states(name: str, features: Features | None = None) -> RandomStates:
    mechanism = carried_by(features, model(name)).mechanism if features else model(name)
    return random_states(mechanism, next(iter(modes(mechanism).values())), count=COUNT, seed=1)


def read(path: Path, text: str) -> Mechanism:
    path.write_text(text, encoding="utf-8")
    return read_mechanism(ModelFile(path=path))


def worst(result: Proof) -> float:
    assert {row.verdict for row in result.rows} == {"agree"}, result.rows
    return max(row.error for row in result.rows if row.quantity != "loop gap")


@pytest.mark.parametrize("name", ZOO)
def test_a_round_trip_keeps_the_dynamics(name: str, tmp_path: Path) -> None:
    original = model(name)
    by_mjcf = read(tmp_path / "m.xml", mjcf_text(original))
    assert worst(proof(original, original, by_mjcf, states(name), ())) < 1e-13
    for_sdf, losses = carried_by(SDF, original)
    closed = states(name, SDF)
    by_sdf = read(tmp_path / "s.sdf", sdf_text(linkage_of(for_sdf, closed.start)))
    assert worst(proof(original, for_sdf, by_sdf, closed, losses)) < 1e-13
    carried, losses = carried_by(URDF, original)
    urdf, loops = urdf_texts(carried)
    (tmp_path / "u.yaml").write_text(loops, encoding="utf-8")
    by_urdf = read(tmp_path / "u.urdf", urdf)
    assert worst(proof(original, carried, by_urdf, states(name, URDF), losses)) < 1e-13


@pytest.mark.parametrize("name", ZOO)
def test_a_round_trip_through_usd_keeps_doubles_and_floats(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    original = model(name)
    for_usd, losses = carried_by(USD, original)
    closed = states(name, USD)
    text = usd_text(linkage_of(for_usd, closed.start))
    by_usd = read(tmp_path / "u.usda", text)
    assert worst(proof(original, for_usd, by_usd, closed, losses)) < 1e-13
    write_without_doubles(tmp_path / "u.usda", tmp_path / "f.usda")
    by_floats = read_mechanism(ModelFile(path=tmp_path / "f.usda"))
    assert 1e-9 < worst(proof(original, for_usd, by_floats, closed, losses, FLOATS)) < FLOATS
    by_half = moved(by_floats, "bodies", 1, mass=(1 + 2e-5) * by_floats.bodies[1].mass)  # floats round by 6e-8
    assert proof(original, for_usd, by_half, closed, losses, FLOATS).status == 1


@pytest.mark.parametrize("dialect", LOOP_DIALECTS)
def test_every_dialect_of_loops_is_read_back(dialect: str, tmp_path: Path) -> None:
    """The four-bar of a URDF has a revolute loop that is closed with all joints at zero: all dialects state it."""
    original = read_mechanism(ModelFile(path=write_urdf(tmp_path, *DIALECTS["constraint, revolute"])))
    urdf, loops = urdf_texts(original, dialect)
    folder = tmp_path / "out"
    folder.mkdir()
    if loops:
        (folder / "u.yaml").write_text(loops, encoding="utf-8")
    back = read(folder / "u.urdf", urdf)
    closed = random_states(original, original.rest_position, count=COUNT, seed=1)
    assert worst(proof(original, original, back, closed, ())) < 1e-13


@pytest.mark.parametrize(
    ("dialect", "model_name", "message"),
    [
        ("solidworks", "four_bar", "has revolute loops only, got a spherical loop"),
        (
            "fusion",
            "four_bar",
            "must be closed with all joints at zero for fusion, got a gap of",
        ),
        ("robonex", "welded_four_bar", "robonex has pins and balls, got a fixed loop"),
        (
            "constraint",
            "ball_and_universal",
            "ball joints .*: not stated by constraint. Use --loops gepetto",
        ),
    ],
)
def test_a_dialect_refuses_loops_that_it_cannot_state(dialect: str, model_name: str, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        urdf_texts(carried_by(URDF, model(model_name)).mechanism, dialect)


def test_pinocchio_reads_the_same_tree_from_the_written_urdf() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    carried = carried_by(URDF, model("four_bar")).mechanism
    tree = pinocchio.buildModelFromXML(urdf_texts(carried)[0])
    q = np.array([0.3, -0.8, 0.5])
    names = [tree.names[k] for k in range(1, tree.njoints)]
    here = [joint.name for joint in carried.joints]
    full = np.concatenate([(np.cos(q[here.index(name)]), np.sin(q[here.index(name)])) for name in names])
    M = pinocchio.crba(tree, tree.createData(), full)
    M = np.triu(M) + np.triu(M, 1).T
    places = [names.index(name) for name in here]
    mine = inertia_matrix(State.at_rest(carried, q[None]))[0]
    assert M[np.ix_(places, places)] == pytest.approx(mine, abs=1e-12)


@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_mujoco_reads_the_same_joints_from_the_written_urdf(kind: str, tmp_path: Path) -> None:
    """Poses of two links at equal positions, damping, dry friction and ranges."""
    body = (
        '<body name="{0}" pos=".1 -.2 .3" euler=".3 .5 -.7"><joint name="{0}" type="{1}" axis="1 2 -2" pos=".2 .1 0" '
        'ref=".4" damping=".3" frictionloss=".7" range="-.2 .9"/>'
        '<inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>'
    )
    text = f"{body.format('upper', kind)}{body.format('lower', kind)}</body></body>"
    text = f'<mujoco><compiler angle="radian"/><worldbody>{text}</worldbody></mujoco>'
    urdf, _ = urdf_texts(carried_by(URDF, read(tmp_path / "m.xml", text)).mechanism)
    found = []
    for model in map(mujoco.MjModel.from_xml_string, (text, urdf)):
        data = mujoco.MjData(model)
        for name, value in (("upper", 0.5), ("lower", -0.1)):
            data.joint(name).qpos = value
        mujoco.mj_kinematics(model, data)
        numbers = (data.xipos[1:], data.ximat[1:], model.dof_damping, model.dof_frictionloss, model.jnt_range)
        found.append(np.concatenate([np.ravel(each) for each in numbers]))
    np.testing.assert_allclose(found[0], found[1], atol=1e-14)


def moved(mechanism: Mechanism, part: str, index: int, **changes: Any) -> Mechanism:
    """The mechanism with other values of an element."""
    elements = list(getattr(mechanism, part))
    elements[index] = replace(elements[index], **changes)
    values: dict[str, Any] = {part: tuple(elements)}
    return replace(mechanism, **values)


def with_anchor(mechanism: Mechanism) -> Mechanism:
    closure = mechanism.rigid_closures[0]
    return moved(mechanism, "closures", 0, point2=closure.point2 + 1e-6)


def with_mimic(mechanism: Mechanism) -> Mechanism:
    """The loop replaced by a joint that follows the crank, as in converters for trees."""
    rocker, crank = (Coordinate(name=mechanism.joints[j].name, joints=(j,), weights=np.ones(1)) for j in (2, 0))
    mimic = CoordinateClosure(name="loop", follower=rocker, leader=crank, coefficients=np.array([0.0, 0.5, 0, 0, 0]))
    return replace(mechanism, closures=(mimic,))


FAULTS: dict[str, tuple[Callable[[Mechanism], Mechanism], str]] = {
    "anchor of a loop": (with_anchor, "loop gap"),
    "lost loop": (lambda m: replace(m, closures=()), "names and kinds of loops"),
    "lost rotor": (lambda m: moved(m, "joints", 0, armature=0.0), "reduced inertia"),
    "lost spring": (lambda m: moved(m, "joints", 1, stiffness=0.0), "gravity"),
    "damping per degree": (lambda m: moved(m, "joints", 0, damping=0.2 * np.pi / 180), "bias and inertia forces"),
    "mass off by 1e-9": (lambda m: moved(m, "bodies", 1, mass=0.8 * (1 + 1e-9)), "reduced inertia"),
    "inertia in the wrong frame": (
        lambda m: moved(m, "bodies", 2, inertia=np.diag(np.linalg.eigvalsh(m.bodies[2].inertia))),
        "reduced inertia",
    ),
    "mass centre in the wrong frame": (
        lambda m: moved(m, "bodies", 0, center=m.bodies[0].center[[1, 0, 2]]),
        "reduced inertia",
    ),
    "lost gear": (lambda m: moved(m, "actuators", 0, gear=1.0), "efforts"),
    "wrong sign of an axis": (lambda m: moved(m, "joints", 2, axis=-m.joints[2].axis), "loop gap"),
    "rest position in degrees": (
        lambda m: moved(m, "joints", 2, rest_position=np.array([10.0]), spring_reference=np.array([10.0])),
        "loop gap",
    ),
    "turned body": (
        lambda m: moved(m, "bodies", 2, rotation=m.bodies[2].rotation @ of_axis(np.array([0, 0, 1.0]), 1e-6)),
        "loop gap",
    ),
    "no gravity": (lambda m: m.with_gravity(np.zeros(3)), "gravity"),
    "renamed joint": (lambda m: moved(m, "joints", 1, name="bar"), "names and kinds of joints"),
    "renamed actuator": (lambda m: moved(m, "actuators", 0, name="m"), "names and kinds of actuators"),
    "joint limit": (lambda m: moved(m, "joints", 0, limits=(-1.0, 1.0)), "limits of joints"),
    "lost joint limit": (lambda m: moved(m, "joints", 0, limits=None), "limits of joints"),
    "joint limit in degrees": (
        lambda m: moved(m, "joints", 0, limits=(-114.6, 171.9)),
        "limits of joints",
    ),
    "lost friction": (lambda m: moved(m, "joints", 2, friction=0.0), "friction of joints"),
    "mimic in place of a loop": (with_mimic, "names and kinds of loops"),
    "Y and Z exchanged": (lambda m: m.with_gravity(m.gravity[[0, 2, 1]]), "gravity"),
    "masses in grams": (
        lambda m: replace(m, bodies=tuple(replace(b, mass=1e3 * b.mass, inertia=1e3 * b.inertia) for b in m.bodies)),
        "reduced inertia",
    ),
    "effort limit": (
        lambda m: moved(m, "actuators", 0, limits=(EffortLimit("forcerange", -1.0, 1.0),)),
        "limits of actuators",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_a_conversion_is_named(fault: str) -> None:
    change, quantity = FAULTS[fault]
    original = moved(moved(model("four_bar"), "joints", 0, limits=(-2.0, 3.0)), "joints", 2, friction=0.1)
    assert proof(original, original, original, states("four_bar"), ()).status == 0
    result = proof(original, original, change(original), states("four_bar"), ())
    assert quantity in [row.quantity for row in result.rows if row.verdict == "disagree"]
    assert result.status == 1


def test_states_are_closed_regular_and_repeatable() -> None:
    mechanism, found = model("four_bar"), states("four_bar")
    state = State(mechanism=mechanism, q=found.q, qd=found.qd)
    assert np.abs(state.gap).max() < 1e-13
    assert np.abs(state.Phi @ found.qd[..., None]).max() < 1e-13
    opening = state.Phi @ found.qdd[..., None] + state.Phi_dot @ found.qd[..., None]
    assert np.abs(opening).max() < 1e-12
    assert found.distance > 0.05
    assert np.ptp(found.q, axis=0).max() > 0.3
    again = random_states(mechanism, mechanism.rest_position, count=COUNT, seed=1)
    assert np.array_equal(again.q, found.q)


def test_a_weld_that_is_half_a_turn_off_is_open() -> None:
    """The sine of its angle vanishes there too; no start closes it, since a planar linkage turns no frame over."""
    original = model("welded_four_bar")
    place = next(k for k, closure in enumerate(original.closures) if isinstance(closure, WeldClosure))
    weld = original.closures[place]
    assert isinstance(weld, WeldClosure)
    turned = moved(original, "closures", place, rotation=weld.rotation @ of_axis(np.array([1.0, 0.0, 0.0]), np.pi))
    closed = states("welded_four_bar").start
    gap = State.at_rest(turned, closed[None]).gap
    assert np.abs(gap).max() == pytest.approx(2.0)
    with pytest.raises(HarnessError, match="must close from some start"):
        closed_states(turned, original.rest_position, seed=1)


def test_loops_that_the_input_leaves_open_are_closed_in_the_pose_of_an_sdf() -> None:
    original = model("four_bar")
    closed = states("four_bar")
    (closure,) = original.rigid_closures
    opened = moved(original, "closures", 0, point2=closure.point2 + np.array([0.0, 0.0, 1e-7]))
    exact, opening = closed_exactly(opened, closed.start)
    assert opening == pytest.approx(1e-7, rel=1e-3)
    assert np.abs(State.at_rest(exact, closed.start[None]).gap).max() < 1e-15
    assert closed_exactly(original, closed.start) == (original, 0.0)


@pytest.mark.parametrize("suffix", [".sdf", ".usda", ".urdf"])
def test_equal_names_and_tendons_of_a_single_joint_are_written(suffix: str, tmp_path: Path) -> None:
    """An equality of MJCF may have the name of a joint (Digit), and a motor may pull a tendon of one joint."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    text = (
        (MODELS / "four_bar.xml").read_text(encoding="utf-8").replace('connect name="loop"', 'connect name="coupler"')
    )
    tendon = '<tendon><fixed name="belt"><joint joint="crank" coef="1"/></fixed></tendon>'
    text = text.replace("<actuator>", f"{tendon}<actuator>").replace('joint="crank" gear', 'tendon="belt" gear')
    path, out = tmp_path / "m.xml", tmp_path / f"out{suffix}"
    path.write_text(text, encoding="utf-8")
    done = convert(str(path), out, lossless=False, seed=0)
    rows = {row.quantity: row for row in done.result.rows if not row.quantity.startswith("from floats")}
    assert {row.verdict for row in rows.values()} == {"agree"}
    assert rows["efforts"].error < LIMIT


def test_the_order_of_actuators_is_no_difference() -> None:
    original = model("floating_rotors")
    assert len(original.actuators) > 1
    other = replace(original, actuators=original.actuators[::-1])
    assert worst(proof(original, original, other, states("floating_rotors"), ())) < 1e-13


def test_angles_are_exact_at_a_pitch_of_a_right_angle() -> None:
    random = np.random.default_rng(0)
    for tilt in (0.0, 1e-9, 1e-7, 1e-4):
        R = of_angles((0.3, np.pi / 2 - tilt, 1.1)) @ of_axis(np.array([1.0, 0, 0]), random.uniform())
        assert of_angles(angles_of(R)) == pytest.approx(R, abs=1e-15)


def test_losses_are_listed_measured_and_refused(loopcheck: Command, tmp_path: Path) -> None:
    out = tmp_path / "four_bar.urdf"
    status, stdout, _ = loopcheck("convert", MODELS / "four_bar.xml", out)
    assert status == 3
    assert "Not carried: mechanism: rotor inertia (armature) of joints crank" in stdout
    record = json.loads((tmp_path / "four_bar.proof.json").read_text(encoding="utf-8"))
    rows = {row["quantity"]: row for row in record["comparison"]}
    assert rows["efforts"]["error"] < LIMIT
    assert rows["efforts by mujoco/kkt"]["verdict"] == "agree"
    assert rows["effect of the losses on the efforts"]["error"] > 0.1
    assert record["output"]["files"].keys() == {"four_bar.urdf", "four_bar.yaml"}
    refused = tmp_path / "refused.urdf"
    status, _, err = loopcheck("convert", MODELS / "four_bar.xml", refused, "--lossless")
    assert status == 2
    assert "--lossless: URDF with loop file does not carry mechanism: rotor inertia (armature) of joints crank" in err
    assert not refused.exists()


@pytest.mark.parametrize(("error", "verdict"), [(7e-12, "informational"), (1e-9, "disagree")])
def test_round_off_of_the_engine_is_judged_with_the_conditioning(
    error: float, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a public file of Digit: MuJoCo's round-off is 2.5e-11 where the conditioning is small."""
    written = tmp_path / "m.xml"
    add_error(monkeypatch, written, error)
    done = convert(str(MODELS / "four_bar.xml"), written, lossless=True, seed=0)
    row = next(row for row in done.result.rows if row.quantity == f"efforts by {ENGINE}")
    assert (row.verdict, row.error > LIMIT) == (verdict, True), row
    assert ("with a conditioning of" in row.note) == (verdict == "informational")


def test_round_off_is_judged_although_an_actuator_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the input has one actuator more than the output, as in a public scene of a mobile manipulator."""
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    joints = "".join(f'<joint joint="{joint.name}" coef="1"/>' for joint in model("four_bar").joints[:2])
    tendon = (
        f'<tendon><fixed name="pull">{joints}</fixed></tendon><actuator><motor name="pull" tendon="pull"/></actuator>'
    )
    path, written = tmp_path / "pulled.xml", tmp_path / "m.sdf"
    path.write_text(text.replace("</mujoco>", f"{tendon}</mujoco>"), encoding="utf-8")
    add_error(monkeypatch, written, 7e-12)
    rows = {row.quantity: row for row in convert(str(path), written, lossless=False, seed=0).result.rows}
    assert rows[f"efforts by {ENGINE}"].verdict == "informational"


def add_error(monkeypatch: pytest.MonkeyPatch, written: Path, error: float) -> None:
    """Let the engine's efforts of a written file have an error [N or N m]."""
    load = sources.load

    def with_error(name: str) -> Any:
        source = load(name)

        def compute_efforts(case: Any, motion: Any) -> Any:
            history = source.compute_efforts(case, motion)
            is_wrong = name == ENGINE and case.mechanism.model.path == written
            return replace(history, effort=history.effort + error) if is_wrong else history

        return SimpleNamespace(compute_efforts=compute_efforts)

    monkeypatch.setattr(sources, "load", with_error)


@pytest.mark.parametrize(("error", "verdict"), [(1e-4, "informational"), (3e-2, "disagree")])
def test_rounding_to_floats_is_excused_up_to_the_conditioning(error: float, verdict: str, tmp_path: Path) -> None:
    """A copy with a wrong mass in place of rounded numbers, at poses with a conditioning of 1e-3: up to 2e-3."""
    kept = model("four_bar")
    wrong = moved(kept, "bodies", 1, mass=kept.bodies[1].mass * (1 + error))

    def write(_: Path, copy: Path) -> None:
        copy.write_text(mjcf_text(wrong), encoding="utf-8")

    form = FORMATS[".usda"]._replace(write_rounded=write)
    near = replace(states("four_bar"), distance=1e-3)
    rows = {row.quantity: row for row in _rounded(form, tmp_path / "m.xml", kept, near)}
    row = rows["from floats: reduced inertia"]
    assert (row.verdict, error / 30 < row.error < error) == (verdict, True), row
    assert ("with a conditioning of" in row.note) == (verdict == "informational")


@pytest.mark.parametrize(("part", "verdict"), [(0.1, "informational"), (3.0, "disagree")])
def test_a_difference_beyond_the_gaps_of_the_input_disagrees(part: float, verdict: str) -> None:
    """The axis of the coupler leaves the plane of the loop by 1e-6 rad: the loop closes to a part of that."""
    flat = model("four_bar")
    tilted = with_closing(moved(flat, "joints", 1, axis=flat.joints[1].axis + np.array([1e-6, 0, 0])))
    assert 1e-8 < tilted.closing.accuracy < 1e-6
    error = part * 3 * tilted.closing.accuracy
    rows = tuple(Row(name, error, LIMIT, "disagree") for name in ("efforts", "loop gap"))
    assert [row.verdict for row in _fitting(rows, tilted)] == [verdict, "disagree"]
    assert [row.verdict for row in _fitting(rows, flat)] == ["disagree", "disagree"]


def test_progress_counts_all_steps(tmp_path: Path) -> None:
    steps = list(conversion_steps(str(MODELS / "four_bar.xml"), tmp_path / "m.xml", lossless=True, seed=0))
    assert len(steps) == STEPS
    assert [step is None for step in steps] == [True] * (STEPS - 1) + [False]


def test_urdf_becomes_mjcf(loopcheck: Command, tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *DIALECTS["Gepetto"])
    status, stdout, _ = loopcheck("convert", path, tmp_path / "model.xml", "--lossless", "--format", "json")
    assert status == 0
    assert json.loads(stdout)["exit_status"] == 0
    (closure,) = read_mechanism(ModelFile(path=tmp_path / "model.xml")).closures
    assert isinstance(closure, ConnectClosure)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("model.dae", "unknown suffix of the output: '.dae'. Known: .xml, .mjcf, .urdf, .sdf, .usda, .usd"),
        ("model.urdf", "must not be a file of the input. Name another output"),
    ],
)
def test_bad_outputs_get_one_line(out: str, message: str, loopcheck: Command, tmp_path: Path) -> None:
    path = write_urdf(tmp_path, *DIALECTS["Gepetto"])
    before = path.read_bytes()
    status, _, err = loopcheck("convert", path, tmp_path / out)
    assert status == 2
    assert message in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml", ".usda"])
def test_a_locked_robot_is_converted(suffix: str, tmp_path: Path, loopcheck: Command) -> None:
    """A slide that a weld holds, as in a public test of force sensors: no motion is left to compare."""
    path = tmp_path / "locked.xml"
    if suffix == ".usda":
        pytest.importorskip("pxr")
    path.write_text(
        '<mujoco><option gravity="0 0 -1"/><worldbody><body name="base"><geom size=".1"/></body><body name="held">'
        '<joint name="x" type="slide"/><geom size=".1"/></body></worldbody>'
        '<equality><weld body1="base" body2="held"/></equality></mujoco>',
        encoding="utf-8",
    )
    status, _, _ = loopcheck("convert", path, tmp_path / f"out{suffix}")
    assert status == (0 if suffix == ".xml" else 3)  # a copy has the contacts between the geoms
    proof_of = json.loads((tmp_path / "out.proof.json").read_text(encoding="utf-8"))
    text = json.dumps(proof_of, ensure_ascii=False)
    assert "the loops leave no motion to compare" in text
    assert [loss["kind"] for loss in proof_of["losses"]] == (
        [] if suffix == ".xml" else ["load"] * (1 + (suffix == ".urdf"))
    )
    assert ("gravity 0 0 -1 m/s²; readers of URDF assume 0 0 -9.81 m/s²" in text) == (suffix == ".urdf")


@pytest.mark.extended("test_losses_are_listed_measured_and_refused")
def test_a_setting_alone_leaves_the_status(tmp_path: Path, loopcheck: Command) -> None:
    """Time step and softness of loops belong to a simulation; a servo does not."""
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8").replace(' armature="', ' user="')
    assert "user" in text
    path = tmp_path / "m.xml"
    for option, actuator, kinds in (
        ("", "motor", []),
        ('<option timestep="0.001" integrator="RK4"/>', "motor", ["setting"] * 2),
        ("", "position", ["drive"]),
    ):
        changed = text.replace("<worldbody>", f"{option}<worldbody>").replace("<motor", f"<{actuator}")
        path.write_text(changed, encoding="utf-8")
        status, stdout, _ = loopcheck("convert", path, tmp_path / "m.sdf", "--format", "json")
        found = [loss["kind"] for loss in json.loads(stdout)["losses"] if loss["words"] != "keyframes"]
        assert (found, status) == (kinds, 3 if "drive" in kinds else 0), option
        status, _, err = loopcheck("convert", path, tmp_path / "n.sdf", "--lossless")
        assert (status, "--lossless" in err) == ((2, True) if kinds else (0, False))


def test_an_mjcf_is_copied_byte_by_byte(tmp_path: Path) -> None:
    text = (
        (MODELS / "four_bar.xml")
        .read_bytes()
        .replace(b"<mujoco", b"<!-- mine -->\r\n<mujoco")
        .replace(b"motor", b"position")
    )
    path = tmp_path / "m.xml"
    path.write_bytes(text)
    for out in (tmp_path / "copy.xml", tmp_path / "below" / "copy.xml"):
        done = convert(str(path), out, lossless=True, seed=0)
        assert (done.result.status, done.result.losses, out.read_bytes()) == (0, (), text)


@pytest.mark.parametrize("folder", ["", 'angle="radian"', 'meshdir="parts" angle="radian"', 'assetdir="parts"'])
def test_paths_lead_to_the_folder_of_the_input(folder: str, tmp_path: Path) -> None:
    """Includes, and meshes with and without a folder of their own; the mass of a body is that of its mesh."""
    home = tmp_path / "home"
    (home / "parts").mkdir(parents=True)
    mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (home / "parts" / "a.obj").write_text(mesh, encoding="utf-8")
    file = "a.obj" if "dir=" in folder else "parts/a.obj"
    compiler = f"<compiler {folder}/>" if folder else ""
    part = f'<mujocoinclude><asset><mesh name="a" file="{file}"/></asset></mujocoinclude>'
    (home / "part.xml").write_text(part, encoding="utf-8")
    body = '<body><joint name="j" axis="0 1 0"/><geom type="mesh" mesh="a" density="500"/></body>'
    text = f'<mujoco>{compiler}<include file="part.xml"/><worldbody>{body}</worldbody></mujoco>'
    (home / "m.xml").write_text(text, encoding="utf-8")
    out = tmp_path / "other" / "deep" / "m.xml"
    done = convert(str(home / "m.xml"), out, lossless=True, seed=0)
    assert done.result.status == 0
    assert read_mechanism(ModelFile(path=out)).bodies[0].mass == pytest.approx(500 / 6)
    assert out.read_text(encoding="utf-8").replace("../../home/", "").count("part.xml") == 1
    convert(str(home / "m.xml"), home / "copy.xml", lossless=True, seed=0)
    assert (home / "copy.xml").read_text(encoding="utf-8") == text


def test_the_limit_of_a_ball_is_lost_and_that_of_a_hinge_is_not(tmp_path: Path) -> None:
    body = (
        '<body><joint name="{}" type="{}" range="0 40" {}/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/></body>'
    )
    path = tmp_path / "m.xml"
    for limited, lost in (("", ["limits of ball joints b"]), ('limited="false"', [])):
        bodies = body.format("h", "hinge", "") + body.format("b", "ball", limited)
        path.write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>", encoding="utf-8")
        assert list(map(str, carried_by(URDF, read_mechanism(ModelFile(path=path))).losses)) == lost


@pytest.mark.parametrize("suffix", [".sdf", ".usda", ".urdf", ".xml"])
@pytest.mark.parametrize("refs", [("", ""), (' ref="0.3"', ' ref="-0.2"')])
def test_a_linear_equality_keeps_its_constant(suffix: str, refs: tuple[str, str], tmp_path: Path) -> None:
    """g = g_ref + 0.1 + 1.5 (k - k_ref), by hand."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    inertia = '<inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>'
    body = f'<body pos="0 {{}} 0"><joint name="{{}}" axis="0 0 1"{{}}/>{inertia}</body>'
    bodies = body.format(0, "k", refs[0]) + body.format(1, "g", refs[1])
    equality = '<joint name="e" joint1="g" joint2="k" polycoef=".1 1.5 0 0 0"/>'
    path = tmp_path / "m.xml"
    path.write_text(
        f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>',
        encoding="utf-8",
    )
    out = tmp_path / f"out{suffix}"
    assert convert(str(path), out, lossless=True, seed=0).result.status == 0
    mechanism = read_mechanism(ModelFile(path=out))
    (closure,) = mechanism.coordinate_closures
    rest = {joint.name: joint.rest_position[0] for joint in mechanism.joints}
    k_ref, g_ref = (0.3, -0.2) if refs[0] else (0.0, 0.0)
    for k in (-0.4, 0.0, 1.1):
        constant, slope = closure.coefficients[:2]
        g = rest["g"] + constant + slope * (k - rest["k"])
        assert g == pytest.approx(g_ref + 0.1 + 1.5 * (k - k_ref), abs=1e-12)


def test_the_proof_states_that_mujoco_refuses_massless_links(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    joints = '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>'
    for count, is_refused in ((1, False), (2, True)):
        of_body = joints if count == 2 else joints.split("/>")[0] + "/>"
        body = f'<body>{of_body}<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
        path.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>", encoding="utf-8")
        done = convert(str(path), tmp_path / "m.urdf", lossless=True, seed=0)
        record = json.loads(done.proof_file.read_text(encoding="utf-8"))
        assert ("MuJoCo's own reader refuses the tree" in record["read by"]) == is_refused
        text = (tmp_path / "m.urdf").read_text(encoding="utf-8")
        with pytest.raises(ValueError, match="mjMINVAL") if is_refused else nullcontext():
            mujoco.MjModel.from_xml_string(text)
