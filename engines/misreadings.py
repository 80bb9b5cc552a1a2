"""Numbers mistaken by users for the effort of a drive, as faults of a route with a log."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from loopcheck.robots.efforts import EffortHistory, Fault, Source
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

REACTIONS = {"reaction as effort": "reaction"}


def misread(route: Source, readings: Mapping[str, str] = REACTIONS) -> Mapping[str, Fault]:
    """Faults of a route with a log, by kind of fault.

    Args:
        route: The route.
        readings: Other readings that are taken for the effort, by kind of fault.
    """
    wrong: dict[str, Callable[[Log], Log]] = {"drive twice": applied_twice, "one step late": one_step_late}
    wrong |= {kind: reading_as_effort(reading) for kind, reading in readings.items()}
    return {kind: partial(_misread, route, alter) for kind, alter in sorted(wrong.items())}


def _misread(route: Source, wrong: Callable[[Log], Log], peak: float) -> Source:
    return Misread(route, wrong)


class Misread(Source):
    """A route with another number than the effort in its log."""

    def __init__(self, route: Source, wrong: Callable[[Log], Log]) -> None:
        """Of a route, with the change of its log."""
        self.name = route.name
        self._route, self._wrong = route, wrong

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return self.misread_history(self._route.compute_efforts(case, motion))

    def misread_history(self, history: EffortHistory) -> EffortHistory:
        """History of the route with a misread log."""
        if history.as_is is None:
            return history
        as_is = history.as_is
        log, restarted = self._wrong(as_is.log), self._wrong(as_is.restarted)
        return replace(history, as_is=replace(as_is, log=log, restarted=restarted))


def applied_twice(log: Log) -> Log:
    """The log of a drive that was submitted twice and logged once."""
    return replace(log, effort=log.effort / 2)


def one_step_late(log: Log) -> Log:
    """The log with the effort of the step before in each row."""
    return replace(log, effort=np.concatenate([log.effort[:1], log.effort[:-1]]))


def reading_as_effort(kind: str) -> Callable[[Log], Log]:
    """The log with another reading, as `reaction`, in place of the effort."""
    return lambda log: replace(log, effort=log.readings.get(kind, log.effort))
