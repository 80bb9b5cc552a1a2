"""The engine that is tuned, here or in an environment of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopcheck import engines
from loopcheck.engines.declarations import Family, Given, Settings, Tuning
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.execution.environments import is_there
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool


class LostAnswerError(HarnessError):
    """Loss of the process that asks an engine."""


def tunable() -> list[str]:
    """Available engines with tunable settings."""
    return [name for name in engines.engine_names() if engines.provides(name, "tuning") and is_there(name)]


def want_tunable(engine: str) -> None:
    """Check the name of an engine.

    Raises:
        NotFoundError: If it cannot be tuned or is not available; the message lists the tunable engines.
    """
    if engine not in tunable():
        raise NotFoundError("engine that can be tuned", engine, tunable())


def engine_of_source(source: str) -> str:
    """The engine of an unmodified simulation that can be tuned, as `mujoco/as_is`.

    Raises:
        NotFoundError: If its engine cannot be tuned, or is not installed; the message lists the known sources.
    """
    engine, _, route = source.partition("/")
    if engine not in tunable() or route != "as_is":
        raise NotFoundError("source that can be tuned", source, [f"{name}/as_is" for name in tunable()])
    return engine


def tuning_of(engine: str) -> Tuning:
    """The tuning module of an engine, for worker processes, which can import the engine.

    Raises:
        NotFoundError: If it has none or is not installed; the message lists the tunable engines.
    """
    module: Tuning | None = engines.part(engine, "tuning") if engine in engines.engine_names() else None
    if module is None:
        raise NotFoundError("engine that can be tuned", engine, tunable())
    return module


def want_known_settings(names: Iterable[str], engine: str, given: Given) -> None:
    """Check the names of settings of an engine.

    Raises:
        NotFoundError: If one is unknown; the message lists the known names.
    """
    for name in names:
        if name not in given.settings:
            raise NotFoundError(f"setting of {engine}/as_is", name, given.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTuning:
    """Settings of an engine, computed in a worker process, as the engine may not be importable here.

    Each method raises `LostAnswerError` if that process dies.
    """

    engine: str
    pool: WorkerPool

    def given(self, mechanism: Mechanism) -> Given:
        """See `Tuning.given`."""
        result: Given = self._result("given", mechanism)
        return result

    def families(self, mechanism: Mechanism) -> Sequence[Family]:
        """See `Tuning.families`."""
        result: Sequence[Family] = self._result("families", mechanism)
        return result

    def files(self, mechanism: Mechanism, settings: Settings) -> Mapping[Path, bytes]:
        """See `Tuning.files`."""
        result: Mapping[Path, bytes] = self._result("files", mechanism, dict(settings))
        return result

    def seconds_per_step(self, mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
        """See `Tuning.seconds_per_step`."""
        return float(self._result("seconds_per_step", mechanism, q, dict(settings)))

    def _result(self, what: str, *args: Any) -> Any:
        task = Task(_answer, (self.engine, what, args), engine=self.engine)
        (result,) = self.pool.afresh().results([task], "settings")  # what a step takes is another thing another time
        if isinstance(result, WorkerFailure):
            raise LostAnswerError(f"{self.engine}: {result.reason}")
        return result


def _answer(engine: str, what: str, args: tuple[Any, ...]) -> Any:
    """Result of a function in the tuning module of an engine; runs in a worker process."""
    return getattr(tuning_of(engine), what)(*args)
