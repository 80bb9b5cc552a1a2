"""A robot left to constant efforts in Simbody: integrated as OpenSim's Manager does out of the box, or tightly."""

from typing import Any

import numpy as np

from loopcheck.engines.contract import State
from loopcheck.engines.simbody._equations import opening
from loopcheck.engines.simbody._model import BALL_OR_FREE, Model, build
from loopcheck.engines.simbody._opensim import guarded, opensim
from loopcheck.robots.arrays import Array, Efforts, Times
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism

ACCURACY = 1e-10
"""Of a tight simulation, relative for velocities and absolute for positions; constraints are met to it too [-]."""
SETTINGS = (
    f"default: the integrator and accuracy of OpenSim's Manager; tight: Runge-Kutta-Merson, accuracy {ACCURACY:g}"
)
"""See `loopcheck.engines.contract.FreeMotion`."""


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Times, *, tight: bool) -> State:
    """Positions and velocities at given times; not finite from where the simulation has failed.

    Args:
        mechanism: Robot, of hinges and slides.
        effort: Constant efforts of the actuators [N or N m], shape (na,).
        state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,), at the first time.
        tight: With an accuracy that comes close to the exact answer, instead of OpenSim's own.
    """
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            raise NotRepresentableError(
                f"simbody: not supported: free motion of {joint.kind} joint '{joint.name}' (represented by angles)"
            )
    with guarded("simbody"):
        model = build(mechanism, efforts=mechanism.selection.T @ effort)
        return _march(model, state, t, tight=tight)


def _march(model: Model, start: State, t: Array, *, tight: bool) -> State:
    """What Simbody makes of a start."""
    q, qd = (np.full((len(t), n), np.nan) for n in (model.mechanism.nq, model.mechanism.nv))
    model.put(*start)
    model.state.setTime(float(t[0]))
    model.model.realizePosition(model.state)
    manager = _manager(model, opening(model, model.state).largest, tight=tight)
    manager.initialize(model.state)
    q[0], qd[0] = start
    for k, time in enumerate(t[1:].tolist(), start=1):
        try:
            q[k], qd[k] = _read(model, manager.integrate(time))
        except RuntimeError:  # its steps have become too small
            break
    return q, qd


def _manager(model: Model, gap: float, *, tight: bool) -> Any:
    manager = opensim.Manager(model.model)
    if tight:
        manager.setIntegratorAccuracy(ACCURACY)
        manager.setIntegratorConstraintTolerance(max(ACCURACY, 2 * gap))
    manager.setIntegratorInternalStepLimit(-1)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager


def _read(model: Model, state: Any) -> tuple[Array, Array]:
    """Positions and velocities of hinges and slides."""
    count = len(model.joints)
    x, u = (np.array(values.to_numpy()) for values in (state.getQ(), state.getU()))
    q = x[[place for (place,) in model.q_places[:count]]] + model.mechanism.rest_position
    return q, u[[place for (place,) in model.places[:count]]]
