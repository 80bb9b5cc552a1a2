"""Measurements on batches of an engine: agreement of worlds, steps per second, and errors of efforts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.contract import Batch
from loopcheck.engines.declarations import Settings, Tuning, choices, run_with
from loopcheck.engines.simulation import Robots, State
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.errors import EngineError, HarnessError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import settled
from loopcheck.validation.common.verdicts import MEASURED, NO_LOAD, verdict_of_figure, within

SAME, DIFFERENT = "same", "different"
"""Initial states of the worlds: the same state, or different seeded states."""
ALONE = 3
"""Number of worlds of a batch that also run separately [-]."""
ROUND_OFF = 3.0
"""Largest spread of worlds over the effect of the last digit of the initial state on a world [-]."""
LEAST_TIME = 0.3
"""Shortest timed duration of a batch [s]."""
REPEATS = 3
LONG = 10.0
"""Duration above which a batch is timed only once [s]; its rate is then accurate to a few percent."""
TIMED = 20
"""Number of steps in a timed call [-]."""
EPSILON: Mapping[str, type[np.floating[Any]]] = {"single": np.float32, "double": np.float64}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """Initial states and efforts of worlds."""

    state: State
    tau: Array
    """Efforts, constant over all steps [N or N m], shape (n, na)."""

    def some(self, places: Sequence[int]) -> "Starts":
        """The initial states and efforts of some worlds.

        Args:
            places: Numbers of the worlds.
        """
        q, qd = self.state
        return Starts(state=(q[places], qd[places]), tau=self.tau[places])


def agreement(case: Case, engine: str, precision: str, counts: Sequence[int], steps: int, seed: int) -> list[Row]:
    """Rows for batches of some sizes: worlds with equal starts, and worlds with different starts against single runs.

    Args:
        precision: Single or double.
        counts: Sizes of the batches.
        steps: Number of steps before the comparison of worlds.
        seed: Seed of the initial states.
    """
    first = {**_named(case, engine, precision), "steps": steps}
    try:
        batch, motion = batch_of(engine), prescribe(case)
        rng = np.random.default_rng(seed)
        starts = states(case, motion, rng, max(counts))
        run = _Runs(case, batch, precision, steps)
        round_off = run.round_off(starts.some([0]))
        return [
            {**first, "device": batch.device(), "worlds": count, "start": start, **figures}
            for count in counts
            for start, figures in (
                (SAME, run.alike(starts.some([0] * count), round_off)),
                (DIFFERENT, run.beside_alone(starts.some(range(count)), rng)),
            )
        ]
    except HarnessError as error:
        return unmeasured(case, engine, precision, str(error))


def rates(case: Case, engine: str, precision: str, counts: Sequence[int], seed: int) -> list[Row]:
    """Rows for settings: the effort error of a run with them, and the steps of a batch per second.

    Args:
        precision: Single or double.
        counts: Sizes of the batches; the largest is timed with all settings, the others with the file's own settings.
        seed: Seed of the initial states.
    """
    try:
        batch, motion, tuning = batch_of(engine), prescribe(case), engines.part(engine, "tuning")
        starts, given = states(case, motion, np.random.default_rng(seed), max(counts)), tuning.given(case.mechanism)
        rows: list[Row] = []
        for k, (name, settings) in enumerate(choices(tuning, given).items()):
            row = {
                **_named(case, engine, precision),
                "device": batch.device(),
                "choice": name,
                "settings": "; ".join(f"{option} {value}" for option, value in settings.items()),
                "timestep": float(settings.get("timestep", given.step)),
                **_error(case, motion, engine, settings, precision),
            }
            rows += [
                {**row, **_pace(case, engine, precision, starts.some(range(count)), settings, row["timestep"])}
                for count in (counts[-1:] if k else counts)
            ]
        return rows
    except HarnessError as error:
        return unmeasured(case, engine, precision, str(error))


def _error(case: Case, motion: Motion, engine: str, settings: Settings, precision: str) -> Row:
    """Settled error of a run with settings over the scale, or the reason for no figures."""
    tuning: Tuning = engines.part(engine, "tuning")
    try:
        run = run_with(tuning, case, motion, settings, f"{engine}/{engines.engine(engine).taken_apart}", precision)
        left = settled(case.mechanism, run)
    except HarnessError as error:
        return {"verdict": "not comparable", "note": str(error)}
    if left.reason:
        return {"verdict": "not comparable", "note": left.reason}
    off = {name: _largest(getattr(left, name), left.scale) for name in ("rms", "largest", "floor")}
    verdict = verdict_of_figure(off["rms"] + off["largest"])
    return {**off, "verdict": verdict, "note": "" if verdict == MEASURED else NO_LOAD}


def _pace(case: Case, engine: str, precision: str, starts: Starts, settings: Settings, step: float) -> Row:
    """Steps of a batch per second, or the reason for none."""
    own, count = float(compile_model(case.mechanism.model).opt.timestep), len(starts.tau)
    try:
        fresh = partial(batch_of(engine).worlds, case.mechanism, starts.state, settings, precision)
        pace = steps_per_second(fresh, starts.tau)
    except HarnessError as error:
        return {"worlds": count, "verdict": "not comparable", "note": str(error)}
    return {"worlds": count, "steps_per_second": pace, "rate": pace * step / own}


def batch_of(engine: str) -> Batch:
    """The module of batches of an engine.

    Raises:
        EngineError: If the engine has no such module.
    """
    batch: Batch | None = engines.part(engine, "batch")
    if batch is None:
        raise EngineError(f"{engine}: batches are not supported")
    return batch


def states(case: Case, motion: Motion, rng: np.random.Generator, count: int) -> Starts:
    """Closed states along a motion, at speeds of their own, and the efforts that the motion needs there.

    Args:
        rng: Draws samples and speeds.
        count: How many [-].
    """
    places, speeds = rng.integers(len(motion.t), size=count), rng.uniform(0, 1, (count, 1))
    effort = Noc().compute_efforts(case, motion).effort
    return Starts(state=(motion.q[places], speeds * motion.qd[places]), tau=effort[places])


def steps_per_second(fresh: Callable[[], Robots[EffortSeries]], tau: EffortSeries) -> float:
    """Steps of all worlds together in a second, the best of several [1/s].

    Args:
        fresh: Makes the batch; held efforts lead a robot away, so that it begins anew after some steps.
        tau: Efforts that are held [N or N m], shape (n, na).
    """
    best, whole = np.inf, 0.0
    for _ in range(REPEATS):
        span, runs = 0.0, 0
        while span < LEAST_TIME / REPEATS:
            worlds = fresh()
            begin = time.perf_counter()
            worlds.step(tau, TIMED)
            span, runs = span + time.perf_counter() - begin, runs + 1
        best, whole = min(best, span / runs), whole + span
        if whole > LONG:
            break
    return len(tau) * TIMED / best


def unmeasured(case: Case, engine: str, precision: str, reason: str) -> list[Row]:
    """The row of an engine that could not be measured."""
    verdict = "not run" if precision == ANY else "not comparable"
    return [{**_named(case, engine, precision), "verdict": verdict, "note": reason}]


ANY = ""
"""Precision of an engine without any information."""


@dataclass(frozen=True, slots=True)
class _Runs:
    """Batches of a robot, and the states of their worlds after some steps."""

    case: Case
    batch: Batch
    precision: str
    steps: int

    def ends(self, starts: Starts) -> State:
        """States of worlds after the steps."""
        worlds = self.batch.worlds(self.case.mechanism, starts.state, {}, self.precision)
        worlds.step(starts.tau, self.steps)
        return worlds.state()

    def round_off(self, start: Starts) -> float:
        """Effect of a change of an initial state by its last digit [-], the worse of both directions."""
        q, qd = start.state
        kind = EPSILON[self.precision]
        nudged = [np.nextafter(q.astype(kind), kind(side)).astype(float) for side in (-np.inf, np.inf)]
        own, *others = (self.ends(Starts(state=(positions, qd), tau=start.tau)) for positions in (q, *nudged))
        return max(_apart(own, other) for other in others)

    def alike(self, starts: Starts, round_off: float) -> Row:
        """Distance between worlds with equal starts."""
        q, qd = self.ends(starts)
        return _figures([_apart((q[:1], qd[:1]), (q[k : k + 1], qd[k : k + 1])) for k in range(len(q))], round_off)

    def beside_alone(self, starts: Starts, rng: np.random.Generator) -> Row:
        """Distance of some worlds of a batch from single runs."""
        count = len(starts.tau)
        places = sorted({0, count - 1, *rng.integers(count, size=ALONE - 2).tolist()})
        q, qd = self.ends(starts)
        apart = dict.fromkeys(range(count), np.nan)
        round_off = 0.0
        for place in places:
            one = starts.some([place])
            apart[place] = _apart((q[[place]], qd[[place]]), self.ends(one))
            round_off = max(round_off, self.round_off(one))
        return _figures(list(apart.values()), round_off)


def _figures(apart: Sequence[float], round_off: float) -> Row:
    known = np.array(apart)
    failed = np.flatnonzero(np.isinf(known))
    worst = int(np.nanargmax(known))
    verdict = "agree" if within(known[worst], ROUND_OFF * round_off) else "disagree"
    note = "" if verdict == "agree" else f"world {worst} is farthest"
    if not np.isfinite(round_off):
        verdict = "not comparable"
        note = "a single world is no longer finite; compare after fewer steps with --steps"
    elif failed.size:
        note = f"{failed.size} worlds are no longer finite, beginning with world {failed[0]}"
    return {
        "spread": float(known[worst]),
        "round_off": round_off,
        "world": worst,
        "verdict": verdict,
        "note": note,
    }


def _apart(one: State, other: State) -> float:
    """Distance of two states over the largest position or velocity [-]; infinite if a state is not finite."""
    parts = []
    for a, b in zip(one, other, strict=True):
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return np.inf
        parts.append(float(np.abs(a - b).max() / max(np.abs(a).max(), np.finfo(float).tiny)))
    return max(parts)


def _largest(values: Array, scale: Array) -> float:
    acting = scale > 0
    return float((values[acting] / scale[acting]).max()) if acting.any() else np.nan


def _named(case: Case, engine: str, precision: str) -> dict[str, Any]:
    robot, variant, mode, configuration = case.key
    first = {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration}
    return {**first, "engine": engine, "precision": precision}
