"""A robot held by an engine's own drives: the law at the end of the step equals the change of momentum."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.own_drives import Gains, Order, Reading, driven_by_own_drives, own_drives_run
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, run_of
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import settled
from tests.conftest import CaseMaker

INERTIA, LENGTH, STEP = 0.4, 0.3, 2e-3
"""Of the pendulum about its axis [kg m²], distance of its mass centre [m], and the step of the plant [s]."""
PENDULUM = f"""<mujoco><worldbody><body><joint name="hinge" axis="0 0 1"/>
<inertial pos="{LENGTH} 0 0" mass="1" diaginertia="1 1 {INERTIA - LENGTH**2}"/></body></worldbody>
<actuator><motor name="motor" joint="hinge" gear="-3"/></actuator></mujoco>"""
READING = Reading(effort="applied", reason="of the test")


@dataclass(slots=True)
class Pendulum:
    """A drive that is implicit in its force, on a pendulum that turns by the velocity at the end of a step."""

    mechanism: Mechanism
    gains: Gains
    q: float
    qd: float
    timestep: float = STEP
    precision: type[np.floating] = np.float64
    iterations: float = 3.0
    timeconst: float = np.inf
    note: str = ""
    drawn: list[float] = field(default_factory=list)
    """Momentum that the drive has given, over the step [N m]."""

    def state(self) -> tuple[Array, Array]:
        return np.array([self.q]), np.array([self.qd])

    def opening(self) -> Deviation:
        return Deviation()

    def step(self, command: Order, count: int = 1) -> Readings:
        k, d, h = self.gains.stiffness[0], self.gains.damping[0], self.timestep
        momentum = INERTIA * self.qd + h * (k * (command.target[0] - self.q) + d * command.rate[0])
        after = momentum / (INERTIA + h * d + h * h * k)
        self.drawn.append(INERTIA * (after - self.qd) / h)
        self.q, self.qd = self.q + h * after, after
        return {"reported": np.full(1, 7.0)}


@pytest.fixture
def case(tmp_path: Path, model_case: CaseMaker) -> Case:
    (tmp_path / "pendulum.xml").write_text(PENDULUM, encoding="utf-8")
    return model_case(tmp_path / "pendulum.xml", amplitude=0.3)


def history_of(case: Case, motion: Motion, gains: Gains, plants: list[Pendulum], reading: Reading) -> EffortHistory:
    def start(k: int) -> tuple[Pendulum, Gains]:
        plants.append(Pendulum(case.mechanism, gains, float(motion.q[k, 0]), float(motion.qd[k, 0])))
        return plants[-1], gains

    return driven_by_own_drives("test/as_is", case, motion, start, reading, {})


@pytest.mark.parametrize("stiffness", [0.0, 4e3])
def test_what_changed_the_momentum_is_the_law_at_the_end_of_the_step(case: Case, stiffness: float) -> None:
    motion, plants = prescribe(case), list[Pendulum]()
    gains = replace(Gains.of_velocity(case.mechanism, motion, STEP), stiffness=np.full(1, stiffness))
    history = history_of(case, motion, gains, plants, READING)
    assert history.as_is is not None
    log = history.as_is.log
    np.testing.assert_allclose(-3 * log.effort[:, 0], plants[0].drawn, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(-3 * log.readings["reported"], 7.0)
    assert np.abs(log.readings["commanded"] - log.effort).max() > 0.05 * np.abs(log.effort).max()
    assert history.as_is.following.max() < 0.05
    left = settled(case.mechanism, history.as_is)
    assert (left.rms / left.scale).max() < 1e-5  # a horizontal pendulum of a constant inertia: nothing else is left
    assert "commanded" in left.note


@pytest.mark.parametrize("stiffness", [0.0, 4e3])
@pytest.mark.parametrize("step", [STEP, 0.7 * STEP])
def test_the_last_step_is_like_those_before(case: Case, model_case: CaseMaker, stiffness: float, step: float) -> None:
    """The motion ends at speed, at the end of a step or within a step: the drives continue with it."""
    motion = prescribe(model_case(case.mechanism.model.path, amplitude=0.3, duration=0.8))
    assert np.abs(motion.qd[-1]) > 0.3 * np.abs(motion.qd).max()
    gains = replace(Gains.of_velocity(case.mechanism, motion, step), stiffness=np.full(1, stiffness))

    def start(k: int) -> tuple[Pendulum, Gains]:
        return Pendulum(case.mechanism, gains, float(motion.q[k, 0]), float(motion.qd[k, 0]), timestep=step), gains

    history = driven_by_own_drives("test/as_is", case, motion, start, READING, {})
    assert history.as_is is not None
    for log in (history.as_is.log, history.as_is.restarted):
        needed = -INERTIA * motion.law(log.t).qdd[:, 0] / 3
        np.testing.assert_allclose(log.effort[-10:, 0], needed[-10:], atol=0.05 * np.abs(needed).max())


def test_the_route_says_which_reading_is_the_effort(case: Case) -> None:
    motion = prescribe(case)
    gains = Gains.of_velocity(case.mechanism, motion, STEP)
    history = history_of(case, motion, gains, [], Reading(effort="reported", reason="of the test"))
    assert history.as_is is not None
    np.testing.assert_allclose(-3 * history.as_is.log.effort, 7.0)
    assert {"applied", "commanded"} <= set(history.as_is.log.readings)
    assert history.settings["effort"] == "reported: of the test"


def test_velocities_that_are_no_rates_are_named(case: Case) -> None:
    motion = prescribe(case)
    gains = Gains.of_velocity(case.mechanism, motion, STEP)

    class Drifting(Pendulum):
        def state(self) -> tuple[Array, Array]:
            return np.array([self.q]), np.array([self.qd + 0.05])

    def note(kind: type[Pendulum]) -> str:
        def start(k: int) -> tuple[Pendulum, Gains]:
            return kind(case.mechanism, gains, float(motion.q[k, 0]), float(motion.qd[k, 0])), gains

        return driven_by_own_drives("test/as_is", case, motion, start, READING, {}).note

    assert not note(Pendulum)
    off = 0.05 / np.abs(motion.qd).max()
    figure = float(
        note(Drifting).removeprefix("velocities are not the derivatives of the positions: relative difference up to ")
    )
    assert figure == pytest.approx(off, rel=0.1)


def test_velocities_are_told_in_the_digits_of_the_engine(case: Case) -> None:
    """A law with targets that the engine never had would be wrong by their last digits times its gains."""
    motion, orders = prescribe(case), list[float]()

    class Single(Pendulum):
        def step(self, command: Order, count: int = 1) -> Readings:
            orders.extend([*command.target, *command.rate])
            return {}

    gains = Gains.of_velocity(case.mechanism, motion, STEP)
    driven_by_own_drives(
        "test/as_is",
        case,
        motion,
        lambda k: (Single(case.mechanism, gains, float(motion.q[k, 0]), 0.0, precision=np.float32), gains),
        READING,
        {},
    )
    np.testing.assert_array_equal(orders, np.array(orders, np.float32))


def test_a_drive_that_blows_up_is_an_error(case: Case) -> None:
    motion = prescribe(case)
    gains = Gains.of_velocity(case.mechanism, motion, STEP)

    class Broken(Pendulum):
        def step(self, command: Order, count: int = 1) -> Readings:
            self.q = np.nan
            return {}

    with pytest.raises(EngineError, match="test/as_is: the simulation diverged: its state is not finite"):
        driven_by_own_drives(
            "test/as_is", case, motion, lambda k: (Broken(case.mechanism, gains, 0.0, 0.0), gains), READING, {}
        )


def test_iterations_of_a_solver_are_those_of_a_step_on_average(case: Case) -> None:
    motion = prescribe(case)
    gains = Gains.of_velocity(case.mechanism, motion, STEP)
    robot = Pendulum(case.mechanism, gains, float(motion.q[0, 0]), 0.0)
    assert own_drives_run("test/as_is", (robot, gains), motion, 0, READING).iterations == pytest.approx(3)


def test_faster_drives_lead_back_so_many_times_as_fast(case: Case) -> None:
    """A mass that a drive leads back: with stiffness times the square, time goes faster by the ratio and no more."""
    stiffness, damping, ratio = np.array([40.0]), np.array([3.0]), 2.5
    gains = Gains(stiffness=stiffness, damping=damping)
    roots = [np.roots([INERTIA, one.damping[0], one.stiffness[0]]) for one in (gains, gains.faster(ratio))]
    np.testing.assert_allclose(np.sort_complex(roots[1]), np.sort_complex(ratio * roots[0]))


def test_servos_stay_behind_by_themselves_and_drives_of_velocity_do_not(case: Case) -> None:
    motion = prescribe(case)
    weak = 1e-3 * Gains.of_velocity(case.mechanism, motion, STEP).damping
    behind = {}
    for stiffness in (0.0, 1e-9):
        gains = Gains(stiffness=np.full(1, stiffness), damping=weak)
        behind[stiffness] = run_of(history_of(case, motion, gains, [], READING)).following.max()
    assert behind[0.0] > 0.05
    assert behind[1e-9] == 0


def test_drives_of_velocity_lead_back_in_the_same_time_with_finer_steps(case: Case) -> None:
    """A robot that starts beside its motion: how far it is off, at the same times."""
    motion = prescribe(case)
    gains = Gains.of_velocity(case.mechanism, motion, STEP)
    off = {}
    for finer in (1, 8):
        start = Pendulum(case.mechanism, gains, float(motion.q[0, 0]) + 0.01, 0.0, timestep=STEP / finer)
        run = own_drives_run("test/as_is", (start, gains), motion, 0, READING)
        off[finer] = (run.positions - run.controller.q)[::finer, 0][:40]
    np.testing.assert_allclose(off[1], off[8], atol=0.2 * 0.01)
