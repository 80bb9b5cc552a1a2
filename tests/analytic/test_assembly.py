"""The loops stay closed, rates are rates, and motions that cannot be are refused with the time."""

from functools import partial
from typing import cast

import numpy as np
import pytest

from loopcheck.analytic.kinematics import continuation
from loopcheck.analytic.kinematics.closures import closure_residual
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import LoopClosureError, SingularityError
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.conftest import MODELS, CaseMaker


def test_loops_stay_closed(zoo_case: Case, zoo_motion: Motion) -> None:
    phi = closure_residual(zoo_case.mechanism, poses(zoo_case.mechanism, zoo_motion.q), zoo_motion.q)
    assert np.abs(phi).max(initial=0) < 1e-13


def test_driven_coordinates_follow_the_law(zoo_case: Case, zoo_motion: Motion) -> None:
    mechanism, wanted = zoo_case.mechanism, zoo_motion.law(zoo_motion.t)
    W_T = mechanism.rates_of(mechanism.drives).T
    np.testing.assert_allclose(mechanism.values_of(mechanism.drives, zoo_motion.q), wanted.q, atol=1e-14)
    np.testing.assert_allclose(zoo_motion.qd @ W_T, wanted.qd, atol=1e-13)
    np.testing.assert_allclose(zoo_motion.qdd @ W_T, wanted.qdd, atol=1e-12)


@pytest.mark.parametrize("mode", ["plus", "minus"])
def test_rates_of_the_3prr_are_derivatives(mode: str) -> None:
    motion = prescribe(make_case(load("3prr"), variant="default", mode=mode, configuration="vertical"))
    h = 1e-5
    for time, qd, qdd in zip(motion.t[10::30], motion.qd[10::30], motion.qdd[10::30], strict=True):
        around = motion.assemble(time + np.array([-h, 0, h]))
        np.testing.assert_allclose((around.q[2] - around.q[0]) / (2 * h), qd, atol=1e-8)
        np.testing.assert_allclose((around.qd[2] - around.qd[0]) / (2 * h), qdd, atol=1e-7)


@pytest.mark.parametrize(
    ("robot", "is_coarse"),
    [("2pur2rpu", False), ("bricard", False), ("bricard", True)],
    ids=["redundant", "spatial", "coarse"],
)
def test_poses_at_once_are_those_followed_one_by_one(
    robot: str, is_coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a step beyond the ends; where known poses are far apart, each pose is followed from the pose before."""
    motion = prescribe(make_case(load(robot), variant="default", mode="home", configuration="vertical"), dt=0.05)
    t = np.linspace(motion.t[0] - 0.01, motion.t[-1] + 0.01, 31)
    assemble = cast("partial[Motion]", motion.assemble)
    tracer, known, *_ = assemble.args
    ends = [known[0], known[-1]] if is_coarse else known
    at_once = continuation._poses_between(tracer, ends, t)
    assert (at_once is None) == is_coarse
    found = continuation.follow(tracer, ends, t)
    monkeypatch.setattr(continuation, "_poses_between", lambda *_: None)
    wanted = continuation.follow(tracer, known, t)
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=0, atol=1e-11)


def test_other_times_stay_in_the_mode(prr_motion: Motion) -> None:
    """At a single time far from the start, the assembly follows the motion there instead of jumping."""
    for k in (30, 60, 100):
        np.testing.assert_allclose(prr_motion.assemble(prr_motion.t[[k]] + 1e-9).q[0], prr_motion.q[k], atol=1e-7)


def test_the_3prr_starts_where_the_paper_says(prr: Case, prr_motion: Motion) -> None:
    P = prr.mechanism.site("P")
    at = poses(prr.mechanism, prr_motion.q[:1])
    start = at.p[0, P.body] + at.R[0, P.body] @ P.position
    np.testing.assert_allclose(start[:2], [0.5, np.sqrt(3) / 6], atol=1e-14)
    alpha = np.degrees(prr_motion.q[0, 1] + prr_motion.q[0, 2])
    assert alpha == pytest.approx(50.5637, abs=5e-5)


def test_a_start_that_cannot_close_is_refused(prr: Case) -> None:
    with pytest.raises(LoopClosureError, match=r"cannot be closed at the start, t = 0 s.*'q[89]'") as caught:
        assemble(prr.mechanism, _sliders(0.1595, 5.0, np.zeros(3)), prr.guess, np.linspace(0, 1, 11))
    assert caught.value.residual > caught.value.tolerance
    assert caught.value.time == 0


def test_leaving_the_workspace_is_refused_with_the_time(prr: Case) -> None:
    """The sliders run back together; the outstretched pose is 4.7 mm away."""
    with pytest.raises(SingularityError, match=r"leaves the workspace or meets a singularity at t = 0\.4") as caught:
        assemble(prr.mechanism, _sliders(0.1595, 0.1595, -0.01 * np.ones(3)), prr.guess, np.linspace(0, 1, 101))
    assert caught.value.time == pytest.approx(0.47, abs=0.02)
    assert caught.value.singular_value < 0.01


def test_crossing_a_singularity_between_samples_is_refused(model_case: CaseMaker) -> None:
    """A parallelogram passes its flat pose between samples, with a possible change of branch."""
    case = model_case(MODELS / "singular" / "parallelogram.xml", amplitude=1.0, duration=1.0)
    with pytest.raises(SingularityError, match="meets a singularity at t = ") as caught:
        prescribe(case, dt=0.01)
    angle = np.pi / 2 + 1 - np.cos(2 * np.pi * caught.value.time)
    assert angle == pytest.approx(np.pi, abs=1e-6)


def _sliders(one: float, other: float, speed: Array):  # type: ignore[no-untyped-def]
    """Sliders of the 3-PRR at constant speed, the first from elsewhere."""

    def law(t: Array) -> Drive:
        q = np.array([other, one, one]) + speed * t[:, None]
        return Drive(q=q, qd=np.tile(speed, (len(t), 1)), qdd=np.zeros((len(t), 3)))

    return law
