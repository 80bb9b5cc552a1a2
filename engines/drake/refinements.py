"""Refinement studies of `drake/forward`: the step, and the pre-roll."""

from dataclasses import replace
from math import inf

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied
from loopcheck.engines.drake.routes.forward import OWN, DrakeForward

FIXED = replace(OWN, settled=inf)
"""The settings of the route, with as many steps as it begins with."""
FIRST = Order(1, "symplectic Euler, constraints implicit in velocities (Castro and others, SAP, 2022)")
IN_WORDS = (
    "kSap, AddBallConstraint, PdControllerGains(p=1e-9, d=1e9) with velocity (x(t+dt) - x)/dt, "
    "get_net_actuation_output_port unsampled; {0.lead} steps before the span"
)
STUDIES = (
    OverSteps("SAP", replace(FIXED, parts=(1,)), (0.021, 0.15e-3), FIRST, extrapolated=(2, 3, 4)),
    OverValues("Richardson 4, pre-roll", "steps before the span [-]", varied(FIXED, "lead", (0, 5, 10, 20, 30))),
)
ladders = Refinements(source=DrakeForward, in_words=IN_WORDS.format, studies=STUDIES, default=1e-3).ladders
"""See `loopcheck.engines.contract.Refinements`."""
