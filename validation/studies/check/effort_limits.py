"""Ranges that a model has for the efforts of its actuators, against the efforts that the motion needs."""

from collections.abc import Iterable, Iterator

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import EffortLimit
from loopcheck.robots.robot import Case
from loopcheck.validation.judge.evaluate import Outcome


def beyond_limits(references: Iterable[Outcome]) -> dict[str, list[str]]:
    """Actuators of each robot with an effort beyond a range of the model, and the case of the largest excess.

    Args:
        references: Outcomes of the reference, one per case.
    """
    needs: dict[tuple[str, str, str], tuple[float, Case]] = {}
    for outcome in references:
        for actuator, limit, need in _needs(outcome):
            key = (outcome.case.robot.name, actuator, limit)
            if need > 1 and need > needs.get(key, (0.0, None))[0]:
                needs[key] = (need, outcome.case)
    by_robot: dict[str, list[str]] = {}
    for (robot, actuator, limit), (need, case) in needs.items():
        much = f"{need:.2g} times its {limit}" if np.isfinite(need) else f"an effort outside its {limit}"
        by_robot.setdefault(robot, []).append(f"{actuator} needs {much} ({case.mode}, {case.configuration})")
    return by_robot


def _needs(outcome: Outcome) -> Iterator[tuple[str, str, float]]:
    """Actuator, limit, and the largest effort over that limit [-]."""
    if outcome.history is None:
        return
    efforts = dict(zip(outcome.history.actuators, outcome.history.effort.T, strict=True))
    for actuator in outcome.case.mechanism.actuators:
        for limit in actuator.limits:
            yield actuator.name, limit.name, needed(efforts[actuator.name], limit)


def needed(effort: Array, limit: EffortLimit) -> float:
    """The largest effort over the limit on its side [-]; infinite if the range allows no effort on that side.

    Args:
        effort: Effort of one actuator [N or N m], shape (nt,).
        limit: Its range.
    """
    sides = ((effort.max(initial=0.0), max(limit.high, 0.0)), (-effort.min(initial=0.0), max(-limit.low, 0.0)))
    return float(max((most / room if room else np.inf) if most > 0 else 0.0 for most, room in sides))
