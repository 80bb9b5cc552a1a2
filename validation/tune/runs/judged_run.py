"""A judged run with other settings: effort error, and cost of a simulated second."""

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from loopcheck.analytic.logs.evaluation import Slopes
from loopcheck.engines.as_is import Record, as_is_of
from loopcheck.engines.declarations import Given, Settings
from loopcheck.robots.efforts import AsIs
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import Settled, not_followed, settled
from loopcheck.validation.common.accuracy import Requirement
from loopcheck.validation.tune.engine import tuning_of
from loopcheck.validation.tune.runs.purposes import PERTURBED, Purpose

CAUGHT_UP = PERTURBED / 10
"""Largest distance of a drive from its place without a perturbed start once the run is judged, over the stroke [-]."""
NOTHING_ACTS = "no load: no effort to judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """Error and cost of some settings on a motion."""

    purpose: str
    settings: Settings
    error: float = np.inf
    """Largest settled residual over the largest effort that the motion requires [-]; infinite without a verdict."""
    rms: float = np.nan
    """Largest root mean square of a settled residual over the same effort [-]."""
    start: float = np.nan
    """Largest residual in the initial transient over the same effort [-]."""
    floor: float = np.nan
    """Noise floor of `error` [-]."""
    window: float = np.nan
    """Duration of the visible initial transient [s]; infinite if it lasts to the end."""
    gap: float = np.nan
    """Widest opening of a loop [m or rad]."""
    cost: float = np.nan
    """Solver iterations at all stages of all steps of a simulated second [1/s]."""
    actuator: str = ""
    """Actuator with the largest error."""
    reason: str = ""
    """Reason for a missing verdict."""
    ended: bool = False
    """Whether the run completed its motion."""
    follows: bool = True
    """Whether a completed run stays near its motion."""
    too_weak: bool = False
    """Whether the motion is not followed, with actuators at the limits of their ranges."""
    by_servos: bool = False
    """Whether servos of the file hold the drives, so that the bandwidth of the controller has no effect."""
    cpu: float = 0.0
    """CPU time of the run [s]."""
    derivatives: Slopes | None = None
    """Derivatives of the residual by the columns of the log, for other runs along the motion; missing if given."""

    def bound(self, *, start: bool) -> float:
        """Error with its noise floor: at most the accuracy if the efforts agree [-]; infinite without a verdict.

        Args:
            start: Whether the initial transient counts too.
        """
        largest = max(self.error, self.start if start else 0.0) + self.floor
        return np.inf if self.reason or np.isnan(largest) else largest

    @property
    def columns(self) -> Mapping[str, Any]:
        """Its figures, as a row of a table has them."""
        names = ("purpose", "error", "rms", "start", "floor", "window", "gap", "cost", "actuator", "reason")
        return {name: getattr(self, name) for name in names}


class Extent(NamedTuple):
    """Limits of the runs of settings."""

    most: int
    """Number of judged samples of each run, evenly spread."""
    limit: float = np.inf
    """Error on a motion above which the remaining motions are not tried [-]."""
    start: bool = False
    """Whether the initial transient counts too."""
    accuracy: float = 0.0
    """Error below which a run that does not settle is judged [-]."""


def judge_settings(
    case: Case, engine: str, given: Given, purposes: Sequence[Purpose], settings: Settings, extent: Extent
) -> list[JudgedRun]:
    """Results of settings on some motions, up to the first decisive motion; runs in a worker process.

    Args:
        given: The user's simulation.
        settings: Settings to try.
        extent: Limits of the runs; after a motion without a judgement no further motion is tried.
    """
    runs: list[JudgedRun] = []
    begin = time.process_time()
    try:
        prepared = tuning_of(engine).prepared(case.mechanism, settings)
    except HarnessError as error:
        return [JudgedRun(purpose=purposes[0].name, settings=settings, reason=str(error))]
    simulation = _Simulation(
        case=case, engine=engine, given=given, settings=settings, prepared=prepared, accuracy=extent.accuracy
    )
    for purpose in purposes:
        run = simulation.tried(purpose, extent.most)
        begin, before = time.process_time(), begin
        runs.append(replace(run, cpu=begin - before))
        if runs[-1].reason or runs[-1].bound(start=extent.start) > extent.limit:
            break
    return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simulation:
    """A robot in an engine with some settings."""

    case: Case
    engine: str
    given: Given
    settings: Settings
    prepared: Any
    """Tuned model of the engine, computed once for all motions."""
    accuracy: float

    def tried(self, purpose: Purpose, most: int) -> JudgedRun:
        """Result of the settings on a motion, judged on at most so many samples."""
        result = partial(JudgedRun, purpose=purpose.name, settings=self.settings)
        try:
            run = self._run_of(purpose)
            whole, as_is = self._judged_part(purpose, run)
            is_free = purpose.pose is not None and not whole.holds_itself
            start = _caught_up(whole, run(start=0)) if is_free else -np.inf
        except HarnessError as error:
            return result(reason=str(error))
        lost = not_followed(as_is)
        too_weak = bool(as_is.at_limits and lost)
        cost = _cost(self.settings, self.given, whole.iterations)
        result = partial(
            result, ended=True, follows=not lost, too_weak=too_weak, by_servos=whole.holds_itself, cost=cost
        )
        if lost:  # no residual changes this
            return result(reason=lost)
        left = settled(self.case.mechanism, as_is, most=most, start=start, derivatives=purpose.derivatives)
        result = partial(result, derivatives=None if purpose.derivatives else left.derivatives)
        if left.reason and not left.bounds:
            return result(reason=left.reason, window=left.window)
        if not (purpose.required.divisor > 0).any():
            return result(reason=NOTHING_ACTS)
        judged = result(window=left.window, gap=whole.drift.largest, **_figures(purpose.required, left))
        is_bound = judged.bound(start=False) <= self.accuracy
        return judged if is_bound or not left.bounds else result(reason=left.reason, window=np.inf)

    def _judged_part(self, purpose: Purpose, run: Callable[..., Record]) -> tuple[Record, AsIs]:
        """A run along a motion, and its judged part with that of a run from the middle."""
        runs = run(start=0 if purpose.pose is None else purpose.pose), run(start=len(purpose.motion.t) // 2)
        as_is = as_is_of(f"{self.engine}/as_is", self.case, runs)
        if purpose.pose is not None:  # the start is behind by itself
            as_is = replace(as_is, following=0 * as_is.following)
        return runs[0], as_is

    def _run_of(self, purpose: Purpose) -> Callable[..., Record]:
        """Function that simulates a motion from `start`: a sample of it, or joint positions at rest."""
        width = self.given.bandwidth * purpose.bandwidth
        return partial(tuning_of(self.engine).run, pickle.loads(purpose.plan), self.prepared, width)


def _figures(required: Requirement, left: Settled) -> dict[str, Any]:
    """Errors over the required efforts, of the worst actuator each, and the actuator with the largest error."""
    acting = required.divisor > 0
    values = {"error": left.largest, "rms": left.rms, "start": left.start_peak, "floor": left.floor_of_largest}
    relative = {name: value[acting] / required.divisor[acting] for name, value in values.items()}
    worst = required.actuators[int(np.flatnonzero(acting)[np.argmax(relative["error"])])]
    return {**{name: float(value.max()) for name, value in relative.items()}, "actuator": worst}


def _caught_up(perturbed: Record, usual: Record) -> float:
    """Time from which a run with a perturbed start moves as the run without it [s]; infinite if it never does.

    Until then the controller needs far more effort than the motion requires, and the error belongs to that effort. The
    motion itself is no measure: dry friction and soft loops keep both runs off it.
    """
    t, stroke = usual.controller.t, np.maximum(np.ptp(usual.controller.q, axis=0), np.finfo(float).tiny)
    behind = np.flatnonzero((np.abs(perturbed.positions - usual.positions) > CAUGHT_UP * stroke).any(axis=1))
    last = int(behind[-1]) if behind.size else -1
    return float(t[last + 1]) if last + 1 < len(t) else np.inf


def _cost(settings: Settings, given: Given, iterations: float) -> float:
    """Solver iterations at all stages of all steps of a simulated second [1/s]."""
    of_step = 1.0 if np.isnan(iterations) else iterations  # an engine that does not tell: steps alone count
    return of_step / float(settings.get("timestep", given.step))
