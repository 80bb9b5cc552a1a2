"""Refinement studies of `mujoco/forward`: the step, and the settings of MuJoCo's own solver.

With targets that are frozen over a step MuJoCo's integrators are of first order here, whatever their name; with targets
that move with a clock in the model, its Runge-Kutta method has the fourth.
"""

from collections.abc import Iterator
from dataclasses import replace

from loopcheck.engines.declarations import Ladder, Route, halvings
from loopcheck.engines.mujoco.routes.forward import (
    FINEST,
    MJ_STEP,
    OWN,
    RUNGE_KUTTA,
    MujocoForward,
    Settings,
    own_steps,
)
from loopcheck.engines.mujoco.tuning import SETTINGS
from loopcheck.robots.motion import Motion

COARSEST = 0.021
"""Upper bound of the steps of a ladder [s]."""
FIXED = replace(OWN, adapts=False)
"""The settings of the route, with the compliances it begins with."""
HARD = replace(FIXED, compliances=(1e-3,))
"""A single simulation, with constraints a thousand times as stiff as in the model."""
SOFT = replace(HARD, compliances=(1.0,))
"""With the inverse weights of the model (an MJCF cannot set them)."""
DEFAULT = replace(SOFT, solref=(0.02, 1.0), solimp=(0.9, 0.95, 0.001, 0.5, 2.0), tolerance=1e-8)
"""Default of every constraint without settings in the file."""


def ladders(motion: Motion) -> Iterator[Ladder]:
    """All ladders of the route."""
    route = Route(name=MujocoForward.name, source=MujocoForward, in_words=_in_words)
    yield from _of_steps(route, motion.dt)
    yield from _of_solver(route, next(dt for dt in halvings(motion.dt, coarsest=4 * FINEST, finest=0)))


def _of_steps(route: Route, report: float) -> Iterator[Ladder]:
    fine, finer, finest = (halvings(report, coarsest=COARSEST, finest=FINEST / k) for k in (2.1, 4.1, 8.1))
    yield route.over_steps("Runge-Kutta, two compliances", FIXED, fine, order=4, own=(1, own_steps(report)[-1]))
    yield route.over_steps("Runge-Kutta, compliance 0.001", HARD, fine, order=4)
    yield route.over_steps("mj_step Euler", replace(HARD, integrator="Euler"), finest, order=1, extrapolated=(2, 3, 4))
    harder = replace(HARD, integrator="Euler", compliances=(1e-5,))
    yield route.over_steps("mj_step Euler, compliance 1e-05", harder, finer, order=1, extrapolated=(2, 3, 4))
    written = [value.fixed["integrator"] for value in SETTINGS["integrator"].values.values()]
    for name in sorted(set(written) & set(MJ_STEP) - {"Euler"}, reverse=True):
        yield route.over_steps(f"mj_step {name}", replace(HARD, integrator=name), fine, order=1)
    yield route.over_steps("mj_step Euler, own inverse weights", replace(SOFT, integrator="Euler"), finest, order=1)
    yield route.over_steps("mj_step Euler, default softness", replace(DEFAULT, integrator="Euler"), finer, order=1)


def _of_solver(route: Route, dt: float) -> Iterator[Ladder]:
    """At a fixed step, small enough for the refined setting to dominate the error."""
    softer = {10.0**-k: replace(HARD, compliances=(10.0**-k,)) for k in range(7)}
    yield route.over("Runge-Kutta, compliance", "factor on inverse weights [-]", softer, dt, order=1)
    slack = {10.0**-k: replace(SOFT, solimp=(1 - 10.0**-k, 1 - 10.0**-k, 0.001, 0.5, 1.0)) for k in range(1, 5)}
    yield route.over("Runge-Kutta, impedance, own inverse weights", "1 - impedance (solimp) [-]", slack, dt, order=1)
    stiff = {10.0**k: replace(FIXED, solref=(-(10.0**k), -2 * 10.0 ** (k / 2))) for k in range(1, 6)}
    yield route.over("Runge-Kutta, stiffness", "stiffness (solref), critically damped [1/s²]", stiff, dt)
    newton = {float(n): replace(FIXED, iterations=n) for n in (1, 2, 4, 8)}
    yield route.over("Runge-Kutta, Newton iterations", "iterations [-]", newton, dt)
    pgs = {float(n): replace(FIXED, solver="PGS", iterations=n) for n in (5, 20, 80, 320)}
    yield route.over("Runge-Kutta, PGS iterations", "iterations [-]", pgs, dt)
    stop = {10.0**-k: replace(FIXED, tolerance=10.0**-k) for k in (2, 5, 8, 16)}
    yield route.over("Runge-Kutta, Newton tolerance", "tolerance [-]", stop, dt)


def _in_words(settings: Settings) -> str:
    integrator = "RK4, targets that move" if settings.integrator == RUNGE_KUTTA else settings.integrator
    factors = " and ".join(f"{compliance:g}" for compliance in settings.compliances)
    weights = f"body_invweight0 and dof_invweight0 times {factors}"
    return ", ".join(
        [
            f"integrator {integrator}",
            f"solver {settings.solver}, iterations {settings.iterations}, tolerance {settings.tolerance:g}",
            f"solref {' '.join(f'{x:g}' for x in settings.solref)}",
            f"solimp {' '.join(f'{x:g}' for x in settings.solimp)}",
            *(
                [weights + (", extrapolated to 0" if len(settings.compliances) > 1 else "")]
                if settings.compliances != (1,)
                else []
            ),
        ]
    )
