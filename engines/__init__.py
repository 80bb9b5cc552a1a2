"""The judged engines: a folder per engine, a file per route. Imports robots, never analytic.

`loopcheck.engines.contract` defines the required and optional parts of an engine. Engines, their parts and routes are
found by file: `engines/<engine>/__init__.py` defines `ENGINE`, `engines/<engine>/<part>.py` a part, and
`engines/<engine>/routes/<route>.py` the source with the name `<engine>/<route>`.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from loopcheck.engines.contract import Audit, Engine, FileInertia, Variant
from loopcheck.robots.arrays import JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.efforts import Source
from loopcheck.robots.errors import EngineError, EngineNotInstalledError, NotFoundError
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.releases import too_old
from loopcheck.robots.robot import Case
from loopcheck.robots.second_reading.tables import Link

__all__ = [
    "Source",
    "audit",
    "description",
    "distribution",
    "engine",
    "engine_names",
    "extra",
    "file_inertia",
    "installed",
    "lineage",
    "load",
    "matrices",
    "names",
    "on_request",
    "part",
    "provides",
    "read_file",
    "shares",
    "simulates",
    "versions",
]


@cache
def engine_names() -> tuple[str, ...]:
    """Names of all engines, installed or not, by the folders that are here."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


@cache
def names() -> tuple[str, ...]:
    """Names of all routes, installed or not, as `mujoco/kkt`."""
    files = {name: pkgutil.iter_modules([f"{__path__[0]}/{name}/routes"]) for name in engine_names()}
    return tuple(
        f"{name}/{route}"
        for name in engine_names()
        for route in sorted([*(module.name for module in files[name]), *engine(name).variants])
    )


def engine(name: str) -> Engine:
    """Description of an engine.

    Raises:
        NotFoundError: If the name is unknown; the message lists the valid names.
    """
    if name not in engine_names():
        raise NotFoundError("engine", name, engine_names())
    declared: Engine = importlib.import_module(f"loopcheck.engines.{name}").ENGINE
    return declared


def installed(name: str) -> bool:
    """Whether the package of an engine can be imported; an empty folder of its name does not count."""
    spec = importlib.util.find_spec(engine(name).requires)
    if spec is None or spec.origin is None:
        return False
    try:
        importlib.metadata.distribution(distribution(name))
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def extra(name: str) -> str:
    """The extra of loopcheck that installs an engine."""
    return engine(name).extra


def lineage(name: str) -> str:
    """Code base behind a source: engines with a common code base count as a single witness."""
    return engine(name).lineage


def shares(name: str) -> tuple[str, ...]:
    """Inputs that the routes of an engine take from our model of the robot, as the reference does."""
    return engine(name).shares


def versions() -> Mapping[str, str]:
    """Versions of the engines that are installed."""
    return {name: importlib.metadata.version(distribution(name)) for name in engine_names() if installed(name)}


def provides(name: str, kind: str) -> bool:
    """Whether the folder of an engine has a part of the contract; the engine need not be installed.

    Args:
        kind: As `simulation`.
    """
    return Path(__path__[0], engine(name).name, f"{kind}.py").is_file()


def part(name: str, kind: str) -> Any:
    """A part of an engine, a module with the protocol of that name in the contract; None if the engine lacks it.

    Args:
        kind: As `simulation`.
    """
    return importlib.import_module(f"loopcheck.engines.{name}.{kind}") if provides(name, kind) else None


def distribution(name: str) -> str:
    """The package that brings an engine, by its name in a package index."""
    return engine(name).distribution


def on_request(name: str) -> str:
    """Reason why a route runs only by name; empty if it always runs."""
    folder, route = name.split("/")
    return engine(folder).on_request.get(route, "")


