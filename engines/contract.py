"""The required and optional parts of an engine, as protocols: read this before you add an engine.

An engine is a folder. Its `__init__.py` defines `ENGINE`, an `Engine`. Each further part is a module of the folder,
found by file and imported when it is needed, so that an engine that is not installed can still be described. A test
compares each module with its protocol.

Routes are found by file too: `routes/<route>.py` defines the `loopcheck.robots.efforts.Source` with the name
`<engine>/<route>`.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from loopcheck.engines.ladder import Ladder
from loopcheck.engines.simulation import FreeMotion, Robot, Robots, State
from loopcheck.engines.tuning import Settings
from loopcheck.robots.arrays import (
    Efforts,
    EffortSeries,
    JointPositions,
    PositionSeries,
    VelocitySeries,
)
from loopcheck.robots.efforts import AsIs, Fault
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


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


class Simulation(Protocol):
    """`simulation.py`: a robot that efforts drive, as a user has it out of the box or with tight settings."""

    @property
    def SETTINGS(self) -> str:
        """`default` and `tight` settings of the engine, in words."""
        ...

    def simulate(self, mechanism: Mechanism, tight: bool = False) -> AbstractContextManager[Robot[Efforts]]:
        """A robot in the engine.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism.
            EngineError: If the engine fails, here or in the block.
        """
        ...

    @property
    def free_motion(self) -> FreeMotion:
        """The robot left to constant efforts."""
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

    def worlds(self, mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
        """Robots in one batch.

        Args:
            state: Where each begins: positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).
            precision: One of `PRECISIONS`.

        Raises:
            NotRepresentableError: If the engine cannot carry the mechanism.
            EngineError: If the engine fails.
        """
        ...


OUR_MODEL = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
"""Shared data of an engine with a model built through its API from the `Mechanism`."""


class Variant(NamedTuple):
    """A route with other settings than the route of its file, where an instance of that name is defined."""

    file: str
    """As `as_is`."""
    description: str
    """What it exercises, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Description of an engine, readable without the engine."""

    name: str
    """That of its folder."""
    requires: str
    """The module that must be importable."""
    extra: str
    """The extra of loopcheck that installs it; empty if it cannot stand beside our own packages as we pin them."""
    distribution: str
    """The package that is installed, by its name in a package index."""
    packages: frozenset[str]
    """Packages that are imported in its folder only."""
    lineage: str
    """Code base of the computation: engines of the same code base do not confirm each other."""
    shares: tuple[str, ...] = OUR_MODEL
    """Data shared with the reference through our model of the robot: faults in them affect both sides equally."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """Routes without a file of their own, by name."""
    simulating: frozenset[str] = frozenset()
    """Routes that simulate the motion; all further routes compute at the prescribed state."""
    on_request: Mapping[str, str] = field(default_factory=dict)
    """Reason why a route runs only if named, by route; further routes always run."""
    single_precision: bool = False
    """Whether it computes only in single precision; its audit then has a single-precision tolerance."""
    taken_apart: str = "as_is"
    """Route with the error analysed by `Tuning.CAUSES`."""
    tells_terms: bool = True
    """Whether the terms of its equations can be read; if not, only its efforts show them."""
    companions: tuple[str, ...] = ()
    """Required packages missing from its metadata, as `torch>=2.6`."""
    without_wheels: tuple[str, ...] = ()
    """Required packages without wheels, built during installation."""
    unstated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Undeclared limits on versions of other packages, by release, as `{"<3.2.7": ("numpy<2",)}`."""
