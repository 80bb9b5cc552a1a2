"""What is judged: one folder an engine, one file a route. Imports robots, never analytic.

A route is found by its place: `engines/<engine>/<route>.py` holds the class whose `name` is `<engine>/<route>`; files
that start with an underscore are not routes. `_faults.py`, where there is one, holds faults that can be seeded in them.
The package of an engine says what it needs: `REQUIRES`, the module that must be importable, `EXTRA`, the extra that
brings it, and `LINEAGE`, whose code computes.
"""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache

from robots.efforts import Fault, Source
from robots.errors import EngineNotInstalledError, NotFoundError

__all__ = ["Source", "extra", "faults", "installed", "lineage", "load", "names", "versions"]


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


def versions() -> Mapping[str, str]:
    """Versions of the engines that are installed."""
    found = {name.split("/")[0] for name in names()}
    return {engine: importlib.metadata.version(engine) for engine in sorted(found) if installed(engine)}


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
    engine = name.split("/")[0]
    if not installed(engine):
        raise EngineNotInstalledError(engine, extra(engine))
    module = importlib.import_module(f"engines.{name.replace('/', '.')}")
    routes = [item for item in vars(module).values() if isinstance(item, type) and getattr(item, "name", None) == name]
    return routes[0]()
