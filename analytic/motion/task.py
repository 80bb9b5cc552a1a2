"""Task coordinates: motion laws of the platform, from which the coordinates of the actuated joints follow.

A law that is given for the platform, as papers give it, keeps both parts: the path of the task coordinates over time
and the inverse kinematics. Jets carry all rates along, and the rates of the joints per rate of each task coordinate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loopcheck.analytic.motion.jets import Jet
from loopcheck.robots.arrays import Array, EffortSeries, Times
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

Path: TypeAlias = Callable[[Array], list[Jet]]
"""Task coordinates at times [s] of shape (nt,), each a jet of that shape."""
InverseKinematics: TypeAlias = Callable[[list[Jet]], Drive]
"""Coordinates of the actuated joints at task coordinates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A motion law given in task coordinates."""

    coordinates: tuple[str, ...]
    """Names of the task coordinates."""
    units: tuple[str, ...]
    """Their units, m or rad."""
    path: Path
    inverse: InverseKinematics

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Units of the generalized efforts on the task coordinates, N or N m."""
        return tuple("N" if unit == "m" else "N m" for unit in self.units)

    def law(self, t: Times) -> Drive:
        """The motion law of the actuated joints."""
        return self.inverse(self.path(t))

    def jacobian(self, t: Times) -> Array:
        """A in q̇ = A ẋ, the rates of the actuated joints per rate of each task coordinate.

        Returns:
            A [-, m or 1/m], shape (nt, actuated joints, task coordinates).
        """
        here, still = self.path(t), np.zeros(len(t))
        columns = []
        for moving in range(len(here)):
            rates = [still + (k == moving) for k in range(len(here))]
            columns.append(self.inverse([Jet(x.x, rate, still) for x, rate in zip(here, rates, strict=True)]).qd)
        return np.stack(columns, axis=-1)


def task_efforts(task: Task, mechanism: Mechanism, t: Times, effort: EffortSeries) -> Array:
    """Generalized efforts Aᵀτ on the task coordinates: the joint effect of the actuators, however they share it.

    Args:
        task: Motion law of the mechanism.

    Returns:
        Efforts on the task coordinates [N or N m], shape (nt, task coordinates).
    """
    dofs = [mechanism.dof_slices[j].start for j in mechanism.actuated_joints]
    A = mechanism.selection[:, dofs] @ task.jacobian(t)
    return (A.swapaxes(1, 2) @ effort[..., None])[..., 0]
