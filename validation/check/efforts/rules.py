"""The rules of verdicts: one table, asked from its first row on; the first rule that applies decides.

The table is asked once for the first verdicts, and again with the resolution of every route that disagreed then. Where
r is mentioned, it is the part of an effort that the digits of the file leave open (`analytic.dynamics.resolution`): its
loops do not quite close. Routes with rows of their own compute the closures themselves, so their efforts contain it.

A comparison fails closed: a source that did not run, an empty comparison or a value that is not finite never reads
`agree`. Errors are divided by the scale of the same actuator (`loopcheck.analytic.dynamics.powers.effort_scale`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.robots.errors import INTERNAL
from loopcheck.robots.size import size
from loopcheck.validation.check.efforts.outcome import (
    STIFF_ON_GAPS,
    Failed,
    Outcome,
    Ran,
    Reference,
    Unmodified,
    is_stiff_on_gaps,
)
from loopcheck.validation.check.efforts.resolution import Resolution
from loopcheck.validation.common import sources
from loopcheck.validation.common.accuracy import Verdict
from loopcheck.validation.common.limits import FILE_RESOLVES, INTERNAL_LOAD, RESOLVED
from loopcheck.validation.common.tolerances import Tolerance, registered
from loopcheck.validation.common.verdicts import FILE, NO_LOAD, NOT_SUPPORTED, Key
from loopcheck.validation.execution.errors import AUDIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Inputs of the verdicts besides the efforts themselves."""

    tolerances: Mapping[str, Tolerance] = field(default_factory=registered)
    """Tolerances by source."""
    blocking_reasons: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    """Reasons against any comparison with an engine, by case and engine, from `audit.blocking_reasons`."""
    doubts: Mapping[Key, str] = field(default_factory=dict)
    """Doubts about the reference by case, from `audit.doubts`."""
    requested: Sequence[frozenset[str]] | None = None
    """Groups of sources requested by the user, an exact name or the routes of a pattern; None: all by name."""
    resolutions: Mapping[tuple[Key, str], Resolution] = field(default_factory=dict)
    """Measured resolution by case and source; see `compare.unexplained`."""

    def with_cases_beside(self, beside: Mapping[Key, Key]) -> "Evidence":
        """The same evidence, extended to cases without audits of their own.

        Args:
            beside: Keys of the audited cases, by the keys of the cases without audits.
        """
        blocking = {
            (key, reader): reason
            for key, other in beside.items()
            for (case, reader), reason in self.blocking_reasons.items()
            if case == other
        }
        doubts = {key: self.doubts[other] for key, other in beside.items() if other in self.doubts}
        return replace(self, blocking_reasons={**self.blocking_reasons, **blocking}, doubts={**self.doubts, **doubts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The efforts of a source for one actuator, held against the reference."""

    outcome: Outcome
    reference: Outcome
    doubt: Verdict | None
    """On the reference."""
    beyond: Verdict | None
    """By the first exceeded limit of the source besides the effort error."""
    actuator: int
    numbers: Mapping[str, float]
    """Peak, scale and errors of the row."""
    evidence: Evidence

    @property
    def tolerance(self) -> Tolerance | None:
        """Limits of the source, if any are registered."""
        return self.evidence.tolerances.get(self.outcome.source)

    @property
    def limit(self) -> float:
        """Largest relative error, or the accuracy of the user [-]."""
        return (self.tolerance and self.tolerance.relative_error) or 0.0

    @property
    def unresolved(self) -> float:
        """Part of the effort that the digits of the file leave open [N or N m]."""
        unresolved = self.reference.unresolved if isinstance(self.reference, Reference) else None
        return 0.0 if unresolved is None else float(unresolved[self.actuator])

    @property
    def by_effort(self) -> Verdict:
        """Verdict by the effort error alone."""
        measured = self.evidence.resolutions.get((self.outcome.case.key, self.outcome.source))
        name = self.outcome.case.mechanism.actuators[self.actuator].name
        resolution = measured.effort.get(name) if measured else None
        return judge_effort(self.numbers["max_error"], self.limit * self.numbers["scale"], resolution)


class Rule(NamedTuple):
    """A row of the table."""

    when: str
    """When it applies, in words."""
    verdict: Callable[[Claim], Verdict | None]
    """The verdict; None if the rule does not apply."""
    reason: str


def judged(claim: Claim) -> Verdict:
    """Verdict of the first rule that applies, with its note if necessary."""
    return _first(RULES, claim)


def _first(rules: Sequence[Rule], claim: Claim) -> Verdict:
    return next(found for rule in rules if (found := rule.verdict(claim)) is not None)


def _failed(claim: Claim) -> Verdict | None:
    return Verdict(claim.outcome.verdict, "") if isinstance(claim.outcome, Failed) else None


def _is_reference(claim: Claim) -> Verdict | None:
    if claim.outcome.source != sources.REFERENCE:
        return None
    return claim.doubt or Verdict("reference", "")


def _doubted(claim: Claim) -> Verdict | None:
    if claim.doubt is None:
        return None
    why = claim.doubt.note.removeprefix(f"{INTERNAL}: {AUDIT} ")
    return Verdict("not comparable", f"the reference cannot be trusted: {why}")


def _without_limit(claim: Claim) -> Verdict | None:
    if claim.tolerance is None:
        return Verdict("not comparable", "no tolerance is registered for this source")
    return Verdict("informational", "") if claim.tolerance.relative_error is None else None


def _another_robot(claim: Claim) -> Verdict | None:
    for reader in (claim.outcome.source.split("/")[0], FILE):
        if reason := claim.evidence.blocking_reasons.get((claim.outcome.case.key, reader)):
            return Verdict("not comparable", reason)
    return None


def _too_rounded(claim: Claim) -> Verdict | None:
    if isinstance(claim.outcome, Unmodified) and isinstance(claim.reference, Reference):
        limit = FILE_RESOLVES[1] * claim.limit * float(claim.reference.required.divisor[claim.actuator])
    else:
        limit = FILE_RESOLVES[0] * claim.numbers["scale"]
    if claim.unresolved <= limit:
        return None
    closing = claim.outcome.case.mechanism.closing.accuracy
    return Verdict(
        "not comparable",
        f"the digits of the file leave this effort open by {claim.unresolved:.3g}, at most {limit:.3g} can be judged: "
        f"its loops close to {closing:.1e} of its size. Write it with more digits",
    )


def _by_accuracy(claim: Claim) -> Verdict | None:
    if not isinstance(claim.outcome, Unmodified) or not isinstance(claim.reference, Reference):
        return None
    left, required, k = claim.outcome.settled, claim.reference.required, claim.actuator
    if left.reason and not left.bounds:
        return Verdict("not comparable", "")  # the note of the row has it
    load = required.internal_load(k, float(left.internal[k]), claim.limit, INTERNAL_LOAD)
    verdict, note = required.judged(k, float(left.largest[k]), float(left.floor_of_largest[k]), claim.limit)
    if left.bounds and verdict != "agree":
        return Verdict("not comparable", "")
    return Verdict(load.verdict or verdict, "; ".join(filter(None, (load.note, note))))


def _nothing_acts(claim: Claim) -> Verdict | None:
    return Verdict("not comparable", NO_LOAD) if claim.numbers["scale"] == 0 else None


def _rigid_on_gaps(claim: Claim) -> Verdict | None:
    """Ask the rules behind this one, and excuse all but an agreement."""
    if not is_stiff_on_gaps(claim.outcome.case, claim.outcome.source):
        return None
    verdict, note = _first(BY_TOLERANCE, claim)
    if verdict == "agree":
        return Verdict(verdict, note)
    requested = claim.evidence.requested
    is_named = requested is None or frozenset({claim.outcome.source}) in requested
    return Verdict("not comparable" if is_named else NOT_SUPPORTED, f"{STIFF_ON_GAPS} ({note or 'effort error'})")


def _not_finite(claim: Claim) -> Verdict | None:
    if np.isfinite(claim.numbers["relative_error"]):
        return None
    return Verdict("not comparable", "no finite effort of this actuator on the time grid of the reference")


def _file_resolves_no_more(claim: Claim) -> Verdict | None:
    has_own_rows = isinstance(claim.outcome, Ran) and claim.outcome.history.own_rows
    has_own_rows = has_own_rows or is_stiff_on_gaps(claim.outcome.case, claim.outcome.source)
    error, unresolved = claim.numbers["max_error"], RESOLVED * claim.unresolved
    if not has_own_rows or claim.beyond or claim.by_effort.verdict != "disagree" or error > unresolved:
        return None
    tolerance = claim.limit * claim.numbers["scale"]
    figures = f"error {error:.3g}, tolerance {tolerance:.3g}, 3 r {unresolved:.3g}"
    return Verdict("agree", f"agree to 3 r: the file resolves no more ({figures})")


def _beyond_another_limit(claim: Claim) -> Verdict | None:
    if claim.beyond is None or (claim.beyond.note.startswith(INTERNAL) and claim.by_effort.verdict == "disagree"):
        return None
    return claim.beyond


def _by_effort(claim: Claim) -> Verdict:
    return claim.by_effort


BY_TOLERANCE = (
    Rule(
        "the error is not finite", _not_finite, "NaN, an empty comparison and an actuator without a partner never agree"
    ),
    Rule(
        "the error is within 3 r of the file",
        _file_resolves_no_more,
        "routes with rows of their own differ by the rounding of the file, not by a fault",
    ),
    Rule(
        "drift, tracking or an audit of ours is beyond its limit",
        _beyond_another_limit,
        "off the motion an engine computes other efforts; an audit of ours is no excuse",
    ),
    Rule("always", _by_effort, "the error against the tolerance of the route, and what the route resolves"),
)
"""How a route is judged by its tolerance."""
RULES = (
    Rule("there are no efforts", _failed, "without efforts there is nothing to compare: the failure is the verdict"),
    Rule(
        "the source is the reference",
        _is_reference,
        "the reference is judged by its own figures alone: powers, and the sum of its terms",
    ),
    Rule("the reference is in doubt", _doubted, "no engine is blamed, or praised, for a reference in doubt"),
    Rule(
        "no limit is registered, or none for its error",
        _without_limit,
        "a limit chosen after the result would prove nothing",
    ),
    Rule(
        "the audit found another robot",
        _another_robot,
        "an engine that simulates another robot, by the audit of its model, has other efforts",
    ),
    Rule(
        "the file leaves more open than can be judged",
        _too_rounded,
        "two right tools differ by what the digits of the file leave open",
    ),
    Rule(
        "the simulation is unmodified",
        _by_accuracy,
        "an unmodified simulation has the softness of its file: the user's accuracy judges it",
    ),
    Rule("nothing acts on the actuator", _nothing_acts, "an error relative to nothing is no number"),
    Rule(
        "rigid constraints hold loops that do not quite close",
        _rigid_on_gaps,
        "loops of few digits contradict each other, which rigid constraints turn into forces",
    ),
    *BY_TOLERANCE,
)
"""The rules in their order, each with its reason."""


def doubt_of(reference: Outcome, evidence: Evidence) -> Verdict | None:
    """Verdict against the reference, by the readers of its file or by its own figures."""
    if doubt := evidence.doubts.get(reference.case.key):
        return Verdict("disagree", doubt)
    if not isinstance(reference, Ran):
        return Verdict("disagree", "it did not run")
    resolution = evidence.resolutions.get((reference.case.key, sources.REFERENCE))
    return beyond_limits(reference, evidence.tolerances[sources.REFERENCE], resolution)


def judge_effort(error: float, limit: float, resolution: float | None) -> Verdict:
    """Verdict on an effort by its error alone, and its reason if necessary.

    Args:
        error: Largest error over time [N or N m].
        limit: Largest error that agrees [N or N m].
        resolution: Measured resolution of the source [N or N m]; NaN if it could not be measured, None if not measured.
    """
    if error <= limit:
        return Verdict("agree", "")
    if resolution is None:
        return Verdict("disagree", "")
    if np.isnan(resolution):
        figures = f"error {error:.3g}, limit {limit:.3g}"
        return Verdict("not comparable", f"the resolution of this route could not be measured: {figures}")
    figures = f"error {error:.3g}, resolution {resolution:.3g}, limit {limit:.3g}"
    if error <= RESOLVED * resolution:
        return Verdict("not comparable", f"below the resolution of this route: {figures}")
    return Verdict("disagree", figures)


def beyond_limits(outcome: Ran, tolerance: Tolerance, resolution: Resolution | None = None) -> Verdict | None:
    """Verdict by the first exceeded limit besides the effort error."""
    measured = {name: outcome.own_figures.get(name) for name in ("power_imbalance", "term_sum")}
    resolutions, below = {"power_imbalance": resolution.power_balance} if resolution else {}, ""
    for name, value in measured.items():
        limit, resolved, words = getattr(tolerance, name), resolutions.get(name, np.nan), name.replace("_", " ")
        if limit is None or (value is not None and value <= allowed(limit, outcome.case.mechanism)):
            continue
        if value is None or not value <= RESOLVED * resolved:
            got = "not reported" if value is None else f"{value:.3g}"
            return Verdict("not comparable", f"{INTERNAL}: {AUDIT} {words} must be at most {limit:g}, got {got}")
        figures = f"{words} {value:.3g}, resolution {resolved:.3g}, limit {limit:g}"
        below = f"below the resolution of this route: {figures}"
    off = _off_the_motion(outcome, tolerance)
    if off:
        return Verdict("disagree", off)
    return Verdict("not comparable", below) if below else None


def _off_the_motion(outcome: Ran, tolerance: Tolerance) -> str:
    """The first exceeded limit on the source's own state, or an empty text."""
    length = size(outcome.case.mechanism) if outcome.size is None else outcome.size
    for name in ("closure_drift", "tracking_error"):
        deviation, limit = getattr(outcome.history, name, None), getattr(tolerance, name)
        limit = limit if limit is None else allowed(limit, outcome.case.mechanism)
        if limit is None or (deviation is not None and deviation.over(length) <= limit):
            continue
        words = name.replace("_", " ")
        if deviation is None:
            return f"{words} must be at most {limit:g} rad, or {limit:g} of the robot's size, but is not reported"
        figures = (deviation.length, limit * length, "m"), (deviation.angle, limit, "rad")
        got, most, unit = next(figure for figure in figures if not figure[0] <= figure[1])
        return f"{words} must be at most {most:.3g} {unit}, got {got:.3g} {unit}"
    return ""
