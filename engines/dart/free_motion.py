"""A robot left to constant efforts in DART: with its defaults, or in small steps with its loops drawn shut in each."""

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.contract import State
from loopcheck.engines.dart._loads import apply_loads
from loopcheck.engines.dart._skeleton import build, guarded
from loopcheck.engines.dart._stepping import close_loops, world_with
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism

STEP, LOOSE = 1e-3, 0.01
"""DART's default step [s] and error reduction [-]."""
TIGHT_STEPS = 5000
"""Steps of a tight simulation per second, at least."""
FEWEST = 100
"""Steps of a tight simulation between two times."""
SETTINGS = (
    "default: steps of 1 ms, error reduction 0.01; tight: steps of 0.2 ms or 1/1000 of the span, error reduction 1"
)
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Array, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        t: Times [s], shape (nt,); steps divide the distances.
        tight: Small steps, and loops drawn shut in each, instead of DART's defaults.
    """
    force, states = mechanism.selection.T @ effort, [state]
    with guarded("dart"), silenced():
        tree = build(mechanism)
        tree.put(*state)
        world = world_with(tree, STEP)
        close_loops(world, tree, 1.0 if tight else LOOSE)
        for length in np.diff(t).tolist():
            steps = max(int(np.ceil(length * TIGHT_STEPS)), FEWEST) if tight else int(np.ceil(length / STEP - 1e-9))
            world.setTimeStep(length / steps)
            for _ in range(steps):
                tree.skeleton.setForces(force)
                apply_loads(tree)
                world.step(False)
            states.append((tree.ours(np.array(tree.skeleton.getPositions())), np.array(tree.skeleton.getVelocities())))
    return np.array([q for q, _ in states]), np.array([qd for _, qd in states])
