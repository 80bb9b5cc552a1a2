"""Drake as its user steps it, driven along a motion by actuation, and what is written down of it."""

import numpy as np

from engines.as_is import Record
from engines.computed_torque import Demand, bandwidth, computed_torque, demand, drive_matrices
from engines.drake._equations import closure_bias, closure_jacobian, opening, tree_terms
from engines.drake._plant import Plant, build, guarded
from engines.drake._stepping import apply_loads
from engines.projection import drives_along, loop_motions
from robots.arrays import Array
from robots.efforts import Deviation
from robots.errors import EngineError
from robots.mechanism import Mechanism
from robots.motion import Motion

STEP = 1e-3
"""The step of Drake's own examples [s]; it has no default."""


def demands(mechanism: Mechanism, motion: Motion) -> tuple[tuple[int, ...], list[Demand]]:
    """The independent drives, and what a motion takes at its samples by Drake's matrices.

    Args:
        mechanism: Robot.
        motion: The motion.
    """
    with guarded("drake/as_is"):
        drake, W = build(mechanism), mechanism.rates_of(mechanism.drives)

        def jacobian(q: Array) -> Array:
            drake.put(q, np.zeros(mechanism.nv))
            return closure_jacobian(drake, q)

        independent = drives_along(jacobian, motion.q, W)
        S, scale, every = mechanism.selection, mechanism.effort_scales, []
        for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
            drake.put(q, qd)
            loop = loop_motions(closure_jacobian(drake, q), W[independent])
            v = loop.velocities(qd)
            a = loop.accelerations(qdd, closure_bias(drake, q, v))
            M, bias, passive = tree_terms(drake, q, v)
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
        NotRepresentableError: If the mechanism has something that Drake cannot carry.
        EngineError: If Drake fails, or its state is not finite any more.
    """
    independent, begin = known[0], float(motion.t[sample])
    steps = (begin, STEP, int(np.floor((motion.t[-1] - begin) / STEP + 1e-9)) + 1)
    controller = computed_torque(mechanism, motion, known[1], independent, steps, bandwidth(STEP))
    A, W = drive_matrices(mechanism, independent)
    positions, velocities, efforts, drift = [], [], [], Deviation()
    with guarded("drake/as_is"):
        drake = build(mechanism, step=STEP)
        drake.put(motion.q[sample], motion.qd[sample])
        apply_loads(drake)
        after = drake.plant.AllocateDiscreteVariables()
        for k in range(len(controller.t)):
            q, qd = drake.state()
            if not (np.isfinite(q).all() and np.isfinite(qd).all()):
                raise EngineError("drake/as_is: the simulation is not finite any more")
            positions.append(q)
            velocities.append(qd)
            efforts.append(controller.efforts(k, A @ q, W @ qd))
            drift = drift.or_worse(opening(drake, drake.context))
            _push(drake, efforts[-1] @ mechanism.selection)
            drake.plant.CalcForcedDiscreteVariableUpdate(drake.context, after)
            drake.context.SetDiscreteState(after)
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


def _push(drake: Plant, effort: Array) -> None:
    """Let efforts act on the driven joints in the next step [N or N m], shape (nv,)."""
    command = np.zeros(drake.plant.num_actuators())
    for j, actuator in drake.actuators.items():
        command[actuator.input_start()] = effort[drake.mechanism.dof_slices[j].start]
    drake.plant.get_actuation_input_port().FixValue(drake.context, command)
