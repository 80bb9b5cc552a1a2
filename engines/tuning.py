"""Settings of the unmodified simulation of an engine: families to search, causes of the error, and runs with them."""

import runpy
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from loopcheck.engines.as_is import Record, log_of
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

Settings: TypeAlias = Mapping[str, str]
"""Settings by name, as written to the file; unlisted settings keep the user's values."""
SERIES = (1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
"""Preferred numbers, ten in a decade (ISO 3, R10)."""
HARD, SOFTER = "0.9999 0.9999", "0.99 0.99"
"""Impedances of loops, `solimp`, for engines with MuJoCo's constraints."""
STEPS = tuple(round(digits * 10.0**power, 9) for power in (-2, -3, -4, -5) for digits in reversed(SERIES))[6:]
"""Steps to choose from [s], the coarsest first."""
FINER = 16
"""Number of steps that replace a single step when the step is removed from the causes of an error."""
LEFT_OUT = "friction, limits and contacts"
"""The cause that exists only in runs with such forces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Settings that differ in their step alone."""

    method: str
    """Integration method: families of the same method have the same cost and the same order of error."""
    stages: int
    """Number of evaluations of the dynamics in a step [-]."""
    fixed: Settings
    """Settings that do not depend on the step."""
    timeconst: float = 0.0
    """Time constant of the loops over the step, written as `solref`; 0 keeps the file's value [-]."""
    longest: float = float("inf")
    """Longest step for which the remaining settings are meaningful [s]."""

    def settings(self, step: float) -> Settings:
        """The settings at a step.

        Args:
            step: The step [s].
        """
        loops = {"solref": f"{self.timeconst * step:.6g} 1"} if self.timeconst else {}
        return {"timestep": f"{step:.6g}", **self.fixed, **loops}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A simulation as its user has it."""

    step: float
    """Its step [s]."""
    stages: int
    """Number of evaluations of the dynamics in a step [-]."""
    bandwidth: float
    """Bandwidth of the controller, independent of the settings [rad/s]."""
    timeconst: float
    """Smallest time constant of its loops [s]; infinite for engines without time constants."""
    settings: Settings
    """Current values of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A part of the error of the unmodified simulation, with the settings that remove it."""

    written: str
    """The settings in the words of a user."""
    settings: Settings = field(default_factory=dict)
    """The settings besides the step; `{hard}` is the smallest time constant of loops, twice the step."""


BATCH, REPEATS = 50, 7
"""Steps that are timed at once, and how often."""


def best_seconds(begin: Callable[[], object], steps: Callable[[int], object]) -> float:
    """Wall time of a step on this machine, the best of several [s].

    Args:
        begin: Puts the robot into its initial state.
        steps: Makes so many steps.
    """
    best = float("inf")
    for _ in range(REPEATS):
        begin()
        start = time.perf_counter()
        steps(BATCH)
        best = min(best, time.perf_counter() - start)
    return best / BATCH


def functions_of(script: str) -> Mapping[str, Any]:
    """Run a script of settings as its user does.

    Args:
        script: Its text.

    Returns:
        Its definitions, by name.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.py"
        path.write_text(script, encoding="utf-8")
        return runpy.run_path(str(path))


class Tuning(Protocol):
    """`tuning.py`: other settings for the route `as_is`, with their results and costs."""

    @property
    def CAUSES(self) -> Mapping[str, Cause]:
        """Parts of the error of the route `Engine.taken_apart`, by name, in the order of their removal."""
        ...

    def given(self, mechanism: Mechanism) -> Given:
        """The simulation as its user has it."""
        ...

    def families(self, mechanism: Mechanism) -> Sequence[Family]:
        """Families of settings, of each method the most accurate first."""
        ...

    def plan(self, mechanism: Mechanism, motion: Motion) -> Any:
        """Demands of driving the robot along a motion, for any settings."""
        ...

    def prepared(self, mechanism: Mechanism, settings: Settings, precision: str = "") -> Any:
        """Preparation of a robot's runs with other settings, for any motion.

        Args:
            precision: `single` or `double`, for engines with both; by default the user's.
        """
        ...

    def run(self, plan: Any, prepared: Any, bandwidth: float, start: int | Array = 0) -> Record:
        """The route `as_is` with other settings.

        Args:
            plan: Result of `plan`.
            prepared: Result of `prepared`.
            bandwidth: Of the controller [rad/s].
            start: Number of the sample of the motion at whose exact state the run starts, or joint positions at which
                it starts at rest [m or rad], shape (nq,).

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism.
            EngineError: If the engine fails, or its state is not finite any more.
        """
        ...

    def files(self, mechanism: Mechanism, settings: Settings) -> Mapping[Path, bytes]:
        """The files with which a user has these settings, by the paths of the replaced files.

        Raises:
            MechanismError: If the files cannot express it.
        """
        ...

    def seconds_per_step(self, mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
        """Wall time of a step of the engine alone on this machine [s], the best of several."""
        ...


def log_without(
    tuning: Tuning, case: Case, motion: Motion, removed: Collection[str], *, source: str, precision: str = ""
) -> Log:
    """A run from the first sample with the user's controller and some causes of the error removed.

    A finer step is a whole fraction of the user's step.

    Args:
        removed: Names of the causes, among `Tuning.CAUSES`.
        precision: See `Tuning.prepared`.

    Raises:
        NotRepresentableError: If the engine cannot represent the mechanism.
        EngineError: If the engine fails.
    """
    mechanism, given = case.mechanism, tuning.given(case.mechanism)
    step = given.step / FINER if "step" in removed else given.step
    settings = {"timestep": repr(step)}
    for cause in removed:
        settings |= {name: value.format(hard=2 * step) for name, value in tuning.CAUSES[cause].settings.items()}
    prepared = tuning.prepared(mechanism, settings, precision)
    return log_of(source, case, tuning.run(tuning.plan(mechanism, motion), prepared, given.bandwidth))
