"""Figures of an outcome besides its efforts."""

import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.validation.comparison.evaluate import START, evaluate
from loopcheck.validation.comparison.targets import cases_of
from tests.conftest import MODELS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "source", "is_said"),
    [
        ("spinning_rod", "mujoco/as_is", True),
        ("spinning_rod", "mujoco/kkt", False),
        ("four_bar", "mujoco/as_is", False),
    ],
)
def test_where_nothing_drives_a_simulation_says_whose_state_it_starts_from(
    model: str, source: str, is_said: bool
) -> None:
    case = cases_of([MODELS / f"{model}.xml"])[0]
    outcome = evaluate(case, prescribe(case, dt=0.1), source)
    assert outcome.history is not None
    assert (START in outcome.history.settings.values()) == (START in outcome.note) == is_said
