"""The ledger of explained differences: data in `known_issues.toml`, each entry measured again by the test it names."""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, field_validator, model_validator

from loopcheck.validation.execution.environments import engine_versions

LEDGER = Path(__file__).with_name("known_issues.toml")
REPRODUCED_BY = "tests/engines/test_known_issues.py"
"""Tests that measure every entry."""


class Issue(BaseModel):
    """A difference between an engine and the equations of motion with a known cause."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str = Field(pattern=r"^[a-z0-9-]+$")
    """Name of the entry, and of its test."""
    title: str
    engine: str
    versions: str
    """Affected versions of the engine, as a specifier of Python packages."""
    sources: tuple[str, ...] = ()
    """Affected sources; empty if every route avoids the issue."""
    robots: tuple[str, ...] = ()
    """Affected robots; empty if the issue depends on a feature of any robot."""
    feature: str
    """Feature of the robot or simulation that causes the issue."""
    quantity: str
    """Measured quantity."""
    unit: str
    size: tuple[float, float]
    """Lowest and highest measured value [unit]."""
    cause: str
    remedy: str
    """Remedy, as applied by the routes."""
    stand_in: str = ""
    """Measured substitute for an older version; empty for the installed version."""
    link: HttpUrl | None = None
    """Documentation or discussion upstream."""

    @field_validator("versions")
    @classmethod
    def _is_a_specifier(cls, versions: str) -> str:
        SpecifierSet(versions)
        return versions

    @model_validator(mode="after")
    def _is_ordered(self) -> "Issue":
        if not self.size[0] <= self.size[1]:
            raise ValueError(f"{self.key}: size must be (low, high) in increasing order, got {self.size}")
        return self

    @property
    def reproduce(self) -> str:
        """The command that measures it."""
        return f'uv run --group dev pytest {REPRODUCED_BY} -k "{self.key}"'

    def applies(self, version: str) -> bool:
        """Return whether the issue is known in a version of the engine."""
        return SpecifierSet(self.versions).contains(version, prereleases=True)


class Ledger(BaseModel):
    """The file of explained differences."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issues: tuple[Issue, ...]


@cache
def known_issues() -> tuple[Issue, ...]:
    """All entries."""
    return Ledger.model_validate(tomllib.loads(LEDGER.read_text(encoding="utf-8"))).issues


def concerning(robots: Sequence[str], sources: Sequence[str]) -> list[Issue]:
    """The entries that concern the engines of some sources, in the versions installed, and some robots.

    Args:
        robots: Names of the robots of a run.
    """
    engines, versions = {source.split("/")[0] for source in sources}, engine_versions()
    return [
        issue
        for issue in known_issues()
        if issue.engine in engines
        and issue.engine in versions
        and issue.applies(versions[issue.engine])
        and (not issue.sources or set(issue.sources) & set(sources))
        and (not issue.robots or set(issue.robots) & set(robots))
    ]
