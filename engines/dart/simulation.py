"""A robot in DART: with its defaults, or in small steps with its loops drawn shut in each."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.dart._loads import apply_loads
from loopcheck.engines.dart._loops import opening
from loopcheck.engines.dart._skeleton import build, guarded
from loopcheck.engines.dart._stepping import close_loops, world_with
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

STEP, ERROR_REDUCTION = 1e-3, 0.01
"""DART's default step [s] and error reduction of constraints [-]."""
SETTINGS = (
    "default: steps of 1 ms, error reduction 0.01; tight: steps of 0.2 ms or 1/1000 of the span, error reduction 1"
)
"""See `loopcheck.engines.contract.Simulation`."""


class DartRobot:
    """See `loopcheck.engines.as_is.ObservedRobot`."""

    def __init__(self, mechanism: Mechanism, error_reduction: float = ERROR_REDUCTION) -> None:
        """Make it with the default step; a step takes back this fraction of the opening of a loop."""
        self.mechanism, self._error_reduction = mechanism, error_reduction
        self._tree = build(mechanism)
        self._world = world_with(self._tree, STEP)

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`."""
        return float(self._world.getTimeStep())

    @timestep.setter
    def timestep(self, step: float) -> None:
        self._world.setTimeStep(step)

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`; once, as the constraints are made in this state."""
        self._tree.put(q, qd)
        close_loops(self._world, self._tree, self._error_reduction)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        skeleton = self._tree.skeleton
        x, qd = np.array(skeleton.getPositions()), np.array(skeleton.getVelocities())
        return (self._tree.ours(x) if np.isfinite(x).all() else x), qd

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening(self._tree)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        force = command @ self.mechanism.selection
        for _ in range(count):
            self._tree.skeleton.setForces(force)
            apply_loads(self._tree)
            self._world.step(False)
        return {}


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[DartRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`."""
    with guarded("dart"), silenced():
        yield DartRobot(mechanism, 1.0 if tight else ERROR_REDUCTION)


free_motion = Free(simulate=simulate, tight_pace=Pace(step=2e-4, fewest=100))
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
