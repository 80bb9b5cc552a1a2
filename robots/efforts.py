"""Results of a source: the effort of every actuator over time, and its deviation from the motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, frozen
from loopcheck.robots.errors import EngineError
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class Deviation(NamedTuple):
    """Largest deviation of a set of coordinates, metres and radians apart."""

    length: float = 0.0
    """[m]."""
    angle: float = 0.0
    """[rad]."""

    @property
    def largest(self) -> float:
        """The larger number [m or rad]; NaN if either is NaN."""
        return float(np.max(self))

    def over(self, size: float) -> float:
        """The larger number, with lengths relative to the size of the robot [-]; NaN if either is NaN.

        Args:
            size: Size of the robot [m].
        """
        return float(np.max([self.length / size, self.angle]))

    def or_worse(self, *others: "Deviation") -> Self:
        """The larger of both deviations, for each unit; NaN if either is NaN."""
        return type(self)(*(float(np.max(column)) for column in zip(self, *others, strict=True)))


def deviation_of(mechanism: Mechanism, coordinates: Sequence[Coordinate], miss: AnyArray) -> Deviation:
    """Largest deviation of some coordinates.

    Args:
        miss: Deviation of each coordinate at some times [m or rad], shape (..., coordinates).
    """
    turns = np.array([mechanism.effort_unit(coordinate) == "N m" for coordinate in coordinates], dtype=bool)
    largest = np.abs(miss).reshape(-1, len(turns)).max(axis=0, initial=0.0)
    return Deviation(float(largest[~turns].max(initial=0.0)), float(largest[turns].max(initial=0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A step size of a forward simulation, which runs with several."""

    dt: float
    """Step of the engine [s]."""
    effort: Array
    """Efforts read at this step [N or N m], shape (nt, na)."""
    closure_drift: Deviation
    """Largest opening of a loop."""
    tracking_error: Deviation
    """Largest distance of a drive from its prescribed position."""
    wall_time: float
    """Wall time [s]."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Wrenches of the connections by reading, see `EffortHistory.wrenches`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "effort", frozen(self.effort, (None, None), name=f"effort at dt={self.dt:g} s"))


FOLLOWING = 0.05
"""Largest distance of a drive from the motion over its stroke, if it follows [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsIs:
    """The run of a robot in an engine as its user steps it: unmodified, driven along the motion by a controller."""

    log: Log
    """The run from the first sample of the motion, every step."""
    restarted: Log
    """The same from the exact state in the middle of the motion; its deviation measures the initial transient."""
    following: Array
    """Largest distance of each drive from the motion over its stroke [-], shape (drives,); zero if it holds itself."""
    timeconst: float
    """Smallest time constant of the loop closures [s]; infinite without a time constant."""
    drives: tuple[str, ...] = ()
    """Names of these drives."""
    at_limits: Mapping[str, int] = field(default_factory=dict)
    """Number of steps at a limit of the control or force range, by actuator; absent if zero."""
    others: Mapping[str, Log] = field(default_factory=dict)
    """Runs from the first sample that are held by other drives of a redundant robot, by the names of these drives."""
    bandwidth: float = np.nan
    """Bandwidth of the controller [rad/s]: the largest tried at which the drives follow; NaN without a controller."""
    not_at: float = np.nan
    """The next larger bandwidth, at which they do not follow [rad/s]; NaN if none was tried."""
    slower: tuple[float, Log] | None = None
    """The smallest bandwidth at which they follow [rad/s], and its run from the first sample; None if no smaller one
    was tried or followed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "following", frozen(self.following, (None,), name=f"{self.log.name}, following"))

    @property
    def follows(self) -> bool:
        """Whether all drives follow the motion."""
        return float(self.following.max(initial=0.0)) <= FOLLOWING


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortHistory:
    """Efforts of all actuators on the grid of a motion, before their gears, positive along the joint's direction."""

    source: str
    """Family and route, as `mujoco/kkt`."""
    actuators: tuple[str, ...]
    """Names of the actuators, in the order of the columns."""
    t: Array
    """Time [s], shape (nt,)."""
    effort: Array
    """Efforts [N or N m], shape (nt, na)."""
    closure_drift: Deviation | None = None
    """Largest opening of a loop in the source's own state; None if the state was given."""
    tracking_error: Deviation | None = None
    """Largest distance of a drive from its prescribed position; None if the state was given."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Every relevant setting, as text."""
    ladder: tuple[Rung, ...] = ()
    """The step sizes it was run with, coarsest first."""
    note: str = ""
    """Remark for the reader of the numbers."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Wrenches of `loopcheck.robots.connections` by the name of a reading, in the common convention [N m, N], shape
    (nt, connections, 6); NaN where the engine has no reading."""
    own_rows: bool = False
    """Whether the rows of open loops are measured in a frame of a body that turns, unlike those of the reference."""
    as_is: AsIs | None = None
    """The run with its own motion; None if the efforts are judged by the prescribed motion."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", frozen(self.t, (None,), name=f"{self.source}, t"))
        shape = (len(self.t), len(self.actuators))
        object.__setattr__(self, "effort", frozen(self.effort, shape, name=f"{self.source}, effort"))


def run_of(history: EffortHistory) -> AsIs:
    """The run behind efforts that are judged by their own motion.

    Args:
        history: Result of an `as_is` route.

    Raises:
        EngineError: If the result has no run.
    """
    if history.as_is is None:
        raise EngineError(f"{history.source}: must be a route of unmodified simulations with a log (ENGINE/as_is)")
    return history.as_is


class Source(Protocol):
    """Anything that computes the efforts of a case: the reference, another analytic model, or a route of an engine."""

    name: str
    """Family and route, as `mujoco/kkt`."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """Efforts of all actuators for the prescribed motion.

        Args:
            case: Robot, variant, mode and configuration, with the mechanism in the gravity of the configuration.

        Raises:
            HarnessError: If the efforts cannot be computed. A source raises no other error.
        """
        ...


@runtime_checkable
class Refinable(Source, Protocol):
    """A source that simulates: its efforts depend on how well it solves and how finely it steps."""

    def tightened(self) -> Source:
        """The same efforts with every tolerance of its solvers 100 times tighter.

        A tolerance of zero means that iterations are counted: their limit is doubled. So is any limit of iterations
        that may end a solver.
        """
        ...

    def refined(self) -> Source:
        """The same with its steps, and whatever makes its constraints soft, halved."""
        ...


@runtime_checkable
class ReadsWrenches(Source, Protocol):
    """A source that can read forces in the joints along the motion that it simulates."""

    def with_wrenches(self) -> Source:
        """The same with `EffortHistory.wrenches`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Largest values with which a simulation agrees with the reference."""

    relative_error: float
    """Effort error over the scale of its actuator, which is at least its peak [-]."""
    closure_drift: float
    """Opening of the loops [-]: lengths over the size of the robot, or rad."""
    tracking_error: float
    """Distance of a drive from its motion [-]: lengths over the size of the robot, or rad."""


@runtime_checkable
class Stepped(Source, Protocol):
    """A source that simulates with several steps, and can omit the finest of them."""

    def within(self, limits: Limits) -> Source:
        """The same without finer steps than a verdict by these limits needs."""
        ...
