"""Forward routes: one simulation per step size, and the efforts of a route from all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from loopcheck.engines.equations import carried_note
from loopcheck.engines.extrapolation import readings_at_zero, relative_change, unsettled, without_step
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.efforts import Deviation, EffortHistory, Limits, Rung, deviation_of
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size_in_motion

LONGEST = 0.05
"""Longest time that is divided into equal steps [s]: a sample of the motion, or an equal part of a longer sample."""
FINER = 2
"""Divisor of the steps for robots with unactuated motions, which may vibrate on springs [-]."""
SPARE = 60.0
"""Ratio of the limit of the error to the estimated error above which finer steps are omitted [-].

It exceeds the least ratio of a tolerance to its noise, 50.
"""
ON_COURSE = 10.0
"""Ratio of the limits of drift and tracking error to their values above which finer steps are omitted [-]."""
EXTRAPOLATED = "first-order steps, extrapolated to zero step size; drift and tracking error at the finest step"
"""Note of a route with steps of first order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of a simulation at the samples of the motion."""

    dt: float
    """Step of the engine [s]."""
    drives: Sequence[int]
    """Places of the driven coordinates that are driven."""
    forces: Array
    """Efforts of these drives [N or N m], shape (nt, drives driven)."""
    tracked: Sequence[Coordinate]
    """The coordinates that are compared with the motion."""
    miss: Array
    """Distances of these from the motion [m or rad], shape (nt, tracked)."""
    drift: Deviation
    """Largest opening of a loop."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Wrenches of the connections by reading, see `loopcheck.robots.efforts.EffortHistory.wrenches`."""

    def rung(self, mechanism: Mechanism, route: str, begin: float) -> Rung:
        """Efforts of the actuators at this step.

        Args:
            route: Name in messages.
            begin: Start of the simulation on the clock `perf_counter` [s].

        Raises:
            EngineError: If a reading is not finite.
        """
        on_drives = np.zeros((len(self.forces), len(mechanism.drives)))
        on_drives[:, self.drives] = self.forces
        if not (np.isfinite(self.miss).all() and np.isfinite(on_drives).all()):
            steps = f"the simulation with steps of {self.dt:g} s"
            raise EngineError(f"{route}: {steps} diverged: efforts or state are not finite")
        return Rung(
            dt=self.dt,
            effort=on_drives @ np.linalg.pinv(mechanism.gearing),
            closure_drift=self.drift,
            tracking_error=deviation_of(mechanism, self.tracked, self.miss),
            wall_time=perf_counter() - begin,
            wrenches=self.wrenches,
        )


def steps_to_targets(
    motion: Motion, dt: float, lead: int, drives: Sequence[int]
) -> Iterator[tuple[int, bool, JointPositions]]:
    """Steps of a simulation of a motion: number, whether it begins at a sample, and targets of the drives at its end.

    Args:
        dt: Step, a divisor of the step of the motion [s].
        lead: Number of steps before the span.
        drives: Places of the driven coordinates that are driven.
    """
    per_sample = round(motion.dt / dt)
    steps = range(-lead, (len(motion.t) - 1) * per_sample + 1)
    targets = motion.law(motion.t[0] + dt * np.arange(steps.start, steps.stop + 1)).q[:, list(drives)]
    for k, target in zip(steps, targets[1:], strict=True):
        yield k, k >= 0 and k % per_sample == 0, target


def over_time(readings: Sequence[Mapping[str, Array]]) -> Mapping[str, Array]:
    """Forces in the joints at all samples by reading, of those at each sample [N m, N], (connections, 6) each."""
    return {name: np.array([each[name] for each in readings]) for name in readings[0]} if readings else {}


def settled(wrenches: Mapping[str, Array], lead: int) -> Mapping[str, Array]:
    """Forces in the joints without those of the first sample, if no steps precede it.

    A solver on the level of velocities starts with those of the file, and the force of a loop in the first step makes
    up for the velocity terms of the step before: it is up to 170 % wrong, however short the step.

    Args:
        wrenches: By reading [N m, N], shape (nt, connections, 6) each.
        lead: Number of steps before the span.
    """
    refused = np.arange(len(next(iter(wrenches.values()), ()))) < (lead == 0)
    return {name: np.where(refused[:, None, None], np.nan, values) for name, values in wrenches.items()}


def forward_history(
    source: str, mechanism: Mechanism, motion: Motion, ladder: Sequence[Rung], **more: Any
) -> EffortHistory:
    """Efforts of a route, with the drift and tracking error of its finest step.

    Args:
        ladder: Simulations at several steps, coarsest first.
        more: Further fields; `effort` is that of the finest step unless given.
    """
    finest = ladder[-1]
    fields = {
        "source": source,
        "actuators": tuple(actuator.name for actuator in mechanism.actuators),
        "t": motion.t,
        "effort": finest.effort,
        "closure_drift": finest.closure_drift,
        "tracking_error": finest.tracking_error,
        "ladder": tuple(ladder),
        "wrenches": finest.wrenches,
    }
    return EffortHistory(**(fields | more))


def divided(report: float) -> float:
    """The time that is divided into equal steps [s].

    Args:
        report: Time between two samples of the motion [s].
    """
    return float(report / np.ceil(report / LONGEST - 1e-9))


