"""Refinement studies of `pinocchio/forward`: the step, and the settings of Pinocchio's own solver."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.forward import own_steps
from loopcheck.engines.pinocchio._simulation import EULER, RUNGE_KUTTA
from loopcheck.engines.pinocchio.routes.forward import FINEST, RUNGS, PinocchioForward, Settings
from loopcheck.robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""
OWN = Settings()
"""Settings of the route."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    route = Route(
        name=PinocchioForward.name,
        source=PinocchioForward,
        in_words=_in_words,
        is_plain=lambda settings: settings.solver.integrator == EULER,
    )
    yield from _of_steps(route, motion.dt)
    yield from _of_solver(route, next(dt for dt in halvings(motion.dt, coarsest=2 * FINEST, finest=0)))


def _of_steps(route: Route, report: float) -> Iterator[Ladder]:
    fine, finer = (halvings(report, coarsest=COARSEST, finest=FINEST / k) for k in (4.1, 8.1))
    own = own_steps(report, finest=FINEST, rungs=RUNGS)[-1]
    yield route.over_steps("Runge-Kutta", OWN, fine, order=4, extrapolated=(2,), own=(1, own))
    undamped = _with(stiffness=0.0, damping=0.0)
    yield route.over_steps("Runge-Kutta, no drift feedback", undamped, fine, order=4)
    euler = _with(integrator=EULER)
    yield route.over_steps("semi-implicit Euler", euler, finer, order=1, extrapolated=(2, 3, 4))


def _of_solver(route: Route, dt: float) -> Iterator[Ladder]:
    """At a fixed step, small enough for the refined setting to dominate the error."""
    once = {10.0**-k: _with(mu=10.0**-k, iterations=1) for k in range(2, 13, 2)}
    yield route.over("Runge-Kutta, mu, one iteration", "mu [1/kg or 1/(kg m²)]", once, dt, order=1)
    more = {float(n): _with(mu=1e-3, iterations=n) for n in (1, 2, 4, 8, 16)}
    yield route.over("Runge-Kutta, proximal iterations at mu 0.001", "iterations [-]", more, dt)
    stiff = {10.0**k: _with(stiffness=10.0**k, damping=2 * 10.0 ** (k / 2)) for k in range(1, 6)}
    yield route.over("Runge-Kutta, drift feedback", "Kp, critically damped [1/s²]", stiff, dt)


def _with(**changes: Any) -> Settings:
    return replace(OWN, solver=replace(OWN.solver, **changes))


def _in_words(settings: Settings) -> str:
    solver = settings.solver
    is_ours = solver.integrator == RUNGE_KUTTA
    return ", ".join(
        [
            f"{'a Runge-Kutta integrator' if is_ours else 'semi-implicit Euler'} on constraintDynamics",
            f"ProximalSettings(0, 0, mu {solver.mu:g}, max_iter {solver.iterations})",
            f"Baumgarte Kp {solver.stiffness:g}, Kd {solver.damping:g} of every constraint",
        ]
    )
