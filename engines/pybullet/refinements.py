"""Refinement studies of `pybullet/forward`: the step, and the settings of Bullet's own solver.

Bullet is of first order. The error of a step would hide the error of its solver, so the settings of the solver are
refined with the efforts extrapolated to step zero, as in the route.
"""

from dataclasses import replace
from math import inf

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied
from loopcheck.engines.pybullet.routes.forward import OWN, PybulletForward
from loopcheck.engines.pybullet.tuning import CORRECTED, GIVEN

CORRECTIONS = tuple(float(settings["erp"]) for settings in (GIVEN, CORRECTED.fixed))
"""Error reduction of PyBullet by default, and as `loopcheck tune` tries it."""
FINE, SUBSTEPPED = ((0.026, 0.15e-3 * n) for n in (1, 4))
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
FIRST = Order(
    1, "semi-implicit Euler on velocities, motors and loops by impulses (Bullet); second where velocity terms vanish"
)
STOPPED = replace(FIRST, limit="efforts of iterations that stop at the residual threshold")
SUBSTEPPED_EFFORT = replace(FIRST, limit="effort of the last substep alone, whose target holds for the whole step")
DIRECT = "CONSTRAINT_SOLVER_LCP_DANTZIG for independent closures that all end on the world, otherwise "
OF_STEPS = (
    OverSteps("velocity motors", ONCE, FINE, FIRST, extrapolated=(2, 3, 4), own=len(OWN.parts)),
    *(
        OverSteps(f"velocity motors, erp {erp:g}", replace(ONCE, erp=erp), FINE, FIRST, extrapolated=(4,))
        for erp in CORRECTIONS
    ),
    OverSteps("velocity motors, 4 substeps", replace(ONCE, substeps=4), SUBSTEPPED, SUBSTEPPED_EFFORT),
    OverSteps("velocity motors, default solver", AS_IT_COMES, FINE, STOPPED),
)
RESIDUALS = [10.0**-k for k in (7, 13, 19, 24, 28)]
OF_SOLVER = (
    OverValues("Richardson 4, iterations", "iterations [-]", varied(ITERATIVE, "iterations", (10, 50, 200, 2000))),
    OverValues(
        "Richardson 4, residual threshold",
        "residual threshold [m²/s² or rad²/s²]",
        varied(ITERATIVE, "residual", RESIDUALS),
    ),
    OverValues("Richardson 4, erp", "erp [-]", varied(COARSE, "erp", sorted({*CORRECTIONS, 0.4, 1.0}))),
    OverValues("Richardson 4, pre-roll", "steps before the span [-]", varied(COARSE, "lead", (1, 2, 4, 10))),
)
IN_WORDS = (
    "CONSTRAINT_SOLVER_LCP_SI, numSolverIterations {0.iterations}, solverResidualThreshold {0.residual:g}, "
    "numSubSteps {0.substeps}, erp {0.erp:g} globally and of each constraint, {0.lead} steps before the span"
)
ladders = Refinements(
    source=PybulletForward,
    in_words=lambda settings: (DIRECT if settings.direct else "") + IN_WORDS.format(settings),
    studies=(*OF_STEPS, *OF_SOLVER),
    default=1 / 240,
).ladders
"""See `loopcheck.engines.contract.Refinements`."""
