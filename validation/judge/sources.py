"""All sources by name: the analytic ones and the routes of the engines."""

import inspect
from collections.abc import Mapping

import engines
from analytic.dynamics.lagrange import Lagrange
from analytic.dynamics.noc import Noc
from analytic.papers import Paper
from robots.efforts import Source
from robots.errors import NotFoundError
from robots.robot import Robot
from validation.execution.environments import is_there

REFERENCE = Noc.name
LOG = "log"
"""Family of the logs that are judged; whoever wrote them, they are no sources that could be loaded."""
ANALYTIC: Mapping[str, type[Source]] = {source.name: source for source in (Noc, Lagrange, Paper)}


def names(robot: Robot, *, absent: bool = False) -> tuple[str, ...]:
    """Names of the sources that a robot is run with unless others are named, the reference first.

    `analytic/paper` is one only if the robot comes from a paper, a route of an engine only if that is there and the
    route does not wait to be named.

    Args:
        robot: The robot.
        absent: Whether engines that are not there are asked for too.
    """
    analytic = [name for name in ANALYTIC if name != Paper.name or robot.paper is not None]
    present = [engine for engine in engines.engine_names() if absent or is_there(engine)]
    of_engines = [name for name in _always() if name.split("/")[0] in present]
    return tuple(name for name in (*analytic, *of_engines) if name not in robot.without)


def absent_engines() -> tuple[str, ...]:
    """The engines that would be run unless others are named, and are neither installed nor in an environment."""
    asked = dict.fromkeys(name.split("/")[0] for name in _always())
    return tuple(engine for engine in asked if not is_there(engine))


def _always() -> tuple[str, ...]:
    """The routes that do not wait to be named."""
    return tuple(name for name in engines.names() if not engines.on_request(name))


def load(name: str) -> Source:
    """The source of that name.

    Raises:
        NotFoundError: If there is none.
        EngineNotInstalledError: If it is a route of an engine that is not installed.
    """
    return ANALYTIC[name]() if name in ANALYTIC else engines.load(name)


def want_known(wanted_names: tuple[str, ...]) -> None:
    """Check names of sources.

    Raises:
        NotFoundError: If one is unknown; the message lists the known ones.
    """
    known_names = (*ANALYTIC, *engines.names())
    for name in wanted_names:
        if name not in known_names:
            raise NotFoundError("source", name, known_names)


def simulates(name: str) -> bool:
    """Whether a source moves the robot by itself, and so cannot follow a motion that the dynamics do not make."""
    return name not in ANALYTIC and engines.simulates(name)


def engine_of(name: str) -> str:
    """The engine that a source needs, empty if it needs none."""
    return "" if name in ANALYTIC or is_log(name) else name.split("/")[0]


def is_as_is(name: str) -> bool:
    """Whether a source is a simulation as it is, judged by its own motion; of one engine there may be several."""
    return name not in ANALYTIC and name.split("/")[1].startswith("as_is")


def is_log(name: str) -> bool:
    """Whether a source is a log, as `log/NAME`."""
    return name.split("/")[0] == LOG


def description(name: str) -> str:
    """What a source exercises, the first sentence of its class."""
    if is_log(name):
        return "What a log says acted, held against what the equations need for the log's own motion."
    if name not in ANALYTIC:
        return engines.description(name)
    return (inspect.getdoc(ANALYTIC[name]) or "").split("\n")[0]
