"""Causes of a log that disagrees: units, signs, the time and the side of its efforts, and terms that are missing.

Nothing is applied. A conversion is named if the converted log agrees. Otherwise terms are fitted alone and together. A
term is named if alone it brings the residual below the limit or to a third, with every other term that does so:
friction that the model lacks looks like a delay, and the reverse.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from loopcheck.analytic.logs.closed_log import ClosedLog
from loopcheck.analytic.logs.parameters import Estimate, Fit, fit, fitted_slopes, known_parameters
from loopcheck.analytic.logs.rates import wrong_rates
from loopcheck.analytic.logs.residual import Residual, residual_efforts
from loopcheck.robots.arrays import Efforts
from loopcheck.robots.errors import HarnessError, ShapeError
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.log_description import FACTORS, in_words
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison.limits import EXPLAINING, NEAR_GAIN
from loopcheck.validation.comparison.logs import JudgedLog, LogOptions, judge_log, size_of, verdicts

MOTION = {"time": ("ms", "us", "ns"), "angle": ("deg",), "length": ("mm",)}
EFFORTS = {"torque": ("N mm", "kN m"), "force": ("mN", "kN")}
"""Units that may have been forgotten."""


def with_causes(judged: JudgedLog, case: Case, asked: LogOptions) -> JudgedLog:
    """A judged log with the causes of a disagreement; unchanged after any other verdict, and after a fit.

    Args:
        case: Robot, mode and configuration with which the log was judged.
        asked: Options of the judgement.
    """
    closed, judged = judged.closed, replace(judged, closed=None)
    if asked.fitted or closed is None or "disagree" not in _found(judged, asked):
        return judged
    residual = residual_efforts(closed, judged.residuals[0].effort_time, start=asked.start)
    limit = asked.accuracy * judged.required[0].divisor
    conversions = dict(_conversions(judged, case, asked, closed))
    doubts = judged.doubts
    if any(conversions.values()):
        doubts = tuple(doubt for doubt in doubts if not doubt.startswith(("velocities", "accelerations")))
    return replace(judged, causes=tuple(conversions) or tuple(_terms(closed, residual, limit)), doubts=doubts)


def _found(judged: JudgedLog, asked: LogOptions) -> list[str]:
    return [one.verdict for one in verdicts(judged, asked.accuracy, asked.internal_load)]


def _conversions(judged: JudgedLog, case: Case, asked: LogOptions, closed: ClosedLog) -> Iterator[tuple[str, bool]]:
    """Conversions that make the log agree, a phrase each, and whether they make its velocities right too."""
    whole = replace(judged.log, qd=judged.log.qd if judged.unused_velocities is None else judged.unused_velocities)
    of_whole = _converted(judged, whole, case.mechanism)
    for (option, converted), (_, given) in zip(_converted(judged, judged.log, case.mechanism), of_whole, strict=True):
        columns = ("q",) if closed.nearby is not None else ("t", "q", "qd")  # a path of the drives alone has no times
        same = (np.array_equal(getattr(converted, name), getattr(judged.log, name)) for name in columns)
        alike = closed if all(same) else None
        try:
            found = _found(judge_log(case, converted, start=asked.start, alike=alike), asked)
        except HarnessError:  # in other units the motion may leave the workspace
            continue
        if "agree" in found and "disagree" not in found:
            yield f"the log agrees with {option}", not any(wrong_rates(given))


def _converted(judged: JudgedLog, log: Log, mechanism: Mechanism) -> Iterator[tuple[str, Log]]:
    """Options and the log converted by them.

    Args:
        log: The judged log, perhaps with velocities that are not used.
    """
    for quantity, units in MOTION.items():
        for unit in units:
            converted = _in_unit(log, mechanism, quantity, FACTORS[quantity][unit])
            if converted:
                yield _declared(quantity, unit), converted
    for option, factors in _factors(judged, mechanism):
        yield option, replace(log, effort=factors * log.effort)
    for when in (Instantaneous(), Held(log.dt)):
        if log.effort_time is not None and when != log.effort_time:
            yield f"--effort-time {in_words(when)}", replace(log, effort_time=when)


def _factors(judged: JudgedLog, mechanism: Mechanism) -> Iterator[tuple[str, Efforts]]:
    """Options that multiply the efforts, and their factors [-], each of shape (na,)."""
    names, first = judged.log.actuators, judged.residuals[0]
    places = [[actuator.name for actuator in mechanism.actuators].index(name) for name in names]
    torques = np.array([mechanism.actuator_units[k] == "N m" for k in places])
    for quantity, units in EFFORTS.items():
        chosen = torques == (quantity == "torque")
        for unit in units if chosen.any() else ():
            yield _declared(quantity, unit), np.where(chosen, FACTORS[quantity][unit], 1.0)
    gains = (first.effort * first.needed).sum(axis=0) / np.maximum((first.needed**2).sum(axis=0), np.finfo(float).tiny)
    opposite = np.abs(gains[places] + 1) < NEAR_GAIN
    if opposite.any():
        signs = ", ".join(f'"{name}.effort" = -1' for name, is_so in zip(names, opposite, strict=True) if is_so)
        yield f"signs = {{ {signs} }} in its description", np.where(opposite, -1.0, 1.0)
    gears = np.array([mechanism.actuators[k].gear for k in places])
    if (gears != 1).any():
        yield "--effort-side joint", 1 / gears


def _declared(quantity: str, unit: str) -> str:
    return f'units = {{ {quantity} = "{unit}" }} in its description'


def _in_unit(log: Log, mechanism: Mechanism, quantity: str, factor: float) -> Log | None:
    """A log whose times, angles or lengths are taken in another unit; None if it has no such columns."""
    if quantity == "time":
        return replace(log, t=factor * log.t)
    slides = {joint.name for joint in mechanism.joints if joint.kind == "slide"}
    slides |= {drive.name for drive in mechanism.drives if mechanism.effort_unit(drive) == "N"}
    chosen = [
        joint
        for joint, kind in zip(log.joints, log.kinds, strict=True)
        if kind in ("hinge", "slide") and (joint in slides) == (quantity == "length")
    ]
    moved: dict[str, Any] = {}
    for name, place in (("q", 0), ("qd", 1), ("qdd", 1)):
        values = getattr(log, name)
        if values is not None:
            moved[name] = values.copy()
            moved[name][:, [log.columns_of(joint)[place].start for joint in chosen]] *= factor
    return replace(log, **moved) if chosen else None


def _terms(closed: ClosedLog, residual: Residual, limit: Efforts) -> Iterator[str]:
    """Terms that alone explain the residual, a phrase each with an interval that covers both fits.

    Args:
        limit: Largest residual that agrees [N or N m], shape (na,).
    """
    names = known_parameters(closed.mechanism)
    try:
        derivatives = fitted_slopes(closed, residual)
        alone = {name: fit(closed, residual, [name], derivatives) for name in names}
        together = {one.name: one for one in fit(closed, residual, names, derivatives).estimates}
    except ShapeError:  # too short for a fit
        return
    for name, found in alone.items():
        if _explains(found, limit):
            intervals = ", ".join(_interval(one, together[one.name]) for one in found.estimates)
            yield f"--fit {name} explains the residual: {intervals}"


def _explains(found: Fit, limit: Efforts) -> bool:
    """Whether a term brings the residual below the limit or to a third, within physical bounds."""
    if any(one.is_unphysical for one in found.estimates):
        return False
    return bool((found.after.largest <= limit).all()) or size_of(found.after) * EXPLAINING <= size_of(found.before)


def _interval(alone: Estimate, together: Estimate) -> str:
    low, high = (sign * max(sign * one.value + one.half_width for one in (alone, together)) for sign in (-1, 1))
    return f"{alone.name} between {low:.3g} and {high:.3g} {alone.unit}"
