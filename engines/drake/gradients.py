"""Drake's automatic differentiation: of a discrete step with loops, and of inverse dynamics of the tree."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from loopcheck.engines.boundary import silenced, want_representable
from loopcheck.engines.declarations import ACCELERATION, FORCE, Differentiated
from loopcheck.engines.drake._plant import build, guarded
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.robots.arrays import Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

with silenced():
    autodiff: Any = import_module("pydrake.autodiffutils")
    trees: Any = import_module("pydrake.multibody.tree")


@contextmanager
def functions(mechanism: Mechanism) -> Iterator[list[Differentiated]]:
    """See `loopcheck.engines.contract.Gradients.functions`."""
    turning = [joint.name for joint in mechanism.joints if joint.kind in BALL_OR_FREE]
    want_representable("drake", [f"derivatives of ball or free joint '{name}' (angles of its own)" for name in turning])
    with guarded("drake"):
        robot = _Robot(mechanism)
        yield [
            Differentiated(
                name="CalcForcedDiscreteVariableUpdate, AutoDiffXd",
                quantity=ACCELERATION,
                meaning=f"mean acceleration of a step of {1e3 * robot.step:g} ms, with soft loops",
                value=robot.acceleration,
                derivatives=robot.of_acceleration,
            ),
            Differentiated(
                name="CalcInverseDynamics, AutoDiffXd",
                quantity=FORCE,
                meaning="",
                value=robot.force,
                derivatives=robot.of_force,
            ),
        ]


class _Robot:
    """A plant, and the same with derivatives."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._drake = build(mechanism)
        self.step = self._drake.plant.time_step()
        self._zero, self._order = self._drake.positions(np.zeros(mechanism.nq)), self._drake.rates(np.zeros(0))
        self._inputs = np.zeros((self._drake.plant.num_actuators(), mechanism.na))
        for j, actuator in self._drake.actuators.items():
            self._inputs[actuator.input_start()] = mechanism.selection[:, mechanism.dof_slices[j].start]

    @cached_property
    def _differentiable(self) -> Any:
        return self._drake.plant.ToAutoDiffXd()

    def acceleration(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Array:
        return self._acceleration(self._drake.plant, q, qd, effort)

    def of_acceleration(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Mapping[str, Array]:
        return self._slopes(self._acceleration, (q, qd, effort), "effort")

    def force(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        return self._force(self._drake.plant, q, qd, qdd)

    def of_force(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Mapping[str, Array]:
        return self._slopes(self._force, (q, qd, qdd), "qdd")

    def _slopes(self, function: Any, at: tuple[Array, ...], third: str) -> Mapping[str, Array]:
        values = autodiff.InitializeAutoDiff(np.concatenate(at))[:, 0]
        ends = np.cumsum([len(x) for x in at])
        found = autodiff.ExtractGradient(function(self._differentiable, *np.split(values, ends[:-1])))
        return dict(zip(("q", "qd", third), np.split(found, ends[:-1], axis=1), strict=True))

    def _acceleration(self, plant: Any, q: Any, qd: Any, effort: Any) -> Any:
        context = self._context(plant, q, qd)
        plant.get_actuation_input_port().FixValue(context, self._inputs @ effort)
        after = plant.AllocateDiscreteVariables()
        plant.CalcForcedDiscreteVariableUpdate(context, after)
        v = after.get_vector().CopyToVector()[plant.num_positions() :]
        return (self._order.T @ v - qd) / self.step

    def _force(self, plant: Any, q: Any, qd: Any, qdd: Any) -> Any:
        context = self._context(plant, q, qd)
        forces = trees.MultibodyForces_[float if plant is self._drake.plant else autodiff.AutoDiffXd](plant)
        plant.CalcForceElementsContribution(context, forces)
        return self._order.T @ plant.CalcInverseDynamics(context, self._order @ qdd, forces)

    def _context(self, plant: Any, q: Any, qd: Any) -> Any:
        context = plant.CreateDefaultContext()
        plant.SetPositions(context, self._zero + self._order @ q)
        plant.SetVelocities(context, self._order @ qd)
        return context
