"""Which number is the effort: wrong readings are distinguished from it, and from each other."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.residual import Residual, residual_efforts
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.as_is import log_of
from loopcheck.engines.mujoco import as_is
from loopcheck.engines.mujoco.stepper import MujocoStepper
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.log import Held, Log
from loopcheck.robots.robot import Case
from loopcheck.validation.common.limits import DISTINCT_READING
from loopcheck.validation.common.readings import (
    EFFORT,
    GEARED,
    LATE,
    OTHER_SIDE,
    REACTION,
    TWICE,
    differences,
    reading_of,
)
from loopcheck.validation.judge.causes import with_causes
from loopcheck.validation.judge.logs import LogOptions, judge_log, verdicts
from tests.conftest import MODELS, CaseMaker

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def case(model_case: CaseMaker) -> Case:
    """A four-bar with a geared motor on a joint with rotor and damper."""
    return model_case(MODELS / "four_bar.xml", configuration="vertical", amplitude=0.3)


@pytest.fixture(scope="module")
def log(case: Case) -> Log:
    """Settings of the engine with loops so hard and steps so short that its own errors are negligible."""

    def stiffened(spec: Any) -> None:
        spec.option.timestep = 1e-3
        for equality in spec.equalities:
            equality.solref[:], equality.solimp[:] = (2e-3, 1), (0.9999, 0.9999, 0.001, 0.5, 2)

    model = compile_model(case.mechanism.model, stiffened)
    model.opt.gravity[:], model.opt.integrator = case.mechanism.gravity, 1  # Runge-Kutta
    plan = as_is.plan(case.mechanism, prescribe(case))
    return log_of("mujoco/as_is", case, as_is.simulate(plan, MujocoStepper(model), 50.0))


def spoilt(log: Log, fault: str, gear: float) -> Log:
    """The log with another number in place of its effort; the reaction is the engine's own."""
    effort = {
        EFFORT: log.effort,
        TWICE: log.effort / 2,
        LATE: np.vstack([log.effort[:1], log.effort[:-1]]),
        GEARED: gear * log.effort,
        OTHER_SIDE: -log.effort,
        REACTION: log.readings["reaction"],
    }[fault]
    return replace(log, effort=effort, readings={})


def residual(case: Case, log: Log) -> Residual:
    hold = log.effort_time
    assert isinstance(hold, Held)
    return residual_efforts(closed_log(case.mechanism, log, log.q[0]), hold, noiseless=True)


FAULTS = (EFFORT, TWICE, LATE, GEARED, OTHER_SIDE, REACTION)


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_reading_is_told_wherever_it_matters(fault: str, every: int, case: Case, log: Log) -> None:
    """For effects of more than three floors; below, the effort is among the possible readings."""
    (actuator,) = case.mechanism.actuators
    whole = spoilt(log, fault, actuator.gear)
    few = replace(whole, t=whole.t[::every], q=whole.q[::every], qd=_every(whole, every), effort=whole.effort[::every])
    found = residual(case, few)
    reading = reading_of(case.mechanism, found, 0)
    truth = residual(case, replace(few, effort=log.effort[::every]))
    effect = float(np.sqrt(np.mean((found.effort - truth.effort) ** 2)))
    if effect > DISTINCT_READING * found.floor.rms[0]:
        assert reading.names == (fault,)
    else:
        assert reading.is_effort
    assert (every, fault) in ((10, LATE), (10, EFFORT), (1, EFFORT)) or effect > DISTINCT_READING * found.floor.rms[0]


@pytest.mark.extended("test_a_reading_is_told_wherever_it_matters")
def test_judge_names_the_reading(case: Case, log: Log) -> None:
    (actuator,) = case.mechanism.actuators
    judged = judge_log(case, spoilt(log, REACTION, actuator.gear))
    ((verdict, note),) = verdicts(with_causes(judged, case, LogOptions(accuracy=1e-2)), 1e-2)
    assert verdict == "disagree"
    assert "reaction of its joint" in note
    ((verdict, note),) = verdicts(judge_log(case, spoilt(log, EFFORT, actuator.gear)), 1e-2)
    assert verdict == "agree"
    assert "resembles" not in note


def test_the_readings_of_an_engine_are_held_against_what_acted(case: Case, log: Log) -> None:
    off = differences(log.effort, log.readings, np.abs(log.effort).max(axis=0))
    assert off["joint"] > 0.5  # behind a gear of three
    assert off["reaction"] > 0.5
    assert off["commanded"] < 1e-12


def _every(log: Log, every: int) -> Any:
    assert log.qd is not None
    return log.qd[::every]
