"""Causes of a log that disagrees: changes that make it agree, each proven by a judgement with exactly that change.

The search has a limit of CPU time; no verdict depends on it. Trials judge a part of the samples of a long log, and what
they prove is judged once more by all samples.

Simple changes come first: the time of the efforts, the start of the judged samples, another column or sign, units.
Terms of physics are fitted only if no such change is enough. Whatever is chosen by samples (a start, a column, a term)
is chosen by some of them and must hold for the others too. A change that leaves more than the accuracy and the noise
floor is partial: its remaining error is stated.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.parameters import Estimate, known_parameters, parameters
from loopcheck.analytic.logs.residual import Residual, at_rows, evenly
from loopcheck.robots.arrays import AnyArray, Array, Efforts
from loopcheck.robots.errors import HarnessError, ShapeError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.processes import OutOfTime, cpu_time_limit
from loopcheck.robots.robot import Case
from loopcheck.validation.common.accuracy import Requirement
from loopcheck.validation.common.limits import (
    EXPLAINING,
    FOLLOWS,
    LESS,
    LESS_OF_PEAK,
    MOST_CPU,
    NEAR_GAIN,
    ROUND_OFF,
    UNDECIDED_TIMES,
)
from loopcheck.validation.common.readings import REACTION, in_words, reading_of
from loopcheck.validation.judge.log_readings import SAMPLES, over, peak_at, settled_start
from loopcheck.validation.judge.logs import JudgedLog, LogOptions, judge_log, verdicts
from loopcheck.validation.judge.remedies import (
    Remedy,
    acted_over_steps,
    conversions,
    effort_times,
    in_gravity,
    needed_in_gravity,
)

BLOCKS = 8
"""Parts of a log, in turn to choose a term and to test it."""
STARTS = 3
"""Most trials of a later start: a later window has a smaller peak."""
MOST_FLOOR = 0.1
"""Largest noise floor of a proof over the largest required effort [-]; in more noise everything agrees."""
MOST_PARTIAL = 0.5
"""Largest remaining error of a partial change over the largest required effort [-]."""
EARTH = 9.81
"""Usual gravity [m/s²]."""
GRAVITY, GAIN = "gravity", "gain"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """The judgement of a log with a change."""

    remedy: Remedy
    judged: JudgedLog
    accuracy: float

    @property
    def start(self) -> float:
        """First judged time [s]."""
        return float(self.judged.residuals[0].motion.t[0])

    @property
    def errors(self) -> Efforts:
        """Largest errors over the largest required effort, worst of the assumed effort times [-], shape (na,)."""
        return np.max([over(one.largest, required.divisor) for one, required in self._pairs], axis=0)

    @property
    def error(self) -> float:
        """The worst of all actuators [-]."""
        return float(self.errors.max())

    @property
    def shown(self) -> float:
        """Largest error with the best of the assumed effort times [-]."""
        residual, required = self._pairs[0]
        return float(over(residual.largest, required.divisor).max())

    def rms(self, start: float = -np.inf) -> float:
        """Root mean square from a time on, over the largest required effort, worst actuator [-].

        Args:
            start: The time [s].
        """
        residual, required = self._pairs[0]
        return _rms(residual.residual[residual.motion.t >= start], required.divisor)

    @property
    def floor(self) -> float:
        """Noise floor of the error, worst actuator [-]."""
        return float(max(over(one.floor.largest, required.divisor).max() for one, required in self._pairs))

    @property
    def is_within(self) -> bool:
        """Whether every error is within the accuracy and the noise floor."""
        return self.floor <= MOST_FLOOR and all(
            bool((one.largest <= self.accuracy * required.divisor + one.floor.largest)[required.divisor > 0].all())
            for one, required in self._pairs
        )

    @property
    def agrees(self) -> bool:
        """Whether every error agrees together with its floor."""
        return self.error + self.floor <= self.accuracy

    @property
    def words(self) -> str:
        """The change and its effect."""
        if self.agrees:
            return f"the log agrees with {self.remedy} (error {self.error:.2g})"
        return f"within accuracy and noise floor with {self.remedy} (error {self.error:.2g}, floor {self.floor:.2g})"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Estimates of a fit."""
        return tuple(estimate for one in self.judged.fits[:1] for estimate in one.estimates)

    @property
    def _pairs(self) -> list[tuple[Residual, Requirement]]:
        return list(zip(self.judged.residuals, self.judged.required, strict=True))[: self.judged.rivals]


