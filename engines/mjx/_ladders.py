"""What `loopcheck ladder` varies of `mjx/forward`, and what the engine as it is makes of stiff loops."""

from collections.abc import Iterator
from dataclasses import replace
from math import nan
from typing import Any

from engines.ladder import STEP, Ladder, Trial, halvings
from engines.mjx.forward import FINEST, OWN, MjxForward, Settings
from engines.mjx.forward_single import OWN as SINGLE
from engines.mujoco.forward import own_steps
from robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""
ROUTE = MjxForward.name
AS_IT_IS = replace(OWN, velocity_term=False)
"""Without J̇v in the reference accelerations of the loops, as MJX has them."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    finest = own_steps(motion.dt, finest=FINEST)[-1]
    steps = halvings(motion.dt, coarsest=COARSEST, finest=FINEST / 4.1)
    of_steps = [_trial(dt, dt, OWN) for dt in steps]
    yield _ladder("Runge-Kutta, two compliances", STEP, of_steps, order=4, own=(1, finest))
    single = [_trial(dt, dt, SINGLE) for dt in steps]
    yield _ladder("single precision, two compliances", STEP, single, order=4)
    for name, double in (("compliance", True), ("single precision, compliance", False)):
        factors = [10.0**k for k in ((1, 0, -1, -2, -3) if double else (3, 2, 1, 0, -1))]
        softer = [_trial(c, finest, replace(OWN, double=double, compliances=(c,))) for c in factors]
        yield _ladder(name, "factor on inverse weights [-]", softer, order=1)
    stiff = [10.0**k for k in (1, 2, 3, 4, 5)]
    as_it_is = [_trial(k, finest / 4, replace(AS_IT_IS, solref=(k, 2 * k**0.5))) for k in stiff]
    yield _ladder("as it is, stiffness", "stiffness (solref), critically damped [1/s²]", as_it_is)


def _ladder(name: str, refined: str, trials: list[Trial], *, order: float = nan, **more: Any) -> Ladder:
    return Ladder(route=ROUTE, name=name, refined=refined, order=order, trials=tuple(trials), **more)


def _trial(value: float, dt: float, of: Settings) -> Trial:
    return Trial(
        value=value,
        dt=dt,
        settings=_to_set(of),
        runs=len(of.compliances),
        plain=False,
        source=MjxForward(replace(of, steps=(dt,))),
    )


def _to_set(of: Settings) -> str:
    """The settings by the names that they have in an MJCF and in `mjx.Model`."""
    factors = " and ".join(f"{compliance:g}" for compliance in of.compliances)
    several = ", extrapolated to 0" if len(of.compliances) > 1 else ""
    return ", ".join(
        [
            "jax_enable_x64" if of.double else "single precision",
            "Runge-Kutta of your own on mjx.forward",
            "J̇v put into efc_aref" if of.velocity_term else "efc_aref as it is",
            f"solver Newton, iterations {of.iterations}, ls_iterations 0, tolerance 0",
            f"solref {' '.join(f'{-x:g}' for x in of.solref)}",
            f"solimp {of.impedance:g} {of.impedance:g} 0.001 0.5 1",
            f"body_invweight0 and dof_invweight0 times {factors}{several}",
        ]
    )
