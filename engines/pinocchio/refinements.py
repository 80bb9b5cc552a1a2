"""Refinement studies of `pinocchio/forward`: the step, and the settings of Pinocchio's own solver."""

from dataclasses import replace
from typing import Any

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements
from loopcheck.engines.pinocchio._simulation import EULER, RUNGE_KUTTA
from loopcheck.engines.pinocchio.routes.forward import FINEST, PinocchioForward, Settings

OWN = Settings()
"""Settings of the route."""
FINE, FINER = ((0.021, FINEST / k) for k in (4.1, 8.1))
"""Bounds of the steps of a ladder [s]."""


def _with(**changes: Any) -> Settings:
    return replace(OWN, solver=replace(OWN.solver, **changes))


UNDAMPED = _with(stiffness=0.0, damping=0.0)
ONCE = {10.0**-k: _with(mu=10.0**-k, iterations=1) for k in range(2, 13, 2)}
MORE = {float(n): _with(mu=1e-3, iterations=n) for n in (1, 2, 4, 8, 16)}
FOURTH = Order(4, "classical Runge-Kutta method (Hairer, Nørsett and Wanner, II.1)")
FIRST = Order(1, "semi-implicit Euler method on constraintDynamics")
LINEAR = Order(1, "proximal regularization, linear in mu after one iteration (Carpentier, Budhiraja and Mansard 2021)")
STIFF = {10.0**k: _with(stiffness=10.0**k, damping=2 * 10.0 ** (k / 2)) for k in range(1, 6)}
AT = 2 * FINEST
"""A step small enough for the refined setting to dominate the error [s]."""
STUDIES = (
    OverSteps("Runge-Kutta", OWN, FINE, FOURTH, extrapolated=(2,), own=1),
    OverSteps("Runge-Kutta, no drift feedback", UNDAMPED, FINE, FOURTH),
    OverSteps("semi-implicit Euler", _with(integrator=EULER), FINER, FIRST, extrapolated=(2, 3, 4)),
    OverValues("Runge-Kutta, mu, one iteration", "mu [1/kg or 1/(kg m²)]", ONCE, LINEAR, longest=AT),
    OverValues("Runge-Kutta, proximal iterations at mu 0.001", "iterations [-]", MORE, longest=AT),
    OverValues("Runge-Kutta, drift feedback", "Kp, critically damped [1/s²]", STIFF, longest=AT),
)


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


ladders = Refinements(
    source=PinocchioForward,
    in_words=_in_words,
    studies=STUDIES,
    finest=FINEST,
).ladders
"""See `loopcheck.engines.contract.Refinements`."""