class _Group(NamedTuple):
    """A change at an effort time, on all samples and from a later start on."""

    whole: Trial
    later: Sequence[Trial]

    @property
    def trials(self) -> Sequence[Trial]:
        return [self.whole, *self.later]


class _Chosen(NamedTuple):
    """A term chosen by half of the samples."""

    name: str
    trial: Trial
    values: Array
    start: float | None
    """Start of the settled samples [s]; None if all are."""
    held_out: float
    """Largest error at samples that did not choose the term, over the largest required effort [-]."""
    rms: float
    """Root mean square at these samples, over the same [-]."""
    before: float
    """The same without the term [-]."""


def with_causes(judged: JudgedLog, case: Case, asked: LogOptions) -> JudgedLog:
    """A judged log with the causes of a disagreement; unchanged after any other verdict, and after a fit.

    Args:
        case: Robot, mode and configuration with which the log was judged.
        asked: Options of the judgement.
    """
    closed, read, judged = judged.closed, judged.read, replace(judged, closed=None, read=None)
    if closed is None or not has_causes(judged, asked):
        return judged
    search = _Search(judged=judged, closed=closed, read=read, asked=asked, case=case)
    causes: list[str] = []
    try:
        with cpu_time_limit(MOST_CPU):
            causes.extend(search.causes())
    except OutOfTime:
        causes.append(
            f"the search for causes ended after {search.trials} trials and {MOST_CPU:g} s of CPU time; "
            "a log with fewer rows allows more"
        )
    doubts = judged.doubts
    if search.mends_velocities:
        doubts = tuple(doubt for doubt in doubts if not doubt.startswith(("velocities", "accelerations")))
    return replace(judged, causes=tuple(causes), doubts=doubts)


def has_causes(judged: JudgedLog, asked: LogOptions) -> bool:
    """Return whether a log disagrees and its causes can be looked for."""
    found = [one.verdict for one in verdicts(judged, asked.accuracy, asked.internal_load)]
    return not asked.fitted and judged.given is not None and "disagree" in found


