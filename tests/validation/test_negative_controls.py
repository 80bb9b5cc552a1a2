"""What cannot be compared must not agree; wrong engines are in the table of faults."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.errors import EngineError, ShapeError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Ran, Reference
from loopcheck.validation.common import sources
from loopcheck.validation.execution.errors import internal_errors
from tests.outcomes import ran


def test_not_a_number_is_no_effort(prr: Case, prr_motion: Motion) -> None:
    with pytest.raises(ShapeError, match="numbers must be finite, got nan at index"):
        _history(prr_motion, effort=np.full((len(prr_motion.t), 3), np.nan))


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"actuators": ("q1", "q2", "q7")}, "not comparable"),
        ({"t": np.linspace(0, 1.01, 101)}, "not comparable"),
        ({"closure_drift": Deviation(length=1e-4)}, "disagree"),
        ({"tracking_error": Deviation(length=1e-4)}, "disagree"),
        ({"closure_drift": None}, "disagree"),
        ({}, "agree"),
    ],
    ids=["unmatched actuator", "other time grid", "open loops", "off the motion", "drift not reported", "right"],
)
def test_what_cannot_be_compared_never_agrees(
    change: dict[str, object], verdict: str, prr: Case, prr_motion: Motion
) -> None:
    reference = ran(evaluate(prr, prr_motion, sources.REFERENCE))
    right = replace(
        reference.history,
        source="mujoco/forward",
        closure_drift=Deviation(1e-9, 1e-9),
        tracking_error=Deviation(1e-9, 1e-9),
    )
    outcome = Ran(case=prr, source="mujoco/forward", history=replace(right, **change))  # type: ignore[arg-type]
    rows = _rows_of(summarize([reference, outcome]), "mujoco/forward")
    assert verdict in set(rows["verdict"])
    assert verdict == "agree" or "agree" not in set(rows.loc[rows["actuator"] == "q3", "verdict"])


def test_a_source_without_a_tolerance_is_not_judged(prr: Case, prr_motion: Motion) -> None:
    reference = ran(evaluate(prr, prr_motion, sources.REFERENCE))
    outcome = Ran(case=prr, source="other/kkt", history=reference.history)
    assert set(_rows_of(summarize([reference, outcome]), "other/kkt")["verdict"]) == {"not comparable"}


def test_a_reference_out_of_balance_is_not_trusted(prr: Case, prr_motion: Motion) -> None:
    reference = evaluate(prr, prr_motion, sources.REFERENCE)
    assert isinstance(reference, Reference)
    wrong = replace(reference, power_imbalance=1e-3)
    outcome = Ran(case=prr, source="mujoco/kkt", history=reference.history)
    summary = summarize([wrong, outcome])
    assert set(_rows_of(summary, sources.REFERENCE)["verdict"]) == {"not comparable"}
    assert internal_errors(summary["note"])
    assert set(_rows_of(summary, "mujoco/kkt")["verdict"]) == {"not comparable"}


@pytest.mark.parametrize("error", [EngineError("it exploded"), ZeroDivisionError("a bug")])
def test_a_source_that_fails_is_a_result(
    error: Exception, prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
            raise error

    reference = evaluate(prr, prr_motion, sources.REFERENCE)
    monkeypatch.setattr(sources, "load", lambda name: Failing())
    summary = summarize([reference, evaluate(prr, prr_motion, "mujoco/kkt")])
    rows = _rows_of(summary, "mujoco/kkt")
    assert set(rows["verdict"]) == {"not run"}
    assert str(error) in rows["note"].iloc[0]


def _rows_of(summary: pd.DataFrame, source: str) -> pd.DataFrame:
    return summary[summary["source"] == source]


def _history(motion: Motion, *, effort: np.ndarray) -> EffortHistory:
    return EffortHistory(source="mujoco/kkt", actuators=("q1", "q2", "q3"), t=motion.t, effort=effort)
