"""A user's own closed loop with Pinocchio in Python."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.analytic.kinematics.closures import number_of_rows
from loopcheck.engines.pinocchio._tree import Tree, build
from loopcheck.robots.arrays import AccelerationSeries, Array, PositionSeries, VelocitySeries
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A mechanism in Pinocchio, and its loop closures."""

    tree: Tree
    ends: tuple[tuple[tuple[int, Any], tuple[int, Any], int], ...]
    """Joint and placement of both ends of each closure, and its number of equations."""
    driven: tuple[int, ...]
    """Dofs with an actuator."""

    def states(
        self, q: PositionSeries, qd: VelocitySeries, qdd: AccelerationSeries
    ) -> list[tuple[Array, Array, Array]]:
        """Samples in Pinocchio's form, in sequence."""
        return [(self.tree.positions(x), v, a) for x, v, a in zip(q, qd, qdd, strict=True)]

    def bare(self, states: list[tuple[Array, Array, Array]]) -> None:
        """Inverse dynamics of the tree alone."""
        model, data, rnea = self.tree.model, self.tree.data, pin.rnea
        for q, qd, qdd in states:
            rnea(model, data, q, qd, qdd)

    def efforts(self, states: list[tuple[Array, Array, Array]]) -> Array:
        """Efforts of the closed loop: multipliers from the passive joints, then the actuated joints, shape (nt, na)."""
        model, data, axes = self.tree.model, self.tree.data, pin.LOCAL_WORLD_ALIGNED
        passive = np.setdiff1d(np.arange(model.nv), self.driven)
        efforts = np.zeros((len(states), len(self.driven)))
        for k, (q, qd, qdd) in enumerate(states):
            tau = pin.rnea(model, data, q, qd, qdd)
            pin.computeJointJacobians(model, data, q)
            rows = [
                (pin.getFrameJacobian(model, data, *first, axes) - pin.getFrameJacobian(model, data, *second, axes))[
                    :size
                ]
                for first, second, size in self.ends
            ]
            J = np.concatenate(rows)
            multipliers = np.linalg.lstsq(J[:, passive].T, tau[passive], rcond=1e-9)[0]
            efforts[k] = (tau - J.T @ multipliers)[list(self.driven)]
        return efforts


def simple_loop(mechanism: Mechanism) -> Loop:
    """A mechanism without its dampers, springs, gravity compensation and external loads: it only gets faster.

    Raises:
        NotRepresentableError: If the mechanism has more than hinges, slides, connects, welds and unit gears.
    """
    simple = (
        all(joint.kind in ("hinge", "slide") for joint in mechanism.joints)
        and all(actuator.gear == 1 and actuator.coordinate.is_joint for actuator in mechanism.actuators)
        and not mechanism.coordinate_closures
    )
    if not simple:
        raise NotRepresentableError(f"{mechanism.model.path}: joints must be hinges or slides")
    tree = build(mechanism)
    ends = [
        (
            tree.place(closure.body1, closure.point1),
            tree.place(closure.body2, closure.point2),
            number_of_rows(closure),
        )
        for closure in mechanism.rigid_closures
    ]
    driven = tuple(mechanism.dof_slices[actuator.coordinate.joints[0]].start for actuator in mechanism.actuators)
    return Loop(tree=tree, ends=tuple(ends), driven=driven)
