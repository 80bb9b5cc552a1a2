"""Refinement studies of `exudyn/forward`: the step, the start and the tolerance of Newton's method.

The error of the trapezoidal rule is even in the step, so it is extrapolated in the square of the step.
"""

from collections.abc import Iterator
from dataclasses import replace

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.exudyn.routes.forward import OWN, ExudynForward, Settings
from loopcheck.engines.forward import divided
from loopcheck.robots.motion import Motion

COARSEST, FINEST = 0.026, 0.6e-3
"""Bounds of the steps of a ladder [s]."""
ONCE = replace(OWN, parts=(1,))


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    report = divided(motion.dt)
    route = Route(name=ExudynForward.name, source=ExudynForward, in_words=_in_words, part=report)
    finest, ratio = report / max(OWN.parts), max(OWN.parts) / min(OWN.parts)
    once = halvings(report, coarsest=COARSEST, finest=FINEST)
    shortest = halvings(report / ratio, coarsest=COARSEST / ratio, finest=FINEST)
    yield route.over_steps("trapezoidal rule", ONCE, once, order=2)
    yield route.over_steps("trapezoidal rule, steps 4, 2, 1 extrapolated", OWN, shortest, order=6, own=(1, finest))
    yield route.over_steps("trapezoidal rule, started without accelerations", replace(ONCE, exact_start=False), once)
    stops = {10.0**-k: replace(OWN, tolerance=10.0**-k) for k in (2, 5, 8, 10)}
    yield route.over("steps 4, 2, 1 extrapolated, Newton tolerance", "tolerance [-]", stops, finest)


def _in_words(settings: Settings) -> str:
    start = (
        ("SetODE2Coordinates_tt with the accelerations of the motion")
        if settings.exact_start
        else "initial accelerations zero"
    )
    newton = f"newton.residualMode 1, newton.relativeTolerance {settings.tolerance:g}, newton.absoluteTolerance 0"
    return f"DynamicSolverType.TrapezoidalIndex2, {newton}, {start}"
