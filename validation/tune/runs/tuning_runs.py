"""All runs of a tuning, in worker processes, and the rows of their results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from loopcheck.analytic.logs.evaluation import Slopes
from loopcheck.engines.declarations import Family, Given, Settings
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.tune.engine import AskedTuning
from loopcheck.validation.tune.runs.judged_run import Extent, JudgedRun, judge_settings
from loopcheck.validation.tune.runs.purposes import Purpose
from loopcheck.validation.tune.search import Candidate, Reach, Scored, cheapest, choice

STEP = "timestep"
"""Name of the step among the settings of every engine."""
SOUGHT = 0.5
"""Part of the CPU time in which cheaper settings than good ones are sought [-]; the rest is for their proof."""
SEARCHED = 150
"""Judged samples of a run during the search [-]."""
FINER = 4.0
"""Refinement of the step of the file that shows too weak actuators at any step [-]."""
PROVEN = 600
"""Judged samples of a run for a certificate [-]."""


@dataclass(slots=True, kw_only=True)
class TuningRuns:
    """Runs of one robot in one engine with different settings."""

    case: Case
    engine: str
    given: Given
    pool: WorkerPool
    include_start: bool
    """Whether the initial transient counts too."""
    accuracy: float = 0.0
    """Error below which a run that does not settle is judged [-]."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of all runs."""
    families: Sequence[Family] = ()
    """Settings offered by the engine, requested once."""
    kept: tuple[str, ...] = ()
    """Names of settings that remain as the user has them."""
    cpu_limit: float = np.inf
    """Largest CPU time of all runs, after which no search or proof begins [s]."""
    cpu: float = 0.0
    """CPU time of the runs so far, stored results included [s]."""
    ended_early: bool = False
    """Whether the last search ended with good settings for want of CPU time, perhaps before the cheapest."""
    left_out: float = 0.0
    """Expected CPU time on all motions of settings that a search without good settings left out for want of it [s]."""
    _hardest: list[str] = field(default_factory=list)
    """Motions by the error of the last settings that were tried on all, the largest first."""
    _known: dict[tuple[str, str], JudgedRun] = field(default_factory=dict)
    """Runs of the search, by settings and motion."""
    _methods: dict[str, str] = field(default_factory=dict)
    """Methods of the tried settings."""
    _paces: dict[str, float] = field(default_factory=dict)
    """CPU time of the last completed run of each method, over the price of its candidate [s2]."""
    _derivatives: dict[str, Slopes] = field(default_factory=dict)
    """Derivatives of the residual by the columns of the log, of the first run along each motion that follows it."""

    @property
    def is_over(self) -> bool:
        """Whether the runs have used their CPU time, or the next settings would."""
        return self.cpu >= self.cpu_limit or self.left_out > 0

    def on(self, phase: str, purposes: Sequence[Purpose], settings: Settings) -> list[JudgedRun]:
        """Results of some settings on some motions, with a task for each motion.

        Args:
            phase: Name of the phase in the rows.
            settings: Settings to try.
        """
        extent = Extent(PROVEN, accuracy=self.accuracy)
        results = self._results([([purpose], settings) for purpose in purposes], extent, phase)
        runs = [run for of_one in results for run in of_one]
        self._note(phase, runs)
        self._keep(runs)  # finer than those of a search
        return runs

    def scored(
        self, purposes: Sequence[Purpose], candidates: Sequence[Candidate], limit: float = np.inf
    ) -> list[Scored]:
        """Worst results of candidates over some motions; results of earlier runs are reused.

        Args:
            purposes: The motions, of which the hardest is tried first; after a failure no further motion is tried.
            candidates: Candidates to try.
            limit: Error on a motion above which the other motions are not tried [-].
        """
        left = [self._left(purposes, one, limit) for one in candidates]
        asked = [(of_one, one.settings) for of_one, one in zip(left, candidates, strict=True) if of_one]
        results = iter(self._results(asked, Extent(SEARCHED, limit, self.include_start, self.accuracy), "settings"))
        for candidate, is_asked in zip(candidates, left, strict=True):
            if is_asked:
                runs = next(results)
                self._methods[in_text(candidate.settings)] = candidate.family.method
                self._note("search", runs)
                self._keep(runs)
                ended = [run.cpu for run in runs if run.ended and run.derivatives is None]
                if ended:
                    self._paces[candidate.family.method] = max(ended) / candidate.price
            self._order(purposes, candidate)
        return [self._worst(purposes, candidate) for candidate in candidates]

    def with_derivatives(self, purpose: Purpose) -> Purpose:
        """The motion with the derivatives of an earlier run along it, if there is one."""
        return replace(purpose, derivatives=self._derivatives.get(purpose.name))

    def _keep(self, runs: Sequence[JudgedRun]) -> None:
        for run in runs:
            self._known[in_text(run.settings), run.purpose] = run
            if run.derivatives:
                self._derivatives.setdefault(run.purpose, run.derivatives)

    def _order(self, purposes: Sequence[Purpose], candidate: Candidate) -> None:
        """Note which motions are the hardest for a candidate that was tried on all."""
        errors = {
            name: run.bound(start=self.include_start) for name, run in self._results_of(purposes, candidate).items()
        }
        if len(errors) == len(purposes) and np.isfinite(list(errors.values())).all():
            self._hardest = sorted(errors, key=lambda name: -errors[name])

    def _left(self, purposes: Sequence[Purpose], candidate: Candidate, limit: float) -> list[Purpose]:
        """Motions on which a candidate is still to be tried; empty if it already exceeds a limit."""
        known = self._results_of(purposes, candidate)
        if any(one.bound(start=self.include_start) > limit or one.reason for one in known.values()):
            return []
        left = [self.with_derivatives(one) for one in purposes if one.name not in known]
        return sorted(left, key=lambda one: self._hardest.index(one.name) if one.name in self._hardest else -1)

    def _worst(self, purposes: Sequence[Purpose], candidate: Candidate) -> Scored:
        runs = self._results_of(purposes, candidate).values()
        bounds = [one.bound(start=self.include_start) for one in runs]
        lasts = any(one.ended and one.reason for one in runs)
        return Scored(candidate=candidate, error=max(bounds), cost=next(iter(runs)).cost, lasts=lasts)

    def reason(self, purposes: Sequence[Purpose], candidate: Candidate) -> str:
        """Reason for a tried candidate without a judgement on some motions, in words.

        Args:
            candidate: The tried candidate.
        """
        known = self._results_of(purposes, candidate)
        return "; ".join(
            f"{name}: {run.reason or 'its error is not finite'}"
            for name, run in known.items()
            if not np.isfinite(run.bound(start=self.include_start))
        )

    def _results_of(self, purposes: Sequence[Purpose], candidate: Candidate) -> dict[str, JudgedRun]:
        """Results of a candidate, by motion."""
        settings = in_text(candidate.settings)
        keys = [(settings, one.name) for one in purposes]
        return {name: self._known[settings, name] for settings, name in keys if (settings, name) in self._known}

    def search(
        self, purposes: Sequence[Purpose], target: float, finest: Mapping[str, float] = MappingProxyType({})
    ) -> list[Scored]:
        """All that is tried until the cheapest settings below an error are found, or the CPU time is over.

        The first is the file as it is.

        Args:
            target: Error to stay below [-].
            finest: Finest step that a budget leaves to a method [s].
        """
        self._ask_for_families()
        reach = self.reach(purposes, finest)
        same = next(family for family in self.families if not family.fixed and not family.timeconst)
        own = [Candidate(family=same, step=self.given.step)] if self.given.step >= finest.get(same.method, 0.0) else []
        tried = self.scored(purposes, own)
        most = min((one.cost for one in tried if one.error <= target), default=np.inf)
        left_out = dict[str, tuple[Candidate, float]]()

        def until() -> float:
            return self.cpu_limit if choice(tried, target) is None else SOUGHT * self.cpu_limit

        def ask(candidates: Sequence[Candidate], limit: float) -> list[Scored]:
            in_time, cpu = list[Candidate](), self.cpu
            for one in candidates:
                left_out.pop(settings := in_text(one.settings), None)
                pace, count = self._pace(one), len(self._left(purposes, one, limit))
                if cpu + pace * count < until():
                    in_time, cpu = [*in_time, one], cpu + pace * min(count, 1)  # most fail on their first motion
                else:
                    left_out[settings] = one, pace * count
            results = self.scored(purposes, in_time, limit)
            tried.extend(results)
            return results

        for _ in cheapest(self.families, reach._replace(most=most), target, ask):
            if self.cpu >= until():
                break
        best = choice(tried, target)
        cheaper = [seconds for one, seconds in left_out.values() if best is None or one.price < best.cost]
        self.ended_early = best is not None and (bool(cheaper) or self.cpu >= until())
        self.left_out = max(cheaper, default=0.0) if best is None else 0.0
        return tried

    def _pace(self, candidate: Candidate) -> float:
        """CPU time of a candidate on a motion, from the last run of its method; 0 if there is none [s]."""
        return self._paces.get(candidate.family.method, 0.0) * candidate.price

    def reach(self, purposes: Sequence[Purpose], finest: Mapping[str, float]) -> Reach:
        """Limits of a search on some motions.

        Args:
            finest: Finest step of each method within the budget [s].
        """
        span = max(float(purpose.motion.t[-1] - purpose.motion.t[0]) for purpose in purposes)
        return Reach(span=span, finest=finest, own=self.given.step, keeps_step=STEP in self.kept)

    def permitted(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Candidates that change no setting that the user keeps."""
        unchanged = [one for one in candidates if one.family.keeps(self.kept, self.given.settings)]
        return [one for one in unchanged if STEP not in self.kept or one.step == self.given.step]

    def too_weak(self, purpose: Purpose) -> str:
        """Methods with actuators too weak for a motion, even at a fraction of the file's step.

        Returns:
            All methods, in words; empty if a method follows the motion or fails for another reason.
        """
        self._ask_for_families()
        firsts = {family.method: family for family in reversed(self.families)}
        finer = self.given.step if STEP in self.kept else self.given.step / FINER
        tried = [Candidate(family=family, step=finer) for family in firsts.values()]
        self.scored([purpose], tried)
        known = [run for candidate in tried for run in self._results_of([purpose], candidate).values()]
        return ", ".join(firsts) if all(run.too_weak for run in known) else ""

    def _ask_for_families(self) -> None:
        if not self.families:
            offered = AskedTuning(engine=self.engine, pool=self.pool).families(self.case.mechanism)
            self.families = [family for family in offered if family.keeps(self.kept, self.given.settings)]

    def choose(self, settings: Settings) -> None:
        """Mark the rows of the settings that are chosen."""
        for row in self.rows:
            row["chosen"] = row["settings"] == in_text(settings)

    def _results(
        self, asked: Sequence[tuple[Sequence[Purpose], Settings]], extent: Extent, what: str
    ) -> list[list[JudgedRun]]:
        tasks = [
            Task(
                judge_settings,
                (self.case, self.engine, self.given, tuple(purposes), dict(settings), extent),
                partial(_lost, purposes[0].name, dict(settings)),
                engine=self.engine,
            )
            for purposes, settings in asked
        ]
        results: list[list[JudgedRun]] = self.pool.results(tasks, what)
        self.cpu += sum(run.cpu for runs in results for run in runs)
        return results

    def _note(self, phase: str, runs: Sequence[JudgedRun]) -> None:
        own = self.given.settings
        for run in runs:
            self.rows.append(
                {
                    "phase": phase,
                    "method": self._methods.get(in_text(run.settings), own.get("integrator", "")),
                    "step": float(run.settings.get("timestep", self.given.step)),
                    "settings": in_text(run.settings),
                    "chosen": False,
                    **run.columns,
                }
            )


def in_text(settings: Settings) -> str:
    """Settings as text in a row."""
    return ", ".join(f'{name}="{value}"' for name, value in settings.items())


def _lost(purpose: str, settings: Settings, reason: str) -> list[JudgedRun]:
    """Result of a run with a lost worker."""
    return [JudgedRun(purpose=purpose, settings=settings, error=np.inf, reason=reason)]
