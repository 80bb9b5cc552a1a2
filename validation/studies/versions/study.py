"""Runs the same command in several versions of MuJoCo, and lays their results side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from packaging.version import InvalidVersion, Version

from robots.errors import HarnessError
from validation.execution.tables import TableSpec
from validation.execution.workers import WorkerPool
from validation.judge.results import Results, read
from validation.studies.study import Computed, Conclusion, Study, StudyResult
from validation.studies.versions.comparison import TABLE, versions_table
from validation.studies.versions.environments import (
    Environment,
    made_by_uv,
    of_interpreter,
    rooms,
    run_in,
    this_one,
)
from validation.studies.versions.report import VersionsResult, sections, summary

OLDER = ("3.6.0", "3.7.0")
"""Run beside the installed version by default: between them MuJoCo changed how loops are solved."""
ROUTES = ("mujoco/kkt", "mujoco/forward", "mujoco/as_is")
"""Sources that run by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions(Study):
    """A command in every environment, one after the other; each goes on by the journal of its own folder."""

    name: ClassVar[str] = "versions"
    page: ClassVar[str] = "versions"
    tables: ClassVar[dict[str, TableSpec]] = {"versions": TABLE}

    environments: Sequence[Environment]
    """The oldest MuJoCo first."""
    arguments: tuple[str, ...]
    """The command and its arguments, without `--out`."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; interrupted, it compares what is there."""
        results: dict[str, Results | str] = {}
        with rooms(folder) as place:
            try:
                places = self.environments
                for environment in pool.progress.track(places, total=len(places), description="versions"):
                    results[environment.mujoco] = _results_of(environment, place, self.arguments, folder)
            except KeyboardInterrupt:
                pass
        by_version = {
            environment.mujoco: results.get(environment.mujoco, "interrupted") for environment in self.environments
        }
        record = {
            "environments": [_record(environment, by_version[environment.mujoco]) for environment in self.environments]
        }
        return Computed({"versions": versions_table(by_version)}, record)

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        comparison = VersionsResult(table=result.tables["versions"], run=result.record)
        return Conclusion(
            title="loopcheck: versions of MuJoCo",
            sections=sections(comparison),
            summary=list(summary(comparison)),
            last=[f"report: {result.folder / 'versions.html'}"],
            verdicts=list(comparison.table["verdict"]),
        )


STUDY = Versions


def environments(versions: Sequence[str], interpreters: Sequence[Path]) -> list[Environment]:
    """The environments of a study, the oldest MuJoCo first; the one of this process is always there.

    Args:
        versions: Of MuJoCo, for which environments are made.
        interpreters: Of environments that the user has.

    Raises:
        HarnessError: If a version is none, an interpreter has no MuJoCo, or two have the same.
    """
    for version in versions:
        _want_version(version)
    every_one = [this_one(), *map(of_interpreter, interpreters)]
    for version in dict.fromkeys(versions):
        if version not in {environment.mujoco for environment in every_one}:
            every_one.append(made_by_uv(version))
    ordered = sorted(every_one, key=lambda environment: Version(environment.mujoco))
    for one, other in pairwise(ordered):
        if one.mujoco == other.mujoco:
            raise HarnessError(f"MuJoCo {one.mujoco} twice: {one.made} and {other.made}; want another version")
    return ordered


def _want_version(text: str) -> None:
    try:
        Version(text)
    except InvalidVersion as error:
        raise HarnessError(f"want a version of MuJoCo as 3.6.0, got '{text}'") from error


def folder_of(version: str) -> str:
    """Name of the folder of a version's results."""
    return f"mujoco-{version}"


def _results_of(environment: Environment, place: Path, arguments: Sequence[str], out: Path) -> Results | str:
    folder = out / folder_of(environment.mujoco)
    reason = run_in(environment, place, [*arguments, "--out", str(folder)])
    if reason:
        return reason
    results = read(folder)
    got = (results.run.get("versions") or {}).get("mujoco")
    return results if got == environment.mujoco else f"it ran with MuJoCo {got}"


def _record(environment: Environment, results: Results | str) -> Mapping[str, Any]:
    ran = isinstance(results, Results)
    return {
        "mujoco": environment.mujoco,
        "made": environment.made,
        "lacks": "" if isinstance(results, Results) else results,
        "folder": folder_of(environment.mujoco) if ran else "",
        "duration_s": results.run.get("duration_s") if isinstance(results, Results) else None,
        "versions": results.run.get("versions") if isinstance(results, Results) else None,
    }
