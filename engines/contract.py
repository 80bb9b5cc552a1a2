"""The required and optional parts of an engine, as protocols: read this before you add an engine.

An engine is a folder. Its `__init__.py` defines `ENGINE`, an `Engine`. Each further part is a module of the folder,
found by file and imported when it is needed, so that an engine that is not installed can still be described. A test
compares each module with its protocol.

Routes are found by file too: `routes/<route>.py` defines the `loopcheck.robots.efforts.Source` with the name
`<engine>/<route>`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from loopcheck.engines.declarations import Differentiated, Ladder, WrenchReading
from loopcheck.engines.simulation import FreeMotion, Robot
from loopcheck.robots.arrays import (
    Efforts,
    JointPositions,
    PositionSeries,
    VelocitySeries,
)
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.second_reading.tables import Link


class Audit(Protocol):
    """`audit.py`: the model as the engine simulates it, read back from its own state; a condition of any comparison."""

    def audit(self, mechanism: Mechanism, q: JointPositions) -> Inventory:
        """Masses, axes, damping, constraints and gravity as the engine has them.

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism; the message names the element.
            EngineError: If the engine fails.
        """
        ...

    def matrices(self, mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
        """The terms of the engine's equations of motion at some states; not used for an engine without readable terms.

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism.
            EngineError: If the engine fails.
        """
        ...


class FileInertia(Protocol):
    """`file_inertia.py`: inertias of a model file by the engine's own parser, for a further reading of the file."""

    def links(self, path: Path) -> Sequence[Link]:
        """Links with mass, mass centre and inertia in their own frames; their poses are not used.

        A link may have the inertia of all links that are fixed to it, which then have none.

        Raises:
            EngineError: If the parser does not read the file.
        """
        ...


class Refinements(Protocol):
    """`refinements.py`: routes with other settings than their own, with a setting that becomes ever finer."""

    def ladders(self, motion: Motion) -> Iterable[Ladder]:
        """All refinement studies of the engine.

        Args:
            motion: The prescribed motion; the steps divide its grid.
        """
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
            NotRepresentableError: If the engine cannot represent the mechanism.
            EngineError: If the engine fails, here or in the block.
        """
        ...

    @property
    def free_motion(self) -> FreeMotion:
        """The robot left to constant efforts."""
        ...


class Gradients(Protocol):
    """`gradients.py`: functions of the engine that return derivatives of forward or inverse dynamics."""

    def functions(self, mechanism: Mechanism) -> AbstractContextManager[Sequence[Differentiated]]:
        """All such functions, to be called in the block.

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism, or its derivatives lack an element.
            EngineError: If the engine fails, here or in the block.
        """
        ...


class ReleaseTerms(Protocol):
    """`release_terms.py`: terms of a model file in any release, for `loopcheck versions`.

    The file runs in environments of other releases, and imports only numpy and the engine. `FORMATS` is a literal
    tuple of the formats that it reads. A further function `settled(model)` returns a state after a simulated second.
    """

    def read(self, path: str) -> Any:
        """The model of a file; raises what the engine raises."""
        ...

    def sizes(self, model: Any) -> tuple[int, ...]:
        """Lengths of the arrays of a state."""
        ...

    def states(self, model: Any, count: int, rng: Any) -> Iterator[list[Any]]:
        """Random states within the limits of the joints, each a list of arrays.

        Args:
            rng: Generator of numpy.
        """
        ...

    def terms(self, model: Any, state: Sequence[Any]) -> Mapping[str, tuple[Any, Sequence[str]]]:
        """Numbers of each term, and the names of its elements, in the order in which they follow from each other."""
        ...

    def fields(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Names and numbers of the model as the release reads it."""
        ...


class Wrenches(Protocol):
    """`wrenches.py`: forces in the joints, for routes that have `loopcheck.robots.efforts.ReadsWrenches`."""

    @property
    def READINGS(self) -> Sequence[WrenchReading]:
        """All readings of the engine that its routes give."""
        ...


OUR_MODEL = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
"""Shared data of an engine with a model built through its API from the `Mechanism`."""


class Variant(NamedTuple):
    """A route with other settings than the route of its file, in the file that defines an instance of that name."""

    file: str
    """As `as_is`."""
    description: str
    """Tested capability, in a line."""


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
    laws: tuple[str, ...] = ()
    """Laws of its loads from `loopcheck.engines.loads`: engines with the same law do not confirm each other on it."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """Routes without a file of their own, by name."""
    simulating: frozenset[str] = frozenset()
    """Routes that simulate the motion; all further routes compute at the prescribed state."""
    on_request: Mapping[str, str] = field(default_factory=dict)
    """Reason why a route runs only if named, by route; further routes always run."""
    untried: Mapping[str, str] = field(default_factory=dict)
    """Reason why a part that the engine could have is missing, by part."""
    single_precision: bool = False
    """Whether it computes only in single precision; its audit then has a single-precision tolerance."""
    taken_apart: str = "as_is"
    """Route with the error analysed by `Tuning.SETTINGS`."""
    tells_terms: bool = True
    """Whether the terms of its equations can be read; if not, only its efforts show them."""
    companions: tuple[str, ...] = ()
    """Required packages missing from its metadata, as `torch>=2.6`."""
    without_wheels: tuple[str, ...] = ()
    """Required packages without wheels, built during installation."""
    unstated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Undeclared limits on versions of other packages, by release, as `{"<3.2.7": ("numpy<2",)}`."""
