"""A robot in Pinocchio: stepped as in its example of a closed chain, or with care."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from loopcheck.engines.pinocchio._simulation import EULER, Simulation, Solver
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

EXAMPLE = Solver(integrator=EULER, mu=1e-10, iterations=1, stiffness=10.0, damping=2 * 10**0.5)
"""Settings of Pinocchio's example `simulation-closed-kinematic-chains.py`; Pinocchio has no defaults."""
SETTINGS = (
    "default: step, integrator and solver of Pinocchio's example of a closed chain; tight: "
    "Runge-Kutta 4, steps of 1 ms or 1/100 of the span, converged solver"
)
"""See `loopcheck.engines.contract.Simulation`."""


class PinocchioRobot:
    """See `loopcheck.engines.simulation.Robot`."""

    timestep = 5e-3
    """The step of that example [s]."""

    def __init__(self, mechanism: Mechanism, solver: Solver) -> None:
        """Make it with a solver."""
        self._mechanism, self._simulation = mechanism, Simulation(mechanism, (), solver)

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`."""
        self._simulation.put(q, qd)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self._simulation.q, np.array(self._simulation.qd)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        force, step = command @ self._mechanism.selection, self._simulation.stepping(self.timestep)
        for _ in range(count):
            step(self._simulation.acceleration(force), lambda _: self._simulation.acceleration(force))
        return {}


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[PinocchioRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`: with the solver of `pinocchio/forward` if tight."""
    with guarded("pinocchio"), np.errstate(over="ignore", invalid="ignore"):
        yield PinocchioRobot(mechanism, Solver() if tight else EXAMPLE)


free_motion = Free(simulate=simulate, tight_pace=Pace(step=1e-3, fewest=10))
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
