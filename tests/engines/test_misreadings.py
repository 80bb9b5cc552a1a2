"""Other numbers than the effort in the log of MuJoCo and its ports are seen above the floor, and named."""

from dataclasses import replace

import pytest

from loopcheck import engines
from loopcheck.analytic.logs.closed_log import closed_log
from loopcheck.analytic.logs.residual import residual_efforts
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.misreadings import Misread, misread
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.log import Held
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import with_overrides
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.comparison.as_is import settled
from loopcheck.validation.comparison.readings import LATE, REACTION, TWICE, reading_of
from tests.cpu_time import extended_but

NAMED = {"drive twice": TWICE, "one step late": LATE, "reaction as effort": REACTION}
SEEN = "test_a_number_that_is_not_the_effort_is_seen_and_named"
ROUTES = extended_but(["mujoco/as_is"], ["mujoco/as_is", "mujoco_warp/as_is"], SEEN)


def with_rotors(mechanism: Mechanism) -> Mechanism:
    """The torque of a rotor is in the effort of its motor, and not in the reaction of its joint."""
    driven = [mechanism.joints[j] for j in mechanism.actuated_joints]
    armature = {joint.name: {"armature": 0.02 if joint.kind == "hinge" else 2.0} for joint in driven}
    return with_overrides(mechanism, {"joint": armature})


class Ran(Source):
    """A route that has run."""

    def __init__(self, history: EffortHistory) -> None:
        self.name, self.history = history.source, history

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        return self.history


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("robot", extended_but(["four_bar"], ["four_bar", "3prr"], SEEN))
def test_a_number_that_is_not_the_effort_is_seen_and_named(name: str, robot: str) -> None:
    if not engines.installed(name.split("/")[0]):
        pytest.skip(f"{name}: its engine is not installed")
    case = representative_case(load(robot))
    case = replace(case, mechanism=with_rotors(case.mechanism))
    motion = prescribe(case)
    route = Ran(engines.load(name).compute_efforts(case, motion))
    sound = route.history.as_is
    assert sound is not None
    mechanism = case.mechanism
    error = settled(mechanism, sound).rms
    for kind, fault in misread(route).items():
        spoilt = fault(1.0)
        assert isinstance(spoilt, Misread)
        wrong = spoilt.compute_efforts(case, motion).as_is
        assert wrong is not None
        left = settled(mechanism, wrong)
        assert (left.rms > left.floor).all(), kind
        assert (left.rms > 1.5 * error).any(), kind
        closed = closed_log(mechanism, wrong.log, wrong.log.q[0])
        residual = residual_efforts(closed, Held(wrong.log.dt), start=0.3 * wrong.log.t[-1], noiseless=True)
        assert NAMED[kind] in reading_of(mechanism, residual, 0).names
