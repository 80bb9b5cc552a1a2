"""Test motions of settings: the user's motion, automatic and random ones, a perturbed start, other controllers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.logs.evaluation import Slopes
from loopcheck.analytic.motion.assembly import finely_sampled
from loopcheck.analytic.motion.automatic import automatic_motion
from loopcheck.analytic.motion.laws import AUTOMATIC
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.engines.computed_torque import interpolated
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.accuracy import Requirement, requirement
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.remote_calls import dumps
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.tune.engine import tuning_of

OWN, MADE, RANDOM = "own motion", "automatic motion", "random motion, seed "
PERTURBED = 0.05
"""Initial distance of a perturbed run from the motion, over the stroke [-]."""
OTHER_WIDTHS = (0.3, 2.0)
"""Further bandwidths of the controller in the proof, over its usual bandwidth [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """A test motion of settings."""

    name: str
    motion: Motion
    required: Requirement
    """Efforts that the motion requires, the same for all settings."""
    plan: bytes
    """Data to drive the robot along the motion, readable only by a Python with the engine."""
    bandwidth: float = 1.0
    """Bandwidth of the controller over its usual bandwidth [-]."""
    pose: Array | None = None
    """Initial joint positions of a run from rest, instead of the first state of the motion [m or rad]."""
    derivatives: Slopes | None = None
    """Derivatives of the residual by the columns of the log, of an earlier run along it."""

    @property
    def may_lag(self) -> bool:
        """Whether a run may leave the motion: a slower controller cannot hold it against dry friction."""
        return self.bandwidth < 1


def names_of(purposes: Sequence[Purpose]) -> list[str]:
    """Names of some test motions."""
    return [purpose.name for purpose in purposes]


def seeds_in(names: Iterable[str]) -> list[int]:
    """Seeds of the random motions among some test motions.

    Args:
        names: Names of test motions.
    """
    return [int(name.removeprefix(RANDOM)) for name in names if name.startswith(RANDOM)]


def purpose_of(case: Case, engine: str, name: str, about: tuple[Motion, int] | None = None) -> Purpose | str:
    """A test motion, or the reason for its absence; runs in a worker process.

    Args:
        name: Name of the test motion.
        about: For a random motion, a motion of the same size and pace, and the seed; by default the case's own motion,
            or the automatic motion by that name.

    Raises:
        HarnessError: If the case has no motion of its own.
    """
    own = prescribe(case) if name == OWN else None  # a case without a motion is bad input
    try:
        if own is not None:
            motion = own
        elif about:
            given, seed = about
            motion = random_motion(case.mechanism, given, seed=seed)
        else:
            motion = automatic_motion(case.mechanism, case.guess, None, case.robot.name)
        motion = finely_sampled(case.mechanism, motion)
        motion = replace(motion, law=interpolated(motion))  # that of redundant drives closes the loops at every time
        required = requirement(case.mechanism, motion, Noc().compute_efforts(case, motion).effort)
        plan = dumps(tuning_of(engine).plan(case.mechanism, motion))
        return Purpose(name=name, motion=motion, required=required, plan=plan)
    except HarnessError as error:
        return f"{name}: {error}"


def random_purposes(
    case: Case, engine: str, pool: WorkerPool, given: Motion, seeds: Sequence[int]
) -> tuple[list[Purpose], list[str]]:
    """Random motions, and reasons for missing ones.

    Args:
        given: Motion with the size and pace of the random motions.
        seeds: Seeds of the motions.
    """
    names = {seed: f"{RANDOM}{seed}" for seed in seeds}
    return _sorted(
        pool, [Task(purpose_of, (case, engine, names[seed], (given, seed)), _lost, engine=engine) for seed in seeds]
    )


def given_purposes(case: Case, engine: str, pool: WorkerPool) -> tuple[list[Purpose], list[str]]:
    """The case's own motion first, and the automatic motion if it differs."""
    names = [OWN] if case.robot.motion.law == AUTOMATIC else [OWN, MADE]
    return _sorted(pool, [Task(purpose_of, (case, engine, name), _lost, engine=engine) for name in names])


def variations(purpose: Purpose) -> list[Purpose]:
    """The same motion from a perturbed start at rest, and with slower and faster controllers.

    Args:
        purpose: The original test motion.
    """
    motion = purpose.motion
    drives = motion.law(motion.t).q
    stroke = np.ptp(drives, axis=0)
    away = (np.abs(drives - drives[0]) / np.where(stroke > 0, stroke, np.inf)).max(axis=1)
    early = away[1 : len(away) // 2 + 1]  # at the end of the motion a floating base has fallen
    sample = int(np.argmin(np.abs(early - PERTURBED))) + 1
    start = replace(purpose, name=f"{purpose.name}, {PERTURBED:.0%} of the stroke off at its start")
    return [
        replace(start, pose=motion.q[sample]),
        *(replace(purpose, name=f"{purpose.name}, controller × {width:g}", bandwidth=width) for width in OTHER_WIDTHS),
    ]


def controlled(purpose: Purpose, bandwidth: float, usual: float) -> Purpose:
    """The same motion with another controller.

    Args:
        purpose: The original test motion.
        bandwidth: Bandwidth of the controller [rad/s].
        usual: Its usual bandwidth [rad/s].
    """
    return replace(purpose, name=f"{purpose.name}, controller at {bandwidth:g} rad/s", bandwidth=bandwidth / usual)


def _sorted(pool: WorkerPool, tasks: Sequence[Task]) -> tuple[list[Purpose], list[str]]:
    results = pool.results(tasks, "motions")
    return [one for one in results if isinstance(one, Purpose)], [one for one in results if isinstance(one, str)]


def _lost(reason: str) -> str:
    return reason