def own_steps(report: float, *, finest: float, rungs: int) -> list[float]:
    """The steps of a route: the report grid's, halved until a bound is reached, the last few of them [s].

    Args:
        report: Step of the report grid [s].
        finest: Upper bound of the last step [s].
        rungs: Largest number of steps.
    """
    times = max(0, int(np.ceil(np.log2(report / finest) - 1e-9)))
    return [report / 2**k for k in range(max(0, times - rungs + 1), times + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps of a route of first order, and their extrapolation."""

    parts: tuple[int, ...] = (2, 4, 8, 16)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    settled: float = inf
    """Finer steps are added while more than this is left in the extrapolated efforts, over their peak [-]."""
    beyond: int = 0
    """Number of finer steps taken instead of the same number of coarsest steps, for settled efforts."""
    more: int = 2
    """Most simulations that are added, each with steps twice as fine as the last."""
    kept: int = 0
    """Number of the finest simulations that are extrapolated; 0 for all."""
    wrenches: bool = False
    """Whether forces in the joints are read."""

    def history(
        self,
        source: str,
        case: Case,
        motion: Motion,
        held: tuple[Sequence[int], int],
        rung: Callable[[float], Rung],
        settings: Mapping[str, str],
    ) -> EffortHistory:
        """Efforts extrapolated to step zero; finer steps are added until they are settled.

        Args:
            held: Result of `held_drives`; unactuated motions, which may vibrate on springs, get `FINER` steps.
            rung: Simulates with a step [s].
            settings: Further settings, as text.
        """
        (drives, undriven), last = held, -self.kept if self.kept else None

        def simulated(count: int) -> Rung:
            return rung(divided(motion.dt) / (count * (FINER if undriven else 1)))

        ladder, finest = [simulated(count) for count in self.parts], self.parts[-1]
        for _ in range(self.more if self.settled < inf else 0):
            if unsettled(ladder[last:]) <= self.settled:
                break
            finest *= 2
            ladder.append(simulated(finest))
        ladder = [*ladder[self.beyond :], *(simulated(finest * 2**k) for k in range(1, self.beyond + 1))]
        words = in_words(
            f"the finest {self.kept} steps" if self.kept else "the efforts of all steps",
            settled=self.settled,
            more=self.more,
        )
        return forward_history(
            source,
            case.mechanism,
            motion,
            ladder,
            effort=without_step(ladder[last:]),
            wrenches=readings_at_zero([rung.dt for rung in ladder[last:]], [rung.wrenches for rung in ladder[last:]]),
            settings={"steps": in_ms(ladder), "extrapolation": words, **settings},
            note="; ".join([EXTRAPOLATED, *carried_note(case.mechanism, drives)]),
        )


def remainder(ladder: Sequence[Rung], order: int) -> float:
    """Estimated error of the finest step over the peak of the efforts [-]; infinite for a single step.

    Args:
        ladder: Simulations at several steps, coarsest first.
        order: Order of the error in the step.
    """
    if len(ladder) < 2:
        return inf
    before, last = ladder[-2:]
    return relative_change(before.effort, last.effort) / ((before.dt / last.dt) ** order - 1)


Enough: TypeAlias = Callable[[Sequence[Rung]], bool]
"""Whether a verdict needs no finer steps than those of some simulations, coarsest first."""


def enough_steps(
    limits: Limits | None, mechanism: Mechanism, motion: Motion, left: Callable[[Sequence[Rung]], float]
) -> Enough:
    """The rule that omits finer steps: estimated error, drift and tracking error must all be far below their limits.

    Args:
        limits: Limits of the verdict; None to omit no step.
        left: Estimated error of some simulations, over the peak of the efforts [-].
    """
    size = size_in_motion(mechanism, motion)

    def enough(ladder: Sequence[Rung]) -> bool:
        return (
            limits is not None
            and left(ladder) < limits.relative_error / SPARE
            and ladder[-1].closure_drift.over(size) < limits.closure_drift / ON_COURSE
            and ladder[-1].tracking_error.over(size) < limits.tracking_error / ON_COURSE
        )

    return enough


def until(enough: Enough, rungs: Iterable[Rung]) -> list[Rung]:
    """The first of some simulations, coarsest first, that a verdict needs; all of them if it needs finer steps."""
    ladder: list[Rung] = []
    for rung in rungs:
        ladder.append(rung)
        if enough(ladder):
            break
    return ladder


def omission(limits: Limits | None) -> Mapping[str, str]:
    """The rule of `enough_steps` as a setting, in words; empty without limits."""
    if limits is None:
        return {}
    rule = (
        f"finer steps, if the estimated error is below 1/{SPARE:g} of its limit {limits.relative_error:g}, and closure "
        f"drift and tracking error are below 1/{ON_COURSE:g} of their limits"
    )
    return {"omitted steps": rule}


def surviving_rungs(
    rung: Callable[[float], Rung], steps: Sequence[float], enough: Enough = lambda ladder: False
) -> tuple[list[Rung], list[str]]:
    """The simulations, and a note on the steps at which they diverged.

    Args:
        rung: Simulates with a step [s].
        steps: Steps, coarsest first [s].
        enough: Result of `enough_steps`; by default all steps are taken.

    Raises:
        EngineError: If the simulation with the finest step fails.
    """
    ladder, diverged = [], []
    for dt in steps:
        try:
            ladder.append(rung(dt))
        except EngineError:
            if dt == steps[-1]:
                raise
            diverged.append(f"{1e3 * dt:g}")
            continue
        if enough(ladder):
            break
    return ladder, [f"the simulation diverged at steps of {', '.join(diverged)} ms"] if diverged else []


def in_ms(ladder: Iterable[Rung]) -> str:
    """Steps of simulations, as text."""
    return ", ".join(f"{1e3 * rung.dt:g}" for rung in ladder) + " ms"


def in_words(extrapolated: str, *, settled: float, more: int) -> str:
    """The extrapolation of a route with steps of first order, as text.

    Args:
        extrapolated: The extrapolated simulations, as `the efforts of all steps`.
        settled: See `Steps`.
        more: See `Steps`.
    """
    finer = f"; up to {more} finer steps while the change exceeds {settled:g}" if settled < inf else ""
    return f"Richardson extrapolation of {extrapolated} to zero step size{finer}"
