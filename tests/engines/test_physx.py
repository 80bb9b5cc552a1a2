"""Properties of PhysX: its readings, its defaults, and its losses; all but the first part need SAPIEN."""

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.physx._readings import reading_of
from loopcheck.engines.physx._support import branches, want_carried
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.check.efforts.as_is import Settled, settled
from loopcheck.validation.tune.budget import budget
from tests.conftest import AMPLITUDES, MODELS, CaseMaker
from tests.engines.mechanisms import OWN, TUMBLING, Own
from tests.faults.adapters import applied_twice, misread_history, one_step_late, physx_friction, reading_as_effort

FULLY_ACTUATED = ("four_bar", "3prr", "6spu")
ROTORS = {"four_bar": 0.05, "6spu": 2.0}
"""Inertia of the rotors of driven joints [kg m² or kg]."""


def with_rotors(mechanism: Mechanism, inertia: float) -> Mechanism:
    driven = {drive.joints[0] for drive in mechanism.drives}
    joints = [replace(joint, armature=inertia) if j in driven else joint for j, joint in enumerate(mechanism.joints)]
    return replace(mechanism, joints=tuple(joints))


def case_of(name: str) -> Case:
    return representative_case(load(name))


def test_branches_are_what_hangs_on_the_world() -> None:
    assert branches(case_of("four_bar").mechanism) == ((0, 1), (2,))
    assert [len(branch) for branch in branches(case_of("3rrr").mechanism)] == [5, 3, 3]


def test_a_rotor_and_a_loop_within_a_branch_take_the_effort_off_the_reaction() -> None:
    plain = case_of("four_bar").mechanism
    assert reading_of(plain, tgs=True).effort == reading_of(plain, tgs=False).effort == "reaction"
    assert {reading_of(with_rotors(plain, 0.05), tgs=tgs).effort for tgs in (True, False)} == {"joint"}
    assert reading_of(case_of("2t1r").mechanism, tgs=False).effort == "applied"
    with pytest.raises(NotRepresentableError, match="between 2 links of the same articulation"):
        reading_of(case_of("2t1r").mechanism, tgs=True)


def test_all_that_is_lost_is_named_at_once(model_case: CaseMaker) -> None:
    with pytest.raises(
        NotRepresentableError,
        match=r"physx: not supported: rotor.* of free joint 'base'.*; ball joint 'neck'.*; tendon 'both'",
    ):
        want_carried(model_case(MODELS / "floating_rotors.xml", amplitude=0.1).mechanism)


@cache
def ran(route: str, name: str) -> tuple[Case, EffortHistory]:
    case = case_of(name)
    return case, engines.load(f"physx/{route}").compute_efforts(case, prescribe(case))


def left_of(case: Case, history: EffortHistory) -> Settled:
    assert history.as_is is not None
    left = settled(case.mechanism, history.as_is, most=100)
    assert not left.reason
    return left


@pytest.mark.extended("test_what_is_simulated_is_the_model")
@pytest.mark.parametrize("name", FULLY_ACTUATED)
@pytest.mark.parametrize("route", ["as_is", "as_is_tgs"])
def test_the_force_that_a_joint_passes_on_is_the_effort(route: str, name: str) -> None:
    """By both solvers; other readings are off by more than the floor."""
    pytest.importorskip("sapien")
    case, history = ran(route, name)
    sound = left_of(case, history)
    assert (sound.rms / sound.scale).max() < 5e-3
    assert history.settings["effort"].startswith("reaction")
    misreadings = [applied_twice, one_step_late, reading_as_effort("commanded")]
    if route == "as_is_tgs":
        assert "not the derivatives of the positions" in history.note
        misreadings.append(reading_as_effort("applied"))
    for wrong in misreadings:
        left = left_of(case, misread_history(history, wrong))
        assert (left.rms > np.maximum(left.floor, 1.5 * sound.rms)).any(), wrong


@pytest.mark.parametrize("name", ["welded_four_bar", "spatial"])
def test_welds_and_bodies_without_mass_are_what_they_should(name: str, own: Own) -> None:
    """SAPIEN's joints hold no rotations, so that a weld is three points; PhysX gives 1 kg to massless bodies."""
    pytest.importorskip("sapien")
    case = own(name, "" if name in OWN else (MODELS / f"{name}.xml").read_text(encoding="utf-8"))
    rows = audit(case, expected_terms(case, prescribe(case)), "physx")
    assert [row["quantity"] for row in rows if row["verdict"] != "agree"] == ["terms of the equations"]


