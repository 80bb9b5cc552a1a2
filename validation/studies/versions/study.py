"""Runs the same command in several versions of an engine, and lays their results side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from packaging.version import InvalidVersion, Version

from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.common.results import Results, read
from loopcheck.validation.execution.environments import environments as added_environments
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.studies.versions.comparison import TABLE, versions_table
from loopcheck.validation.studies.versions.environments import (
    EngineVersion,
    made_by_uv,
    of_interpreter,
    rooms,
    run_in,
    this_one,
)
from loopcheck.validation.studies.versions.report import VersionsResult, sections, summary

OLDER = ("3.6.0", "3.7.0")
"""Default versions beside the installed version: MuJoCo changed its solution of loops between them."""
ROUTES = ("kkt", "forward", "as_is")
"""Default routes of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions(Study):
    """A command in every environment in sequence; each resumes from the journal of its own folder."""

    name: ClassVar[str] = "versions"
    page: ClassVar[str] = "versions"
    tables: ClassVar[dict[str, TableSpec]] = {"versions": TABLE}

    environments: Sequence[EngineVersion]
    """Environments, the oldest version first; all of the same engine."""
    arguments: tuple[str, ...]
    """The command and its arguments, without `--out`."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; an interrupted study compares the available results."""
        results: dict[str, Results | str] = {}
        with rooms(folder) as place:
            try:
                places = self.environments
                for environment in pool.progress.track(places, total=len(places), description="versions"):
                    results[environment.version] = _results_of(environment, place, self.arguments, folder)
            except KeyboardInterrupt:
                pass
        by_version = {
            environment.version: results.get(environment.version, "interrupted") for environment in self.environments
        }
        record = {
            "engine": self.environments[0].engine,
            "environments": [
                _record(environment, by_version[environment.version]) for environment in self.environments
            ],
        }
        return Computed({"versions": versions_table(by_version)}, record)

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        comparison = VersionsResult(table=result.tables["versions"], run=result.record)
        return Conclusion(
            title=f"loopcheck: versions of {comparison.engine}",
            sections=sections(comparison),
            summary=list(summary(comparison)),
            verdicts=list(comparison.table["verdict"]),
        )


STUDY = Versions


def environments(engine: str, versions: Sequence[str], interpreters: Sequence[Path]) -> list[EngineVersion]:
    """The environments of a study, the oldest version first; this process is included if it has the engine.

    Args:
        versions: Versions of its package for new environments.
        interpreters: Interpreters of the user.

    Raises:
        HarnessError: If a version is invalid, an interpreter lacks the engine, a version occurs twice, or none is left.
    """
    name = engines.lineage(engine)
    for version in versions:
        _want_version(name, version)
    here = [this_one(engine)] if engines.installed(engine) else []
    every_one = [*here, *(of_interpreter(engine, path) for path in interpreters)]
    for version in dict.fromkeys(versions):
        if version not in {environment.version for environment in every_one}:
            every_one.append(made_by_uv(engine, version))
    ordered = sorted(every_one, key=lambda environment: Version(environment.version))
    if not ordered:
        raise HarnessError(f"--engine must name a version, {engine}==VERSION: {name} is not installed here")
    for one, other in pairwise(ordered):
        if one.version == other.version:
            raise HarnessError(f"{name} {one.version} twice: {one.made} and {other.made}; name another version")
    return ordered


def default_versions(engine: str) -> tuple[str, ...]:
    """The default versions: those between known changes, or those of the environments."""
    added = (environment.version for environment in added_environments() if environment.engine == engine)
    return OLDER if engine == "mujoco" else tuple(added)


def routes_of(engine: str) -> list[str]:
    """Sources that run by default."""
    return [name for name in (f"{engine}/{route}" for route in ROUTES) if name in engines.names()]


def _want_version(name: str, text: str) -> None:
    try:
        Version(text)
    except InvalidVersion as error:
        raise HarnessError(f"version of {name} must be a number such as 3.6.0, got '{text}'") from error


def folder_of(environment: EngineVersion) -> str:
    """Name of the folder of a version's results."""
    return f"{environment.engine}-{environment.version}"


def _results_of(environment: EngineVersion, place: Path, arguments: Sequence[str], out: Path) -> Results | str:
    folder = out / folder_of(environment)
    reason = run_in(environment, place, [*arguments, "--out", str(folder)])
    if reason:
        return reason
    results = read(folder)
    version = (results.run.get("versions") or {}).get(environment.engine)
    name = engines.lineage(environment.engine)
    return results if version == environment.version else f"unexpected version {name} {version}"


def _record(environment: EngineVersion, results: Results | str) -> Mapping[str, Any]:
    ran = isinstance(results, Results)
    return {
        "version": environment.version,
        "made": environment.made,
        "lacks": "" if isinstance(results, Results) else results,
        "folder": folder_of(environment) if ran else "",
        "duration_s": results.run.get("duration_s") if isinstance(results, Results) else None,
        "versions": results.run.get("versions") if isinstance(results, Results) else None,
    }
