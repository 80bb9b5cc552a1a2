"""A robot left to constant efforts in Drake: in steps as its examples have them, or in small ones."""

import numpy as np

from loopcheck.engines.contract import State
from loopcheck.engines.drake._as_is import STEP, DrakeStepped
from loopcheck.engines.drake._plant import guarded
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism

TIGHT_STEP = 2e-4
"""Longest step of a tight simulation [s]; shorter steps lose more momentum than they gain accuracy."""
FEWEST = 100
"""Steps of a tight simulation between two times."""
SETTINGS = "default: steps of 1 ms; tight: steps of 0.2 ms or 1/100 of the sample time; SAP with default settings"
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Array, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        t: Times [s], shape (nt,); steps divide the distances.
        tight: Small steps, instead of those of Drake's examples.
    """
    force, states = mechanism.selection.T @ effort, [state]
    with guarded("drake"):
        for begin, length in zip(t[:-1].tolist(), np.diff(t).tolist(), strict=True):
            steps = max(int(np.ceil(length / TIGHT_STEP)), FEWEST) if tight else int(np.ceil(length / STEP - 1e-9))
            robot = DrakeStepped.from_state(mechanism, *states[-1], step=length / steps)
            for k in range(steps):
                robot.hold(force, begin + k * robot.step)
            states.append(robot.state())
    return np.array([q for q, _ in states]), np.array([qd for _, qd in states])
