"""A robot left to constant efforts in PyBullet: with its defaults, or undamped with the solver as tight as it goes."""

import numpy as np

from loopcheck.engines.contract import State
from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._loads import apply_loads, set_state
from loopcheck.engines.pybullet._loops import close_loops
from loopcheck.engines.pybullet._world import World, joint_state, opened
from loopcheck.engines.pybullet.routes.forward import OWN, prepare
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism

STEP = 1 / 240
"""PyBullet's default step [s]."""
TIGHT_STEPS = 1000
"""Steps of a tight simulation per second, at least; and ten times as many between two times."""

SETTINGS = (
    "default: steps of 1/240 s, default damping; tight: steps of 1 ms or 1/100 of the "
    "span, no damping, converged solver"
)
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Array, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        mechanism: Robot, with hinges and slides only.
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        t: Times [s], shape (nt,); steps divide the distances.
        tight: Small steps, no damping and a converged solver, instead of PyBullet's defaults.
    """
    states = [state]
    with opened(mechanism) as world:
        loops = close_loops(world)
        if tight:
            prepare(OWN, False, world, loops)
        set_state(world, *state)
        for joint in world.moving:
            pybullet.setJointMotorControl2(
                world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, physicsClientId=world.client
            )
        for length in np.diff(t):
            steps = max(int(np.ceil(length * TIGHT_STEPS)), 10) if tight else int(np.ceil(length / STEP - 1e-9))
            pybullet.setTimeStep(length / steps, physicsClientId=world.client)
            for _ in range(steps):
                _step(world, mechanism.selection.T @ effort)
            states.append(joint_state(world))
    return np.array([q for q, _ in states]), np.array([qd for _, qd in states])


def _step(world: World, force: Array) -> None:
    where = {"physicsClientId": world.client}
    apply_loads(world)
    loaded = [int(j) for j in np.flatnonzero(force)]
    if loaded:
        links, forces = [world.joints[j] for j in loaded], force[loaded].tolist()
        pybullet.setJointMotorControlArray(world.tree, links, pybullet.TORQUE_CONTROL, forces=forces, **where)
    pybullet.stepSimulation(**where)
