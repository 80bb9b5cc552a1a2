"""Jets and the laws made of them: rates against finite differences."""

from collections.abc import Callable

import numpy as np
import pytest

from loopcheck.analytic.motion import jets
from loopcheck.analytic.motion.jets import Jet
from loopcheck.analytic.motion.laws import prescription
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, ShapeError
from loopcheck.robots.robot import Robot, load, make_case

FUNCTIONS: dict[str, Callable[[Jet], Jet]] = {
    "sum": lambda t: 2.0 * t + t - 3.0,
    "difference": lambda t: 1.0 - t * t,
    "product": lambda t: jets.sin(t) * jets.cos(2.0 * t),
    "quotient": lambda t: jets.sin(t) / (t + 2.0),
    "sqrt": lambda t: jets.sqrt(t * t + 0.5),
    "arcsin": lambda t: jets.arcsin(0.7 * jets.sin(t)),
    "arccos": lambda t: jets.arccos(0.7 * jets.cos(t)),
    "arctan": lambda t: jets.arctan(t * t - 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rates_of_functions(name: str) -> None:
    t, h = np.linspace(0.1, 1.9, 13), 1e-6
    f = FUNCTIONS[name]
    here, ahead, behind = (f(Jet.of_time(t + s * h)) for s in (0, 1, -1))
    np.testing.assert_allclose(here.d, (ahead.x - behind.x) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(here.dd, (ahead.d - behind.d) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("name", ["6spu", "6x6r", "2t1r", "2pur2rpu"])
def test_rates_of_the_laws(name: str) -> None:
    """Also slightly outside the span, as used by routes that step in time."""
    case = make_case(load(name), variant="default", mode="home", configuration="horizontal")
    wanted = prescription(case)
    start, end = wanted.span
    t, h = np.linspace(start - 0.05, end + 0.05, 41), 1e-6
    here, ahead, behind = (wanted.law(t + s * h) for s in (0, 1, -1))
    np.testing.assert_allclose(here.qd, (ahead.q - behind.q) / (2 * h), atol=2e-8)
    np.testing.assert_allclose(here.qdd, (ahead.qd - behind.qd) / (2 * h), atol=2e-7)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("6spu", {"sines": [[0.0, 0.1, 1.0, 0.0]], "duration": 1.0}, r"sines: shape must be \(6, 4\), got \(1, 4\)"),
        ("6spu", {"sines": [[0.0] * 4] * 6, "duration": 0.0}, "duration must be above 0, got 0.0"),
        (
            "2pur2rpu",
            {"radius": -1.0, "height": 0.1, "pitch": 0.1, "duration": 1.0},
            ("radius must be above 0, got -1.0"),
        ),
        ("2pur2rpu", {"radius": 1.0}, "missing 3 required keyword-only arguments"),
    ],
)
def test_bad_parameters_are_refused(name: str, parameters: dict[str, object], message: str) -> None:
    robot = load(name)
    changed = Robot(**{**robot.model_dump(), "motion": {"law": robot.motion.law, "parameters": parameters}})
    with pytest.raises((MechanismError, ShapeError), match=message):
        prescription(make_case(changed, variant="default", mode="home", configuration="horizontal"))


def test_a_law_for_another_robot_is_refused() -> None:
    robot = load("3prr")
    changed = Robot(**{**robot.model_dump(), "motion": "staicu2006"})
    with pytest.raises(
        MechanismError, match="actuated joints must be A, B, C for the motion law 'staicu2006', got q1, q2, q3"
    ):
        prescription(make_case(changed, variant="default", mode="plus", configuration="horizontal"))


def test_a_jet_is_broadcast_over_constants() -> None:
    t: Array = np.array([0.5, 1.0])
    np.testing.assert_array_equal((np.pi * Jet.of_time(t)).d, [np.pi, np.pi])
