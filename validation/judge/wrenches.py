"""Judges wrenches in the connections of a log by the accuracy, the noise floor and the tables of its efforts.

Moments and forces of a connection are judged apart, by their lengths over time; the worse of both is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.logged_wrenches import (
    Alternative,
    WrenchLog,
    alternatives,
    residual_wrenches,
    wrench_log,
)
from loopcheck.analytic.logs.residual import LEAST, Residual
from loopcheck.analytic.motion.configurations import normal
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.log import COMMON, Convention, EffortTime, Held, Instantaneous
from loopcheck.robots.logs.log_description import REACTIONS, in_words
from loopcheck.validation.common.accuracy import Verdict
from loopcheck.validation.common.limits import ALIKE, FITS
from loopcheck.validation.common.wrench_errors import WrenchErrors, wrench_errors
from loopcheck.validation.judge.log_readings import Candidate, over, read_as

SAMPLES = 400
"""Most judged samples, evenly spread [-]."""
FEW = 40
"""Samples by which conventions are compared [-]."""
MOST = 3
"""Conventions in a message."""
NEGLIGIBLE = 1e-9
"""Error over the scale below which a part of a wrench tells no time [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWrenches:
    """Findings on the wrenches of a log."""

    reading: EffortTime
    """Time of the wrenches: of the usual times that with the least residual."""
    errors: WrenchErrors
    accuracy: float
    causes: Mapping[str, str] = field(default_factory=dict)
    """Change by which a connection fits, as a phrase."""

    def verdicts(self) -> Iterator[tuple[str, int, Verdict]]:
        """Verdict on each connection, with the number of its worse part."""
        return self.errors.verdicts(self.accuracy, self.causes)

    def summary_rows(self) -> Iterator[dict[str, Any]]:
        """Values of the wrenches in the rows of the summary, by connection."""
        for name, k, (verdict, note) in self.verdicts():
            error, peak, scale = (
                self.errors.figures["largest"][k],
                self.errors.required.peak[k],
                self.errors.required.scale[k],
            )
            yield {
                "actuator": f"{name}.wrench",
                "unit": self.errors.required.units[k],
                "tolerance": self.accuracy,
                "verdict": verdict,
                "note": note,
                "max_error": error,
                "rms_error": self.errors.figures["rms"][k],
                "peak": peak,
                "scale": scale,
                "relative_error": error / scale if scale else np.nan,
                "peak_error": error / peak if peak else np.nan,
                "closure_drift": self.errors.residual.gap,
            }

    def log_rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each connection in the table of logs, without the case."""
        for name, k, _ in self.verdicts():
            yield {
                "actuator": f"{name}.wrench",
                "unit": self.errors.required.units[k],
                "effort_time": in_words(self.reading),
                "assumed": "assumed",
                "filter": self.errors.residual.filter.name,
                "dt": self.errors.residual.motion.dt,
                "from": float(self.errors.residual.motion.t[0]),
                "samples": float(self.errors.residual.floor.samples),
                **{column: values[k] for column, values in self.errors.figures.items()},
                "gap": self.errors.residual.gap,
                "moved": self.errors.residual.moved,
            }


def judge_wrenches(closed: ClosedLog, chosen: Candidate, *, start: float, accuracy: float) -> JudgedWrenches | None:
    """Judge the wrenches of a log; None if it has none.

    Args:
        closed: The log as it is.
        chosen: The reading of its efforts.
        start: First judged time [s].
        accuracy: Largest residual that agrees, over the largest wrench that the motion requires [-].

    Raises:
        NotFoundError: If a connection is unknown.
        MechanismError: If their convention is unknown; the message names those that fit.
    """
    log, mechanism = closed.log, closed.mechanism
    if not log.wrenches:
        return None
    every = [connection.name for connection in connections(mechanism)]
    for name in log.wrenches:
        if name not in every:
            raise NotFoundError(f"connection of {mechanism.model.path.name} in log '{log.name}'", name, every)
    pin = normal(mechanism)
    habits = dict.fromkeys((chosen.reading, Instantaneous(), Held(log.dt), Held(log.dt, until=True)))
    read = [_Reading.of(closed, when, pin, start, FEW) for when in habits]
    best = _Reading.of(closed, min(read, key=lambda one: one.mismatch).reading, pin, start, SAMPLES)
    common = wrench_errors(best.wrenches, best.residual)
    found = JudgedWrenches(reading=best.reading, errors=common, accuracy=accuracy)
    if log.convention and "disagree" not in [one.verdict for _, _, one in found.verdicts()]:
        return found
    errors = []
    for same in zip(*(one.alternatives() for one in read), strict=True):
        sizes = [
            np.where(common.used, over(common.lengths(one.residual).max(axis=0), common.required.divisor), 0)
            for one in same
        ]
        errors.append((same[0], np.min(sizes, axis=0).reshape(-1, 2).max(axis=1)))
    if log.convention is None:
        raise MechanismError(f"log '{log.name}': {_undeclared(errors, accuracy)}")
    whole = _cause(log.convention, [(one, float(error.max())) for one, error in errors], accuracy)
    causes = {
        name: whole or _cause(log.convention, [(one, float(error[k])) for one, error in errors], accuracy)
        for k, name in enumerate(common.names)
    }
    return replace(found, causes=causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Wrenches of a log at an assumed time."""

    reading: EffortTime
    wrenches: WrenchLog
    residual: Residual
    internal: Array
    """Internal load of redundant drives, as logged [N or N m], shape (n, na)."""

    @classmethod
    def of(cls, closed: ClosedLog, when: EffortTime, pin: Array | None, start: float, most: int) -> "_Reading":
        """The residual of a reading, by some samples from a time on."""
        shifted = read_as(closed, when)
        acted = Held(when.seconds) if shifted is not closed and isinstance(when, Held) else when
        wrenches = wrench_log(shifted, closed.log.convention or COMMON, pin)
        residual, internal = residual_wrenches(shifted, wrenches, acted, start=start, most=most)
        return cls(reading=when, wrenches=wrenches, residual=residual, internal=internal)

    @property
    def mismatch(self) -> float:
        """Logarithm of the errors of all parts over their scales: those that are right tell the time, others do not."""
        error = np.linalg.norm(self.residual.rms.reshape(-1, 3), axis=1) / np.maximum(self.residual.scale[::3], LEAST)
        return float(np.log(np.maximum(error, NEGLIGIBLE)).sum())

    @property
    def states(self) -> States:
        """The judged states."""
        motion = self.residual.motion
        return States(q=motion.q, qd=motion.qd, qdd=motion.qdd)

    def alternatives(self) -> Iterator[Alternative]:
        """Other meanings of the wrenches."""
        logged = self.residual.filter.effort.applied(self.wrenches.effort, self.residual.bases)
        return alternatives(self.wrenches, self.states, logged, self.internal)


def _fitting(errors: Sequence[tuple[Alternative, float]], accuracy: float) -> list[tuple[Alternative, float]]:
    """Alternatives that fit, the best first, and others that fit about as well."""
    ordered = sorted((one for one in errors if np.isfinite(one[1])), key=lambda one: one[1])
    if not ordered or ordered[0][1] > FITS:
        return []
    return [one for one in ordered if one[1] <= max(ALIKE * ordered[0][1], accuracy)]


def _undeclared(errors: Sequence[tuple[Alternative, Array]], accuracy: float) -> str:
    """Message on wrenches without a convention."""
    form = " ".join(f"{key}={'|'.join(values)}" for key, values in REACTIONS.items())
    words = f"wrenches must have a convention: add the line '# reactions: {form}' above the table"
    fits = _fitting([(one, float(np.max(error))) for one, error in errors if not one.change], accuracy)
    if not fits:
        return f"{words}; no convention fits the motion"
    texts = [f"'{one.convention}'" for one, _ in fits]
    if len(fits) == 1:
        return f"{words}; {texts[0]} fits the motion (error {fits[0][1]:.2g} of the largest wrench)"
    more = f" and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return f"{words}; several fit the motion alike (error {fits[0][1]:.2g}): {', '.join(texts[:MOST])}{more}"


def _cause(stated: Convention, errors: Sequence[tuple[Alternative, float]], accuracy: float) -> str:
    """The simplest change by which all logged connections, or one, fit, as a phrase; empty if there is none."""
    error = next(size for one, size in errors if one.convention == stated and not one.change)
    fits = _fitting(errors, accuracy)
    if not fits or ALIKE * fits[0][1] > error:
        return ""
    changes = []
    for one, size in fits:
        keys = [part for part in str(one.convention).split() if part not in str(stated).split()]
        changes.append(([*keys, one.change] if one.change else keys, size))
    change, size = min(changes, key=lambda one: (len(one[0]), "axes=parent" in one[0]))
    return f"fits with {' '.join(change)}: error {size:.2g} instead of {error:.2g}"
