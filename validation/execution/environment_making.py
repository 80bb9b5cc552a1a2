"""Making, update and removal of engine environments by uv; an incomplete environment is made anew the next time."""

import importlib
import importlib.metadata
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from loopcheck import engines
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.environments import (
    Environment,
    broken_environments,
    environments,
    environments_folder,
    interpreter_in,
)
from loopcheck.validation.execution.remote_calls import COMPILED, LostCallError, call, end

UNNEEDED = frozenset({"click", "jinja2", "junitparser", "markupsafe", "matplotlib", "pillow", "pytest", "tabulate"})
"""Requirements of pages, tables and the command line only; workers do not import them."""
DRAFT = "making-"
"""Prefix of the folder of an incomplete environment."""
FIRST_CALL = 600.0
"""Longest first import in an environment, including compilation [s]."""


def add(requirement: str, *, python: str = "", find_links: str = "") -> Environment:
    """Make the environment of an engine, and replace an environment of the same name.

    Args:
        requirement: Name of the engine, with a version as `pybullet==3.2.7` or without.
        python: Interpreter, or version of Python; by default the running one, or another with wheels of the engine.
        find_links: Folder of wheels, for use without a network.

    Raises:
        NotFoundError: If the engine is unknown.
        HarnessError: If the environment cannot be made; the message names the remedy.
    """
    engine, version = parsed(requirement)
    request = {"version": version, "python": _absolute(python), "find_links": _absolute(find_links)}
    with _locked() as folder:
        return _made(folder, engine, request)


def update(environment: Environment) -> Environment:
    """Make an environment again from its original request, with the newest allowed packages.

    Raises:
        HarnessError: If it cannot be made; the old environment stays.
    """
    with _locked() as folder:
        renewed = _made(folder, environment.engine, environment.request)
        if renewed.name != environment.name:
            shutil.rmtree(environment.folder)
    return renewed


def remove(requirement: str) -> list[str]:
    """Remove the environments of an engine, incomplete environments included, and return their names.

    Args:
        requirement: Name of the engine, with a version as `pybullet==3.2.7` or without.

    Raises:
        NotFoundError: If the engine or its environment is unknown.
    """
    engine, version = parsed(requirement)
    with _locked():
        folders = [environment.folder for environment in environments_matching(requirement)]
        folders += [path for path in broken_environments() if not version and engine_of_folder(path) == engine]
        if not folders:
            raise NotFoundError("environment", requirement, [f"{one.engine}=={one.version}" for one in environments()])
        for folder in folders:
            shutil.rmtree(folder)
    return [folder.name for folder in folders]


def environments_matching(requirement: str) -> list[Environment]:
    """The environments of an engine, or of one of its versions.

    Args:
        requirement: Name of the engine, with a version or without; empty for all engines.

    Raises:
        NotFoundError: If the engine is unknown.
    """
    engine, version = parsed(requirement) if requirement else ("", "")
    whole = [environment for environment in environments() if engine in ("", environment.engine)]
    return [environment for environment in whole if version in ("", environment.version)]


def parsed(requirement: str) -> tuple[str, str]:
    """Engine and version in a requirement by the name of the engine or its package; the version may be empty.

    Raises:
        NotFoundError: If the engine is unknown.
        HarnessError: If the text is neither ENGINE nor ENGINE==VERSION.
    """
    try:
        want = Requirement(requirement)
    except InvalidRequirement as error:
        raise HarnessError(f"engine must be ENGINE or ENGINE==VERSION, got '{requirement}'") from error
    packages = {engines.distribution(engine): engine for engine in engines.engine_names()}
    name = packages.get(want.name, want.name.replace("-", "_"))  # or as a package index writes what Python imports
    if name not in engines.engine_names():
        raise NotFoundError("engine", want.name, engines.engine_names())
    version = next(iter(want.specifier)).version if want.specifier else ""
    if requirement.replace(" ", "") != f"{want.name}{'==' if version else ''}{version}" or "*" in version:
        raise HarnessError(f"engine must be ENGINE or ENGINE==VERSION, got '{requirement}'")
    return name, version