@dataclass(slots=True, kw_only=True)
class _Search:
    """Trials of changes."""

    judged: JudgedLog
    closed: ClosedLog
    read: ClosedLog | None = None
    """See `JudgedLog`."""
    asked: LogOptions
    case: Case
    mends_velocities: bool = False
    """Whether a proven change makes velocities the derivatives of the positions."""
    trials: int = 0
    """Number of trials so far [-]."""

    @property
    def _has_right_times(self) -> bool:
        """Whether velocities are the derivatives of the positions in the unit of the times."""
        given = self.judged.given
        return given is not None and given.qd is not None and self.judged.unused_velocities is None

    def causes(self) -> Iterator[str]:
        """Proven changes, or the best partial change, a phrase each."""
        assert self.judged.given is not None
        plain = Remedy(case=self.case, log=self.judged.given, start=self.asked.start)
        unchanged = list(self._groups(plain))
        groups, first = list(unchanged), self.judged.residuals[0]
        if proven := self._proven(unchanged) or self._first_proven(acted_over_steps(plain), groups):
            yield from self._said(proven)
            return
        if targets := list(self._targets()):  # before all that may resemble such a column
            yield from targets
            return
        changes = conversions(plain, first, has_right_times=self._has_right_times)
        if proven := self._first_proven(changes, groups):
            yield from self._said(proven)
            return
        best = _best_partial(groups, unchanged)
        if other := list(self._reactions(unchanged)):
            yield from other
            return
        base = [group for group in groups if best in group.trials] if best else self._with_known_times(unchanged)
        terms = list(self._terms(base))
        if best and not any("partial" not in words for words in terms):
            yield _partly(best.remedy, best.error, unchanged[0].whole.shown)
        else:
            yield from terms

    def _first_proven(self, remedies: Iterable[Remedy], groups: list[_Group]) -> list[Trial]:
        """Proven trials of the first change that has any.

        Args:
            remedies: The changes, in order.
            groups: Trials so far, first those without a change; all new trials are added.
        """
        unchanged = groups[0].whole
        for remedy in remedies:
            of_remedy = list(self._groups(remedy, unchanged))
            if proven := self._proven(of_remedy):
                return proven
            groups += of_remedy
        return []

    def _proven(self, groups: Sequence[_Group]) -> list[Trial]:
        """Proven trials, each by all samples."""
        return [whole for one in _proven(groups) if (whole := self._by_all_samples(one)) and whole.is_within]

    def _by_all_samples(self, trial: Trial) -> Trial | None:
        return trial if len(trial.judged.residuals[0].bases) < SAMPLES else self._trial(trial.remedy, trial)

    def _said(self, proven: Sequence[Trial]) -> Iterator[str]:
        """The best of some proven changes, and those that are indistinguishable from it."""
        best, *others = proven
        self.mends_velocities = best.remedy.is_of_motion and not any(
            doubt.startswith("velocities") for doubt in best.judged.doubts
        )
        start = max(one.start for one in proven)
        alike = [str(one.remedy) for one in others if one.rms(start) <= UNDECIDED_TIMES * best.rms(start)]
        yield best.words + f"; as well with {', or with '.join(alike)}: not decided" * bool(alike)

    def _trial(self, remedy: Remedy, like: Trial | None = None, most: int | None = None) -> Trial | None:
        """The judgement with a change; None if the log cannot be judged with it.

        Args:
            like: An earlier trial with the same positions.
            most: Largest number of judged samples.
        """
        self.trials += 1
        given, closed = self.judged.given, (like and like.judged.closed) or self.closed
        of_drives = closed.nearby is not None and given is not None and np.array_equal(remedy.log.q, given.q)
        has_times = closed.nearby is None or len(remedy.log.t) <= len(closed.log.t)
        alike = closed if (like or not remedy.is_of_motion or of_drives) and has_times else None
        options: Any = {"start": remedy.start, "fitted": remedy.fitted, "accuracy": self.asked.accuracy}
        try:
            judged = judge_log(remedy.case, remedy.log, alike=alike, most=most, **options)
        except HarnessError:  # in other units the motion may leave the workspace
            return None
        return Trial(remedy=remedy, judged=judged, accuracy=self.asked.accuracy) if judged.residuals else None

    def _groups(self, remedy: Remedy, unchanged: Trial | None = None) -> Iterator[_Group]:
        """A change at all effort times; at no other than its own if it removes little.

        Args:
            remedy: The change.
            unchanged: The log without a change.
        """
        first = self._group(remedy) if unchanged else self._unchanged(remedy)
        if not first:
            return
        yield first
        if remedy.log.effort_time is None:  # then every reading is tried in each judgement
            return
        if unchanged and not first.whole.is_within and not _removes_most(unchanged, first):
            return
        for when in effort_times(remedy.log):
            group = self._group(remedy.at_time(when), first.whole)
            if group:
                yield group

    def _unchanged(self, plain: Remedy) -> _Group:
        """The log as it was judged."""
        judged = replace(self.judged, closed=self.closed, read=self.read)
        return self._with_starts(Trial(remedy=plain, judged=judged, accuracy=self.asked.accuracy))

    def _group(self, remedy: Remedy, like: Trial | None = None) -> _Group | None:
        whole = self._trial(remedy, like, SAMPLES)
        return self._with_starts(whole) if whole else None

    def _with_starts(self, whole: Trial) -> _Group:
        """A trial, and those from later starts on than the stated one."""
        later: list[Trial] = []
        trial, remedy = whole, whole.remedy
        for _ in range(STARTS if remedy.start is not None else 0):
            residual = trial.judged.residuals[0]
            start = None if trial.agrees else self._start(residual, residual.residual, whole)
            following = None if start is None else self._trial(remedy.after(start), whole, SAMPLES)
            if not following:
                break
            later.append(trial := following)
        return _Group(whole, later)

    def _start(self, residual: Residual, left: Array, whole: Trial) -> float | None:
        """End of an unsettled start, by every second sample [s]; None if there is none, or little motion after it.

        Args:
            residual: Residual of some samples.
            left: Its errors [N or N m], shape (n, na).
            whole: The judgement of all samples.
        """
        motion = whole.judged.residuals[0].motion
        return settled_start(residual, left, self.asked.accuracy, motion, stride=2)

    def _targets(self) -> Iterator[str]:
        """Columns that follow the position or velocity of their joint, as targets of a servo do.

        The force of a stiff servo at the beginning of an implicit step follows the velocity, too.
        """
        residual, mechanism = self.judged.residuals[0], self.case.mechanism
        motion = residual.motion
        for k, actuator in enumerate(mechanism.actuators):
            W = mechanism.rates_of([actuator.coordinate])[0]
            q = mechanism.values_of([actuator.coordinate], motion.q)[:, 0]
            for name, values, rate in (("position", q, motion.qd @ W), ("velocity", motion.qd @ W, motion.qdd @ W)):
                column, needed = residual.effort[:, k], residual.needed[:, k]
                distance = _distance(column, values, rate)
                if distance <= min(FOLLOWS, *(_distance(column, sign * needed, rate) / EXPLAINING for sign in (1, -1))):
                    yield (
                        f"'{actuator.name}.effort' follows the {name} of '{actuator.coordinate.name}' (to "
                        f"{100 * distance:.2g} % of its range): a target, not an effort. Log the effort that acted, as "
                        "actuator_force under Euler, or loopcheck.acted_effort"
                    )
                    break

    def _reactions(self, unchanged: Sequence[_Group]) -> Iterator[str]:
        """Columns that are the reaction of their joint, within the accuracy and the noise floor."""
        trials = [trial for group in unchanged for trial in group.trials]
        for k, actuator in enumerate(self.case.mechanism.actuators):
            for trial in reversed(trials):
                (residual, *_), (required, *_) = trial.judged.residuals, trial.judged.required
                reading = reading_of(self.case.mechanism, residual, k)
                limit = self.asked.accuracy * required.divisor[k] + residual.floor.largest[k]
                if reading.names[0] == REACTION and reading.largest <= max(1.0, abs(actuator.gear)) * limit:
                    yield in_words(reading)
                    break

    def _with_known_times(self, groups: Sequence[_Group]) -> Sequence[_Group]:
        """Groups with the declared effort time, or with each of those that are tried."""
        is_declared = self.judged.given is not None and self.judged.given.effort_time is not None
        return groups[:1] if is_declared else groups[1:] or groups

    def _terms(self, base: Sequence[_Group]) -> Iterator[str]:
        """Terms that alone explain the residual with a change, a phrase each; else the best partial term."""
        chosen: dict[str, _Chosen] = {}
        for group in base:
            for one in self._chosen(group):
                if one.name not in chosen or one.rms < chosen[one.name].rms:
                    chosen[one.name] = one
        found = [self._of_term(one) for one in sorted(chosen.values(), key=lambda one: one.rms)]
        proven = [one for one in found if one and one[0]]
        partial = [min(one for one in found if one)] if any(found) else []
        yield from (words for *_, words in sorted(proven) or partial)

    def _of_term(self, chosen: _Chosen) -> tuple[bool, float, str] | None:
        """Whether a term is proven, its error, and both in words; None if it is not worth a word."""
        trial = self._fitted(chosen)
        if not trial or not all(map(_is_sensible, trial.estimates)):
            return None
        estimates = ", ".join(map(_estimate, trial.estimates))
        if trial.is_within and chosen.held_out <= self.asked.accuracy + trial.floor:
            return True, trial.error, f"{trial.words}{': ' * bool(estimates)}{estimates}"
        rms = max(trial.rms(), chosen.rms)
        if chosen.name in (GRAVITY, GAIN) or rms > min(chosen.before / EXPLAINING, MOST_PARTIAL):
            return None
        error = max(trial.error, chosen.held_out)
        left = f"partial: {trial.remedy} leaves an error of {error:.2g} (rms {rms:.2g}, {chosen.before:.2g} without)"
        return False, rms, f"{left}: {estimates}"

    def _chosen(self, group: _Group) -> Iterator[_Chosen]:
        """Terms that remove most of the residual at samples that did not choose them."""
        trial = self._by_all_samples(group.whole)
        if trial is None or trial.judged.read is None:
            return
        residual, closed = trial.judged.residuals[0], trial.judged.read
        rows = evenly(np.arange(len(residual.bases)), SAMPLES)
        few = at_rows(residual, rows)
        t = few.motion.t
        is_later = t >= t[0] + (t[-1] - t[0]) / 3
        scale = peak_at(few, is_later)
        blocks = np.arange(len(t)) * BLOCKS // len(t)
        choosing, testing = is_later & (blocks % 2 == 0), is_later & (blocks % 2 == 1)
        for name in [GAIN, *known_parameters(closed.mechanism), GRAVITY]:
            effect = self._effect(name, closed, residual, few, rows)
            A = over(effect[choosing].transpose(0, 2, 1), scale).transpose(0, 2, 1)
            y = over(few.residual[choosing], scale)
            sizes = np.linalg.norm(A.reshape(-1, A.shape[2]), axis=0)
            if not sizes.any():
                continue
            scaled = A.reshape(-1, A.shape[2]) / np.where(sizes > 0, sizes, 1.0)
            values = np.linalg.lstsq(scaled, y.ravel(), rcond=1e-9)[0] / np.where(sizes > 0, sizes, 1.0)
            left = few.residual - effect @ values
            if name == GRAVITY:
                values += _without_effect(self.case.mechanism.gravity, values, effect)
            start = self._start(few, left, trial)
            tested = testing & (t >= (-np.inf if start is None else start))
            if not tested.any():
                continue
            divisor = peak_at(replace(few, needed=few.needed + effect @ values), tested)
            before, after = (_rms(x[tested], divisor) for x in (few.residual, left))
            if after * EXPLAINING <= before:
                largest = float(over(np.abs(left[tested]), divisor).max())
                yield _Chosen(name, trial, values, start, largest, after, before)

    def _effect(self, name: str, closed: ClosedLog, residual: Residual, few: Residual, rows: AnyArray) -> Array:
        """Residual that the parameters of a term make per unit [N or N m per unit], shape (n, na, parameters)."""
        if name == GRAVITY:
            return _efforts_per_gravity(closed.mechanism, few)
        if name == GAIN:
            return few.needed[:, :, None] * np.eye(few.needed.shape[1])
        if name.startswith("mass:"):
            return np.stack([one.effect for one in parameters(closed, few, name)], axis=-1)
        return np.stack([one.effect[rows] for one in parameters(closed, residual, name)], axis=-1)

    def _fitted(self, chosen: _Chosen) -> Trial | None:
        """The judgement with a term, from the start of its settled samples on."""
        remedy = chosen.trial.remedy
        if chosen.name == GRAVITY:
            gravity = self.case.mechanism.gravity
            changed = np.round(gravity + chosen.values, 3)
            if not any(
                abs(np.linalg.norm(changed) / size - 1) < NEAR_GAIN for size in (EARTH, np.linalg.norm(gravity))
            ):
                return None
            words = f"gravity {_vector(changed)} m/s² instead of {_vector(gravity)}"
            remedy = replace(remedy, case=in_gravity(remedy.case, changed), words=_and(remedy.words, words))
        elif chosen.name == GAIN:
            gains = np.array([float(f"{1 + value:.4g}") for value in chosen.values])
            if (gains <= 0).any():
                return None
            names = [actuator.name for actuator in self.case.mechanism.actuators]
            factors = 1 / gains[[names.index(name) for name in remedy.log.actuators]]
            words = f"the efforts divided by {', '.join(dict.fromkeys(f'{gain:g}' for gain in gains))}"
            remedy = replace(
                remedy, log=replace(remedy.log, effort=factors * remedy.log.effort), words=_and(remedy.words, words)
            )
        else:
            remedy = remedy.fitting(chosen.name)
        try:
            is_found = not remedy.fitted and remedy.start is None  # by the judgement itself
            later = remedy if chosen.start is None or is_found else remedy.after(chosen.start)
            return self._trial(later, chosen.trial)
        except ShapeError:
            return None


