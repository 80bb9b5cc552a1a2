"""Refinement studies of `drake/forward`: the step, and the pre-roll."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.drake.routes.forward import OWN, DrakeForward, Settings
from loopcheck.engines.forward import divided
from loopcheck.robots.motion import Motion

COARSEST, FINEST = 0.021, 0.3e-3
"""Bounds of the steps of a ladder [s]."""
FIXED = replace(OWN, settled=inf)
"""The settings of the route, with as many steps as it begins with."""
ONCE = replace(FIXED, parts=(1,))
"""A single simulation without extrapolation."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    report = divided(motion.dt)
    route = Route(name=DrakeForward.name, source=DrakeForward, in_words=_in_words, part=report)
    steps = halvings(report, coarsest=COARSEST, finest=FINEST)
    yield route.over_steps("SAP", ONCE, steps, order=1, extrapolated=(2, 3, 4))
    finest = report / max(FIXED.parts)
    led = {float(n): replace(FIXED, lead=n) for n in (0, 5, 10, 20, 30)}
    yield route.over("Richardson 4, pre-roll", "steps before the span [-]", led, finest)


def _in_words(settings: Settings) -> str:
    return (
        "kSap, AddBallConstraint, PdControllerGains(p=1e-9, d=1e9) with velocity (x(t+dt) - x)/dt, "
        f"get_net_actuation_output_port unsampled; {settings.lead} steps before the span"
    )
