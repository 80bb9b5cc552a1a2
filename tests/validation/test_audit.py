"""The audit passes right engines, and excludes wrong engines from the comparison; its faults are in the table."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.check.audit.audit import audit, blocking_reasons, expected_terms
from loopcheck.validation.check.collect import collect
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.check.sections.audit import first_divergence
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import registered
from tests.conftest import MODELS, ZOO, CaseMaker
from tests.engines.mechanisms import OPEN_FOUR_BAR
from tests.engines.refusals import REFUSALS
from tests.faults.edits import EDITS
from tests.validation.conftest import exit_status

ENGINES = tuple(dict.fromkeys(name.split("/")[0] for name in engines.names() if not engines.on_request(name)))


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


def test_a_rotor_behind_a_gear_is_rebuilt_in_pybullet(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "four_bar.xml", amplitude=0.1)
    rows = table_of(case, prescribe(case), "pybullet")
    assert rows.loc[rows["quantity"] == "armature", "note"].item().startswith("rebuilt: ")


@pytest.mark.extended("tests/faults/test_faults.py::test_nothing_is_found_without_a_fault")
def test_a_spatial_robot_with_a_wrench_passes() -> None:
    case = make_case(load("6spu"), variant="default", mode="home", configuration="vertical")
    motion = prescribe(case, dt=0.1)
    for engine in filter(engines.installed, ENGINES):
        assert wrong(pd.DataFrame(audit(case, expected_terms(case, motion), engine))) == []


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


def test_what_is_lost_is_not_compared(prr: Case, prr_motion: Motion) -> None:
    outcomes = [evaluate(prr, prr_motion, name) for name in ("analytic/noc", "mujoco/kkt", "mujoco/as_is")]
    request = Request(dt=None, tolerances=registered())

    def judged() -> Results:
        rows = audit(prr, expected_terms(prr, prr_motion), "mujoco")
        return collect([prr], RunOutput({prr.key: prr_motion}, outcomes, rows, resolutions={}), request)

    right = judged()
    assert exit_status(right) == 0
    assert first_divergence(right.audit.to_dict("records")).startswith("as_is: trajectory, effort of ")
    with EDITS["mujoco"]["mass"]():
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
