"""Refinement studies of `mjx/forward`, and of stiff loops in the unmodified engine."""

from collections.abc import Iterator
from dataclasses import replace

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.mjx.routes.forward import FINEST, OWN, OWN_SINGLE, MjxForward, Settings
from loopcheck.engines.mujoco.routes.forward import own_steps
from loopcheck.robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""
AS_IT_IS = replace(OWN, velocity_term=False)
"""Without J̇v in the reference accelerations of the loops, as MJX has them."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    route = Route(name=MjxForward.name, source=MjxForward, in_words=_in_words, is_plain=lambda settings: False)
    finest = own_steps(motion.dt, finest=FINEST)[-1]
    steps = halvings(motion.dt, coarsest=COARSEST, finest=FINEST / 4.1)
    yield route.over_steps("Runge-Kutta, two compliances", OWN, steps, order=4, own=(1, finest))
    yield route.over_steps("single precision, two compliances", OWN_SINGLE, steps, order=4)
    softer = {10.0**k: replace(OWN, compliances=(10.0**k,)) for k in (1, 0, -1, -2, -3)}
    yield route.over("compliance", "factor on inverse weights [-]", softer, finest, order=1)
    softer = {10.0**k: replace(OWN_SINGLE, compliances=(10.0**k,)) for k in (3, 2, 1, 0, -1)}
    yield route.over("single precision, compliance", "factor on inverse weights [-]", softer, finest, order=1)
    stiff = {10.0**k: replace(AS_IT_IS, solref=(10.0**k, 2 * 10.0 ** (k / 2))) for k in range(1, 6)}
    yield route.over("as it is, stiffness", "stiffness (solref), critically damped [1/s²]", stiff, finest / 4)


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
