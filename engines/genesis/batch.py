"""Robots of a file in a batch of Genesis, and the effect of its step and iterations on the effort."""

from collections.abc import Mapping

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.genesis._as_is import held_by_drives
from loopcheck.engines.genesis._genesis import device
from loopcheck.engines.genesis._scene import STEP, Stepping, build, guarded, numbers
from loopcheck.engines.simulation import Readings, Robots, State
from loopcheck.engines.tuning import Settings
from loopcheck.robots.arrays import EffortSeries
from loopcheck.robots.efforts import AsIs, run_of
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

__all__ = ["PRECISIONS", "as_is", "choices", "device", "timestep", "worlds"]

PRECISIONS = ("double",)
SOURCE = "genesis/batch"


def choices(mechanism: Mechanism) -> Mapping[str, Settings]:
    """See `loopcheck.engines.contract.Batch.choices`."""
    return {
        f"{1e3 * STEP:g} ms": {},
        "1 ms": {"timestep": "0.001"},
        "0.5 ms": {"timestep": "0.0005"},
        "4 ms": {"timestep": "0.004"},
        "10 ms (default of Genesis)": {"timestep": "0.01"},
        "1 iteration": {"iterations": "1"},
    }


def timestep(mechanism: Mechanism, settings: Settings) -> float:
    """See `loopcheck.engines.contract.Batch.timestep`."""
    return _stepping(settings).step


def as_is(case: Case, motion: Motion, settings: Settings, precision: str) -> AsIs:
    """See `loopcheck.engines.contract.Batch.as_is`; drives have the same gains with all steps."""
    return run_of(held_by_drives(SOURCE, case, motion, _stepping(settings)))


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
        return GenesisWorlds(mechanism, _stepping(settings), state)


def _stepping(settings: Settings) -> Stepping:
    own = Stepping()
    return Stepping(
        step=float(settings.get("timestep", own.step)), iterations=int(settings.get("iterations", own.iterations))
    )
