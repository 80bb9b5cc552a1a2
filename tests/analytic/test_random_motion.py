"""A random motion closes the loops, and is no more than the motion it stands beside."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.kinematics.closures import closure_residual
from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.automatic import remaining_conditioning
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.common.targets import case_of


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_motion_goes_no_farther_and_no_faster(seed: int, prr: Case, prr_motion: Motion) -> None:
    mechanism, motion = prr.mechanism, random_motion(prr.mechanism, prr_motion, seed=seed)
    np.testing.assert_allclose(motion.q[0], prr_motion.q[0], atol=1e-9)
    assert np.abs(closure_residual(mechanism, poses(mechanism, motion.q), motion.q)).max() < 1e-9
    given, drives = prr_motion.law(prr_motion.t), motion.law(motion.t)
    slack = 1 + 1e-9
    assert (np.abs(drives.q - drives.q[0]).max(axis=0) <= slack * np.abs(given.q - given.q[0]).max(axis=0)).all()
    assert (np.abs(drives.qdd).max(axis=0) <= slack * np.abs(given.qdd).max(axis=0)).all()
    assert np.abs(drives.qdd).max() > 0.1 * np.abs(given.qdd).max()


@pytest.mark.parametrize("seed", range(4))
def test_a_random_motion_goes_a_good_part_of_the_way(seed: int) -> None:
    """In a small stroke, dry friction decides whether a drive follows."""
    case = representative_case(load("3rrr"))
    motion = prescribe(case)
    made = random_motion(case.mechanism, motion, seed=seed)
    strokes = [np.ptp(one.law(motion.t).q, axis=0) for one in (made, motion)]
    assert (strokes[0] > 0.2 * strokes[1]).all()


def test_the_law_and_its_rates_belong_together(prr: Case, prr_motion: Motion) -> None:
    law, t, h = random_motion(prr.mechanism, prr_motion).law, np.linspace(0.1, 0.9, 7), 1e-5
    for rate, value in ((1, 0), (2, 1)):
        slope = (law(t + h)[value] - law(t - h)[value]) / (2 * h)
        np.testing.assert_allclose(law(t)[rate], slope, atol=1e-6 * np.abs(slope).max())


def test_another_seed_is_another_motion(prr: Case, prr_motion: Motion) -> None:
    one, other = (random_motion(prr.mechanism, prr_motion, seed=seed).q for seed in (0, 1))
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize(
    "least",
    [
        pytest.param(0.25, marks=pytest.mark.evidence("searches a random motion", seconds=1)),
        pytest.param(0.45, marks=pytest.mark.extended("test_a_random_motion_stays_away_from_singularities")),
    ],
)
def test_a_random_motion_stays_away_from_singularities(least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this robot the first random motion falls to 0.27 of the conditioning at its start."""
    monkeypatch.setattr("loopcheck.analytic.motion.random_motion.WELL_AWAY", least)
    case = case_of(load("2t1r").folder / "2t1r.xml")
    motion = prescribe(case)
    made = random_motion(case.mechanism, motion)
    tracer = Tracer(mechanism=case.mechanism, law=motion.law, drives=case.mechanism.drives, where="")
    assert least <= remaining_conditioning(tracer, made) < 0.9


LEG = """<mujoco><compiler angle="radian"/><worldbody><body name="base">BASE<geom size=".05" mass="3"/>
  <body name="crank"><joint name="crank" axis="0 1 0" range="RANGE"/><geom size=".02" pos="0 0 -.2" mass=".3"/>
    <body name="coupler" pos="0 0 -.2"><joint name="coupler" axis="0 1 0"/><geom size=".02" pos=".1 0 0" mass=".3"/>
      <site name="end" pos=".2 0 0"/></body></body>
  <body name="rocker" pos=".2 0 0"><joint name="rocker" axis="0 1 0"/><geom size=".02" pos="0 0 -.2" mass=".3"/>
    <site name="tip" pos="0 0 -.2"/></body></body></worldbody>
  <equality><connect site1="end" site2="tip"/></equality><actuator><motor joint="crank"/></actuator></mujoco>"""


SEED = 10
"""Of a random motion to both sides."""


def swung(folder: Path, base: str, limits: str) -> tuple[float, float]:
    """Lowest and highest position of a crank from 0 in a random motion [rad]."""
    (folder / "leg.xml").write_text(LEG.replace("BASE", base).replace("RANGE", limits))
    case = case_of(folder / "leg.xml")
    crank = next(j for j, joint in enumerate(case.mechanism.joints) if joint.name == "crank")
    q = random_motion(case.mechanism, prescribe(case, dt=0.02), seed=SEED).q[:, case.mechanism.q_slices[crank]]
    assert np.abs(q[0]).max() < 1e-9
    return float(q.min()), float(q.max())


FLOATING = '<freejoint name="base"/>'
BESIDES = [("", "-{} 1.5"), (FLOATING, "-1.5 {}"), (FLOATING, "-{} 1.5")]
KEPT = "test_a_random_motion_keeps_the_joint_limits_that_the_other_motion_keeps"


@pytest.fixture(scope="module")
def base(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def free(base: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[float, float]:
    """Lowest and highest position far from the limits."""
    return swung(tmp_path_factory.mktemp("free"), base, "-1.5 1.5")


@pytest.mark.parametrize(
    ("base", "limits"),
    [
        pytest.param("", "-1.5 {}", marks=pytest.mark.evidence("searches a random motion", seconds=1)),
        *(pytest.param(base, limits, marks=pytest.mark.extended(KEPT)) for base, limits in BESIDES),
    ],
    indirect=["base"],
)
def test_a_random_motion_keeps_the_joint_limits_that_the_other_motion_keeps(
    tmp_path: Path, base: str, free: tuple[float, float], limits: str
) -> None:
    room = min(-free[0], free[1]) / 2
    assert room > 0.01
    least, most = map(float, limits.format(room).split())
    low, high = swung(tmp_path, base, limits.format(room))
    assert least <= low < high - 0.01
    assert high <= most


@pytest.mark.extended(KEPT)
@pytest.mark.parametrize("base", [""], indirect=True)
def test_limits_are_ignored_if_each_random_motion_leaves_them(tmp_path: Path, free: tuple[float, float]) -> None:
    assert swung(tmp_path, "", "0 1.5") == free
    assert free[0] < -0.01
