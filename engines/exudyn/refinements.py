"""Refinement studies of `exudyn/forward`: the step, the start and the tolerance of Newton's method.

The error of the trapezoidal rule is even in the step, so it is extrapolated in the square of the step.
"""

from dataclasses import replace

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied
from loopcheck.engines.exudyn.routes.forward import OWN, ExudynForward, Settings

BOUNDS = (0.026, 0.6e-3)
"""Bounds of the steps of a ladder [s]."""
ONCE = replace(OWN, parts=(1,))
SECOND = Order(2, "implicit trapezoidal rule with index reduction to 2 (Newmark 1959, gamma 1/2, beta 1/4; Exudyn)")
SIXTH = Order(6, "steps 4, 2, 1 of a rule with an error in even powers of the step (Gragg 1965)")
UNSETTLED = replace(SECOND, limit="efforts that oscillate: the rule does not damp wrong initial accelerations")
TOLERANCES = [10.0**-k for k in (2, 5, 8, 10)]
STUDIES = (
    OverSteps("trapezoidal rule", ONCE, BOUNDS, SECOND),
    OverSteps("trapezoidal rule, steps 4, 2, 1 extrapolated", OWN, BOUNDS, SIXTH, own=1),
    OverSteps("trapezoidal rule, started without accelerations", replace(ONCE, exact_start=False), BOUNDS, UNSETTLED),
    OverValues("steps 4, 2, 1 extrapolated, Newton tolerance", "tolerance [-]", varied(OWN, "tolerance", TOLERANCES)),
)


def _in_words(settings: Settings) -> str:
    exact, none = "SetODE2Coordinates_tt with the accelerations of the motion", "initial accelerations zero"
    newton = f"newton.residualMode 1, newton.relativeTolerance {settings.tolerance:g}, newton.absoluteTolerance 0"
    return f"DynamicSolverType.TrapezoidalIndex2, {newton}, {exact if settings.exact_start else none}"


ladders = Refinements(source=ExudynForward, in_words=_in_words, studies=STUDIES, default=0.01).ladders
"""See `loopcheck.engines.contract.Refinements`."""
