"""Refinement studies of `mujoco/forward`: the step, and the settings of MuJoCo's own solver.

With targets that are frozen over a step MuJoCo's integrators are of first order here, whatever their name; with targets
that move with a clock in the model, its Runge-Kutta method has the fourth.
"""

from dataclasses import replace

from loopcheck.engines.declarations import Order, OverSteps, OverValues, Refinements, varied
from loopcheck.engines.mujoco.routes.forward import (
    FINEST,
    MJ_STEP,
    OWN,
    RUNGE_KUTTA,
    MujocoForward,
    Settings,
)
from loopcheck.engines.mujoco.tuning import SETTINGS

FINE, FINER, FINEST_OF_ALL = ((0.021, FINEST / k) for k in (2.1, 4.1, 8.1))
"""Bounds of the steps of a ladder [s]."""
FIXED = replace(OWN, adapts=False)
"""The settings of the route, with the compliances it begins with."""
HARD = replace(FIXED, compliances=(1e-3,))
"""A single simulation, with constraints a thousand times as stiff as in the model."""
SOFT = replace(HARD, compliances=(1.0,))
"""With the inverse weights of the model (an MJCF cannot set them)."""
DEFAULT = replace(SOFT, solref=(0.02, 1.0), solimp=(0.9, 0.95, 0.001, 0.5, 2.0), tolerance=1e-8)
"""Default of every constraint without settings in the file."""
FOURTH = Order(4, "classical Runge-Kutta method, targets by a clock in the model (Hairer, Nørsett and Wanner, II.1)")
FIRST = Order(1, "Euler's method; mj_step holds the targets over a step with any integrator")
OWN_SOFTNESS = replace(FIRST, limit="efforts of the model's soft loops")
LINEAR = Order(1, "regularization of rows, linear in their softness (MuJoCo: Computation)")
WRITTEN = {value.fixed["integrator"] for value in SETTINGS["integrator"].values.values()}
EULER, EULER_HARDER = replace(HARD, integrator="Euler"), replace(HARD, integrator="Euler", compliances=(1e-5,))
OF_STEPS = (
    OverSteps("Runge-Kutta, two compliances", FIXED, FINE, FOURTH, own=1),
    OverSteps("Runge-Kutta, compliance 0.001", HARD, FINE, FOURTH),
    OverSteps("mj_step Euler", EULER, FINEST_OF_ALL, FIRST, extrapolated=(2, 3, 4)),
    OverSteps("mj_step Euler, compliance 1e-05", EULER_HARDER, FINER, FIRST, extrapolated=(2, 3, 4)),
    *(
        OverSteps(f"mj_step {name}", replace(HARD, integrator=name), FINE, FIRST)
        for name in sorted(WRITTEN & set(MJ_STEP) - {"Euler"}, reverse=True)
    ),
    OverSteps("mj_step Euler, own inverse weights", replace(SOFT, integrator="Euler"), FINEST_OF_ALL, OWN_SOFTNESS),
    OverSteps("mj_step Euler, default softness", replace(DEFAULT, integrator="Euler"), FINER, OWN_SOFTNESS),
)
SOFTER = {10.0**-k: replace(HARD, compliances=(10.0**-k,)) for k in range(7)}
SLACK = {10.0**-k: replace(SOFT, solimp=(1 - 10.0**-k, 1 - 10.0**-k, 0.001, 0.5, 1.0)) for k in range(1, 5)}
STIFF = {10.0**k: replace(FIXED, solref=(-(10.0**k), -2 * 10.0 ** (k / 2))) for k in range(1, 6)}
NEWTON = varied(FIXED, "iterations", (1, 2, 4, 8))
PGS = varied(replace(FIXED, solver="PGS"), "iterations", (5, 20, 80, 320))
STOP = varied(FIXED, "tolerance", (10.0**-k for k in (2, 5, 8, 16)))
AT = 4 * FINEST
"""A step small enough for the refined setting to dominate the error [s]."""
OF_SOLVER = (
    OverValues("Runge-Kutta, compliance", "factor on inverse weights [-]", SOFTER, LINEAR, AT),
    OverValues("Runge-Kutta, impedance, own inverse weights", "1 - impedance (solimp) [-]", SLACK, LINEAR, AT),
    OverValues("Runge-Kutta, stiffness", "stiffness (solref), critically damped [1/s²]", STIFF, longest=AT),
    OverValues("Runge-Kutta, Newton iterations", "iterations [-]", NEWTON, longest=AT),
    OverValues("Runge-Kutta, PGS iterations", "iterations [-]", PGS, longest=AT),
    OverValues("Runge-Kutta, Newton tolerance", "tolerance [-]", STOP, longest=AT),
)


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


ladders = Refinements(
    source=MujocoForward, in_words=_in_words, studies=(*OF_STEPS, *OF_SOLVER), default=2e-3, finest=FINEST
).ladders
"""See `loopcheck.engines.contract.Refinements`."""
