"""What `loopcheck ladder` varies of `pybullet/forward`: the step, and the settings of Bullet's own solver.

Bullet is of first order. What its solver leaves would be hidden behind the error of a step, so the settings of the
solver are refined with the efforts extrapolated to step zero, as the route does.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import nan
from typing import Any

from engines.ladder import STEP, Ladder, Trial, halvings
from engines.pybullet.forward import OWN, PybulletForward, Settings, divided
from robots.motion import Motion

COARSEST, FINEST = 0.026, 0.3e-3
"""Bounds of the steps of a ladder [s]."""
ROUTE = PybulletForward.name
COARSE = replace(OWN, parts=(1, 2, 4, 8))
"""Steps twice as long as those of the route, which leave less than its tolerance."""
ITERATIVE = replace(COARSE, direct=False)
AS_IT_COMES = replace(ITERATIVE, iterations=50, residual=1e-7, erp=0.2)
"""PyBullet's default solver."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    yield from _of_steps(motion.dt)
    yield from _of_solver(motion.dt)


def _of_steps(report: float) -> Iterator[Ladder]:
    finest = divided(report) / max(OWN.parts)
    yield _steps("velocity motors", OWN, report, extrapolated=(2, 3, 4), own=(len(OWN.parts), finest))
    yield _steps("velocity motors, erp 0.2", replace(OWN, erp=0.2), report, extrapolated=(4,))
    yield _steps("velocity motors, erp 0.8", replace(OWN, erp=0.8), report, extrapolated=(4,))
    yield _steps("velocity motors, 4 substeps", replace(OWN, substeps=4), report)
    yield _steps("velocity motors, default solver", AS_IT_COMES, report)


def _of_solver(report: float) -> Iterator[Ladder]:
    many = {float(n): replace(ITERATIVE, iterations=n) for n in (10, 50, 200, 2000)}
    yield _settings("Richardson 4, iterations", "iterations [-]", many, report)
    stop = {10.0**-k: replace(ITERATIVE, residual=10.0**-k) for k in (7, 13, 19, 24)}
    yield _settings("Richardson 4, residual threshold", "residual threshold [m²/s² or rad²/s²]", stop, report)
    corrected = {erp: replace(COARSE, erp=erp) for erp in (0.2, 0.4, 0.8, 1.0)}
    yield _settings("Richardson 4, erp", "erp [-]", corrected, report)
    led = {float(n): replace(COARSE, lead=n) for n in (1, 2, 4, 10)}
    yield _settings("Richardson 4, pre-roll", "steps before the span [-]", led, report)


def _steps(name: str, settings: Settings, report: float, **more: Any) -> Ladder:
    finest = FINEST * max(1, settings.substeps)
    steps = halvings(divided(report), coarsest=COARSEST, finest=finest)
    trials = tuple(_trial(dt, report, replace(settings, parts=(round(divided(report) / dt),))) for dt in steps)
    return Ladder(route=ROUTE, name=name, refined=STEP, order=1, trials=trials, **more)


def _settings(name: str, refined: str, values: dict[float, Settings], report: float) -> Ladder:
    trials = tuple(_trial(value, report, settings) for value, settings in values.items())
    return Ladder(route=ROUTE, name=name, refined=refined, order=nan, trials=trials)


def _trial(value: float, report: float, settings: Settings) -> Trial:
    return Trial(
        value=value,
        dt=divided(report) / max(settings.parts),
        settings=_to_set(settings),
        runs=len(settings.parts),
        plain=len(settings.parts) == 1,
        source=PybulletForward(settings),
    )


def _to_set(of: Settings) -> str:
    """The settings by the names that PyBullet gives them."""
    direct = "CONSTRAINT_SOLVER_LCP_DANTZIG if all closures are independent and to the world, else "
    return ", ".join(
        [
            f"{direct if of.direct else ''}CONSTRAINT_SOLVER_LCP_SI",
            f"numSolverIterations {of.iterations}, solverResidualThreshold {of.residual:g}, numSubSteps {of.substeps}",
            f"erp {of.erp:g} globally and of each constraint",
            f"{of.lead} steps before the span",
        ]
    )
