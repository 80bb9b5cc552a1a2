"""All sources by name: the analytic models and the routes of the engines."""

import inspect
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.papers import Paper
from loopcheck.robots.efforts import Source
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.robot import Robot
from loopcheck.validation.execution.environments import is_there

REFERENCE = Noc.name
LOG = "log"
"""Family of external logs, which are not loadable sources."""
ANALYTIC: Mapping[str, type[Source]] = {source.name: source for source in (Noc, Lagrange, Paper)}


def names(robot: Robot, *, absent: bool = False) -> tuple[str, ...]:
    """Names of the default sources of a robot, the reference first.

    `analytic/paper` is a default source only of robots from a paper, and a route of an engine only if the engine is
    installed and the route runs by default.

    Args:
        absent: Whether to include engines that are not installed.
    """
    analytic = [name for name in ANALYTIC if name != Paper.name or robot.paper is not None]
    present = [engine for engine in engines.engine_names() if absent or is_there(engine)]
    of_engines = [name for name in _always() if name.split("/")[0] in present]
    return tuple(name for name in (*analytic, *of_engines) if name not in robot.without)


def absent_engines() -> tuple[str, ...]:
    """Engines with default routes that are neither installed nor in an environment."""
    asked = dict.fromkeys(name.split("/")[0] for name in _always())
    return tuple(engine for engine in asked if not is_there(engine))


def _always() -> tuple[str, ...]:
    """The routes that do not wait to be named."""
    return tuple(name for name in engines.names() if not engines.on_request(name))


def load(name: str) -> Source:
    """The source of that name.

    Raises:
        NotFoundError: If the name is unknown.
        EngineNotInstalledError: If it is a route of an engine that is not installed.
    """
    return ANALYTIC[name]() if name in ANALYTIC else engines.load(name)


def every_name() -> tuple[str, ...]:
    """Names of all sources, installed or not."""
    return (*ANALYTIC, *engines.names())


def want_known(wanted_names: Sequence[str]) -> None:
    """Check exact names of sources.

    Raises:
        NotFoundError: If a name is unknown; the message lists the known names.
    """
    for name in wanted_names:
        if name not in every_name():
            raise NotFoundError("source", name, every_name())


def groups(patterns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Sources of each text: an exact name, an engine, or a pattern as `*/kkt`.

    An engine or a pattern means the installed default routes; without any such route, all matching routes.

    Args:
        patterns: Texts of the user.

    Raises:
        NotFoundError: If a text matches no source; the message lists the known names.
    """
    return tuple(_group(pattern) for pattern in patterns)


def _group(pattern: str) -> tuple[str, ...]:
    if pattern in every_name():
        return (pattern,)
    matching = [name for name in every_name() if fnmatchcase(name, pattern) or name.split("/")[0] == pattern]
    if not matching:
        raise NotFoundError("source", pattern, every_name())
    default = [name for name in matching if name in ANALYTIC or name in _always()]
    present = [name for name in default if not engine_of(name) or is_there(engine_of(name))]
    return tuple(present or default or matching)


def simulates(name: str) -> bool:
    """Return whether a source integrates the motion itself, so that it cannot follow an impossible motion."""
    return name not in ANALYTIC and engines.simulates(name)


def engine_of(name: str) -> str:
    """The engine required by a source; empty for an analytic source."""
    return "" if name in ANALYTIC or is_log(name) else name.split("/")[0]


def is_as_is(name: str) -> bool:
    """Return whether a source is an unmodified simulation, judged by its own motion; an engine may have several."""
    return name not in ANALYTIC and name.split("/")[1].startswith("as_is")


def has_accuracy(name: str) -> bool:
    """Return whether the limit of a source is an accuracy over the peak, as for unmodified simulations and logs."""
    return is_log(name) or is_as_is(name)


def is_log(name: str) -> bool:
    """Return whether a source is a log, as `log/NAME`."""
    return name.split("/")[0] == LOG


def description(name: str) -> str:
    """The part of the engine that a source exercises: the first sentence of its class."""
    if is_log(name):
        return "Logged efforts minus the efforts that the equations of motion require for the logged motion."
    if name not in ANALYTIC:
        return engines.description(name)
    return (inspect.getdoc(ANALYTIC[name]) or "").split("\n")[0]
