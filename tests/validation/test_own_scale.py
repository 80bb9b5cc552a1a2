"""A verdict belongs to its own actuator: a small one beside a large one, a robot at rest, weights that balance."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.powers import effort_scale, tree_inertia
from loopcheck.analytic.kinematics.redundancy import actuator_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Modelled, Outcome, Ran, Reference
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.errors import internal_errors
from tests.conftest import MODELS
from tests.cpu_time import extended_but

JUDGED = [name for name, limit in registered().items() if limit.relative_error and name != "analytic/paper"]
QUICK = [name for name in JUDGED if not name.startswith("mjx")]
"""Those that compile nothing."""
FINGER = 1


@cache
def case_of(model: str) -> tuple[Case, Motion]:
    """A model of the tests upright, with the automatic motion."""
    case = cases_of([MODELS / f"{model}.xml"])[-1]
    return case, prescribe(case)


@cache
def reference(model: str) -> Reference:
    """Result of the reference for a model."""
    outcome = evaluate(*case_of(model), sources.REFERENCE)
    assert isinstance(outcome, Reference)
    return outcome


@cache
def at_rest(model: str) -> tuple[Motion, Outcome]:
    """The start of a model's motion, held, and the result of the reference there."""
    case, motion = case_of(model)
    pose = still(motion)
    return pose, evaluate(case, pose, sources.REFERENCE)


def rows_of(source: str, effort: Array, model: str) -> pd.DataFrame:
    """The verdicts on some efforts, as results of a source that follows the motion."""
    expected = reference(model)
    history = replace(
        expected.history, source=source, effort=effort, closure_drift=Deviation(), tracking_error=Deviation()
    )
    outcome = Modelled(case=expected.case, source=source, history=history, power_imbalance=0.0)
    summary = summarize([expected, outcome])
    return summary[summary["source"] == source]


@pytest.mark.parametrize("source", JUDGED)
@pytest.mark.parametrize("factor", [-1.0, 1.01], ids=["wrong sign", "1 % wrong"])
def test_a_wrong_finger_beside_a_lift_disagrees(source: str, factor: float) -> None:
    expected = reference("lift_and_finger").history
    effort = expected.effort.copy()
    effort[:, FINGER] *= factor
    assert list(rows_of(source, effort, "lift_and_finger")["verdict"]) == ["agree", "disagree"]


@pytest.mark.parametrize(
    "source", extended_but(QUICK, JUDGED, "test_every_route_gets_the_finger_beside_the_lift_right")
)
def test_every_route_gets_the_finger_beside_the_lift_right(source: str) -> None:
    engine = source.split("/")[0]
    if engine != "analytic" and not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    case, motion = case_of("lift_and_finger")
    summary = summarize([reference("lift_and_finger"), evaluate(case, motion, source)])
    rows = summary[summary["source"] == source]
    assert list(rows["verdict"]) == ["agree", "agree"], f"\n{rows[['actuator', 'relative_error', 'note']]}"


def test_a_peak_is_that_of_its_actuator() -> None:
    expected = reference("lift_and_finger").history
    rows = rows_of("mujoco/kkt", expected.effort, "lift_and_finger").set_index("actuator")
    assert rows.loc["lift", "unit"] == "N"
    assert rows.loc["finger", "unit"] == "N m"
    np.testing.assert_allclose(rows["peak"], np.abs(expected.effort).max(0), rtol=1e-15)
    np.testing.assert_array_equal(rows["case_peak"], rows["peak"])  # each is alone in its unit
    assert (rows["scale"] >= rows["peak"] * (1 - 1e-12)).all()
    assert (rows["scale"] < 2.5 * rows["peak"]).all()


@pytest.mark.parametrize(
    "model",
    extended_but(
        ["four_bar", "lift_and_finger", "counterbalanced_beam", "tendon_hand"],
        ["four_bar", "lift_and_finger", "counterbalanced_beam", "tendon_hand", "six_legs"],
        "test_terms_sum_to_the_effort_and_a_wrong_one_is_noticed",
    ),
)
def test_terms_sum_to_the_effort_and_a_wrong_one_is_noticed(model: str) -> None:
    """The signed terms of the scale are a second derivation of each effort, however small beside the others."""
    outcome = reference(model)
    assert outcome.term_sum is not None
    assert outcome.term_sum < 1e-11
    small = int(np.argmin(np.abs(outcome.history.effort).max(0)))
    effort = outcome.history.effort.copy()
    effort[:, small] *= 1 + 1e-8
    case, motion = case_of(model)
    terms = effort_scale(case.mechanism, motion)
    assert (np.abs(terms.effort - effort).max(0) / terms.scale).max() > 1e-11


