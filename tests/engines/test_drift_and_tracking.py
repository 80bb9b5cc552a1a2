"""Quality of a simulation: the gap of its loops, and its distance from the motion.

The engines' figures are compared with forward kinematics of a state with a known disturbance.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.kinematics.closures import closure_residual
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.mechanism import Mechanism, WeldClosure
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but

ENGINES = ("dart", "drake", "exudyn", "mujoco", "pinocchio", "pybullet", "simbody")
SHIFT = 1e-3
"""By how much a joint is displaced [m or rad]."""


def route(name: str) -> Source:
    engine = name.split("/")[0]
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    if name == "pybullet/forward":  # its motors are back on the motion after a step: the first one must be reported
        from loopcheck.engines.pybullet.routes.forward import PybulletForward, Settings

        return PybulletForward(Settings(lead=0))
    if name == "dart/forward":  # as its servos
        from loopcheck.engines.dart.routes.forward import DartForward
        from loopcheck.engines.dart.routes.forward import Settings as DartSettings

        return DartForward(DartSettings(lead=0))
    if name == "drake/forward":  # as its actuators
        from loopcheck.engines.drake.routes.forward import DrakeForward
        from loopcheck.engines.drake.routes.forward import Settings as DrakeSettings

        return DrakeForward(DrakeSettings(lead=0, parts=(8, 16, 32, 64)))  # else it drifts by as much as is wanted
    return engines.load(name)


def displaced(motion: Motion, place: int) -> Motion:
    """The motion with a displaced joint, also at the start of a simulation."""

    def assemble(t: Array) -> Motion:
        right = motion.assemble(t)
        return replace(right, q=right.q + SHIFT * np.eye(right.q.shape[1])[place])

    return replace(assemble(motion.t), assemble=assemble)


def opening(mechanism: Mechanism, q: Array) -> Deviation:
    """Gap of the widest loop in a pose, by forward kinematics."""
    residual, widths = closure_residual(mechanism, poses(mechanism, q[None]), q[None])[0], []
    for closure in mechanism.closures:
        rows, residual = np.split(residual, [6 if isinstance(closure, WeldClosure) else 3])
        widths.append([np.linalg.norm(part) for part in (rows[:3], rows[3:])])
    return Deviation(*np.max(widths, axis=0))


@pytest.fixture(scope="module")
def short(prr_motion: Motion) -> Motion:
    return prr_motion.assemble(prr_motion.t[:12])


@pytest.mark.parametrize("joint", ["q1", "q2", "q3"])
@pytest.mark.parametrize(
    "name",
    [
        *(f"{engine}/forward" for engine in ENGINES),
        *(f"{engine}/as_is" for engine in ("dart", "drake", "mujoco", "pybullet", "simbody")),
    ],
)
def test_a_displaced_start_is_reported(name: str, joint: str, prr: Case, prr_motion: Motion) -> None:
    """Disturbed slider of a leg that closes both loops, the first or the last; the constraints may draw it back."""
    names = [each.name for each in prr.mechanism.joints]
    samples = 14 if name.endswith("as_is") else 12  # a log of its second half has samples enough
    motion = prr_motion.assemble(prr_motion.t[:samples])
    spoilt = displaced(motion, prr.mechanism.q_slices[names.index(joint)].start)
    history = route(name).compute_efforts(prr, spoilt)
    swing = 0.2 if name.endswith("as_is") and name != "mujoco/as_is" else 1e-4  # the velocity of the start goes on
    assert history.tracking_error == pytest.approx((SHIFT, 0), rel=swing)
    assert history.closure_drift == pytest.approx(opening(prr.mechanism, spoilt.q[0]), rel=1e-4)
    assert all(rung.closure_drift == pytest.approx((SHIFT, 0), rel=1e-2) for rung in history.ladder)
    assert all(rung.tracking_error == pytest.approx((SHIFT, 0), rel=1e-2) for rung in history.ladder)


@pytest.fixture(scope="module")
def welded(model_case: CaseMaker) -> tuple[Case, Motion]:
    """A four-bar closed by a weld, and the beginning of its motion."""
    case = model_case(MODELS / "welded_four_bar.xml", amplitude=0.1)
    motion = prescribe(case)
    return case, motion.assemble(motion.t[:6])


@pytest.mark.parametrize("joint", ["crank", "foot"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_weld_that_is_open_is_reported(engine: str, joint: str, welded: tuple[Case, Motion]) -> None:
    """One joint moves its end in the plane and turns it, the second turns it alone."""
    case, motion = welded
    names = [each.name for each in case.mechanism.joints]
    spoilt = displaced(motion, names.index(joint))
    history = route(f"{engine}/forward").compute_efforts(case, spoilt)
    assert history.closure_drift == pytest.approx(opening(case.mechanism, spoilt.q[0]), rel=1e-3, abs=1e-5 * SHIFT)
    assert history.tracking_error == pytest.approx((0, SHIFT if joint == "crank" else 0), abs=1e-2 * SHIFT)


@pytest.mark.parametrize("engine", ["exudyn", "mujoco", "pinocchio"])
def test_a_displaced_target_is_reported(engine: str, prr: Case, short: Motion) -> None:
    """At the last sample alone, too late to be followed. PyBullet's motors would be there at once."""

    def law(t: Array) -> Drive:
        right = short.law(t)
        return right._replace(q=right.q + SHIFT * np.outer(t > short.t[-1] - 1e-9, [0, 1, 0]))

    history = route(f"{engine}/forward").compute_efforts(prr, replace(short, law=law))
    assert history.tracking_error == pytest.approx((SHIFT, 0), rel=1e-3)
    assert history.closure_drift is not None
    assert history.closure_drift.largest < SHIFT / 1000


