"""Figures of an outcome besides its efforts."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.motion.assembly import finely_sampled
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.validation.check.efforts.evaluate import START, evaluate
from loopcheck.validation.common.targets import cases_of
from tests.analytic.test_undriven import SPRUNG
from tests.conftest import MODELS, CaseMaker
from tests.outcomes import ran


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
    outcome = ran(evaluate(case, prescribe(case, dt=0.1), source))
    assert (START in outcome.history.settings.values()) == (START in outcome.note) == is_said


@pytest.mark.extended("tests/validation/test_as_is.py::test_a_robot_that_does_not_follow_reads_so")
def test_a_controller_follows_a_motion_beside_a_spring_that_swings_faster_than_its_samples_show(
    tmp_path: Path, model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sprung.xml").write_text(SPRUNG.replace("<option ", '<option timestep="0.0005" integrator="RK4" '))
    case = model_case(tmp_path / "sprung.xml", amplitude=0.01, duration=0.5)
    motion = prescribe(case)
    lags = []
    for finely in (finely_sampled, lambda _, motion: motion):
        monkeypatch.setattr("loopcheck.validation.check.efforts.evaluate.finely_sampled", finely)
        history = ran(evaluate(case, motion, "mujoco/as_is")).history
        assert history.as_is is not None
        np.testing.assert_array_equal(history.t, motion.t)
        assert len(history.effort) == len(motion.t)
        lags.append(float(history.as_is.following.max()))
    assert lags[1] > 5 * lags[0]
