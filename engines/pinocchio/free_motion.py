"""A robot left to constant efforts in Pinocchio: stepped as in its example of a closed chain, or with care."""

import numpy as np

from loopcheck.engines.contract import State
from loopcheck.engines.pinocchio._simulation import EULER, Simulation, Solver
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism

EXAMPLE = Solver(integrator=EULER, mu=1e-10, iterations=1, stiffness=10.0, damping=2 * 10**0.5)
"""Settings of Pinocchio's example `simulation-closed-kinematic-chains.py`; Pinocchio has no defaults."""
STEP = 5e-3
"""The step of that example [s]."""
TIGHT_STEPS = 1000
"""Steps of a tight simulation per second, at least; and ten times as many between two times."""

SETTINGS = (
    "default: step, integrator and solver of Pinocchio's example of a closed chain; tight: "
    "Runge-Kutta 4, steps of 1 ms or 1/100 of the span, converged solver"
)
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Array, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        t: Times [s], shape (nt,); steps divide the distances.
        tight: Small steps of fourth order and the solver of `pinocchio/forward`, instead of those of the example.
    """
    force, states = mechanism.selection.T @ effort, [state]
    with guarded("pinocchio"), np.errstate(over="ignore", invalid="ignore"):
        simulation = Simulation(mechanism, (), Solver() if tight else EXAMPLE)
        simulation.put(*state)
        for length in np.diff(t):
            steps = max(int(np.ceil(length * TIGHT_STEPS)), 10) if tight else int(np.ceil(length / STEP - 1e-9))
            step = simulation.stepping(length / steps)
            for _ in range(steps):
                step(simulation.acceleration(force), lambda _: simulation.acceleration(force))
            states.append((simulation.q, np.array(simulation.qd)))
    return np.array([q for q, _ in states]), np.array([qd for _, qd in states])