def engine_of_folder(folder: Path) -> str:
    """The engine that a folder was made for, by its name."""
    return folder.name.removeprefix(DRAFT).split("-")[0]


def package(engine: str, version: str) -> str:
    """Requirement of an engine's package: the named version, or the range that our adapter is written for.

    Args:
        version: Version of its package; empty for the newest.
    """
    name, extras = engines.distribution(engine), sorted({engines.extra(name) for name in engines.engine_names()})
    if version:
        return f"{name}=={version}"
    needs = (need for extra in ("", *extras) for need in _requirements(extra) if need.name == name)
    return f"{name}{next((need.specifier for need in needs), '')}"


def packages_with(engine: str, version: str, needs: Iterable[str]) -> list[str]:
    """Requirements to install: an engine, its undeclared requirements and further packages, in compatible versions.

    Args:
        version: Version of its package; empty for the newest.
        needs: Requirements of the further packages.
    """
    unstated = {Requirement(need).name: need for need in unstated_needs(engine, version)}
    names = {Requirement(need).name: need for need in needs}
    names |= {Requirement(need).name: need for need in engines.engine(engine).companions}
    others = [unstated.get(name, need) for name, need in names.items() if name != engines.distribution(engine)]
    return [package(engine, version), *others]


def unstated_needs(engine: str, version: str) -> list[str]:
    """Undeclared requirements of a release: the only versions of other packages that it runs with.

    Args:
        version: Version of its package; empty for the newest, without undeclared requirements.
    """
    return [
        need
        for releases, needs in engines.engine(engine).unstated.items()
        for need in needs
        if version and SpecifierSet(releases).contains(version)
    ]


def chosen_python(engine: str, version: str, options: Sequence[str], folder: Path) -> str:
    """An interpreter with wheels of an engine: the running one, another of this machine, or a version that uv installs.

    Args:
        version: Version of its package; empty for the newest.
        options: Package sources for uv.
        folder: Working folder of uv.

    Raises:
        HarnessError: If no interpreter has wheels, or uv cannot find out.
    """
    want = package(engine, version)
    suited = []
    try:
        for candidate in uv.PYTHONS:
            if uv.has_wheels(want, candidate, options, folder):
                suited.append(candidate)
                if python := uv.interpreter(candidate, folder):
                    return python
    except uv.UvError as error:
        if uv.NO_VERSION in str(error):
            raise HarnessError(f"{want}: the package index has no such version") from error
        raise _without(engine, version, f"{want}: {error}", "--find-links FOLDER") from error
    if not suited:
        raise HarnessError(f"{want}: no wheels for Python {', '.join(uv.PYTHONS)} on this machine")
    return suited[0]


def imported(engine: str) -> tuple[str, str, str]:
    """Import an engine, and return its version and the versions of Python and numpy."""
    importlib.import_module(engines.engine(engine).requires)
    return engines.versions()[engine], platform.python_version(), np.__version__


def _made(folder: Path, engine: str, request: Mapping[str, str]) -> Environment:
    """A new environment in its place."""
    uv.program()  # without which nothing else is worth saying
    wheels = request["find_links"]
    if wheels and not Path(wheels).is_dir():
        raise HarnessError(f"--find-links must be a folder of wheels, got '{wheels}'")
    options = ["--offline", "--no-index", "--find-links", wheels] if wheels else []
    python = request["python"] or chosen_python(engine, request["version"], options, folder)
    for unfinished in folder.glob(f"{DRAFT}{engine}-*"):
        shutil.rmtree(unfinished, ignore_errors=True)  # a uv whose loopcheck was killed may still write there
    draft = Path(tempfile.mkdtemp(prefix=f"{DRAFT}{engine}-", dir=folder))
    try:
        _install(draft, engine, python, request, options)
        version, own_python, numpy = _imported_in(draft, engine)
        shutil.rmtree(draft / COMPILED, ignore_errors=True)  # it names the place where it was made
        size = sum(path.stat().st_size for path in draft.rglob("*") if path.is_file() and not path.is_symlink())
        place = folder / f"{engine}-{version}-py{''.join(own_python.split('.')[:2])}"
        environment = Environment(
            folder=place, engine=engine, version=version, python=own_python, numpy=numpy, size=size, request=request
        )
        environment.write(draft)
        if place.exists():
            shutil.rmtree(place)
        draft.rename(place)
        return environment
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _absolute(text: str) -> str:
    """A path made absolute; any other text, such as a version of Python, unchanged."""
    path = Path(text).expanduser()
    return str(path.absolute()) if text and path.exists() else text


