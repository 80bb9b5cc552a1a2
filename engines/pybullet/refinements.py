"""Refinement studies of `pybullet/forward`: the step, and the settings of Bullet's own solver.

Bullet is of first order. The error of a step would hide the error of its solver, so the settings of the solver are
refined with the efforts extrapolated to step zero, as in the route.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.forward import divided
from loopcheck.engines.pybullet.routes.forward import OWN, PybulletForward, Settings
from loopcheck.engines.pybullet.tuning import CORRECTED, GIVEN
from loopcheck.robots.motion import Motion

CORRECTIONS = tuple(float(settings["erp"]) for settings in (GIVEN, CORRECTED.fixed))
"""Error reduction of PyBullet by default, and as `loopcheck tune` tries it."""
COARSEST, FINEST = 0.026, 0.3e-3
"""Bounds of the steps of a ladder [s]."""
FIXED = replace(OWN, settled=inf)
"""The settings of the route, with as many steps as it begins with."""
ONCE = replace(FIXED, parts=(1,))
"""A single simulation without extrapolation."""
COARSE = replace(FIXED, parts=(1, 2, 4, 8))
"""Steps twice as long as in the route, with an error below its tolerance."""
ITERATIVE = replace(COARSE, direct=False)
AS_IT_COMES = replace(
    ONCE,
    direct=False,
    iterations=int(GIVEN["numSolverIterations"]),
    residual=float(GIVEN["solverResidualThreshold"]),
    erp=CORRECTIONS[0],
)
"""PyBullet's default solver."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    report = divided(motion.dt)
    route = Route(name=PybulletForward.name, source=PybulletForward, in_words=_in_words, part=report)
    yield from _of_steps(route, report)
    yield from _of_solver(route, report / max(COARSE.parts))


def _of_steps(route: Route, report: float) -> Iterator[Ladder]:
    fine, substepped = (halvings(report, coarsest=COARSEST, finest=FINEST * n) for n in (1, 4))
    own = (len(OWN.parts), report / max(OWN.parts))
    yield route.over_steps("velocity motors", ONCE, fine, order=1, extrapolated=(2, 3, 4), own=own)
    for erp in CORRECTIONS:
        yield route.over_steps(
            f"velocity motors, erp {erp:g}", replace(ONCE, erp=erp), fine, order=1, extrapolated=(4,)
        )
    yield route.over_steps("velocity motors, 4 substeps", replace(ONCE, substeps=4), substepped, order=1)
    yield route.over_steps("velocity motors, default solver", AS_IT_COMES, fine, order=1)


def _of_solver(route: Route, dt: float) -> Iterator[Ladder]:
    many = {float(n): replace(ITERATIVE, iterations=n) for n in (10, 50, 200, 2000)}
    yield route.over("Richardson 4, iterations", "iterations [-]", many, dt)
    stop = {10.0**-k: replace(ITERATIVE, residual=10.0**-k) for k in (7, 13, 19, 24, 28)}
    yield route.over("Richardson 4, residual threshold", "residual threshold [m²/s² or rad²/s²]", stop, dt)
    corrected = {erp: replace(COARSE, erp=erp) for erp in sorted({*CORRECTIONS, 0.4, 1.0})}
    yield route.over("Richardson 4, erp", "erp [-]", corrected, dt)
    led = {float(n): replace(COARSE, lead=n) for n in (1, 2, 4, 10)}
    yield route.over("Richardson 4, pre-roll", "steps before the span [-]", led, dt)


def _in_words(settings: Settings) -> str:
    direct = "CONSTRAINT_SOLVER_LCP_DANTZIG for independent closures that all end on the world, otherwise "
    return ", ".join(
        [
            f"{direct if settings.direct else ''}CONSTRAINT_SOLVER_LCP_SI",
            f"numSolverIterations {settings.iterations}, solverResidualThreshold {settings.residual:g}, "
            f"numSubSteps {settings.substeps}",
            f"erp {settings.erp:g} globally and of each constraint",
            f"{settings.lead} steps before the span",
        ]
    )
