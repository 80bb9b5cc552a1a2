"""Parts of the error of an unmodified simulation: causes are removed in sequence, in two orders.

For an engine with single precision only, round-off is the first cause. It is the mean over runs along motions that
differ by round-off, and it is subtracted from all runs alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import LEFT_OUT, Tuning, log_without
from loopcheck.robots.arrays import Array, EffortSeries, root_mean_square
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import residual_series, step_residuals
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Unmodified
from loopcheck.validation.check.efforts.resolution import SEED, ULPS, moved

REST = "rest"
START = "start"
FLOOR = "floor"
BELOW = "the error and its parts are below the noise floor of the log"
PRECISION = "precision"
DIGITS = f"effect of {ULPS} units in the last place of the motion; the engine has no higher precision than double"
"""Note on the precision, which is not a part."""
SHAKEN = 8
"""Number of averaged runs of an engine with single precision only."""
NO_DIGITS = f"mean of {SHAKEN} runs with motions that differ by {ULPS} units in the last place"
"""Replacement of a higher precision for such an engine."""
TOO_CLOSE = 0.2
"""Uncertainty of a share above which its two parts are shown as one part [-]."""
LARGE = 0.1
"""Part of the error above which the rest gets a note [-]."""
STEP, SOFTNESS = "step", "softness"
BOTH = f"{SOFTNESS} × {STEP}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the residual efforts over time."""

    name: str
    residual: Array
    """Change by removal of the cause [N or N m], shape (n, na)."""
    other: Array
    """Change by removal of the causes in the other order [N or N m], shape (n, na)."""


def parts(runs: Mapping[frozenset[str], Array], causes: Sequence[str]) -> list[Part]:
    """Parts of the residual efforts; their sum is the residual of the unmodified run.

    Args:
        runs: Residual efforts by the set of removed causes [N or N m], each of shape (n, na).
        causes: Names in the order of their removal; the first two are also removed in the other order.
    """
    chain = [frozenset(causes[:k]) for k in range(len(causes) + 1)]
    chained = [
        Part(name=cause, residual=runs[before] - runs[after], other=runs[before] - runs[after])
        for cause, before, after in zip(causes, chain[:-1], chain[1:], strict=True)
    ]
    first, second = causes[:2]
    alone = runs[frozenset({second})]
    chained[0] = Part(name=first, residual=chained[0].residual, other=alone - runs[chain[2]])
    chained[1] = Part(name=second, residual=chained[1].residual, other=runs[chain[0]] - alone)
    left = runs[chain[-1]]
    return [*chained, Part(name=REST, residual=left, other=left)]


def share(part: Array, whole: Array) -> float:
    """Share of a part in a residual effort: its projection; the shares of all parts add up to one [-].

    Args:
        part: The part [N or N m], shape (n,).
        whole: The residual effort [N or N m], shape (n,).
    """
    return float(part @ whole / (whole @ whole)) if whole.any() else float("nan")


def budget(case: Case, source: str) -> list[Mapping[str, Any]]:
    """The rows of a case: for each actuator its parts, its rest, and the start and round-off beside them.

    Args:
        source: Name of the route, as `mujoco/as_is`.
    """
    try:
        return list(_rows(case, source))
    except HarnessError as error:
        return missing(case, source, str(error))


def missing(case: Case, source: str, reason: str) -> list[Mapping[str, Any]]:
    """The row of a case without a budget."""
    return [{**_case(case, source), "note": reason}]


def _rows(case: Case, source: str) -> Iterator[Mapping[str, Any]]:
    engine = engines.engine(source.split("/")[0])
    tuning: Tuning | None = engines.part(engine.name, "tuning")
    motion = prescribe(case)
    outcome = evaluate(case, motion, source)
    if tuning is None or not isinstance(outcome, Unmodified) or outcome.settled.reason:
        yield from missing(case, source, outcome.settled.reason if isinstance(outcome, Unmodified) else outcome.note)
        return
    as_is, left = outcome.history.as_is, outcome.settled
    assert as_is is not None  # what `settled` follows from
    whole = residual_series(case.mechanism, as_is.log, motion.q[0])
    judged = whole.t >= whole.t[0] + left.window
    scale = effort_scale(case.mechanism, motion).scale
    removable = (name for name, setting in tuning.SETTINGS.items() if setting.finer)
    causes = tuple(name for name in removable if name != LEFT_OUT or whole.left_out.any())
    is_single = engine.single_precision
    study = _Runs(
        case=case, source=source, tuning=tuning, motion=motion, dt=as_is.log.dt, steps=len(whole.t), is_single=is_single
    )
    runs, averaged = study.runs(whole.residual, causes)
    by_digits = whole.residual - averaged
    of_parts = parts({removed: residual[judged] for removed, residual in runs.items()}, causes)
    if is_single:
        of_parts.insert(0, Part(name=PRECISION, residual=by_digits[judged], other=by_digits[judged]))
    for k, (actuator, unit) in enumerate(zip(case.mechanism.actuators, case.mechanism.actuator_units, strict=True)):
        row = {**_case(case, source), "actuator": actuator.name, "unit": unit, "scale": float(scale[k])}
        yield from _of_actuator(row, of_parts, k)
        floor = float(left.floor[k])
        below = root_mean_square(whole.residual[judged, k]) < floor
        yield {**row, "part": FLOOR, "rms": floor, "largest": float(left.floor_of_largest[k]), "note": BELOW * below}
        tried = {name: (runs[frozenset({name})], tuning.SETTINGS[name].written) for name in causes}
        if is_single:
            tried = {PRECISION: (averaged, NO_DIGITS), **tried}
        else:
            yield {**row, "part": PRECISION, **_sizes(by_digits[judged, k]), "note": DIGITS}
        for name, (residual, setting) in tried.items():
            yield {**row, "part": f"without {name}", **_sizes(residual[judged, k]), "setting": setting}
        yield from _starts(
            row, whole.residual[~judged, k], runs[frozenset({SOFTNESS})][~judged, k] if SOFTNESS in causes else None
        )


