"""A robot in Simbody: integrated as OpenSim's Manager does out of the box, or tightly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.engines.simbody._equations import opening
from loopcheck.engines.simbody._model import Model, build
from loopcheck.engines.simbody._opensim import guarded, opensim
from loopcheck.engines.simulation import Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities, Times
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism

STEP = 1e-3
"""Hold time of an effort [s]; OpenSim's integrator chooses its own steps within."""
ACCURACY = 1e-10
"""Of a tight simulation, relative for velocities and absolute for positions; constraints are met to it too [-]."""
SETTINGS = (
    f"default: the integrator and accuracy of OpenSim's Manager; tight: Runge-Kutta-Merson, accuracy {ACCURACY:g}"
)
"""See `loopcheck.engines.contract.Simulation`."""


class SimbodyRobot:
    """See `loopcheck.engines.as_is.ObservedRobot`; a robot of hinges and slides, driven by actuators of OpenSim."""

    timestep = STEP

    def __init__(self, mechanism: Mechanism) -> None:
        """Make it."""
        self.mechanism, self._model = mechanism, build(mechanism, actuated=True)
        self._begin, self._steps = 0.0, 0

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`."""
        self._begin, self._steps = t, 0
        self._model.start(q, qd, t)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        self._model.model.realizePosition(self._model.state)
        return _read(self._model, self._model.state)

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening(self._model, self._model.state)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`; the state is where OpenSim's manager leaves it."""
        model, force = self._model, command @ self.mechanism.selection
        for j in self.mechanism.actuated_joints:
            actuator = model.actuators[j]
            actuator.overrideActuation(model.state, True)
            actuator.setOverrideActuation(model.state, float(force[self.mechanism.dof_slices[j].start]))
        for _ in range(count):
            end = self._begin + self.timestep * self._steps + self.timestep
            manager = _manager(model)
            manager.initialize(model.state)
            reached = manager.integrate(end)
            model.state.setY(reached.getY())
            model.state.setTime(end)
            self._steps += 1
        return {}


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[SimbodyRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`; always as out of the box."""
    with guarded("simbody"):
        yield SimbodyRobot(mechanism)


def free_motion(mechanism: Mechanism, effort: Efforts, state: State, t: Times, *, tight: bool) -> State:
    """See `loopcheck.engines.contract.Simulation.free_motion`: the integrator chooses its steps in the whole span."""
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            raise NotRepresentableError(
                f"simbody: not supported: free motion of {joint.kind} joint '{joint.name}' (represented by angles)"
            )
    q, qd = (np.full((len(t), n), np.nan) for n in (mechanism.nq, mechanism.nv))
    with guarded("simbody"):
        model = build(mechanism, efforts=mechanism.selection.T @ effort)
        model.start(*state, float(t[0]))
        manager = _manager(model)
        if tight:
            manager.setIntegratorAccuracy(ACCURACY)
            manager.setIntegratorConstraintTolerance(max(ACCURACY, 2 * opening(model, model.state).largest))
        manager.setIntegratorInternalStepLimit(-1)
        manager.initialize(model.state)
        q[0], qd[0] = state
        for k, time in enumerate(t[1:].tolist(), start=1):
            try:
                q[k], qd[k] = _read(model, manager.integrate(time))
            except RuntimeError:  # its steps have become too small
                break
    return q, qd


def _manager(model: Model) -> Any:
    manager = opensim.Manager(model.model)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager


def _read(model: Model, state: Any) -> State:
    """Positions and velocities of hinges and slides."""
    count = len(model.joints)
    x, u = (np.array(values.to_numpy()) for values in (state.getQ(), state.getU()))
    q = x[[place for (place,) in model.q_places[:count]]] + model.mechanism.rest_position
    return q, u[[place for (place,) in model.places[:count]]]