def _proven(groups: Sequence[_Group]) -> list[Trial]:
    """Trials within the accuracy with the fewest changes, the smallest residual of their common samples first."""
    within = [trial for group in groups for trial in group.trials if trial.is_within]
    proven = [trial for trial in within if trial.agrees] or within
    fewest = min((trial.remedy.changes for trial in proven), default=0)
    alike = [trial for trial in proven if trial.remedy.changes == fewest]
    start = max((trial.start for trial in alike), default=-np.inf)
    return sorted(alike, key=lambda trial: trial.rms(start))


def _best_partial(groups: Sequence[_Group], unchanged: Sequence[_Group]) -> Trial | None:
    """The change that leaves least, if that is a small part; a further change must bring enough."""
    if not unchanged:
        return None
    before = unchanged[0].whole.shown
    every = [trial for group in groups for trial in group.trials if not trial.remedy.is_all]
    trials = [trial for trial in every if trial.error <= min(before / EXPLAINING, MOST_PARTIAL)]
    best: Trial | None = None
    for trial in sorted(trials, key=lambda trial: (trial.remedy.changes, trial.error)):
        if best is None or trial.error <= min((1 - LESS) * best.error, best.error - LESS_OF_PEAK):
            best = trial
    return best


def _partly(remedy: Remedy, error: float, before: float) -> str:
    return f"partial: {remedy} leaves an error of {error:.2g}, {before:.2g} without"