@pytest.mark.parametrize(
    ("engine", "order"),
    extended_but(
        [("dart", 2), ("exudyn", 2), ("pinocchio", 4), ("pybullet", 2)],
        [("dart", 2), ("drake", 2), ("exudyn", 2), ("pinocchio", 4), ("pybullet", 2)],
        "test_drift_is_that_of_all_samples",
    ),
)
def test_drift_is_that_of_all_samples(engine: str, order: int, prr: Case, prr_motion: Motion) -> None:
    """From a start that is right, the loops open as a power of the step."""
    ladder = route(f"{engine}/forward").compute_efforts(prr, prr_motion).ladder
    np.testing.assert_allclose(_orders([rung.closure_drift.length for rung in ladder]), order, atol=0.05)
    if engine not in ("dart", "drake", "pybullet"):  # whose motors meet the motion at the end of every step
        np.testing.assert_allclose(_orders([rung.tracking_error.length for rung in ladder]), order, atol=0.05)


def test_drift_of_mujoco_is_that_of_its_compliance(prr: Case, prr_motion: Motion) -> None:
    from loopcheck.engines.mujoco.routes.forward import MujocoForward, Settings

    def simulated(*compliances: float) -> EffortHistory:
        return MujocoForward(Settings(steps=(5e-3,), compliances=compliances)).compute_efforts(prr, prr_motion)

    stiff, soft, both = simulated(0.1), simulated(0.2), simulated(0.1, 0.2)
    figures: tuple[Callable[[EffortHistory], float], ...] = (
        lambda history: (history.closure_drift or Deviation()).length,
        lambda history: (history.tracking_error or Deviation()).length,
    )
    for figure in figures:
        assert figure(soft) / figure(stiff) == pytest.approx(2, rel=1e-3)
        assert figure(both) == figure(soft)  # the worst of what is extrapolated


@pytest.mark.parametrize("name", ["dart/kkt", "drake/kkt", "mujoco/kkt", "pinocchio/kkt", "simbody/kkt"])
def test_a_state_that_does_not_close_is_reported(name: str, prr: Case, short: Motion) -> None:
    """At a sample, along the axis of the first slider."""
    spoilt = np.array(short.q)
    spoilt[3, 0] += SHIFT
    history = route(name).compute_efforts(prr, replace(short, q=spoilt))
    assert history.closure_drift == pytest.approx(opening(prr.mechanism, spoilt[3]), rel=1e-9)


def _orders(figures: list[float]) -> list[float]:
    return [float(np.log2(coarse / fine)) for coarse, fine in pairwise(figures)]
