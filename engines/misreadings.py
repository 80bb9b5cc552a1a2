"""What users take for the effort of a drive and is not, as faults of a route that returns a log."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from loopcheck.robots.efforts import EffortHistory, Fault, Source
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


def misread(route: Callable[[], Source]) -> Mapping[str, Fault]:
    """What is taken for the effort in the log of a route, by kind of fault.

    Args:
        route: Makes the route.
    """
    return {
        "drive twice": lambda peak: Misread(route(), applied_twice),
        "one step late": lambda peak: Misread(route(), one_step_late),
        "reaction as effort": lambda peak: Misread(route(), reading_as_effort("reaction")),
    }


class Misread(Source):
    """A route whose log holds another number than the effort."""

    def __init__(self, route: Source, wrong: Callable[[Log], Log]) -> None:
        """Of a route, with what is done to its log."""
        self.name = route.name
        self._route, self._wrong = route, wrong

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return self.misread_history(self._route.compute_efforts(case, motion))

    def misread_history(self, history: EffortHistory) -> EffortHistory:
        """What the route returned, misread.

        Args:
            history: As the route returned it.
        """
        if history.as_is is None:
            return history
        as_is = history.as_is
        log, restarted = self._wrong(as_is.log), self._wrong(as_is.restarted)
        return replace(history, as_is=replace(as_is, log=log, restarted=restarted))


def applied_twice(log: Log) -> Log:
    """The drive was submitted twice, and is logged once."""
    return replace(log, effort=log.effort / 2)


def one_step_late(log: Log) -> Log:
    """Each row holds the effort of the step before."""
    return replace(log, effort=np.concatenate([log.effort[:1], log.effort[:-1]]))


def reading_as_effort(kind: str) -> Callable[[Log], Log]:
    """Another reading stands where the effort should.

    Args:
        kind: Of the reading, as `reaction`.
    """
    return lambda log: replace(log, effort=log.readings.get(kind, log.effort))
