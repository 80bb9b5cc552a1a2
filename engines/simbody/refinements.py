"""Refinement studies of `simbody/forward`: the step, with the prescribed knots, and the projection."""

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied
from loopcheck.engines.simbody.routes.forward import FINEST, OWN, SimbodyForward

IN_WORDS = (
    "Manager: IntegratorMethod_RungeKuttaMerson, setIntegratorMaximumStepSize with accuracy 1, "
    "setIntegratorConstraintTolerance {0.tolerance:g}; GCVSpline of degree 7 with a knot per step"
)
SIXTH = Order(6, "second derivative of a spline of degree 7 at its knots")
LOOSE = varied(OWN, "tolerance", (10.0**-k for k in (2, 4, 6, 8, 10)))
STUDIES = (
    OverSteps("Runge-Kutta-Merson, projected", OWN, (0.021, FINEST / 2.1), SIXTH, own=1),
    OverValues("Runge-Kutta-Merson, projection", "tolerance [m, rad, or per s]", LOOSE, longest=2 * FINEST),
)
ladders = Refinements(source=SimbodyForward, in_words=IN_WORDS.format, studies=STUDIES, finest=FINEST).ladders
"""See `loopcheck.engines.contract.Refinements`."""
