"""Redundant closures that fit only to some digits leave the efforts open by as much, and so do verdicts."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from loopcheck.analytic.kinematics.redundancy import contradiction
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.compare import summarize
from loopcheck.validation.comparison.evaluate import outcome_of
from tests.conftest import CaseMaker
from tests.validation.test_audit import table_of

#    a bar on three cranks, of which two are enough, the third longer than the others by a part of a hair
PARALLELS = """
<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0"/><default><joint axis="0 0 1"/></default>
  <worldbody>
    <body name="first"><joint name="first"/><inertial pos=".1 .15 0" mass="1" diaginertia=".01 .01 .01"/>
      <body name="bar" pos="0 .3 0"><joint name="bar"/><inertial pos=".45 0 0" mass="2" diaginertia=".1 .1 .1"/>
        <site name="a1" pos=".4 0 0"/><site name="b1" pos=".9 0 0"/></body></body>
    <body name="second" pos=".4 0 0"><joint name="second"/>
      <inertial pos="0 .15 0" mass="1" diaginertia=".01 .01 .01"/><site name="a2" pos="0 .3 0"/></body>
    <body name="third" pos=".9 0 0"><joint name="third"/>
      <inertial pos="0 .15 0" mass="1" diaginertia=".01 .01 .01"/><site name="b2" pos="0 {length!r} 0"/></body>
  </worldbody>
  <equality><connect name="a" site1="a1" site2="a2"/><connect name="b" site1="b1" site2="b2"/></equality>
  <actuator><motor name="first" joint="first"/></actuator>
</mujoco>"""
ROUTES = ("analytic/noc", "analytic/lagrange", "mujoco/kkt", "mujoco/forward")


def moved(folder: Path, longer: float, model_case: CaseMaker) -> tuple[Case, Motion]:
    path = folder / "parallels.xml"
    path.write_text(PARALLELS.format(length=0.3 + longer), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.2, frequency=2.0)
    return case, prescribe(case)


def verdicts(case: Case, motion: Motion, simulated: Mechanism | None = None) -> dict[str, str]:
    """By source; engines simulate the mechanism of the case, or another."""
    other = case if simulated is None else replace(case, mechanism=simulated)
    outcomes = []
    for source in ROUTES:
        compute = partial(sources.load(source).compute_efforts, case if source in sources.ANALYTIC else other, motion)
        outcomes.append(outcome_of(case, motion, source, compute))
    rows = summarize(outcomes)
    return dict(zip(rows["source"], rows["verdict"], strict=True))


def test_what_closures_leave_open_is_no_disagreement(tmp_path: Path, model_case: CaseMaker) -> None:
    """Exact routes solve contradictions by least squares, each by its own weights; simulations are less sensitive."""
    case, motion = moved(tmp_path, 1e-7, model_case)
    assert 1e-9 < contradiction(case.mechanism, motion.q) < 1e-7
    assert verdicts(case, motion) == {
        "analytic/noc": "reference",
        "analytic/lagrange": "not comparable",
        "mujoco/kkt": "not comparable",
        "mujoco/forward": "agree",
    }


@pytest.mark.parametrize("longer", [0.0, 1e-7])
def test_what_is_more_than_that_is_one(longer: float, tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(tmp_path, longer, model_case)
    heavier = case.mechanism.model.with_overrides({"body": {"bar": {"mass": 2.00001}}})
    found = verdicts(case, motion, replace(case.mechanism, model=heavier))
    assert {found["mujoco/kkt"], found["mujoco/forward"]} == {"disagree"}


def test_closures_that_fit_leave_nothing_open(tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(tmp_path, 0.0, model_case)
    assert contradiction(case.mechanism, motion.q) < 1e-14
    assert set(verdicts(case, motion).values()) == {"reference", "agree"}


@pytest.mark.parametrize("engine", ["mujoco", "pinocchio", "pybullet"])
def test_an_engine_whose_closures_contradict_each_other_alike_is_the_same_robot(
    engine: str, tmp_path: Path, model_case: CaseMaker
) -> None:
    """J̇ q̇ of closures that no acceleration can meet all is held against the model as far as some can."""
    rows = table_of(*moved(tmp_path, 1e-6, model_case), engine)
    assert set(rows["verdict"]) == {"agree"}
