"""Search of the cheapest settings for an accuracy, from cheap to expensive candidates.

The error of a method is a power of its step. One error therefore excludes all steps that are too coarse. Near the
accuracy all families of settings are tried, as softer loops can compensate a part of the delay due to the step.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from loopcheck.engines.declarations import STEPS, Family, Settings

NEAR = 3.0
"""Largest error of the stiffest loops over the accuracy for runs of softer loops [-]."""
ALIKE = 1.2
"""Largest ratio of costs that count as equal; the settings with fewer changes win [-]."""
BETTER = 0.95
"""Largest error of softer loops over the error of the stiffest loops for further runs [-]."""
MOST_STEPS = 40_000
"""Largest number of steps of a tried motion [-]."""
FEWEST_STEPS = 12
"""Smallest number of steps of a motion; half of them remain after its initial transient [-]."""
LEAP = 4.0
"""Largest refinement of a step between two runs of a method [-]."""
UNJUDGED_LEAP = 2.0
"""Largest refinement of a step if a run completes but cannot be judged [-]."""
TURN = 4.0
"""Largest cost of a method's next step over the cheapest cost for a run in the same round [-]."""
STALLED = 0.8
"""Smallest remaining part of an error after a refined step that shows another cause [-]."""
LASTING = 16.0
"""Range of steps without a verdict that shows a cause other than the step [-]."""
HOPE = 2.0
"""Largest expected improvement by finer steps, relative to the previous, in powers of the step [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A family at a step."""

    family: Family
    step: float
    """Step [s]."""

    @property
    def settings(self) -> Settings:
        """Changed settings, the step among them."""
        return self.family.settings(self.step)

    @property
    def price(self) -> float:
        """Evaluations of the dynamics for a simulated second [1/s]."""
        return self.family.stages / self.step

    @property
    def changes(self) -> int:
        """Number of changed attributes, besides the step."""
        return len(self.settings) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A candidate that has been tried."""

    candidate: Candidate
    error: float
    """Largest error over all motions [-]; infinite if a motion cannot be judged."""
    cost: float
    """Cost of a simulated second [1/s]."""
    lasts: bool = False
    """Whether a run completes but cannot be judged: not followed or not settled."""


Ask = Callable[[Sequence[Candidate], float], Sequence[Scored]]
"""Tries candidates on the motions in turn, up to the first error above a limit; some of them if time runs out."""


@dataclass(slots=True)
class _Method:
    """Progress of the search in a method."""

    families: Sequence[Family]
    steps: list[float]
    """Remaining steps, the coarsest first [s]."""
    softer: Sequence[Family]
    """Families that may be better than the first family."""
    leapt: list[float] = field(default_factory=list)
    """Omitted steps between the last tried step and the next step [s]."""
    halves: bool = False
    """Whether the remaining steps lie between one that fails and one that costs enough: the middle is next."""
    tried: list[Scored] = field(default_factory=list)
    """Results of its first family."""
    unjudged_from: float = 0.0
    """Coarsest of the finest steps without a verdict [s]."""

    @property
    def step(self) -> float:
        """The next step [s]."""
        return self.steps[len(self.steps) // 2 if self.halves else 0]

    @property
    def price(self) -> float:
        """Cost of the next step [1/s]; infinite after the last."""
        return self.families[0].stages / self.step if self.steps else np.inf

    def others(self, scored: Scored, families: Sequence[Family]) -> list[Candidate]:
        """Candidates of some families at a tried step.

        Args:
            scored: A tried candidate.
            families: The families; families with another meaning at this step are left out.
        """
        step = scored.candidate.step
        return [Candidate(family=family, step=step) for family in families if step <= family.longest]

    def go_back(self, scored: Scored) -> None:
        """Look at coarser steps after good settings: at those that were leapt over, or at the coarser half of them.

        An error falls faster than a leap goes by near the end of stability.
        """
        between = self.steps if self.halves else self.leapt
        self.steps = [other for other in between if other > 1.001 * scored.candidate.step]
        self.leapt, self.halves = [], True

    def go_back_from(self, most: float) -> None:
        """Look at steps that were leapt over, if finer steps cost more than settings that are known to be good.

        Args:
            most: Cost of the cheapest good settings [1/s].
        """
        if self.leapt and most <= self.price < np.inf:
            self.steps, self.leapt, self.halves = self.leapt, [], True
        if self.halves:
            self.steps = [step for step in self.steps if self.families[0].stages / step < 0.999 * most]

    def go_on(self, scored: Scored, target: float, own: float) -> None:
        """Exclude steps that are too coarse after the result at one step; exclude all if the error has another cause.

        Args:
            target: Largest allowed error [-].
            own: Step of the file; a run that diverges at this or a smaller step has another cause than its step [s].
        """
        step, error, order = scored.candidate.step, scored.error, 2 if self.families[0].stages > 1 else 1
        if self.halves:
            self.steps = [other for other in self.steps if other < 0.999 * step]
            return
        near = NEAR if self.softer else 1.0
        coarsest = step * min(max((near * target / max(error, target)) ** (1 / order), 1 / LEAP), 1.0)
        if not np.isfinite(error):  # where it gets stable is anywhere, and what is not ends soon
            coarsest = step / UNJUDGED_LEAP if scored.lasts else step
        unjudged = scored.lasts or (not np.isfinite(error) and step <= own)
        self.unjudged_from = max(self.unjudged_from, step) if unjudged else 0.0
        is_over = self.unjudged_from > 0.999 * LASTING * step or self._stalls(scored, near * target)
        self.tried.append(scored)
        finer = [other for other in self.steps if other < 0.999 * step]
        self.steps = [other for other in finer if other <= 1.001 * coarsest] or finer[-1:]
        self.leapt = finer[: len(finer) - len(self.steps)]
        if is_over:
            self.steps = []

    def _stalls(self, scored: Scored, target: float) -> bool:
        """Return whether an error fell so little over a large change of the step that no remaining step suffices."""
        step, error = scored.candidate.step, scored.error
        coarser = [one for one in self.tried if one.candidate.step >= LEAP * step * 0.9 and np.isfinite(one.error)]
        if not (coarser and self.steps and np.isfinite(error)):
            return False
        best = min(coarser, key=lambda one: one.error)
        if error > STALLED * best.error:
            return True
        order = np.log(best.error / error) / np.log(best.candidate.step / step)
        within_reach = error * (min(self.steps[-1], step) / step) ** (HOPE * order)
        return best.error < 1 and bool(within_reach > target)


class Reach(NamedTuple):
    """Limits of a search."""

    span: float
    """Duration of the motion [s]."""
    most: float = np.inf
    """Candidates of this cost or more are not tried [1/s]."""
    finest: Mapping[str, float] = MappingProxyType({})
    """Finest step of a method within a budget [s]."""
    own: float = 0.0
    """Step of the unmodified file [s]."""
    keeps_step: bool = False
    """Whether only this step is tried."""

    def least_step(self, method: str) -> float:
        """Finest step of a method that is tried [s]."""
        return max(self.span / MOST_STEPS, self.finest.get(method, 0.0))


def cheapest(families: Sequence[Family], reach: Reach, target: float, ask: Ask) -> Iterator[Scored]:
    """All tried candidates, until the cheapest candidate below an error is found or time runs out.

    Args:
        families: Families of settings, of each method the most accurate first.
        reach: Limits of the search.
        target: Largest allowed error [-].
        ask: Function that tries candidates.
    """
    methods = _methods(families, reach)
    best = reach.most
    while (price := min(method.price for method in methods.values())) < best:
        turn = {name: one for name, one in methods.items() if one.price <= min(TURN * price, 0.999 * best)}
        results = ask([Candidate(family=one.families[0], step=one.step) for one in turn.values()], target)
        if not results:
            return
        for scored in results:
            method = turn[scored.candidate.family.method]
            at_step = [scored]
            if target < scored.error <= NEAR * target:
                others = ask(method.others(scored, method.softer), max(BETTER * scored.error, target))
                method.softer = [one.candidate.family for one in others if one.error < BETTER * scored.error]
                at_step += others
            if good := choice(at_step, target):
                best = min(best, good.cost)  # no price is above a cost
                simpler = [one for one in method.families if one not in [tried.candidate.family for tried in at_step]]
                fewer = [one for one in method.others(scored, simpler) if one.changes < good.candidate.changes]
                at_step += ask(fewer, target)
            yield from at_step
            if good:
                method.go_back(scored)
            else:
                method.go_on(scored, target, reach.own)
        for method in methods.values():
            method.go_back_from(best)


def _methods(families: Sequence[Family], reach: Reach) -> dict[str, _Method]:
    """All methods before the search, with the steps within reach, by name."""
    every = [reach.own] if reach.keeps_step else STEPS
    methods: dict[str, _Method] = {}
    for name in dict.fromkeys(family.method for family in families):
        steps = [step for step in every if reach.least_step(name) <= step <= reach.span / FEWEST_STEPS]
        of_method = [family for family in families if family.method == name]
        methods[name] = _Method(of_method, steps, of_method[1:])
    return methods


def choice(tried: Sequence[Scored], target: float) -> Scored | None:
    """The cheapest candidate below an error; among about equal costs, the candidate with the fewest changes.

    Args:
        target: Largest allowed error [-].
    """
    good = [one for one in tried if one.error <= target]
    if not good:
        return None
    limit = ALIKE**0.5 * min(one.cost for one in good)
    return min((one for one in good if one.cost <= limit), key=lambda one: (one.candidate.changes, one.cost))
