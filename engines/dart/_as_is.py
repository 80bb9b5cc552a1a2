"""DART as its user steps it, driven along a motion by forces, and what is written down of it."""

import numpy as np

from engines.as_is import Record
from engines.computed_torque import Demand, bandwidth, computed_torque, demand, drive_matrices
from engines.dart._equations import tree_terms
from engines.dart._loads import apply_loads
from engines.dart._loops import closure_bias, closure_jacobian, opening
from engines.dart._skeleton import build, guarded
from engines.dart._stepping import close_loops, world_with
from engines.projection import drives_along, loop_motions
from engines.silence import silenced
from robots.arrays import Array
from robots.efforts import Deviation
from robots.errors import EngineError
from robots.mechanism import Mechanism
from robots.motion import Motion

STEP, ERROR_REDUCTION = 1e-3, 0.01
"""DART's default step [s] and error reduction of constraints [-]."""


def demands(mechanism: Mechanism, motion: Motion) -> tuple[tuple[int, ...], list[Demand]]:
    """The independent drives, and what a motion takes at its samples by DART's matrices.

    Args:
        mechanism: Robot.
        motion: The motion.
    """
    tree, W = build(mechanism), mechanism.rates_of(mechanism.drives)

    def jacobian(q: Array) -> Array:
        tree.put(q, np.zeros(mechanism.nv))
        return closure_jacobian(tree)

    independent = drives_along(jacobian, motion.q, W)
    S, scale, every = mechanism.selection, mechanism.effort_scales, []
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        tree.put(q, qd)
        loop = loop_motions(closure_jacobian(tree), W[independent])
        tree.put(q, loop.velocities(qd))
        a = loop.accelerations(qdd, closure_bias(tree))
        M, bias, passive = tree_terms(tree)
        every.append(demand(loop, M, M @ a + bias - passive, S, scale))
    return tuple(independent), every


def simulate(
    mechanism: Mechanism, motion: Motion, known: tuple[tuple[int, ...], list[Demand]], *, sample: int = 0
) -> Record:
    """A run from the exact state at a sample of the motion to its end.

    Args:
        mechanism: Robot.
        motion: Its motion.
        known: The independent drives, and what the motion takes, as `demands` tells.
        sample: Number of the sample.

    Raises:
        NotRepresentableError: If the mechanism has something that DART cannot carry.
        EngineError: If DART fails, or its state is not finite any more.
    """
    independent, begin = known[0], float(motion.t[sample])
    steps = (begin, STEP, int(np.floor((motion.t[-1] - begin) / STEP + 1e-9)) + 1)
    controller = computed_torque(mechanism, motion, known[1], independent, steps, bandwidth(STEP))
    A, W = drive_matrices(mechanism, independent)
    positions, velocities, efforts, drift = [], [], [], Deviation()
    with guarded("dart/as_is"), silenced():
        tree = build(mechanism)
        tree.put(motion.q[sample], motion.qd[sample])
        world = world_with(tree, STEP)
        close_loops(world, tree, ERROR_REDUCTION)
        for k in range(len(controller.t)):
            x = np.array(tree.skeleton.getPositions())
            if not np.isfinite(x).all():
                raise EngineError("dart/as_is: the simulation is not finite any more")
            positions.append(tree.ours(x))
            velocities.append(np.array(tree.skeleton.getVelocities()))
            efforts.append(controller.efforts(k, A @ positions[-1], W @ velocities[-1]))
            drift = drift.or_worse(opening(tree))
            tree.skeleton.setForces(efforts[-1] @ mechanism.selection)
            apply_loads(tree)
            world.step(False)
    q, qd, acted = np.array(positions), np.array(velocities), np.array(efforts)
    return Record(
        controller=controller,
        independent=independent,
        positions=q @ A.T,
        q=q,
        qd=qd,
        acted=acted,
        readings={"commanded": acted},
        at_limits=0,
        drift=drift,
        holds_itself=False,
    )
