"""Simbody as OpenSim's user runs it: its manager with its own integrator and accuracy, and coordinate actuators."""

from typing import Any, NamedTuple, Self

import numpy as np

from loopcheck.engines.simbody._equations import opening
from loopcheck.engines.simbody._model import BALL_OR_FREE, Model, build
from loopcheck.engines.simbody._opensim import opensim
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism

STEP = 1e-3
"""How long an effort is held [s]; OpenSim's integrator chooses its own steps within."""


def want_scalar(mechanism: Mechanism) -> None:
    """Refuse what OpenSim's actuators do not act on, and what its angles make hard to read.

    Raises:
        NotRepresentableError: If there is any.
    """
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            raise NotRepresentableError(
                f"simbody/as_is: not supported: {joint.kind} joint '{joint.name}' (represented by angles)"
            )
    for drive in mechanism.drives:
        if not drive.is_joint:
            raise NotRepresentableError(
                f"simbody/as_is: not supported: drive of tendon '{drive.name}' (actuators only on joints)"
            )


class SimbodyStepped(NamedTuple):
    """See `loopcheck.engines.as_is.Stepped`."""

    simbody: Model
    step: float = STEP

    @classmethod
    def from_state(cls, mechanism: Mechanism, t: float, q: JointPositions, qd: JointVelocities) -> Self:
        """The robot in a state.

        Args:
            t: Time of the state [s].

        Raises:
            NotRepresentableError: If the mechanism has something that Simbody cannot carry.
        """
        model = build(mechanism, actuated=True)
        model.put(q, qd)
        model.state.setTime(t)
        return cls(model)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.as_is.Stepped.mechanism`."""
        return self.simbody.mechanism

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.as_is.Stepped.state`; of hinges and slides."""
        model, count = self.simbody, len(self.simbody.joints)
        model.model.realizePosition(model.state)
        x, u = (np.array(values.to_numpy()) for values in (model.state.getQ(), model.state.getU()))
        q = x[[place for (place,) in model.q_places[:count]]] + self.mechanism.rest_position
        return q, u[[place for (place,) in model.places[:count]]]

    def opening(self) -> Deviation:
        """See `loopcheck.engines.as_is.Stepped.opening`."""
        return opening(self.simbody, self.simbody.state)

    def hold(self, force: Array, t: float) -> None:
        """See `loopcheck.engines.as_is.Stepped.hold`; the state is where OpenSim's manager leaves it."""
        model = self.simbody
        for j in self.mechanism.actuated_joints:
            actuator = model.actuators[j]
            actuator.overrideActuation(model.state, True)
            actuator.setOverrideActuation(model.state, float(force[self.mechanism.dof_slices[j].start]))
        manager = _manager(model)
        manager.initialize(model.state)
        reached = manager.integrate(t + STEP)
        model.state.setY(reached.getY())
        model.state.setTime(t + STEP)


def _manager(model: Model) -> Any:
    manager = opensim.Manager(model.model)
    manager.setWriteToStorage(False)
    manager.setPerformAnalyses(False)
    return manager
