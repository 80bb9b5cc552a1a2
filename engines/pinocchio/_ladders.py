"""What `loopcheck ladder` varies of `pinocchio/forward`: the step, and the settings of Pinocchio's own solver."""

from collections.abc import Iterator
from dataclasses import replace
from math import nan
from typing import Any

from engines.ladder import STEP, Ladder, Trial, halvings, own_steps
from engines.pinocchio._simulation import EULER, RUNGE_KUTTA, Solver
from engines.pinocchio.forward import FINEST, RUNGS, PinocchioForward, Settings
from robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""
ROUTE = PinocchioForward.name
OWN = Solver()
"""That of the route."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    yield from _of_steps(motion.dt)
    yield from _of_solver(next(dt for dt in halvings(motion.dt, coarsest=2 * FINEST, finest=0)))


def _of_steps(report: float) -> Iterator[Ladder]:
    fine, finer = (halvings(report, coarsest=COARSEST, finest=FINEST / k) for k in (4.1, 8.1))
    own = own_steps(report, finest=FINEST, rungs=RUNGS)[-1]
    yield _steps("Runge-Kutta", OWN, fine, order=4, extrapolated=(2,), own=(1, own))
    undamped = replace(OWN, stiffness=0.0, damping=0.0)
    yield _steps("Runge-Kutta, no drift feedback", undamped, fine, order=4)
    yield _steps("semi-implicit Euler", replace(OWN, integrator=EULER), finer, order=1, extrapolated=(2, 3, 4))


def _of_solver(dt: float) -> Iterator[Ladder]:
    """At one step, small enough that what is refined makes the error."""
    once = {10.0**-k: replace(OWN, mu=10.0**-k, iterations=1) for k in range(2, 13, 2)}
    yield _settings("Runge-Kutta, mu, one iteration", "mu [1/kg or 1/(kg m²)]", once, dt, order=1)
    more = {float(n): replace(OWN, mu=1e-3, iterations=n) for n in (1, 2, 4, 8, 16)}
    yield _settings("Runge-Kutta, proximal iterations at mu 0.001", "iterations [-]", more, dt)
    stiff = {10.0**k: replace(OWN, stiffness=10.0**k, damping=2 * 10.0 ** (k / 2)) for k in range(1, 6)}
    yield _settings("Runge-Kutta, drift feedback", "Kp, critically damped [1/s²]", stiff, dt)


def _steps(name: str, solver: Solver, steps: list[float], *, order: float, **more: Any) -> Ladder:
    trials = tuple(_trial(dt, dt, solver) for dt in steps)
    return Ladder(route=ROUTE, name=name, refined=STEP, order=order, trials=trials, **more)


def _settings(name: str, refined: str, values: dict[float, Solver], dt: float, order: float = nan) -> Ladder:
    trials = tuple(_trial(value, dt, solver) for value, solver in values.items())
    return Ladder(route=ROUTE, name=name, refined=refined, order=order, trials=trials)


def _trial(value: float, dt: float, solver: Solver) -> Trial:
    return Trial(
        value=value,
        dt=dt,
        settings=_to_set(solver),
        runs=1,
        plain=solver.integrator == EULER,
        source=PinocchioForward(Settings(steps=(dt,), solver=solver)),
    )


def _to_set(of: Solver) -> str:
    """The settings by the names that Pinocchio gives them."""
    own = of.integrator == RUNGE_KUTTA
    return ", ".join(
        [
            f"{'Runge-Kutta of your own' if own else 'semi-implicit Euler'} on constraintDynamics",
            f"ProximalSettings(0, 0, mu {of.mu:g}, max_iter {of.iterations})",
            f"Baumgarte Kp {of.stiffness:g}, Kd {of.damping:g} of every constraint",
        ]
    )
