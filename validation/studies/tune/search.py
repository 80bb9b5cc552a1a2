"""The cheapest settings that reach an accuracy: from what is cheap to what is dear, over steps that could do.

A method errs with a power of its step: one error says from which step on it can reach the accuracy at all, and
whatever is coarser is not tried. Near the accuracy all its families are, as softer loops can take away a part of what
a step is late.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from loopcheck.engines.tuning import STEPS, Family

NEAR = 3.0
"""Largest error of the stiffest loops over the accuracy for trials of softer loops [-]."""
ALIKE = 1.2
"""Largest ratio of costs that count as equal; the settings with fewer changes win [-]."""
BETTER = 0.95
"""Largest error of softer loops over the error of the stiffest loops for further trials [-]."""
MOST_STEPS = 40_000
"""Largest number of steps of a tried motion [-]."""
FEWEST_STEPS = 12
"""Smallest number of steps of a motion; half of them remain after its initial transient [-]."""
LEAP = 4.0
"""Largest refinement of a step between two trials of a method [-]."""
UNJUDGED_LEAP = 2.0
"""Largest refinement of a step if a run completes but cannot be judged [-]."""
TURN = 4.0
"""Largest cost of a method's next step over the cheapest cost for a trial in the same round [-]."""
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
    def price(self) -> float:
        """Evaluations of the dynamics for a simulated second [1/s]."""
        return self.family.stages / self.step

    @property
    def changes(self) -> int:
        """How many attributes it sets, besides the step."""
        return len(self.family.settings(self.step)) - 1


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
"""Tries candidates on the motions in turn, up to the first error above a limit."""


@dataclass(slots=True)
class _Method:
    """How far a method has been followed."""

    families: Sequence[Family]
    steps: list[float]
    """Remaining steps, the coarsest first [s]."""
    softer: Sequence[Family]
    """Families that may be better than the first family."""
    leapt: list[float] = field(default_factory=list)
    """Omitted steps between the last tried step and the next step [s]."""
    tried: list[Scored] = field(default_factory=list)
    """Results of its first family."""
    unjudged_from: float = 0.0
    """Coarsest of the finest steps without a verdict [s]."""

    @property
    def price(self) -> float:
        """Of the next step [1/s]; infinite after the last."""
        return self.families[0].stages / self.steps[0] if self.steps else np.inf

    def others(self, scored: Scored, families: Sequence[Family]) -> list[Candidate]:
        """Some families at a step that has been tried.

        Args:
            scored: What has been tried.
            families: The families; left out are those that mean something else at this step.
        """
        step = scored.candidate.step
        return [Candidate(family=family, step=step) for family in families if step <= family.longest]

    def go_back(self) -> None:
        """Look at steps that were leapt over: an error falls faster than a leap goes by near the end of stability."""
        self.steps, self.leapt = self.leapt, []

    def go_on(self, scored: Scored, target: float, own: float) -> None:
        """Leave out steps that are too coarse by what has been found at one; all if its error has another cause.

        Args:
            scored: What has been found.
            target: Error to stay below [-].
            own: Step of the file, from which on what blows up has another cause than its step [s].
        """
        step, error, order = scored.candidate.step, scored.error, 2 if self.families[0].stages > 1 else 1
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
        """Whether an error fell so little over a leap that no step left will do."""
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
    """How far a search goes."""

    span: float
    """Duration of the motion [s]."""
    most: float = np.inf
    """Candidates of this cost or more are not tried [1/s]."""
    finest: Mapping[str, float] = MappingProxyType({})
    """Finest step of a method within a budget [s]."""
    own: float = 0.0
    """Step of the unmodified file [s]."""

    def least_step(self, method: str) -> float:
        """Finest step of a method that is tried [s].

        Args:
            method: Its name.
        """
        return max(self.span / MOST_STEPS, self.finest.get(method, 0.0))


def cheapest(families: Sequence[Family], reach: Reach, target: float, ask: Ask) -> Iterator[Scored]:
    """All candidates that are tried until the cheapest is found that stays below an error.

    Args:
        families: Families of settings, of each method the most accurate first.
        reach: How far it goes.
        target: Error to stay below [-].
        ask: Tries candidates.
    """
    methods = []
    for name in dict.fromkeys(family.method for family in families):
        steps = [step for step in STEPS if reach.least_step(name) <= step <= reach.span / FEWEST_STEPS]
        of_method = [family for family in families if family.method == name]
        methods.append(_Method(of_method, steps, of_method[1:]))
    best = reach.most
    while (price := min(method.price for method in methods)) < best:
        turn = [method for method in methods if method.price <= min(TURN * price, 0.999 * best)]
        leads = [Candidate(family=method.families[0], step=method.steps[0]) for method in turn]
        for method, scored in zip(turn, ask(leads, NEAR * target), strict=True):
            at_step = [scored]
            if target < scored.error <= NEAR * target:
                others = ask(method.others(scored, method.softer), scored.error)
                method.softer = [one.candidate.family for one in others if one.error < BETTER * scored.error]
                at_step += others
            if good := choice(at_step, target):
                best = min(best, good.cost)  # no price is above a cost
                simpler = [one for one in method.families if one not in [tried.candidate.family for tried in at_step]]
                fewer = [one for one in method.others(scored, simpler) if one.changes < good.candidate.changes]
                at_step += ask(fewer, target)
            yield from at_step
            if good:
                method.go_back()
            else:
                method.go_on(scored, target, reach.own)


def choice(tried: Sequence[Scored], target: float) -> Scored | None:
    """The cheapest that stays below an error; of those that cost about the same, the one that changes least.

    Args:
        tried: What has been tried.
        target: Error to stay below [-].
    """
    good = [one for one in tried if one.error <= target]
    if not good:
        return None
    limit = ALIKE**0.5 * min(one.cost for one in good)
    return min((one for one in good if one.cost <= limit), key=lambda one: (one.candidate.changes, one.cost))
