"""All runs of a tuning, in worker processes, and the rows that say what came of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from engines.tuning import Family, Given, Settings
from robots.arrays import Array
from robots.robot import Case
from validation.execution.journal import Task
from validation.execution.workers import WorkerPool
from validation.studies.tune.engine import tuning_of
from validation.studies.tune.purposes import Purpose
from validation.studies.tune.search import Candidate, Reach, Scored, cheapest
from validation.studies.tune.trial import Trial, try_settings

SEARCHED = 150
"""Samples of a run that are judged while settings are searched for [-]."""
PROVEN = 600
"""Samples of a run that are judged where a figure is certified [-]."""


@dataclass(slots=True, kw_only=True)
class Trials:
    """Tries settings of one robot in one engine."""

    case: Case
    engine: str
    given: Given
    pool: WorkerPool
    include_start: bool
    """Whether the start counts too."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of every trial so far."""
    families: Sequence[Family] = ()
    """What the engine offers, asked for once."""
    _known: dict[str, Scored] = field(default_factory=dict)

    def on(self, phase: str, purposes: Sequence[Purpose], settings: Settings) -> list[Trial]:
        """What some settings give on some motions, one of them a task.

        Args:
            phase: What the rows say of it.
            purposes: The motions.
            settings: What to set.
        """
        trials = [
            trial
            for of_one in self._results([([purpose], settings) for purpose in purposes], PROVEN, phase)
            for trial in of_one
        ]
        self._note(phase, trials)
        return trials

    def scored(self, purposes: Sequence[Purpose], candidates: Sequence[Candidate]) -> list[Scored]:
        """What candidates give at worst on some motions; what has been tried is not tried again.

        Args:
            purposes: The motions; one that the first refuses is not tried on the others.
            candidates: What to try.
        """
        names = [
            repr((candidate.family.settings(candidate.step), [one.name for one in purposes]))
            for candidate in candidates
        ]
        new = {name: one for name, one in zip(names, candidates, strict=True) if name not in self._known}
        asked = [(list(purposes), one.family.settings(one.step)) for one in new.values()]
        for (name, candidate), trials in zip(new.items(), self._results(asked, SEARCHED, "settings"), strict=True):
            self._note("search", trials, candidate.family.method)
            errors = [trial.bound(start=self.include_start) for trial in trials]
            self._known[name] = Scored(candidate=candidate, error=max(errors), cost=trials[0].cost)
        return [self._known[name] for name in names]

    def search(
        self, purposes: Sequence[Purpose], target: float, finest: Mapping[str, float] = MappingProxyType({})
    ) -> list[Scored]:
        """All that is tried until the cheapest settings are found that stay below an error; first is the file as it is.

        Args:
            purposes: The motions.
            target: Error to stay below [-].
            finest: Finest step that a budget leaves to a method [s].
        """
        if not self.families:
            self.families = tuning_of(self.engine).families(self.case.mechanism)
        same = next(family for family in self.families if not family.fixed and not family.timeconst)
        own = [Candidate(family=same, step=self.given.step)] if self.given.step >= finest.get(same.method, 0.0) else []
        tried = self.scored(purposes, own)
        most = min((one.cost for one in tried if one.error <= target), default=np.inf)
        reach = Reach(max(_span(purpose.motion.t) for purpose in purposes), most, finest)
        return [*tried, *cheapest(self.families, reach, target, partial(self.scored, purposes))]

    def choose(self, settings: Settings) -> None:
        """Mark the rows of the settings that are chosen."""
        for row in self.rows:
            row["chosen"] = row["settings"] == in_text(settings)

    def _results(self, asked: Sequence[tuple[Sequence[Purpose], Settings]], most: int, what: str) -> list[list[Trial]]:
        tasks = [
            Task(
                try_settings,
                (self.case, self.engine, self.given, tuple(purposes), dict(settings), most),
                partial(_lost, purposes[0].name, dict(settings)),
            )
            for purposes, settings in asked
        ]
        results: list[list[Trial]] = self.pool.results(tasks, what)
        return results

    def _note(self, phase: str, trials: Sequence[Trial], method: str = "") -> None:
        own = self.given.settings
        for trial in trials:
            self.rows.append(
                {
                    "phase": phase,
                    "method": method or trial.settings.get("integrator", own.get("integrator", "")),
                    "step": float(trial.settings.get("timestep", self.given.step)),
                    "settings": in_text(trial.settings),
                    "chosen": False,
                    **trial.columns,
                }
            )


def _span(t: Array) -> float:
    """How long times (nt,) last [s]."""
    return float(t[-1] - t[0])


def in_text(settings: Settings) -> str:
    """Settings as a row says them."""
    return ", ".join(f'{name}="{value}"' for name, value in settings.items())


def _lost(purpose: str, settings: Settings, reason: str) -> list[Trial]:
    """What stands for a trial whose worker did not survive."""
    return [Trial(purpose=purpose, settings=settings, error=np.inf, reason=reason)]