def test_a_reference_that_is_not_the_sum_of_its_terms_is_in_doubt() -> None:
    expected = reference("lift_and_finger")
    summary = summarize(
        [replace(expected, term_sum=1e-10), Ran(case=expected.case, source="mujoco/kkt", history=expected.history)]
    )
    verdicts = summary.groupby("source")["verdict"].first()
    assert verdicts[sources.REFERENCE] == "not comparable"
    assert internal_errors(summary["note"])
    assert verdicts["mujoco/kkt"] == "not comparable"


def still(motion: Motion) -> Motion:
    """The start of a motion, held: all rates are zero."""
    q = np.repeat(motion.q[:1], len(motion.t), axis=0)
    return replace(motion, q=q, qd=np.zeros_like(motion.qd), qdd=np.zeros_like(motion.qdd))


def slow(motion: Motion, factor: float) -> Motion:
    """The poses of a motion gone through more slowly."""
    return replace(motion, t=motion.t / factor, qd=factor * motion.qd, qdd=factor**2 * motion.qdd)


@pytest.mark.parametrize("model", ["four_bar", "lift_and_finger", "counterbalanced_beam"])
@pytest.mark.parametrize(
    "source",
    extended_but(
        QUICK,
        [name for name in JUDGED if name.endswith(("kkt", "lagrange"))],
        "test_a_held_pose_has_efforts_and_no_balance",
    ),
)
def test_a_held_pose_has_efforts_and_no_balance(model: str, source: str) -> None:
    engine = source.split("/")[0]
    if engine != "analytic" and not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    pose, expected = at_rest(model)
    summary = summarize([expected, evaluate(expected.case, pose, source)])
    assert set(summary["verdict"]) == {"reference", "agree"}, f"\n{summary[['source', 'relative_error', 'note']]}"
    notes = summary.loc[summary["source"] == sources.REFERENCE, "note"]
    assert notes.str.contains("at rest: no power balance").all()


@pytest.mark.parametrize("factor", [1.0, 1e-2, 1e-4, 1e-6])
def test_a_beam_that_balances_and_creeps_keeps_its_reference(factor: float) -> None:
    """The motor's power is a millionth of the power exchanged by the two weights."""
    case, motion = case_of("counterbalanced_beam")
    summary = summarize([evaluate(case, slow(motion, factor), name) for name in (sources.REFERENCE, "mujoco/kkt")])
    assert set(summary["verdict"]) == {"reference", "agree"}, f"\n{summary[['source', 'relative_error', 'note']]}"


def test_motions_of_actuators_are_not_mixed(tmp_path: Path) -> None:
    """Round-off of an arm with 1,000 N m was 1e-11 of the effort of its wrist, in a public Cassie."""
    path = tmp_path / "arm.xml"
    link = '<body pos=".3 0 0"><joint name="j{0}" axis="1 {0} 2"/><geom size=".1"/>'
    chain = "".join(link.format(k) for k in range(5)) + "</body>" * 5
    motors = "".join(f'<motor joint="j{k}" gear="{10**k}"/>' for k in range(5))
    path.write_text(
        f"""<mujoco><worldbody><body><freejoint/><geom size=".2"/>{chain}</body></worldbody>
        <actuator>{motors}</actuator></mujoco>""",
        encoding="utf-8",
    )
    mechanism, random = read_mechanism(ModelFile(path=path)), np.random.default_rng(0)
    state = State.at_rest(mechanism, np.tile(mechanism.rest_position, (50, 1)))
    Phi = random.normal(size=(50, 4, mechanism.nv))
    D = actuator_motions(mechanism, Phi, partial(tree_inertia, state))
    np.testing.assert_allclose(Phi @ D, 0, atol=1e-13)
    rates = mechanism.selection @ D
    np.testing.assert_allclose(np.diagonal(rates, axis1=1, axis2=2), 1, rtol=1e-14)
    others = ~np.eye(mechanism.na, dtype=bool)
    assert np.abs(rates[:, others]).max() < 1e-20