def _removes_most(unchanged: Trial, changed: _Group) -> bool:
    """Whether a change brings the largest error, after an unsettled start, to a small part."""
    sizes = []
    for trial in (unchanged, changed.whole):
        residual, required = trial.judged.residuals[0], trial.judged.required[0]
        sizes.append(_rms(residual.residual[len(residual.residual) // 2 :], required.divisor))
    return sizes[1] * EXPLAINING <= sizes[0]


def _distance(column: Array, values: Array, rate: Array) -> float:
    """Distance of a column (n,) from a positive multiple of values with a delay and an offset, rms over its range [-].

    Multiple, delay and offset are chosen by some blocks of samples; the distance is that at the others.

    Args:
        rate: Rate of the values, or of a quantity that they follow, shape (n,).
    """
    later = slice(len(column) // 3, None)
    column, A = column[later], np.stack([values, rate, np.ones_like(values)], axis=1)[later]
    sizes = np.maximum(np.linalg.norm(A, axis=0), np.finfo(float).tiny)
    blocks = np.arange(len(column)) * BLOCKS // len(column)
    if np.ptp(column) == 0:
        return np.inf
    factors = np.linalg.lstsq((A / sizes)[blocks % 2 == 0], column[blocks % 2 == 0])[0]
    left = (column - A / sizes @ factors)[blocks % 2 == 1]
    return float(np.sqrt((left**2).mean()) / np.ptp(column)) if factors[0] > 0 else np.inf


def _is_sensible(estimate: Estimate) -> bool:
    """Whether an estimate is physical; a mass is positive throughout its interval."""
    has_bound = 0 < estimate.model < np.inf
    return not estimate.is_unphysical and not (has_bound and estimate.model + estimate.value - estimate.half_width <= 0)


def _estimate(estimate: Estimate) -> str:
    if 0 < estimate.model < np.inf:
        total = estimate.model + estimate.value
        return (
            f"{estimate.name} {total:.4g} ± {estimate.half_width:.2g} {estimate.unit} instead of {estimate.model:.4g}"
        )
    return str(estimate)


def _efforts_per_gravity(mechanism: Mechanism, residual: Residual) -> Array:
    """Efforts that gravity of 1 m/s² along each axis takes [N or N m per m/s²], shape (n, na, 3)."""
    without, *along = (needed_in_gravity(mechanism, residual, gravity) for gravity in (np.zeros(3), *np.eye(3)))
    return np.stack([needed - without for needed in along], axis=-1)


def _without_effect(model: Array, difference: Array, effect: Array) -> Array:
    """Change of gravity that no effort shows [m/s²], shape (3,): a planar robot does not feel gravity across its plane.

    Gravity has the size of that of the model, or the usual size in a model without it, if efforts allow that.

    Args:
        model: Gravity of the model, world axes [m/s²], shape (3,).
        difference: Change that the efforts show, world axes [m/s²], shape (3,).
        effect: Efforts that gravity of 1 m/s² along each axis takes [N or N m per m/s²], shape (n, na, 3).
    """
    _, sizes, axes = np.linalg.svd(effect.reshape(-1, 3), full_matrices=False)
    hidden = axes[sizes <= ROUND_OFF * sizes[0]]
    across = (hidden @ (model + difference)) @ hidden
    felt = float(np.linalg.norm(model + difference - across))
    size = float(np.linalg.norm(model)) or EARTH
    if not len(hidden) or felt >= size * (1 - NEAR_GAIN):
        return -across
    direction = across if across.any() else hidden[0]
    return direction * np.sqrt(size**2 - felt**2) / np.linalg.norm(direction) - across


def _and(*words: str) -> str:
    return " and ".join(filter(None, words))


def _rms(values: Array, divisor: Efforts) -> float:
    """Root mean square of values (n, na) over the largest required efforts, worst actuator [-]."""
    return float(over(np.sqrt((values**2).mean(axis=0)), divisor).max())


def _vector(values: Array) -> str:
    return f"({', '.join(f'{value + 0.0:.4g}' for value in values)})"  # without the sign of a zero