def description(name: str) -> str:
    """Tested capability of a route, in a line; its engine need not be installed.

    It is the first line of the docstring of the route's class, or of its file if that has no class of this name.

    Raises:
        NotFoundError: If the name is unknown; the message lists the valid names.
    """
    variant, path = _place(name)
    if variant is not None:
        return variant.description
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_named(node, name)]
    return (ast.get_docstring(classes[0] if classes else tree) or "").split("\n")[0]


def load(name: str) -> Source:
    """The route of that name.

    Raises:
        NotFoundError: If the name is unknown; the message lists the valid names.
        EngineNotInstalledError: If its engine is not installed; the message names the extra that installs it.
    """
    _, path = _place(name)
    folder = name.split("/")[0]
    _want_installed(folder)
    module = importlib.import_module(f"loopcheck.engines.{folder}.routes.{path.stem}")
    source: type[Source] | Source = next(item for item in vars(module).values() if getattr(item, "name", None) == name)
    return source() if isinstance(source, type) else source


def simulates(name: str) -> bool:
    """Whether a route simulates the robot, and so cannot follow a motion that contradicts the dynamics."""
    folder, route = name.split("/")
    return route in engine(folder).simulating


def audit(name: str, mechanism: Mechanism, q: JointPositions) -> Inventory:
    """The model of a mechanism in an engine, read back from the engine's own state.

    Raises:
        EngineNotInstalledError: If the engine is not installed.
        NotRepresentableError: If it cannot represent the mechanism.
        EngineError: If it fails.
    """
    _want_installed(name)
    declared: Audit = part(name, "audit")
    return declared.audit(mechanism, q)


def file_inertia(name: str, path: Path) -> Sequence[Link]:
    """Inertias of a model file by the own parser of an engine; empty without a parser.

    Raises:
        EngineNotInstalledError: If the engine is not installed.
        EngineError: If its parser does not read the file.
    """
    _want_installed(name)
    declared: FileInertia | None = part(name, "file_inertia")
    return () if declared is None else declared.links(path)


def read_file(case: Case, q: JointPositions) -> Inventory:
    """Content of a robot's files as MuJoCo's compiler has it, not by way of our `Mechanism`.

    The compiler is the reader of the reference too: the content tests the conversion of its numbers, not their reading.

    Args:
        case: Case to read; only the direction of gravity is taken from its mechanism.

    Raises:
        MechanismError: If the MJCF does not compile.
        EngineError: If MuJoCo fails.
    """
    from loopcheck.engines.mujoco import model_file

    return model_file.read(case, q)


def matrices(name: str, mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """The terms of an engine's equations of motion at some states.

    Raises:
        EngineNotInstalledError: If the engine is not installed.
        NotRepresentableError: If it cannot represent the mechanism.
        EngineError: If it fails.
    """
    _want_installed(name)
    declared: Audit = part(name, "audit")
    return declared.matrices(mechanism, q, qd)


def _place(name: str) -> tuple[Variant | None, Path]:
    """The entry of a variant, and the file of a route.

    Raises:
        NotFoundError: If the name is unknown; the message lists the valid names.
    """
    if name not in names():
        raise NotFoundError("source", name, names())
    folder, route = name.split("/")
    variant = engine(folder).variants.get(route)
    return variant, Path(__path__[0], folder, "routes", f"{variant.file if variant else route}.py")


def _is_named(node: ast.ClassDef, name: str) -> bool:
    """Whether a class is the route of that name."""
    values = [
        item.value for item in node.body if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "name"
    ]
    return any(isinstance(value, ast.Constant) and value.value == name for value in values)


def _want_installed(name: str) -> None:
    """Refuse an engine that is not installed, or of an older release than declared.

    Raises:
        EngineNotInstalledError: If it is not installed; the message names the extra that installs it.
        EngineError: If it is too old; the message names both releases.
    """
    if not installed(name):
        raise EngineNotInstalledError(name, extra(name))
    message = too_old(extra(name)) if extra(name) else ""
    if message:
        raise EngineError(f"{name}: {message}")