@pytest.mark.extended("test_what_is_simulated_is_the_model")
def test_a_weld_holds_its_turns(own: Own) -> None:
    pytest.importorskip("sapien")
    case = own("welded", (MODELS / "welded_four_bar.xml").read_text(encoding="utf-8"))
    history = engines.load("physx/as_is").compute_efforts(case, prescribe(case))
    assert history.closure_drift is not None
    assert history.closure_drift.angle < 1e-3
    left = left_of(case, history)
    assert (left.rms / left.scale).max() < 5e-3


def test_a_free_root_is_the_model(model_case: CaseMaker) -> None:
    pytest.importorskip("sapien")
    case = model_case(MODELS / "six_legs.xml", configuration="vertical", amplitude=AMPLITUDES["six_legs"])
    rows = audit(case, expected_terms(case, prescribe(case)), "physx")
    assert [row["quantity"] for row in rows if row["verdict"] != "agree"] == ["terms of the equations"]


@pytest.mark.extended("test_what_is_simulated_is_the_model")
@pytest.mark.parametrize("route", ["as_is", "as_is_tgs"])
def test_legs_carry_a_free_root(route: str, model_case: CaseMaker) -> None:
    """All loops end on the world, so that a joint passes on its drive's effort."""
    pytest.importorskip("sapien")
    case = model_case(MODELS / "six_legs.xml", configuration="vertical", amplitude=AMPLITUDES["six_legs"])
    left = left_of(case, engines.load(f"physx/{route}").compute_efforts(case, prescribe(case)))
    assert (left.rms / left.scale).max() < 5e-3


