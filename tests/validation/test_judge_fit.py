"""`judge --fit`: fitted masses and friction stay physical, and a parameter at its bound never agrees.

Logs of a geared pendulum in closed form: m l² q̈ + m g l cos q + F = gear times effort.
"""

import numpy as np
import pytest

from loopcheck.analytic.logs.parameters import Estimate
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.judge.logs import judge_log, verdicts

ARM, TOOL, LENGTH, G, GEAR = 0.4, 0.7, 0.5, 9.81, 3.0
T = np.linspace(0, 2, 201)
Q, QD, QDD = 0.4 * np.sin(7 * T), 2.8 * np.cos(7 * T), -19.6 * np.sin(7 * T)
COULOMB, VISCOUS = 0.3, 0.05
SENSOR = 0.01
MODEL = f"""<mujoco><option gravity="0 0 -{G}"/><worldbody><body name="arm">
    <joint name="hip" axis="0 -1 0"/><inertial pos="{LENGTH} 0 0" mass="{ARM}" diaginertia="1e-9 1e-9 1e-9"/>
    <body name="tool"><inertial pos="{LENGTH} 0 0" mass="{TOOL}" diaginertia="1e-9 1e-9 1e-9"/></body></body>
  </worldbody>
  <actuator><motor name="hip" joint="hip" gear="{GEAR}"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    path = tmp_path_factory.mktemp("pendulum") / "pendulum.xml"
    path.write_text(MODEL, encoding="utf-8")
    return case_of(path)


def effort(mass: float = ARM + TOOL, friction: Array | float = 0.0) -> Array:
    """Effort of the motor of a pendulum [N m], friction at its joint [N m]."""
    return (mass * LENGTH * (LENGTH * QDD + G * np.cos(Q)) + friction) / GEAR


def judged(case: Case, efforts: Array, *fitted: str) -> tuple[str, str, tuple[Estimate, ...]]:
    """Verdict at 2 %, its note, and the estimates."""
    log = Log(
        name="run",
        t=T,
        joints=("hip",),
        q=Q[:, None],
        qd=QD[:, None],
        actuators=("hip",),
        effort=efforts[:, None],
        effort_time=Instantaneous(),
    )
    found = judge_log(case, log, fitted=fitted)
    return *verdicts(found, 0.02)[0], found.fits[0].estimates


def test_a_negative_mass_does_not_explain_efforts_of_zero(case: Case) -> None:
    """Without bounds the arm of 0.4 kg weighs -0.7 kg, and the sum of both bodies is zero."""
    verdict, _, (arm,) = judged(case, np.zeros_like(T), "mass:arm")
    assert arm.value == -ARM
    assert arm.unbounded == pytest.approx(-ARM - TOOL, rel=1e-6)
    assert verdict == "disagree"


def test_masses_of_zero_in_total_never_agree(case: Case) -> None:
    verdict, _, estimates = judged(case, np.zeros_like(T), "mass:arm", "mass:tool")
    assert [estimate.value for estimate in estimates] == pytest.approx([-ARM, -TOOL], rel=1e-6)
    assert verdict != "agree"
    verdict, note, _ = judged(case, effort(TOOL - 1e-4), "mass:arm")  # 0.1 g less than without the arm
    assert verdict == "not comparable"
    assert note.startswith("a fitted parameter is at its physical bound")
    assert "mass of arm -0.4 ±" in note
    assert "at its bound: without bounds -0.4001 kg" in note


def test_friction_that_drives_does_not_agree(case: Case) -> None:
    """Coulomb friction of -1 N m; small enough for the accuracy, it is refused nevertheless."""
    for friction, expected in ((-1.0, "disagree"), (-0.05, "not comparable")):
        verdict, _, (coulomb, _) = judged(case, effort(friction=friction * np.sign(QD)), "friction")
        assert (coulomb.value, coulomb.is_unphysical, verdict) == (0, True, expected)
        assert coulomb.unbounded == pytest.approx(friction, rel=0.1)


def test_a_fitted_mass_and_the_friction_behind_a_gear_are_stated(case: Case) -> None:
    """Friction is that of the joint: the motor overcomes a third of it, through a gear of 3."""
    friction = COULOMB * np.sign(QD) + VISCOUS * QD
    verdict, note, estimates = judged(case, effort(ARM + TOOL + 0.1, friction), "friction", "mass:tool")
    assert [e.value for e in estimates] == pytest.approx([COULOMB, VISCOUS, 0.1], rel=0.02)
    assert verdict == "agree"
    assert [e.unit for e in estimates] == ["N m", "N m s/rad", "kg"]
    assert "fitted Coulomb friction of hip +0.3" in note
    assert "fitted mass of tool +0.1 ±" in note
    assert "kg (+0.14 of the mass in the model)" in note


def test_right_logs_without_friction_agree_with_it_at_zero(case: Case) -> None:
    """Noise puts an estimate below 0 in half of all logs."""
    at_bound = []
    for seed in range(8):
        noise = SENSOR * np.random.default_rng(seed).normal(size=T.shape)
        verdict, note, estimates = judged(case, effort() + noise, "friction")
        assert verdict == "agree", note
        at_bound.append(any(estimate.value == 0 for estimate in estimates))
    assert sum(at_bound) >= 4
    assert judged(case, effort(), "friction")[0] == "agree"
