"""Simbody as OpenSim's user runs it, driven along a motion by actuators, and what is written down of it."""

from functools import partial
from typing import Any

import numpy as np

from engines.as_is import Record
from engines.computed_torque import Demand, bandwidth, computed_torque, demand, drive_matrices
from engines.projection import drives_along, loop_motions
from engines.simbody._equations import closure_bias, closure_jacobian, opening, tree_terms
from engines.simbody._model import BALL_OR_FREE, Model, build
from engines.simbody._opensim import guarded, opensim
from robots.arrays import Array
from robots.efforts import Deviation
from robots.errors import EngineError, NotRepresentableError
from robots.mechanism import Mechanism
from robots.motion import Motion

STEP = 1e-3
"""How long an effort is held [s]; OpenSim's integrator chooses its own steps within."""


def want_scalar(mechanism: Mechanism) -> None:
    """Refuse what OpenSim's actuators do not act on, and what its angles make hard to read.

    Raises:
        NotRepresentableError: If there is any.
    """
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            raise NotRepresentableError(f"simbody: as it is, {joint.kind} joint '{joint.name}' has angles")
    for drive in mechanism.drives:
        if not drive.is_joint:
            raise NotRepresentableError(f"simbody: as it is, drive of tendon '{drive.name}': actuators act on joints")


def demands(mechanism: Mechanism, motion: Motion) -> tuple[tuple[int, ...], list[Demand]]:
    """The independent drives, and what a motion takes at its samples by Simbody's matrices.

    Args:
        mechanism: Robot.
        motion: The motion.
    """
    W = mechanism.rates_of(mechanism.drives)
    with guarded("simbody/as_is"):
        model = build(mechanism)
        independent = drives_along(partial(_jacobian, model), motion.q, W)
        S, scale, every = mechanism.selection, mechanism.effort_scales, []
        for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
            loop = loop_motions(_jacobian(model, q), W[independent])
            v = loop.velocities(qd)
            a = loop.accelerations(qdd, closure_bias(model, q, v))
            M, bias, passive = tree_terms(model, q, v)
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
        NotRepresentableError: If the mechanism has something that Simbody cannot carry.
        EngineError: If Simbody fails, or its state is not finite any more.
    """
    independent, begin = known[0], float(motion.t[sample])
    steps = (begin, STEP, int(np.floor((motion.t[-1] - begin) / STEP + 1e-9)) + 1)
    controller = computed_torque(mechanism, motion, known[1], independent, steps, bandwidth(STEP))
    A, W = drive_matrices(mechanism, independent)
    positions, velocities, efforts, drift = [], [], [], Deviation()
    with guarded("simbody/as_is"):
        model = build(mechanism, actuated=True)
        model.put(motion.q[sample], motion.qd[sample])
        model.state.setTime(begin)
        for k, t in enumerate(controller.t.tolist()):
            model.model.realizePosition(model.state)
            q, qd = _read(model)
            if not (np.isfinite(q).all() and np.isfinite(qd).all()):
                raise EngineError("simbody/as_is: the simulation is not finite any more")
            positions.append(q)
            velocities.append(qd)
            efforts.append(controller.efforts(k, A @ q, W @ qd))
            drift = drift.or_worse(opening(model, model.state))
            _step(model, efforts[-1] @ mechanism.selection, t + STEP)
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


def _jacobian(model: Model, q: Array) -> Array:
    model.put(q, np.zeros(model.mechanism.nv))
    model.model.realizePosition(model.state)
    return closure_jacobian(model, q)


def _step(model: Model, effort: Array, end: float) -> None:
    """Hold efforts until some time [N or N m], shape (nv,): the state is where OpenSim's manager leaves it."""
    for j in model.mechanism.actuated_joints:
        actuator = model.actuators[j]
        actuator.overrideActuation(model.state, True)
        actuator.setOverrideActuation(model.state, float(effort[model.mechanism.dof_slices[j].start]))
    manager = _manager(model)
    manager.initialize(model.state)
    reached = manager.integrate(end)
    model.state.setY(reached.getY())
    model.state.setTime(end)


def _manager(model: Model) -> Any:
    manager = opensim.Manager(model.model)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager


def _read(model: Model) -> tuple[Array, Array]:
    """Positions and velocities of hinges and slides."""
    count = len(model.joints)
    x, u = (np.array(values.to_numpy()) for values in (model.state.getQ(), model.state.getU()))
    q = x[[place for (place,) in model.q_places[:count]]] + model.mechanism.rest_position
    return q, u[[place for (place,) in model.places[:count]]]