@pytest.mark.parametrize("tgs", [False, True])
def test_a_body_that_floats_keeps_its_angular_momentum(tgs: bool, tmp_path: Path) -> None:
    """PhysX moves its mass centre, which lies beside the origin of the body: both must fall correctly."""
    pytest.importorskip("sapien")
    from loopcheck.engines.physx._articulation import Stepping, build

    (tmp_path / "box.xml").write_text(TUMBLING, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=tmp_path / "box.xml"))
    body, turned = mechanism.bodies[0], np.array([0.8, 0.1, -0.5, 0.2])
    q = np.array([0.1, 0.2, 0.3, *(turned / np.linalg.norm(turned))])
    qd = np.array([0.1, -0.2, 0.3, 2.0, -1.0, 3.0])

    def motions(state: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        """Angular momentum, mass centre and its velocity."""
        R, (moving, turning) = Rotation.from_quat(np.roll(state[0][3:], -1)).as_matrix(), np.split(state[1], 2)
        center = R @ body.center
        return R @ body.inertia @ turning, state[0][:3] + center, moving + np.cross(R @ turning, center)

    built = build(mechanism, Stepping(step=1e-3, tgs=tgs))
    built.put(q, qd)
    for given, told in zip((q, qd), built.state(), strict=True):
        np.testing.assert_allclose(told, given, atol=1e-6)
    for _ in range(200):
        built.scene.step()
    (spin, place, velocity), (still, landed, fallen) = motions((q, qd)), motions(built.state())
    g, t = mechanism.gravity, 0.2
    np.testing.assert_allclose(still, spin, atol=1e-3 * float(np.linalg.norm(spin)))
    np.testing.assert_allclose(fallen, velocity + g * t, atol=1e-4)
    np.testing.assert_allclose(landed, place + velocity * t + g * t**2 / 2, atol=2e-3)


@pytest.mark.extended("test_what_is_simulated_is_the_model")
def test_friction_that_is_filled_in_is_seen() -> None:
    pytest.importorskip("sapien")
    case, history = ran("as_is", "four_bar")
    sound, left = (
        left_of(case, one)
        for one in (
            history,
            physx_friction().compute_efforts(case, prescribe(case)),
        )
    )
    assert left.rms[0] > 5 * sound.rms[0]


@pytest.mark.extended("test_what_is_simulated_is_the_model")
@pytest.mark.parametrize("name", ROTORS)
@pytest.mark.parametrize("route", ["as_is", "as_is_tgs"])
def test_a_reaction_is_seen_where_rotors_take_a_part(route: str, name: str) -> None:
    """The torque of the rotors is added to it; the law of the drive is not the effort on the Stewart platform."""
    pytest.importorskip("sapien")
    case = case_of(name)
    case = replace(case, mechanism=with_rotors(case.mechanism, ROTORS[name]))
    history = engines.load(f"physx/{route}").compute_efforts(case, prescribe(case))
    left, reaction, law = (
        left_of(case, one)
        for one in (
            history,
            *(misread_history(history, reading_as_effort(kind)) for kind in ("reaction", "applied")),
        )
    )
    assert (left.rms / left.scale).max() < 5e-3
    assert (reaction.rms > 2 * left.rms).any()
    if name == "6spu":
        assert (law.rms > 0.1 * law.scale).all()


@pytest.mark.extended("test_what_is_simulated_is_the_model")
def test_an_error_is_taken_apart() -> None:
    """Steps cause most of it, last digits little; the remainder is less than a tenth."""
    pytest.importorskip("sapien")
    rows = {row["part"]: row for row in budget(case_of("four_bar"), "physx/as_is")}
    shares = {name: row["share"] for name, row in rows.items() if row.get("share") is not None and name != "all"}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["step"] > 0.5
    assert rows["precision"]["rms"] < rows["rest"]["rms"] < 0.1 * rows["all"]["rms"]


def test_a_script_of_settings_sets_what_was_tried(tmp_path: Path) -> None:
    """Run as its user does, and read back from SAPIEN."""
    sapien = pytest.importorskip("sapien")
    from loopcheck.engines.physx import tuning
    from loopcheck.engines.physx._articulation import Stepping, build

    settings = {"timestep": "0.002", "enable_tgs": "True", "position_iterations": "7", "velocity_iterations": "3"}
    mechanism = case_of("four_bar").mechanism
    (path, content), *_ = tuning.files(mechanism, settings).items()
    assert path.name == "tuned_physx.py"
    (tmp_path / path.name).write_bytes(content)
    calls = runpy.run_path(str(tmp_path / path.name))
    built = build(mechanism, Stepping(friction=None))
    calls["configure"]()
    calls["apply"](built.scene, built.articulations[0])
    wanted = tuning.prepared(mechanism, settings)
    part = built.articulations[0]
    assert sapien.physx.get_scene_config().enable_tgs is wanted.tgs is True
    assert built.scene.timestep == pytest.approx(wanted.step)
    assert part.get_solver_position_iterations() == wanted.position_iterations
    assert part.get_solver_velocity_iterations() == wanted.velocity_iterations
    assert [joint.friction for joint in part.active_joints] == [wanted.friction] * 2


@pytest.mark.parametrize("name", ["four_bar", "3prr", "6spu", "bricard"])
def test_what_is_simulated_is_the_model(name: str) -> None:
    pytest.importorskip("sapien")
    case = case_of(name)
    rows = audit(case, expected_terms(case, prescribe(case)), "physx")
    assert {row["verdict"] for row in rows if row["tier"] == "static"} == {"agree"}
    assert [row["quantity"] for row in rows if row["verdict"] != "agree"] == ["terms of the equations"]


def test_friction_that_is_filled_in_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As SAPIEN's builder leaves it: the audit detects another robot."""
    pytest.importorskip("sapien")
    from loopcheck.engines.physx import audit as module
    from loopcheck.engines.physx._articulation import Stepping

    case = case_of("four_bar")
    monkeypatch.setattr(module, "Stepping", lambda: Stepping(friction=None))
    rows = audit(case, expected_terms(case, prescribe(case)), "physx")
    off = {row["quantity"]: row["found"] for row in rows if row["verdict"] == "disagree"}
    assert off == {"dry friction": pytest.approx(0.05)}


def test_single_precision_is_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mass that is off by three times the tolerance is no round-off."""
    pytest.importorskip("sapien")
    case = case_of("four_bar")
    terms = expected_terms(case, prescribe(case))
    first, *others = case.mechanism.bodies
    heavier = replace(case.mechanism, bodies=(replace(first, mass=first.mass * 1.0003), *others))
    rows = audit(replace(case, mechanism=heavier), terms, "physx")
    assert "mass" in {row["quantity"] for row in rows if row["verdict"] == "disagree"}
