"""The audit passes right engines, names the losses of a wrong engine, and excludes it from the comparison."""

import importlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.inventory import Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.comparison.audit import audit, blocking_reasons, expected_terms
from loopcheck.validation.comparison.evaluate import evaluate
from loopcheck.validation.comparison.results import Results
from loopcheck.validation.comparison.targets import cases_of
from loopcheck.validation.comparison.tolerances import registered
from loopcheck.validation.studies.check.collect import collect
from loopcheck.validation.studies.check.record import Request, RunOutput
from loopcheck.validation.studies.check.sections.audit import first_divergence
from tests.conftest import MODELS, ZOO, CaseMaker
from tests.engines.mechanisms import OPEN_FOUR_BAR
from tests.engines.refusals import REFUSALS
from tests.validation.conftest import exit_status

ENGINES = tuple(dict.fromkeys(name.split("/")[0] for name in engines.names() if not engines.on_request(name)))
Edit = Callable[[Any], None]


def module(engine: str, name: str) -> Any:
    return importlib.import_module(f"loopcheck.engines.{engine}.{name}")


def table_of(case: Case, motion: Motion, engine: str) -> pd.DataFrame:
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    return pd.DataFrame(audit(case, expected_terms(case, motion), engine))


def wrong(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    beyond = rows[rows["verdict"] != "agree"]
    return list(zip(beyond["tier"], beyond["quantity"], beyond["element"], strict=True))


FAULTS = {
    ("geared_pair", "mujoco"): [("instantaneous", "closure acceleration in its solver", "cam")],
    ("floating_rotors", "pybullet"): [("static", "all", "robot")],  # it has no rotor of a tendon, and says so
    ("floating_rotors", "pinocchio"): [("static", "all", "robot")],  # nor has it one of a tendon
    **{(name, "exudyn"): [("static", "all", "robot")] for name in ZOO if ("exudyn/forward", name) in REFUSALS},
    **{
        (name, engine): [("static", "all", "robot")]
        for engine in ("dart", "drake", "simbody")
        for name in ZOO
        if (f"{engine}/kkt", name) in REFUSALS
    },
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_zoo_passes(engine: str, zoo_case: Case, zoo_motion: Motion) -> None:
    """Except for known errors, which are named."""
    rows, faults = table_of(zoo_case, zoo_motion, engine), FAULTS.get((zoo_case.robot.name, engine), [])
    assert wrong(rows) == faults
    assert set(rows["tier"]) == {"static", "instantaneous"} or faults


def test_a_motion_that_was_made_does_not_rest_where_it_is_audited() -> None:
    """Or a fault in velocity terms would hide, as MuJoCo's in curved joint equalities."""
    case = cases_of([MODELS / "geared_pair.xml"])[0]
    rows = pd.DataFrame(audit(case, expected_terms(case, prescribe(case)), "mujoco"))
    assert wrong(rows) == [("instantaneous", "closure acceleration in its solver", "cam")]


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_that_the_model_closes_only_so_far_are_as_open_in_every_engine(
    engine: str, tmp_path: Path, model_case: CaseMaker
) -> None:
    path = tmp_path / "oblique.xml"
    path.write_text(OPEN_FOUR_BAR, encoding="utf-8")
    case = model_case(path, amplitude=0.1)
    rows = table_of(case, prescribe(case), engine)
    assert wrong(rows) == []
    (wanted,) = rows.loc[rows["quantity"] == "opening of the loops", "wanted"]
    assert wanted > 4e-8


@pytest.mark.extended("test_a_planar_robot_passes")
def test_a_spatial_robot_with_a_wrench_passes() -> None:
    case = make_case(load("6spu"), variant="default", mode="home", configuration="vertical")
    motion = prescribe(case, dt=0.1)
    for engine in filter(engines.installed, ENGINES):
        assert wrong(pd.DataFrame(audit(case, expected_terms(case, motion), engine))) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_planar_robot_passes(engine: str, prr: Case, prr_motion: Motion) -> None:
    assert wrong(table_of(prr, prr_motion, engine)) == []


def heavier(model: Any) -> None:
    model.body("link2").mass *= 1 + 1e-6


def axis_flipped(model: Any) -> None:
    model.jnt_axis[model.joint("q6").id] *= -1


def damped(model: Any) -> None:
    model.dof_damping[model.joint("q4").dofadr[0]] = 1e-3


def with_armature(model: Any) -> None:
    model.dof_armature[model.joint("q4").dofadr[0]] = 1e-3


def sprung(model: Any) -> None:
    model.jnt_stiffness[model.joint("q4").id] = 1e-3


def turned_gravity(model: Any) -> None:
    model.opt.gravity[:] = (0, 0, -9.81)


def center_moved(model: Any) -> None:
    model.body_ipos[model.body("platform").id, 2] += 1e-6


def inertia_grown(model: Any) -> None:
    model.body_inertia[model.body("platform").id, 2] *= 1 + 1e-6


def constraint_dropped(model: Any) -> None:
    model.eq_active0[model.equality("q9").id] = 0


def constraint_moved(model: Any) -> None:
    model.site_pos[model.eq_obj1id[model.equality("q9").id], 0] += 1e-6


def geared(model: Any) -> None:
    model.actuator_gear[1, 0] = 2


@pytest.mark.parametrize(
    ("edit", "quantity", "element"),
    [
        (heavier, "mass", "link2"),
        (axis_flipped, "axis", "q6"),
        (damped, "damping", "q4"),
        (with_armature, "armature", "q4"),
        (sprung, "stiffness", "q4"),
        (turned_gravity, "gravity", "robot"),
        (center_moved, "mass centre", "platform"),
        (inertia_grown, "principal moments", "platform"),
        (constraint_dropped, "constraint rows", "robot"),
        (constraint_moved, "opening of the loops", "robot"),
        (geared, "gear", "q2"),
    ],
)
def test_a_wrong_mujoco_is_named(
    edit: Edit, quantity: str, element: str, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_mujoco(monkeypatch, edit)
    rows = table_of(prr, prr_motion, "mujoco")
    assert ("static", quantity, element) in wrong(rows)
    assert causes(rows) == [quantity]


def other_mass(world: Any, pybullet: Any) -> None:
    pybullet.changeDynamics(world.tree, world.links[4], mass=0.5201 * (1 + 1e-6), physicsClientId=world.client)


def other_inertia(world: Any, pybullet: Any) -> None:
    moments = [6.06e-4, 6.06e-4, 6.07e-4]
    pybullet.changeDynamics(world.tree, world.links[4], localInertiaDiagonal=moments, physicsClientId=world.client)


def other_damping(world: Any, pybullet: Any) -> None:
    pybullet.changeDynamics(world.tree, world.joints[1], jointDamping=1e-6, physicsClientId=world.client)


def other_gravity(world: Any, pybullet: Any) -> None:
    pybullet.setGravity(0, 0, -9.81, physicsClientId=world.client)


@pytest.mark.parametrize(
    ("edit", "quantity", "element"),
    [
        (other_mass, "mass", "link2"),
        (other_inertia, "principal moments", "link2"),
        (other_damping, "damping", "q4"),
        (other_gravity, "gravity", "robot"),
    ],
)
def test_a_wrong_pybullet_is_named(
    edit: Callable[[Any, Any], None],
    quantity: str,
    element: str,
    prr: Case,
    prr_motion: Motion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pybullet = pytest.importorskip("pybullet")
    _audit = module("pybullet", "audit")

    right = _audit.opened

    @contextmanager
    def opened(mechanism: Any) -> Any:
        with right(mechanism) as world:
            edit(world, pybullet)
            yield world

    monkeypatch.setattr(_audit, "opened", opened)
    rows = table_of(prr, prr_motion, "pybullet")
    assert ("static", quantity, element) in wrong(rows)
    assert causes(rows) == [quantity]


@pytest.mark.parametrize(
    ("written", "instead", "quantity"),
    [
        ('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0.0 0.0 -1.0"/>', "axis"),
        ('damping="0.0"', 'damping="0.04"', "damping"),
        ('friction="0"', 'friction="0.1"', "dry friction"),
    ],
)
def test_a_wrong_urdf_is_named(
    written: str, instead: str, quantity: str, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pybullet")
    _world = module("pybullet", "_world")

    right = _world.urdf
    monkeypatch.setattr(_world, "urdf", lambda *of_robot: right(*of_robot).replace(written, instead))
    assert causes(table_of(prr, prr_motion, "pybullet")) == [quantity]


def test_a_loop_that_pybullet_lost_is_named(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    pybullet = pytest.importorskip("pybullet")
    _audit = module("pybullet", "audit")

    right = _audit.close_loops

    def close_loops(world: Any) -> tuple[int, ...]:
        first, *others = right(world)
        pybullet.removeConstraint(first, physicsClientId=world.client)
        return tuple(others)

    monkeypatch.setattr(_audit, "close_loops", close_loops)
    rows = table_of(prr, prr_motion, "pybullet")
    assert ("static", "rank of the constraints", "robot") in wrong(rows)
    assert causes(rows) == ["constraint rows"]


PIN = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0"/><joint name="lift" type="slide" axis="0.61 0.1 0.8"/>
      <inertial pos="0.5 0.1 0" mass="5000" diaginertia="100 200 300"/>
      <body name="arm" pos="0.3 0 0" euler="5 15 25"><joint name="arm" axis="0 1 0.1"/>
        <inertial pos="0.5 0 0.3" mass="2000" diaginertia="100 200 300"/>
        <body name="pin" pos="0.7 0.1 0.2" euler="10 20 30"><joint name="pin" axis="0.1 0.2 1" damping="1e-6"/>
          <inertial pos="1e-2 2e-2 3e-2" mass="2e-3" diaginertia="1e-9 1e-9 1e-9"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="rail"/><motor joint="lift"/><motor joint="arm"/><motor joint="pin"/></actuator>
</mujoco>"""
"""Seven tonnes that carry two grams."""


@pytest.mark.parametrize("damping", [1e-3, 1e-6])
def test_round_off_of_a_heavy_robot_is_no_damping(damping: float, tmp_path: Path, model_case: CaseMaker) -> None:
    """The effect of the light link's damper on the heavy links is measured as the remainder of their weights."""
    path = tmp_path / "pin.xml"
    path.write_text(PIN.replace('damping="1e-6"', f'damping="{damping:g}"'), encoding="utf-8")
    case = model_case(path, configuration="vertical", amplitude=0.1)
    assert wrong(table_of(case, prescribe(case), "pybullet")) == []


def test_damping_of_the_air_that_pybullet_starts_with_is_seen(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pybullet")
    _audit = module("pybullet", "audit")

    monkeypatch.setattr(_audit, "prepare", lambda *_: None)
    assert causes(table_of(prr, prr_motion, "pybullet")) == ["damping"]


def test_a_rotor_with_another_ratio_is_seen(model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    pybullet = pytest.importorskip("pybullet")
    _audit = module("pybullet", "audit")

    case = model_case(MODELS / "four_bar.xml", amplitude=0.1)
    motion, right = prescribe(case), _audit.close_loops
    rows = table_of(case, motion, "pybullet")
    assert rows.loc[rows["quantity"] == "armature", "note"].item().startswith("rebuilt: ")

    def close_loops(world: Any) -> tuple[int, ...]:
        loops = right(world)
        pybullet.changeConstraint(loops[-1], gearRatio=-2, physicsClientId=world.client)
        return loops

    monkeypatch.setattr(_audit, "close_loops", close_loops)
    assert causes(table_of(case, motion, "pybullet")) == ["armature"]


def other_inertia_of_a_joint(model: Any) -> None:
    inertia = model.inertias[5]
    inertia.mass *= 1 + 1e-6
    model.inertias[5] = inertia


def rotor(model: Any) -> None:
    model.armature = model.armature + np.eye(model.nv)[1] * 1e-3


def gravity_of_pinocchio(model: Any) -> None:
    model.gravity.linear = np.array([0, 0, -9.81])


def rubbing(model: Any) -> None:
    model.upperDryFrictionLimit = np.full(model.nv, 0.1)


def shifted(model: Any) -> None:
    place = model.jointPlacements[4]
    place.translation = place.translation + np.array([1e-6, 0, 0])
    model.jointPlacements[4] = place


@pytest.mark.parametrize(
    ("edit", "quantity"),
    [
        (other_inertia_of_a_joint, "mass"),
        (rotor, "armature"),
        (gravity_of_pinocchio, "gravity"),
        (rubbing, "dry friction"),
        (shifted, "anchor"),
    ],
)
def test_a_wrong_pinocchio_is_named(
    edit: Edit, quantity: str, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pinocchio")
    _audit = module("pinocchio", "_equations")
    right = _audit.build

    def build(mechanism: Any) -> Any:
        tree = right(mechanism)
        edit(tree.model)
        return tree

    monkeypatch.setattr(_audit, "build", build)
    assert causes(table_of(prr, prr_motion, "pinocchio")) == [quantity]


def test_a_loop_that_pinocchio_lost_is_named(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pinocchio")
    _audit = module("pinocchio", "_equations")
    right = _audit.loop_constraints
    monkeypatch.setattr(_audit, "loop_constraints", lambda tree: right(tree)[1:])
    assert causes(table_of(prr, prr_motion, "pinocchio")) == ["constraint rows"]


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_that_accelerate_otherwise_are_not_compared(
    engine: str, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If J̇q̇ of an engine is off by a millionth, its efforts have no meaning."""
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    right = engines.matrices

    def wrong(name: str, mechanism: Mechanism, q: Array, qd: Array) -> Matrices:
        terms = right(name, mechanism, q, qd)
        return replace(terms, closure_bias=(1 + 1e-6) * terms.closure_bias)

    monkeypatch.setattr(engines, "matrices", wrong)
    assert causes(table_of(prr, prr_motion, engine)) == ["closure acceleration"]


def test_what_is_lost_is_not_compared(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [evaluate(prr, prr_motion, name) for name in ("analytic/noc", "mujoco/kkt", "mujoco/as_is")]
    request = Request(dt=None, tolerances=registered())

    def judged() -> Results:
        rows = audit(prr, expected_terms(prr, prr_motion), "mujoco")
        return collect([prr], RunOutput({prr.key: prr_motion}, outcomes, rows, resolutions={}), request)

    right = judged()
    assert exit_status(right) == 0
    assert first_divergence(right.audit.to_dict("records")).startswith("as_is: trajectory, effort of ")
    spoil_mujoco(monkeypatch, heavier)
    results = judged()
    kkt = results.summary[results.summary["source"] == "mujoco/kkt"]
    assert set(kkt["verdict"]) == {"not comparable"}
    assert "mujoco simulates a different robot: mass of link2 must be 0.520" in kkt["note"].iloc[0]
    assert "informational" in set(results.summary.loc[results.summary["source"] == "mujoco/as_is", "verdict"])
    assert exit_status(results) == 3
    assert first_divergence(results.audit.to_dict("records")).startswith("static: mass of link2; ")


def test_an_engine_that_cannot_be_audited_is_not_compared(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "installed", lambda engine: False)
    rows = audit(prr, expected_terms(prr, prr_motion), "mujoco")
    assert [row["verdict"] for row in rows] == ["not run"]
    assert "is not installed" in blocking_reasons(rows)[prr.key, "mujoco"]


def test_a_bug_in_an_audit_is_a_row(prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(engines, "matrices", broken)
    rows = audit(prr, expected_terms(prr, prr_motion), "mujoco")
    assert rows[-1]["verdict"] == "not run"
    assert blocking_reasons(rows)[prr.key, "mujoco"].startswith(
        "not audited: internal error: ZeroDivisionError: a bug; traceb"
    )


def causes(rows: pd.DataFrame) -> list[str]:
    """The quantity that the reason for not comparing names."""
    records: list[Any] = rows.to_dict("records")
    return [reason.split(": ")[1].rsplit(" of ", 1)[0] for reason in blocking_reasons(records).values()]


def spoil_mujoco(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    """Give the audit another model than the engine."""
    _audit = module("mujoco", "audit")

    right = _audit.build

    def build(mechanism: Any) -> Any:
        model = right(mechanism)
        edit(model)
        return model

    monkeypatch.setattr(_audit, "build", build)


LOCKED_LOOP = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint name="base"/><geom size="0.1" mass="3"/>
  <body name="one"><joint name="one" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.3"/>
    <body name="two" pos="0.3 0 0"><joint name="two" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.02" mass="0.3"/></body></body>
  <body name="arm"><joint name="arm" axis="1 0 0"/><geom type="capsule" fromto="0 0 0 0 0.5 0" size="0.03" mass="1"/>
  </body></body></worldbody>
  <equality><connect body1="two" body2="base" anchor="0 0 0.4"/></equality>
  <actuator><motor name="arm" joint="arm"/></actuator></mujoco>"""


def test_a_loop_that_its_links_lock_is_seen_beside_what_flies_with_it(tmp_path: Path) -> None:
    """Its closure acceleration is round-off in every engine, and no sign of another robot."""
    (tmp_path / "locked.xml").write_text(LOCKED_LOOP)
    case = cases_of([tmp_path / "locked.xml"])[0]
    rows = table_of(case, prescribe(case), "mujoco")
    biases = rows[rows["quantity"].str.startswith("closure acceleration")]
    assert (biases["wanted"].abs() < 1e-12).all()
    assert set(biases["verdict"]) == {"agree"}
