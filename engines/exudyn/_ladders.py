"""What `loopcheck ladder` varies of `exudyn/forward`: the step, the start and the tolerance of Newton's method.

The error of the trapezoidal rule is even in the step, so it is extrapolated in the square of the step.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import nan
from typing import Any

from engines.exudyn.forward import OWN, ExudynForward, Settings, divided
from engines.ladder import STEP, Ladder, Trial, halvings
from robots.motion import Motion

COARSEST, FINEST = 0.026, 0.6e-3
"""Bounds of the steps of a ladder [s]."""
ROUTE = ExudynForward.name
ONCE = replace(OWN, parts=(1,))


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    report = divided(motion.dt)
    yield _steps("trapezoidal rule", ONCE, report, order=2)
    finest = report / max(OWN.parts)
    yield _steps("trapezoidal rule, steps 4, 2, 1 extrapolated", OWN, report, order=6, own=(1, finest))
    yield _steps("trapezoidal rule, started without accelerations", replace(ONCE, exact_start=False), report, order=nan)
    stops = {10.0**-k: replace(OWN, tolerance=10.0**-k) for k in (2, 5, 8, 10)}
    trials = tuple(_trial(value, report, settings) for value, settings in stops.items())
    yield Ladder(
        route=ROUTE,
        name="steps 4, 2, 1 extrapolated, Newton tolerance",
        refined="tolerance [-]",
        trials=trials,
    )


def _steps(name: str, settings: Settings, report: float, *, order: float, **more: Any) -> Ladder:
    """The shortest of the steps that are extrapolated is refined; the others stay multiples of it."""
    ratio = round(max(settings.parts) / min(settings.parts))
    trials = []
    for dt in halvings(report / ratio, coarsest=COARSEST / ratio, finest=FINEST):
        parts = tuple(round(report / dt * part / max(settings.parts)) for part in settings.parts)
        trials.append(_trial(dt, report, replace(settings, parts=parts)))
    return Ladder(route=ROUTE, name=name, refined=STEP, order=order, trials=tuple(trials), **more)


def _trial(value: float, report: float, settings: Settings) -> Trial:
    return Trial(
        value=value,
        dt=report / max(settings.parts),
        settings=_to_set(settings),
        runs=len(settings.parts),
        plain=len(settings.parts) == 1,
        source=ExudynForward(settings),
    )


def _to_set(of: Settings) -> str:
    """The settings by the names that Exudyn gives them."""
    start = "SetODE2Coordinates_tt with those of the motion" if of.exact_start else "initial accelerations zero"
    return f"DynamicSolverType.TrapezoidalIndex2, newton.relativeTolerance {of.tolerance:g}, {start}"
