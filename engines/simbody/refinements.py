"""Refinement studies of `simbody/forward`: the step, with the prescribed knots, and the projection."""

from collections.abc import Iterator
from dataclasses import replace

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.forward import own_steps
from loopcheck.engines.simbody.routes.forward import FINEST, OWN, RUNGS, Settings, SimbodyForward
from loopcheck.robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    route = Route(name=SimbodyForward.name, source=SimbodyForward, in_words=_in_words)
    steps = halvings(motion.dt, coarsest=COARSEST, finest=FINEST / 2.1)
    own = own_steps(motion.dt, finest=FINEST, rungs=RUNGS)[-1]
    yield route.over_steps("Runge-Kutta-Merson, projected", OWN, steps, own=(1, own))
    loose = {10.0**-k: replace(OWN, tolerance=10.0**-k) for k in (2, 4, 6, 8, 10)}
    yield route.over("Runge-Kutta-Merson, projection", "tolerance [m, rad, or per s]", loose, 2 * own)


def _in_words(settings: Settings) -> str:
    return (
        "Manager: IntegratorMethod_RungeKuttaMerson, setIntegratorMaximumStepSize with accuracy 1, "
        f"setIntegratorConstraintTolerance {settings.tolerance:g}; GCVSpline of degree 7 with a knot per step"
    )