def _starts(row: Mapping[str, Any], start: Array, without_softness: Array | None) -> Iterator[Mapping[str, Any]]:
    """Largest residual effort before the judged window, unmodified and, for soft loops, with hard loops."""
    for name, residual in ((START, start), (f"{START} without {SOFTNESS}", without_softness)):
        if residual is not None:
            yield {**row, "part": name, "largest": float(np.abs(residual).max(initial=0.0))}


def _sizes(residual: Array) -> dict[str, float]:
    """Root mean square and largest of a residual effort [N or N m], of shape (n,)."""
    return {"rms": root_mean_square(residual), "largest": float(np.abs(residual).max())}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """Runs with causes removed, on the steps of the unmodified run."""

    case: Case
    source: str
    tuning: Tuning
    motion: Motion
    dt: float
    """Step of the unmodified run [s]."""
    steps: int
    """Number of judged steps."""
    is_single: bool
    """Whether the engine has single precision only."""

    def runs(self, whole: EffortSeries, causes: Sequence[str]) -> tuple[dict[frozenset[str], Array], Array]:
        """Residual efforts by removed causes, and those of runs with perturbed motions and no removed cause [N or N m].

        Args:
            whole: Residual efforts of the unmodified run [N or N m], shape (n, na).
        """
        rng, digits = np.random.default_rng(SEED), np.float32 if self.is_single else np.float64
        shaken = [moved(self.motion, rng, digits) for _ in range(SHAKEN if self.is_single else 1)]
        averaged = self._mean(shaken, frozenset())
        motions = shaken if self.is_single else [self.motion]
        removed = {some: self._mean(motions, some) for some in _wanted(causes)}
        return {frozenset(): averaged if self.is_single else whole, **removed}, averaged

    def _mean(self, motions: Sequence[Motion], removed: frozenset[str]) -> Array:
        run = partial(log_without, source=self.source, precision="" if self.is_single else "double")
        logs = [run(self.tuning, self.case, motion, removed) for motion in motions]
        every = [step_residuals(self.case.mechanism, log, self.motion.q[0]) for log in logs]
        averages = [
            _averaged(of_one, self.steps, round(self.dt / log.dt)) for of_one, log in zip(every, logs, strict=True)
        ]
        return np.mean(averages, axis=0)


def _of_actuator(row: Mapping[str, Any], of_parts: Sequence[Part], k: int) -> Iterator[Mapping[str, Any]]:
    """Shares of the parts of one actuator; softness and step combined if the order of removal matters too much."""
    whole = reduce(np.add, [part.residual[:, k] for part in of_parts])
    yield {**row, "part": "all", "rms": root_mean_square(whole), "share": 1.0, "largest": float(np.abs(whole).max())}
    shares = {part.name: [share(side[:, k], whole) for side in (part.residual, part.other)] for part in of_parts}
    doubt = {name: abs(first - second) / 2 for name, (first, second) in shares.items()}
    together = max(doubt.get(STEP, 0.0), doubt.get(SOFTNESS, 0.0)) > TOO_CLOSE
    if together:
        joined = [part for part in of_parts if part.name in (STEP, SOFTNESS)]
        series = reduce(np.add, [part.residual[:, k] for part in joined])
        yield {**row, "part": BOTH, "rms": root_mean_square(series), "share": share(series, whole), "uncertainty": 0.0}
    for part in of_parts:
        if together and part.name in (STEP, SOFTNESS):
            continue
        rms = root_mean_square(part.residual[:, k])
        large = part.name == REST and rms > LARGE * root_mean_square(whole)
        note = "more than a tenth of the error: remaining error of the finer step, or an unknown cause" if large else ""
        yield {
            **row,
            "part": part.name,
            "rms": rms,
            "share": float(np.mean(shares[part.name])),
            "uncertainty": doubt[part.name],
            "note": note,
        }


def _wanted(causes: Sequence[str]) -> list[frozenset[str]]:
    """Sets of causes to remove together: each alone, and in sequence."""
    alone = [frozenset({cause}) for cause in causes]
    chain = [frozenset(causes[:k]) for k in range(1, len(causes) + 1)]
    return list(dict.fromkeys([*chain, *alone]))


def _averaged(residual: Array, steps: int, finer: int) -> Array:
    """Residual efforts of a run with causes removed, averaged over each step of the unmodified run."""
    count = min(len(residual) // finer, steps)
    averaged = residual[: count * finer].reshape(count, finer, -1).mean(axis=1)
    rest = np.repeat(averaged[-1:], steps - count, axis=0)  # a step at the end that has no finer ones
    return np.concatenate([averaged, rest])


def _case(case: Case, source: str) -> dict[str, Any]:
    """The first columns of a row, and its defaults."""
    robot, variant, mode, configuration = case.key
    first = {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": source}
    return {**first, **dict.fromkeys(("actuator", "unit", "part", "setting", "note"), "")}
