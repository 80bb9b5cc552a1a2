"""Logs with rates that contradict their positions, on sines with exact derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import contradiction, prescribe
from loopcheck.engines.mujoco.routes.forward import MujocoForward
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Failed
from tests.conftest import MODELS, CaseMaker

PERIOD = 0.4
"""Period of the sine [s]."""


@pytest.fixture(scope="module")
def four_bar() -> Mechanism:
    return read_mechanism(ModelFile(path=MODELS / "four_bar.xml"))


def sine(samples: int) -> tuple[np.ndarray, Drive]:
    """A sine over three periods, with so many samples in each."""
    t = np.linspace(0, 3 * PERIOD, 3 * samples + 1)
    w = 2 * np.pi / PERIOD
    rates = (0.2 * np.sin(w * t), 0.2 * w * np.cos(w * t), -0.2 * w**2 * np.sin(w * t))
    return t, Drive(*(rate[:, None] for rate in rates))


@pytest.mark.parametrize("samples", [8, 40])
def test_a_sine_does_not_contradict_itself_however_coarse(four_bar: Mechanism, samples: int) -> None:
    assert contradiction(four_bar, *sine(samples), "log") == ""


def test_rates_that_lag_behind_are_named_with_the_place(four_bar: Mechanism) -> None:
    t, drive = sine(40)
    late = drive._replace(qdd=np.roll(drive.qdd, 1, axis=0))
    assert "'crank.qdd' is not the derivative of 'crank.qd': difference" in contradiction(four_bar, t, late, "log")
    assert "'crank.q'" not in contradiction(four_bar, t, late, "log")
    noisy = drive._replace(qd=drive.qd + 0.01 * np.random.default_rng(0).standard_normal(drive.qd.shape))
    assert "'crank.qd' is not the derivative of 'crank.q'" in contradiction(four_bar, t, noisy, "log")


@pytest.mark.parametrize(
    ("factor", "what"), [(np.rad2deg(1), (r"57.3 times it. Angles must be in radians")), (-1.0, "-1 times it")]
)
def test_a_rate_in_another_unit_or_sign_is_refused(four_bar: Mechanism, factor: float, what: str) -> None:
    t, drive = sine(40)
    with pytest.raises(
        MechanismError, match=rf"^log: column 'crank.qd': must be the derivative of 'crank.q', got {what}"
    ):
        contradiction(four_bar, t, drive._replace(qd=factor * drive.qd), "log")


def test_a_simulation_is_not_judged_by_a_log_that_contradicts_itself(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "four_bar.xml", amplitude=0.1)
    outcome = evaluate(case, replace(prescribe(case), contradiction="'crank.qd' lags"), MujocoForward.name)
    assert isinstance(outcome, Failed)
    assert outcome.verdict == "not comparable"
    assert outcome.note.endswith("'crank.qd' lags")
