"""A robot in Drake: a discrete plant with SAP as it comes, in steps as in Drake's examples or in small ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from loopcheck.engines.drake._equations import opening
from loopcheck.engines.drake._plant import Plant, build, guarded, plants, values, wrench_math
from loopcheck.engines.loads import wrenches
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Efforts, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

STEP = 1e-3
"""The step of Drake's own examples [s]; it has no default."""
TIGHT_STEP = 2e-4
"""Longest step of a tight simulation [s]; shorter steps lose more momentum than they gain accuracy."""
SETTINGS = "default: steps of 1 ms; tight: steps of 0.2 ms or 1/100 of the sample time; SAP with default settings"
"""See `loopcheck.engines.contract.Simulation`."""


class DrakeRobot:
    """See `loopcheck.engines.as_is.ObservedRobot`."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Make it with the step of Drake's examples."""
        self.mechanism, self._step, self._drake = mechanism, STEP, build(mechanism, step=STEP)

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`; another step needs another plant."""
        return self._step

    @timestep.setter
    def timestep(self, step: float) -> None:
        state, self._step = self.state(), step
        self._drake = build(self.mechanism, step=step)
        self.put(*state)

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`."""
        self._drake.put(q, qd)
        apply_loads(self._drake)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self._drake.state()

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening(self._drake, self._drake.context)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        plant, context, force = self._drake.plant, self._drake.context, command @ self.mechanism.selection
        inputs, after = np.zeros(plant.num_actuators()), plant.AllocateDiscreteVariables()
        for j, actuator in self._drake.actuators.items():
            inputs[actuator.input_start()] = force[self.mechanism.dof_slices[j].start]
        plant.get_actuation_input_port().FixValue(context, inputs)
        for _ in range(count):
            plant.CalcForcedDiscreteVariableUpdate(context, after)
            context.SetDiscreteState(after)
        return {}


def apply_loads(drake: Plant) -> None:
    """Let the loads of a mechanism act from now on: Drake keeps them along the world's axes at points of the bodies."""
    every = []
    for load in wrenches(drake.mechanism):
        force = plants.ExternallyAppliedSpatialForce()
        force.body_index = drake.bodies[load.body].index()
        force.p_BoBq_B = drake.point(load.body, load.point)
        force.F_Bq_W = wrench_math.SpatialForce(load.moment, load.force)
        every.append(force)
    port = drake.plant.get_applied_spatial_force_input_port()
    port.FixValue(drake.context, values.Value[list[plants.ExternallyAppliedSpatialForce]](every))


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[DrakeRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`; a tight simulation differs only in its steps."""
    with guarded("drake"):
        yield DrakeRobot(mechanism)


free_motion = Free(simulate=simulate, tight_pace=Pace(step=TIGHT_STEP, fewest=100))
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
