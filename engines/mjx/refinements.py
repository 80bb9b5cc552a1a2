"""Refinement studies of `mjx/forward`, and of stiff loops in the unmodified engine."""

from dataclasses import replace

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements
from loopcheck.engines.mjx.routes.forward import FINEST, OWN, OWN_SINGLE, MjxForward, Settings

BOUNDS = (0.021, FINEST / 4.1)
"""Bounds of the steps of a ladder [s]."""
AS_IT_IS = replace(OWN, velocity_term=False)
"""Without J̇v in the reference accelerations of the loops, as MJX has them."""
SOFT, SOFT_SINGLE = (
    {10.0**k: replace(settings, compliances=(10.0**k,)) for k in powers}
    for settings, powers in ((OWN, (1, 0, -1, -2, -3)), (OWN_SINGLE, (3, 2, 1, 0, -1)))
)
FOURTH = Order(4, "classical Runge-Kutta method on mjx.forward (Hairer, Nørsett and Wanner, II.1)")
SINGLE = replace(FOURTH, limit="round-off of single precision")
LINEAR = Order(1, "regularization of rows, linear in their softness")
STIFF = {10.0**k: replace(AS_IT_IS, solref=(10.0**k, 2 * 10.0 ** (k / 2))) for k in range(1, 6)}
FACTOR, STIFFNESS = "factor on inverse weights [-]", "stiffness (solref), critically damped [1/s²]"
STUDIES = (
    OverSteps("Runge-Kutta, two compliances", OWN, BOUNDS, FOURTH, own=1),
    OverSteps("single precision, two compliances", OWN_SINGLE, BOUNDS, SINGLE),
    OverValues("compliance", FACTOR, SOFT, LINEAR, longest=FINEST),
    OverValues(
        "single precision, compliance", FACTOR, SOFT_SINGLE, replace(LINEAR, limit=SINGLE.limit), longest=FINEST
    ),
    OverValues("as it is, stiffness", STIFFNESS, STIFF, longest=FINEST / 4),
)


def _in_words(settings: Settings) -> str:
    factors = " and ".join(f"{compliance:g}" for compliance in settings.compliances)
    several = ", extrapolated to 0" if len(settings.compliances) > 1 else ""
    return ", ".join(
        [
            "jax_enable_x64" if settings.double else "single precision",
            "a Runge-Kutta integrator on mjx.forward",
            "J̇v added to efc_aref" if settings.velocity_term else "efc_aref as it is",
            f"solver Newton, iterations {settings.iterations}, ls_iterations 0, tolerance 0",
            f"solref {' '.join(f'{-x:g}' for x in settings.solref)}",
            f"solimp {settings.impedance:g} {settings.impedance:g} 0.001 0.5 1",
            f"body_invweight0 and dof_invweight0 times {factors}{several}",
        ]
    )


ladders = Refinements(source=MjxForward, in_words=_in_words, studies=STUDIES, default=2e-3, finest=FINEST).ladders
"""See `loopcheck.engines.contract.Refinements`."""
