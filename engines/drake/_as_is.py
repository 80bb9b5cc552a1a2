"""Drake as its user steps it: a discrete plant with the step of its examples, SAP as it comes, and actuation."""

from typing import NamedTuple, Self

import numpy as np

from loopcheck.engines.drake._equations import opening
from loopcheck.engines.drake._plant import Plant, build
from loopcheck.engines.drake._stepping import apply_loads
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

STEP = 1e-3
"""The step of Drake's own examples [s]; it has no default."""


class DrakeStepped(NamedTuple):
    """See `loopcheck.engines.as_is.Stepped`."""

    drake: Plant
    step: float = STEP

    @classmethod
    def from_state(cls, mechanism: Mechanism, q: JointPositions, qd: JointVelocities, step: float = STEP) -> Self:
        """The robot in a state.

        Args:
            step: Step of the plant [s].

        Raises:
            NotRepresentableError: If the mechanism has something that Drake cannot carry.
        """
        drake = build(mechanism, step=step)
        drake.put(q, qd)
        apply_loads(drake)
        return cls(drake, step)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.as_is.Stepped.mechanism`."""
        return self.drake.mechanism

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.as_is.Stepped.state`."""
        return self.drake.state()

    def opening(self) -> Deviation:
        """See `loopcheck.engines.as_is.Stepped.opening`."""
        return opening(self.drake, self.drake.context)

    def hold(self, force: Array, t: float) -> None:
        """See `loopcheck.engines.as_is.Stepped.hold`."""
        plant, context = self.drake.plant, self.drake.context
        command, after = np.zeros(plant.num_actuators()), plant.AllocateDiscreteVariables()
        for j, actuator in self.drake.actuators.items():
            command[actuator.input_start()] = force[self.mechanism.dof_slices[j].start]
        plant.get_actuation_input_port().FixValue(context, command)
        plant.CalcForcedDiscreteVariableUpdate(context, after)
        context.SetDiscreteState(after)
