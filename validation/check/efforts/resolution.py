"""Resolution of a source: the change of its efforts under perturbations that carry no information about the robot.

The motion is moved by two units in the last place. Simulations are also solved with 100 times tighter tolerances,
stepped twice as finely with constraints half as soft, and started in the middle of the motion. The last change finds an
error of the start that is the same at all steps. Every such run takes all steps, so that steps omitted before count as
a change too. An error below such changes is no evidence against the engine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.energy import power_balance
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Refinable, Source
from loopcheck.robots.motion import Motion, altered
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.evaluate import attempt, outcome_of
from loopcheck.validation.check.efforts.outcome import Failed
from loopcheck.validation.common import sources

SEED = 0
"""Seed of the choice between an increase and a decrease of each number of the motion."""
ULPS = 2
"""Size of the change [units in the last place]."""
MOVED, TIGHTENED, REFINED, RESTARTED = (
    f"motion moved by {ULPS} ulps",
    "tolerances 100 times tighter",
    "steps and compliance halved",
    "start in the middle of the motion",
)
"""Changes that should have no effect on the efforts."""


class Variant(NamedTuple):
    """A source that should give the same efforts as another."""

    name: str
    """Name of the change."""
    source: Source
    motion: Motion
    first: int = 0
    """Sample of the whole motion at which it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Resolution of a source in a case."""

    effort: Mapping[str, float]
    """Largest change of the effort [N or N m] by actuator; NaN if not measurable."""
    note: str = ""
    """Changes without efforts, and the reasons."""
    power_balance: float = np.nan
    """Largest change of the power balance [-]; NaN if absent or not measurable."""


def measure_resolution(case: Case, motion: Motion, name: str, efforts: EffortHistory) -> Resolution:
    """Resolution of a source in a case; runs in a worker process.

    Args:
        name: Name of the source, as `mujoco/forward`.
        efforts: The compared part of its efforts.
    """
    changes = dict(effort_changes(case, motion, name, efforts))
    measured = [change for change in changes.values() if not isinstance(change, str)]
    largest = np.max(measured, axis=0) if measured else np.full(len(efforts.actuators), np.nan)
    return Resolution(
        effort=dict(zip(efforts.actuators, largest.tolist(), strict=True)),
        note="; ".join(f"no efforts with {what}: {why}" for what, why in changes.items() if isinstance(why, str)),
        power_balance=_balance_change(case, motion, name, efforts) if name in sources.ANALYTIC else np.nan,
    )


def _balance_change(case: Case, motion: Motion, name: str, efforts: EffortHistory) -> float:
    """Largest change of the power balance of a source for the moved motion [-]; NaN without efforts."""
    (variant,) = variants(name, motion)
    outcome = attempt(case, name, partial(variant.source.compute_efforts, case, variant.motion))
    if isinstance(outcome, Failed):
        return np.nan
    own = power_balance(case.mechanism, motion, efforts.effort)
    return float(np.abs(power_balance(case.mechanism, variant.motion, outcome.history.effort) - own).max())


def effort_changes(case: Case, motion: Motion, name: str, efforts: EffortHistory) -> Iterator[tuple[str, Array | str]]:
    """Change of the efforts of a source under each perturbation; arguments as in `measure_resolution`.

    Yields:
        The perturbation, and the largest change of the effort of each actuator over time [N or N m], shape (na,), or
        the reason for missing efforts.
    """
    for variant in variants(name, motion):
        compute = partial(variant.source.compute_efforts, case, variant.motion)
        outcome = outcome_of(case, motion, name, compute)
        if isinstance(outcome, Failed):
            yield variant.name, outcome.note
        else:
            yield variant.name, np.abs(outcome.compared.effort - efforts.effort[variant.first :]).max(axis=0)


def variants(name: str, motion: Motion) -> Iterator[Variant]:
    """The perturbations: of the motion, and of the settings of a simulating source."""
    route = sources.load(name)
    yield Variant(MOVED, route, moved(motion, np.random.default_rng(SEED)))
    if isinstance(route, Refinable):
        yield Variant(TIGHTENED, route.tightened(), motion)
        yield Variant(REFINED, route.refined(), motion)
        middle = len(motion.t) // 2
        if len(motion.t) - middle > 1:
            yield Variant(RESTARTED, route, motion.assemble(motion.t[middle:]), middle)


def moved(motion: Motion, rng: np.random.Generator, digits: type[np.floating] = np.float64) -> Motion:
    """The motion with each number moved by two units in the last place, up or down.

    Args:
        rng: Generator of the directions.
        digits: Floating-point type of the engine.
    """

    def move(values: Array) -> Array:
        return values + rng.choice((-ULPS, ULPS), size=values.shape) * np.spacing(values.astype(digits))

    return altered(motion, move)
