"""What an engine must and may provide, as protocols: read this before you add one.

An engine is a folder. Its `__init__.py` holds `ENGINE`, an instance of a subclass of `Engine`; each method that it
overrides hands out a module of the folder, which mypy holds against the protocol of that method. Modules are imported
where they are asked for, so that an engine that is not installed can still be described.

Routes stand in `routes/`, found by file: `routes/<route>.py` holds the `loopcheck.robots.efforts.Source`
whose `name` is `<engine>/<route>`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeAlias

from loopcheck.engines.ladder import Ladder
from loopcheck.engines.tuning import Settings, Tuning
from loopcheck.robots.arrays import (
    AnyArray,
    Array,
    Efforts,
    EffortSeries,
    JointPositions,
    PositionSeries,
    Times,
    VelocitySeries,
)
from loopcheck.robots.efforts import AsIs, Fault
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

State: TypeAlias = tuple[Array, Array]
"""Joint positions [m or rad], shape (..., nq), and velocities [per s], shape (..., nv)."""


class Audit(Protocol):
    """`audit.py`: what the engine simulates, read back from its own state. Without it nothing is compared."""

    def audit(self, mechanism: Mechanism, q: JointPositions) -> Inventory:
        """Masses, axes, damping, constraints and gravity as the engine has them.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism; the message names the element.
            EngineError: If the engine fails.
        """
        ...

    def matrices(self, mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
        """The terms of the engine's equations of motion at some states; not asked for where an engine tells none.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism.
            EngineError: If the engine fails.
        """
        ...


class Refinements(Protocol):
    """`refinements.py`: routes with other settings than their own, one of them ever finer."""

    def ladders(self, motion: Motion) -> Iterable[Ladder]:
        """All refinement studies of the engine.

        Args:
            motion: The prescribed motion, whose grid the steps divide.
        """
        ...


class Faults(Protocol):
    """`faults.py`: steps of care left out of a route one at a time, which the harness must notice."""

    @property
    def FAULTS(self) -> Mapping[str, Mapping[str, Fault]]:
        """By route and kind of fault."""
        ...


class FreeMotion(Protocol):
    """`free_motion.py`: a robot left to constant efforts."""

    @property
    def SETTINGS(self) -> str:
        """What `default` and `tight` are in this engine, as the report says it."""
        ...

    def free_motion(self, mechanism: Mechanism, effort: Efforts, state: State, t: Times, *, tight: bool) -> State:
        """Positions and velocities at given times; not finite from where the simulation has failed.

        Args:
            effort: Constant efforts of the actuators [N or N m], shape (na,).
            state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
            tight: With settings that come close to the exact answer, instead of those a user gets out of the box.

        Raises:
            EngineError: If the engine fails.
        """
        ...


class SteppedRobots(Protocol):
    """Robots in an engine that a controller steps together."""

    def state(self) -> State:
        """Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv); not finite where one failed."""
        ...

    def step(self, tau: EffortSeries, dt: float) -> None:
        """Hold the efforts for one step.

        Args:
            dt: Length of the step [s].
        """
        ...


class Plant(Protocol):
    """`plant.py`: robots that a controller drives, stepped as the engine does out of the box."""

    def robots(
        self, mechanisms: Sequence[Mechanism], q: PositionSeries, qd: VelocitySeries
    ) -> AbstractContextManager[SteppedRobots]:
        """Robots in the engine, each in its state.

        Args:
            mechanisms: The robots, all with the same joints.

        Raises:
            EngineError: If the engine fails.
        """
        ...


class Worlds(Protocol):
    """Copies of a robot in one batch, each in a state of its own."""

    def state(self) -> State:
        """Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv); not finite where one failed."""
        ...

    def run(self, tau: EffortSeries, steps: int) -> None:
        """Go some steps on, and come back when they are computed.

        Args:
            tau: Efforts of the actuators, held for all steps [N or N m], shape (n, na).
            steps: How many [-].

        Raises:
            EngineError: If the engine fails.
        """
        ...


class Batch(Protocol):
    """`batch.py`: many robots in one batch, as people train with, and what its settings make of the effort."""

    @property
    def PRECISIONS(self) -> tuple[str, ...]:
        """`single`, `double` or both."""
        ...

    def device(self) -> str:
        """What computes: the name of a GPU, or CPU."""
        ...

    def choices(self, mechanism: Mechanism) -> Mapping[str, Settings]:
        """Settings to try, by what they are called; the file's own, which are none, first."""
        ...

    def timestep(self, mechanism: Mechanism, settings: Settings) -> float:
        """Length of a step [s]."""
        ...

    def as_is(self, case: Case, motion: Motion, settings: Settings, precision: str) -> AsIs:
        """The run of the route `as_is` with other settings, by the controller of the file's own.

        Args:
            precision: One of `PRECISIONS`.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism.
            EngineError: If the engine fails.
        """
        ...

    def worlds(self, mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Worlds:
        """Robots in one batch.

        Args:
            state: Where each begins: positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
            precision: One of `PRECISIONS`.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism.
            EngineError: If the engine fails.
        """
        ...


class Renderer(Protocol):
    """`renderer.py`: pictures of a robot."""

    def render(self, mechanism: Mechanism, q: Array, points: Mapping[int, Array], path: Array) -> AnyArray:
        """Draw a mechanism in each of some poses, all seen by one camera that does not move.

        Args:
            q: Joint positions [m or rad], shape (frames, nq).
            points: Points of each body by its index, or `WORLD`, world axes [m], each of shape (points, frames, 3).
            path: Path of the traced point, a pose each, world axes [m], shape (frames, 3), or (0, 3) if none is traced.

        Returns:
            Red, green and blue, 0 to 255, shape (frames, height, width, 3).

        Raises:
            EngineError: If there is no renderer, or it fails.
        """
        ...


class Engine(ABC):
    """An engine: what it says about itself, what it must provide (`audit`) and what it may (all else)."""

    name: ClassVar[str]
    """That of its folder."""
    requires: ClassVar[str]
    """The module that must be importable."""
    extra: ClassVar[str]
    """The extra of loopcheck that installs it; empty if it cannot stand beside our own packages as we pin them."""
    distribution: ClassVar[str]
    """The package that is installed, by its name in a package index."""
    packages: ClassVar[frozenset[str]]
    """Packages that are imported in its folder only."""
    lineage: ClassVar[str]
    """Code base of the computation: engines of the same code base do not confirm each other."""
    shares: ClassVar[tuple[str, ...]]
    """Data shared with the reference through our model of the robot: faults in them affect both sides equally."""
    simulating: ClassVar[frozenset[str]] = frozenset()
    """Routes that simulate the motion; all further routes compute at the prescribed state."""
    on_request: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Reason why a route runs only if named, by route; further routes always run."""
    single_precision: ClassVar[bool] = False
    """Whether it computes only in single precision; its audit then has a single-precision tolerance."""
    taken_apart: ClassVar[str] = "as_is"
    """Route with the error analysed by `Tuning.CAUSES`."""
    tells_terms: ClassVar[bool] = True
    """Whether the terms of its equations can be read; if not, only its efforts show them."""
    companions: ClassVar[tuple[str, ...]] = ()
    """Required packages missing from its metadata, as `torch>=2.6`."""
    without_wheels: ClassVar[tuple[str, ...]] = ()
    """Required packages without wheels, built during installation."""
    unstated: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """Undeclared limits on versions of other packages, by release, as `{"<3.2.7": ("numpy<2",)}`."""

    @abstractmethod
    def audit(self) -> Audit:
        """The module that reads back what it simulates."""

    def refinements(self) -> Refinements | None:
        """The module of its refinement studies, if it has one."""
        return None

    def faults(self) -> Faults | None:
        """The module of faults that can be seeded in its routes, if it has one."""
        return None

    def free_motion(self) -> FreeMotion | None:
        """The module that leaves a robot to itself, if it has one."""
        return None

    def plant(self) -> Plant | None:
        """The module of robots that a controller drives, if it has one."""
        return None

    def tuning(self) -> Tuning | None:
        """The module of other settings for its route `as_is`, if it has one."""
        return None

    def batch(self) -> Batch | None:
        """The module of many robots in one batch, if it has one."""
        return None

    def renderer(self) -> Renderer | None:
        """The module that draws robots, if it has one."""
        return None
