"""Refinement studies of `dart/forward`: the step, the error reduction of loops, and the pre-roll."""

from dataclasses import replace
from math import inf

from loopcheck.engines.dart.routes.forward import OWN, DartForward
from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied

BOUNDS = (0.013, 0.15e-3)
"""Bounds of the steps of a ladder [s]."""
FIXED = replace(OWN, settled=inf)
"""The settings of the route, with as many steps as it begins with."""
ONCE = replace(FIXED, parts=(1,))
"""A single simulation without extrapolation."""
FIRST = Order(
    1, "semi-implicit Euler on velocities, constraints by impulses (DART); second where velocity terms vanish"
)
IN_WORDS = (
    "ActuatorType.SERVO with command (x(t+dt) - x)/dt, effort getConstraintImpulse over dt; "
    "setErrorReductionParameter {0.erp:g} of every constraint; {0.lead} steps before the span"
)
STUDIES = (
    OverSteps("servos", ONCE, BOUNDS, FIRST, extrapolated=(2, 3, 4), own=len(OWN.parts)),
    OverSteps("servos, default error reduction 0.01", replace(ONCE, erp=0.01), BOUNDS, FIRST),
    OverValues("Richardson 4, error reduction", "error reduction [-]", varied(FIXED, "erp", (0.01, 0.2, 0.5, 1.0))),
    OverValues("Richardson 4, pre-roll", "steps before the span [-]", varied(FIXED, "lead", (0, 1, 2, 10))),
)
ladders = Refinements(source=DartForward, in_words=IN_WORDS.format, studies=STUDIES, default=1e-3).ladders
"""See `loopcheck.engines.contract.Refinements`."""
