"""Robots in an engine that are stepped: the one protocol of it, and free and controlled motions over it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from loopcheck.robots.arrays import (
    Array,
    Efforts,
    EffortSeries,
    JointPositions,
    JointVelocities,
    PositionSeries,
    Times,
    VelocitySeries,
)
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

State: TypeAlias = tuple[Array, Array]
"""Joint positions [m or rad], shape (..., nq), and velocities [per s], shape (..., nv)."""
Readings: TypeAlias = Mapping[str, Array]
"""Numbers of an engine for the efforts in a step, by kind [N or N m]."""
Command = TypeVar("Command", contravariant=True)
"""Efforts of the actuators, or targets of drives."""


class Robots(Protocol[Command]):
    """Robots in an engine that are stepped together; arrays of several robots have a first dimension n."""

    def state(self) -> State:
        """Joint positions and velocities; not finite where a robot failed."""
        ...

    def step(self, command: Command, count: int = 1) -> Readings:
        """Advance by some steps with the same command, and return when they are computed.

        Returns:
            Readings in the last step.

        Raises:
            EngineError: If the engine fails.
        """
        ...


class Observed(Robots[Command], Protocol[Command]):
    """One robot in an engine that is watched while it is driven."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        ...

    @property
    def timestep(self) -> float:
        """Step of the engine [s]."""
        ...

    def opening(self) -> Deviation:
        """Widest opening of a loop in the state."""
        ...


class Robot(Robots[Command], Protocol[Command]):
    """One robot in an engine."""

    timestep: float
    """Step of the engine [s]; a change holds from the state on."""

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """Start from a state with closed loops, at a time [s]."""
        ...


class FreeMotion(Protocol):
    """A robot left to constant efforts."""

    def __call__(self, mechanism: Mechanism, effort: Efforts, state: State, t: Times, *, tight: bool) -> State:
        """Positions and velocities at given times; not finite from where the simulation has failed.

        Args:
            state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
            tight: With settings that come close to the exact answer, instead of those a user gets out of the box.

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism.
            EngineError: If the engine fails.
        """
        ...


Simulate: TypeAlias = Callable[[Mechanism, bool], AbstractContextManager[Robot[Efforts]]]
"""Makes a robot driven by efforts: as a user has it out of the box, or with tight settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Steps between two times."""

    step: float
    """Longest step [s]."""
    fewest: int = 1
    """Smallest number of steps."""
    rounding: float = 0.0
    """Part of a step that counts as round-off of the times [-]."""

    def steps(self, length: float) -> int:
        """Number of steps in a time [s]."""
        return max(int(np.ceil(length / self.step - self.rounding)), self.fewest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """Steps of a robot left to constant efforts; see `FreeMotion`."""

    simulate: Simulate
    tight_pace: Pace | None = None
    """Steps of a tight simulation; by default those of the default simulation."""

    def __call__(self, mechanism: Mechanism, effort: Efforts, state: State, t: Times, *, tight: bool) -> State:
        """See `FreeMotion`."""
        states = [state]
        with self.simulate(mechanism, tight) as robot:
            pace = Pace(step=robot.timestep, rounding=1e-9)
            pace = (self.tight_pace or pace) if tight else pace
            robot.put(*state, float(t[0]))
            for length in np.diff(t).tolist():
                steps = pace.steps(length)
                robot.timestep = length / steps
                robot.step(effort, steps)
                states.append(robot.state())
        return np.array([q for q, _ in states]), np.array([qd for _, qd in states])


class Together:
    """Several robots with the same joints, each simulated on its own out of the box."""

    def __init__(self, robots: Sequence[Robot[Efforts]]) -> None:
        """For robots that are in their states."""
        self._robots = robots

    def state(self) -> State:
        """See `Robots.state`."""
        states = [robot.state() for robot in self._robots]
        return np.array([q for q, _ in states]), np.array([qd for _, qd in states])

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `Robots.step`."""
        for robot, efforts in zip(self._robots, command, strict=True):
            robot.step(efforts, count)
        return {}

    def lengthen(self, step: float) -> None:
        """Set the step of all robots [s]."""
        for robot in self._robots:
            robot.timestep = step


@contextmanager
def together(
    simulate: Simulate, mechanisms: Sequence[Mechanism], q: PositionSeries, qd: VelocitySeries
) -> Iterator[Together]:
    """Simulate robots, each in its state.

    Raises:
        EngineError: If the engine fails.
    """
    with ExitStack() as stack:
        robots = [stack.enter_context(simulate(mechanism, False)) for mechanism in mechanisms]
        for robot, positions, velocities in zip(robots, q, qd, strict=True):
            robot.put(positions, velocities)
        yield Together(robots)
