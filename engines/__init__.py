"""What is judged: one folder an engine, one file a route. Imports robots, never analytic.

A route is found by its place: `engines/<engine>/<route>.py` holds the class whose `name` is `<engine>/<route>`; files
that start with an underscore are not routes. The package of an engine says what it needs: `REQUIRES`, the module that
must be importable, `EXTRA`, the extra that brings it, `LINEAGE`, whose code computes, `SHARES`, what its routes take
from our model of the robot, so that a fault there is in them and in the reference alike; also `DISTRIBUTION`, what is
installed, where its name is another than the engine's, and `ON_REQUEST`, why it runs only where it is named. Its
`_audit.py` reads back what the engine simulates; `_faults.py`, where there is one, holds faults that can be seeded in
its routes.
"""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache

from robots.arrays import Array
from robots.efforts import Fault, Source
from robots.errors import EngineNotInstalledError, NotFoundError
from robots.inventory import Inventory, Matrices
from robots.mechanism import Mechanism
from robots.robot import Case

__all__ = [
    "Source",
    "audit",
    "distribution",
    "extra",
    "faults",
    "installed",
    "lineage",
    "load",
    "matrices",
    "names",
    "on_request",
    "read_file",
    "shares",
    "versions",
]


@cache
def names() -> tuple[str, ...]:
    """Names of all routes, installed or not, as `mujoco/kkt`."""
    engines = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    routes = {
        engine: [m.name for m in pkgutil.iter_modules([f"{__path__[0]}/{engine}"]) if not m.name.startswith("_")]
        for engine in engines
    }
    return tuple(f"{engine}/{route}" for engine in sorted(routes) for route in sorted(routes[engine]))


def installed(engine: str) -> bool:
    """Whether the package of an engine can be imported."""
    return importlib.util.find_spec(importlib.import_module(f"engines.{engine}").REQUIRES) is not None


def extra(engine: str) -> str:
    """The extra of loopcheck that installs an engine."""
    return str(importlib.import_module(f"engines.{engine}").EXTRA)


def lineage(engine: str) -> str:
    """Whose code computes: engines of one lineage are one vote."""
    return str(importlib.import_module(f"engines.{engine}").LINEAGE)


def shares(engine: str) -> tuple[str, ...]:
    """What the routes of an engine take from our model of the robot, as the reference does."""
    declared: tuple[str, ...] = importlib.import_module(f"engines.{engine}").SHARES
    return declared


def versions() -> Mapping[str, str]:
    """Versions of the engines that are installed."""
    found = {name.split("/")[0] for name in names()}
    return {engine: importlib.metadata.version(distribution(engine)) for engine in sorted(found) if installed(engine)}


def distribution(engine: str) -> str:
    """The package that brings an engine, by its name in a package index."""
    return str(getattr(importlib.import_module(f"engines.{engine}"), "DISTRIBUTION", engine))


def on_request(engine: str) -> str:
    """Why an engine runs only where one of its sources is named; empty if it always does."""
    return str(getattr(importlib.import_module(f"engines.{engine}"), "ON_REQUEST", ""))


def faults(name: str) -> Mapping[str, Fault]:
    """What can be spoilt in the adapter of a route of an installed engine, by kind of fault."""
    engine, route = name.split("/")
    if importlib.util.find_spec(f"engines.{engine}._faults") is None:
        return {}
    found: Mapping[str, Mapping[str, Fault]] = importlib.import_module(f"engines.{engine}._faults").FAULTS
    return found.get(route, {})


def load(name: str) -> Source:
    """The route of that name.

    Raises:
        NotFoundError: If there is none; the message lists the known ones.
        EngineNotInstalledError: If its engine is not installed; the message says which extra brings it.
    """
    if name not in names():
        raise NotFoundError("source", name, names())
    _want_installed(name.split("/")[0])
    module = importlib.import_module(f"engines.{name.replace('/', '.')}")
    routes = [item for item in vars(module).values() if isinstance(item, type) and getattr(item, "name", None) == name]
    return routes[0]()


def audit(engine: str, mechanism: Mechanism, q: Array) -> Inventory:
    """What an engine simulates when it is given a mechanism, read back from the engine's own state.

    Args:
        engine: Name of the engine.
        mechanism: Robot.
        q: Joint positions that close the loops [m or rad], shape (nq,).

    Raises:
        EngineNotInstalledError: If the engine is not installed.
        NotRepresentableError: If it cannot carry the mechanism.
        EngineError: If it fails.
    """
    _want_installed(engine)
    found: Inventory = importlib.import_module(f"engines.{engine}._audit").audit(mechanism, q)
    return found


def read_file(case: Case, q: Array) -> Inventory:
    """What the files of a robot say, as MuJoCo's compiler reads them, past our own reading.

    Args:
        case: What is read; only the direction of gravity is taken from its mechanism.
        q: Joint positions that close the loops [m or rad], shape (nq,).

    Raises:
        MechanismError: If the MJCF does not compile.
        EngineError: If MuJoCo fails.
    """
    found: Inventory = importlib.import_module("engines.mujoco._file").read(case, q)
    return found


def matrices(engine: str, mechanism: Mechanism, q: Array, qd: Array) -> Matrices:
    """What an engine computes at some states: the terms of its equations of motion.

    Args:
        engine: Name of the engine.
        mechanism: Robot.
        q: Joint positions that close the loops [m or rad], shape (nt, nq).
        qd: Joint velocities [m/s or rad/s], shape (nt, nv).

    Raises:
        EngineNotInstalledError: If the engine is not installed.
        NotRepresentableError: If it cannot carry the mechanism.
        EngineError: If it fails.
    """
    _want_installed(engine)
    found: Matrices = importlib.import_module(f"engines.{engine}._audit").matrices(mechanism, q, qd)
    return found


def _want_installed(engine: str) -> None:
    if not installed(engine):
        raise EngineNotInstalledError(engine, extra(engine))
