"""Entries of the engines: every computed robot, the worst first, and the known issues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from docs.site.entries import Entry
from docs.site.texts import worst_first
from loopcheck import engines
from loopcheck.validation.common.known_issues import Issue, known_issues
from loopcheck.validation.common.verdicts import CaseVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEntry:
    """An engine with its results on all robots."""

    name: str
    """Name of its folder."""
    package: str
    """Name of its package in the package index."""
    lineage: str
    """Name of the code base that computes."""
    versions: tuple[str, ...]
    """Versions with results in these collections."""
    results: Sequence[tuple[Entry, str, CaseVerdict]]
    """Robot, source and finding, worst first; judged findings come before informational findings."""
    losses: Mapping[str, Sequence[Entry]]
    """Robots by difference or missing feature of the engine, most frequent first."""
    issues: Sequence[Issue]
    """Known issues of the engine."""

    @property
    def robots(self) -> int:
        """Number of its robots."""
        return len({entry.name for entry, _, _ in self.results})

    @property
    def largest_as_is(self) -> tuple[Entry, CaseVerdict] | None:
        """The robot with the largest error of the unmodified simulation, or None without a judged robot."""
        errors = [
            (entry, finding)
            for entry, source, finding in self.results
            if source.endswith("/as_is") and finding.error == finding.error
        ]
        return max(errors, key=lambda each: each[1].error, default=None)

    def count(self, verdict: str) -> int:
        """Number of its results with a verdict."""
        return sum(finding.verdict == verdict for _, _, finding in self.results)


def engine_entries(entries: Sequence[Entry]) -> Iterator[EngineEntry]:
    """Entries of all engines in the order of their names.

    Args:
        entries: All robots.
    """
    for name in engines.engine_names():
        results = [
            (entry, source, finding)
            for entry in entries
            for source, finding in entry.of_sources.items()
            if source.startswith(f"{name}/")
        ]
        losses: dict[str, list[Entry]] = {}
        for entry in entries:
            for sentence in entry.losses.get(name, ()):
                losses.setdefault(sentence, []).append(entry)
        computed = {entry.versions[name]: None for entry, _, _ in results if name in entry.versions}
        yield EngineEntry(
            name=name,
            package=engines.distribution(name),
            lineage=engines.lineage(name),
            versions=tuple(computed),
            results=sorted(results, key=lambda each: worst_first(each[2])),
            losses=dict(sorted(losses.items(), key=lambda item: -len(item[1]))),
            issues=[issue for issue in known_issues() if issue.engine == name],
        )
