"""Wrong readings of the effort seeded in routes of unmodified simulations.

Such a route has no tolerance. A fault is compared with the error of the route without it: a smaller change of the
efforts is hidden and reported as hidden; a larger change must be visible in the size of the error, or be named as
another reading.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.logs.closed_log import closed_log
from loopcheck.analytic.logs.residual import residual_efforts
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.misreadings import Misread
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Fault, run_of
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.log import Held, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.as_is import Settled, settled
from loopcheck.validation.comparison.readings import in_words, reading_of
from loopcheck.validation.studies.mutants.faults import row_of_fault

TEXTS: Mapping[str, str] = {
    "drive twice": "the drive is applied twice and logged once",
    "one step late": "efforts belong to the previous sample",
    "reaction as effort": "the reaction of the joint replaces the effort of its motor",
    "law at the start": "the control law at the beginning of the step replaces the effort of the drive",
    "law as effort": "the control law of the drive replaces its effort",
    "reported as effort": "the value reported by the engine replaces the effort of the drive",
    "rotors filled in": "default rotors of the engine are kept",
    "default friction": "default friction of the engine is kept",
}
"""Description by kind of fault."""
SAME = 1e-9
"""Changes of the efforts below this are zero, over the scale [-]."""
SEEN = np.sqrt(2)
"""Ratio of errors with and without a fault above which the fault is detected: equal and independent errors [-]."""
HIDDEN = 1 + SEEN
"""Largest ratio of a hidden fault to the error of its route, for a fault opposite to the error [-]."""


def routes(case: Case) -> list[str]:
    """The routes of a case that run it as it is and do not wait to be named."""
    return [name for name in sources.names(case.robot) if sources.is_as_is(name)]


def rows_of_misreadings(case: Case, source: str) -> list[Mapping[str, Any]]:
    """A row for each fault of an unmodified simulation; empty if the engine defines no such fault."""
    faults = engines.faults(source)
    if not faults:
        return []
    try:
        motion = prescribe(case)
        history = sources.load(source).compute_efforts(case, motion)
        sound = _settled(case.mechanism, history)
    except HarnessError as error:
        return [_row(case, source, kind, {"result": "not carried", "note": str(error)}) for kind in faults]
    if sound.reason:
        return [_row(case, source, kind, {"result": "not carried", "note": sound.reason}) for kind in faults]
    found = {kind: _detected(case, motion, (history, sound), fault) for kind, fault in faults.items()}
    return [_row(case, source, kind, dict(fields)) for kind, fields in found.items()]


def not_run(case: Case, source: str, reason: str) -> list[Mapping[str, Any]]:
    """Rows of a lost route.

    Args:
        reason: Reason for the loss.
    """
    usual = ("drive twice", "one step late", "reaction as effort")
    return [_row(case, source, kind, {"result": "not run", "verdict": "not run", "note": reason}) for kind in usual]


def _detected(
    case: Case, motion: Motion, route: tuple[EffortHistory, Settled], fault: Fault
) -> Iterator[tuple[str, Any]]:
    """Finding on one fault, as fields of its row."""
    mechanism, (history, sound) = case.mechanism, route
    try:
        spoilt = fault(float(np.abs(Noc().compute_efforts(case, motion).effort).max()))
        wrong = spoilt.misread_history(history) if isinstance(spoilt, Misread) else spoilt.compute_efforts(case, motion)
        left = _settled(mechanism, wrong)
    except HarnessError as error:
        yield from {"result": "refused", "verdict": "not comparable", "note": str(error)}.items()
        return
    own = _relative(sound.rms, sound.scale)
    changed = _changed(run_of(history).log, run_of(wrong).log, sound)
    worst = int(np.argmax(np.divide(changed, own, out=np.zeros_like(own), where=own > 0)))
    yield "effect", float(changed[worst])
    yield "tolerance", float(own[worst])
    yield "noise", float(_relative(sound.floor, sound.scale)[worst])
    if left.reason:
        yield from {"result": "refused", "verdict": "not comparable", "note": left.reason}.items()
        return
    if changed.max(initial=0.0) <= SAME:
        yield from {
            "result": "not carried",
            "note": "the reading equals the effort here, or the engine has no such reading",
        }.items()
        return
    yield "relative_error", float(_relative(left.rms, left.scale)[worst])
    looks_wrong_without = _named(mechanism, run_of(history).log, sound)
    looks = "" if looks_wrong_without else _named(mechanism, run_of(wrong).log, left)
    is_caught = bool(looks) or bool((left.rms > np.maximum(left.floor, SEEN * sound.rms)).any())
    yield "verdict", "disagree" if is_caught else "informational"
    yield "result", "killed" if is_caught else "below tolerance" if (changed <= HIDDEN * own).all() else "survived"
    times = changed[worst] / own[worst] if own[worst] else np.inf
    size = f"the fault changes the efforts by {changed[worst]:.1e}, {times:.2g} times the error of the route without it"
    yield "note", "; ".join(filter(None, (size, looks)))


def _settled(mechanism: Mechanism, history: EffortHistory) -> Settled:
    return settled(mechanism, run_of(history), most=200)


def _relative(values: Array, scale: Array) -> Array:
    return np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)


def _changed(log: Log, wrong: Log, sound: Settled) -> Array:
    """Change of the efforts by a fault after the initial transient, root mean square over the scale [-], (na,)."""
    after = log.t >= log.t[0] + sound.window
    change = (wrong.effort - log.effort)[after]
    return _relative(np.sqrt((change**2).mean(axis=0)), sound.scale)


def _named(mechanism: Mechanism, log: Log, left: Settled) -> str:
    """Probable readings of the columns that are not the effort; empty if all may be the effort."""
    closed = closed_log(mechanism, log, log.q[0])
    residual = residual_efforts(closed, Held(log.dt), start=float(log.t[0]) + left.window, noiseless=True)
    words = (in_words(reading_of(mechanism, residual, k)) for k in range(mechanism.na))
    return next(filter(None, words), "")


def _row(case: Case, source: str, kind: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return row_of_fault(case, source, (kind, TEXTS.get(kind, kind)), fields)
