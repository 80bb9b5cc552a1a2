"""Robots of a file in a batch of Genesis."""

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.declarations import Settings
from loopcheck.engines.genesis._genesis import device
from loopcheck.engines.genesis._scene import Stepping, build, guarded, numbers
from loopcheck.engines.genesis.tuning import scripted
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.robots.arrays import EffortSeries
from loopcheck.robots.mechanism import Mechanism

__all__ = ["PRECISIONS", "device", "worlds"]

PRECISIONS = ("double",)
SOURCE = "genesis/batch"


class GenesisWorlds:
    """Worlds of a scene; efforts act as forces on joints with disabled drives."""

    def __init__(self, mechanism: Mechanism, stepping: Stepping, state: State) -> None:
        """Put a robot into each state.

        Args:
            stepping: How the scene steps.
            state: Positions [m or rad], shape (n, nq), and velocities [per s], shape (n, nv).

        Raises:
            NotRepresentableError: If something of the mechanism would be lost.
        """
        self._built = build(mechanism, stepping, worlds=len(state[0]))
        self._built.scene.step()  # compiled before anything is timed
        self._built.scene.reset()
        self._built.put(*state)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self._built.state()

    def step(self, command: EffortSeries, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        built = self._built
        with guarded(SOURCE), silenced():
            built.entity.control_dofs_force(np.ascontiguousarray(command @ built.mechanism.selection))
            for _ in range(count):
                built.load()
                built.scene.step()
            numbers(built.entity.get_qpos())  # which waits until they are made
        return {}


def worlds(mechanism: Mechanism, state: State, settings: Settings, precision: str) -> Robots[EffortSeries]:
    """See `loopcheck.engines.contract.Batch.worlds`."""
    with guarded(SOURCE), silenced():
        return GenesisWorlds(mechanism, scripted(mechanism, settings), state)
