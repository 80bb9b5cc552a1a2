"""Refinement studies of `dart/forward`: the step, the error reduction of loops, and the pre-roll."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from loopcheck.engines.dart.routes.forward import OWN, DartForward, Settings
from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.forward import divided
from loopcheck.robots.motion import Motion

COARSEST, FINEST = 0.013, 0.15e-3
"""Bounds of the steps of a ladder [s]."""
FIXED = replace(OWN, settled=inf)
"""The settings of the route, with as many steps as it begins with."""
ONCE = replace(FIXED, parts=(1,))
"""A single simulation without extrapolation."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    report = divided(motion.dt)
    route = Route(name=DartForward.name, source=DartForward, in_words=_in_words, part=report)
    steps = halvings(report, coarsest=COARSEST, finest=FINEST)
    own = (len(OWN.parts), report / max(OWN.parts))
    yield route.over_steps("servos", ONCE, steps, order=1, extrapolated=(2, 3, 4), own=own)
    yield route.over_steps("servos, default error reduction 0.01", replace(ONCE, erp=0.01), steps)
    finest = report / max(FIXED.parts)
    corrected = {erp: replace(FIXED, erp=erp) for erp in (0.01, 0.2, 0.5, 1.0)}
    yield route.over("Richardson 4, error reduction", "error reduction [-]", corrected, finest)
    led = {float(n): replace(FIXED, lead=n) for n in (0, 1, 2, 10)}
    yield route.over("Richardson 4, pre-roll", "steps before the span [-]", led, finest)


def _in_words(settings: Settings) -> str:
    return (
        "ActuatorType.SERVO with command (x(t+dt) - x)/dt, effort getConstraintImpulse over dt; "
        f"setErrorReductionParameter {settings.erp:g} of every constraint; {settings.lead} steps before the span"
    )