def _install(draft: Path, engine: str, python: str, request: Mapping[str, str], options: Sequence[str]) -> None:
    """Make the environment and put the packages into it."""
    making = ["venv", "--no-project", "--relocatable", "--clear", *(["--offline"] if options else [])]
    try:
        uv.uv((*making, "--python", python, str(draft)), draft.parent)
    except uv.UvError as error:
        reason = str(error)
        if not Path(python).exists():
            reason = f"not installed here, and uv cannot install it: {reason.split(' cause: ')[0]}"
        raise _without(engine, request["version"], f"Python {python}: {reason}", "--python PATH") from error
    packages = packages_with(engine, request["version"], _needs())
    target = ("--python", str(interpreter_in(draft)))
    wheels = ["--only-binary", ":all:"]
    for source in engines.engine(engine).without_wheels:
        wheels += ["--no-binary", source]
    try:
        uv.uv(("pip", "install", *target, *wheels, *options, *packages), draft.parent)
    except uv.UvError as error:
        mend = "--python PATH" if uv.NO_WHEELS.search(str(error)) else "--find-links FOLDER"
        raise _without(engine, request["version"], f"Python {python}: {error}", mend) from error


def _imported_in(draft: Path, engine: str) -> tuple[str, str, str]:
    """Versions by `imported` in the new environment: a check that workers and engine can be imported."""
    python = interpreter_in(draft)
    try:
        versions: tuple[str, str, str] = call(python, imported, (engine,), FIRST_CALL)
    except (LostCallError, TimeoutError) as error:
        raise HarnessError(f"{engine}: cannot be imported in its environment: {error}") from error
    finally:
        end(python)
    return versions


def _needs() -> Iterator[str]:
    """Requirements of worker processes without engines, except MuJoCo, the compiler of models."""
    unneeded = UNNEEDED | {engines.distribution(name) for name in engines.engine_names()} - {"mujoco"}
    return (str(need) for need in _requirements("") if need.name not in unneeded)


def _requirements(extra: str) -> Iterator[Requirement]:
    """Requirements of loopcheck, or of one of its extras, on any Python."""
    for need in map(Requirement, importlib.metadata.requires("loopcheck") or ()):
        marker = need.marker
        if marker is None or "extra" not in str(marker):
            is_asked_for = not extra
        else:
            is_asked_for = bool(extra) and marker.evaluate({"extra": extra})
        if is_asked_for:
            yield need


def _without(engine: str, version: str, reason: str, option: str) -> HarnessError:
    """Error with the reason for a missing environment and the command that makes it."""
    asked = f"{engine}=={version}" if version else engine
    return HarnessError(f"{reason}. Run: loopcheck engines add {asked} {option}")


@contextmanager
def _locked() -> Iterator[Path]:
    """The folder of environments, locked against other processes that make or remove environments."""
    try:
        folder = environments_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(folder / ".lock", blocking=False):
            yield folder
    except Timeout as error:
        raise HarnessError(
            f"{folder}: another loopcheck process changes environments there. Wait for its end"
        ) from error
    except OSError as error:
        raise HarnessError(f"{error.filename}: cannot be written: {error.strerror}") from error
