"""Task coordinates: motion laws of the platform, from which the coordinates of the actuated joints follow.

A law that is given for the platform, as papers give it, keeps both parts: the path of the task coordinates over time
and the inverse kinematics. Jets carry all rates along, and the rates of the joints per rate of each task coordinate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import cross
from loopcheck.analytic.motion.jets import Jet
from loopcheck.robots.arrays import Array, EffortSeries, Times
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion

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


class Coordinate(NamedTuple):
    """A task coordinate over time."""

    name: str
    unit: str
    """m or rad."""
    x: Array
    """Position [m or rad], shape (nt,)."""
    xd: Array
    """Rate [m/s or rad/s], shape (nt,)."""
    xdd: Array
    """Acceleration [m/s² or rad/s²], shape (nt,)."""


def coordinates_of_platform(
    mechanism: Mechanism, site: str, positions: Sequence[str], turns: Sequence[str], motion: Motion
) -> Iterator[Coordinate]:
    """Positions of a site, and turns of its body, over a motion.

    Args:
        mechanism: The robot.
        site: Its name.
        positions: World axes of its position, x, y or z.
        turns: World axes of the turns; the body turns about each alone.

    Raises:
        NotFoundError: If the model has no such site.
    """
    point = mechanism.site(site)
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    R, moving = state.poses.R[:, point.body], state.twists
    K, K_dot = moving.K[:, point.body], moving.K_dot[:, point.body]
    w = moving.w[:, point.body]
    second = np.einsum("tij,tj->ti", K, motion.qdd) + np.einsum("tij,tj->ti", K_dot, motion.qd)
    arm = state.poses.p[:, point.body] + R @ point.position - state.poses.c[:, point.body]
    place = state.poses.c[:, point.body] + arm
    velocity = moving.v[:, point.body] + cross(w, arm)
    acceleration = second[:, 3:] + cross(second[:, :3], arm) + cross(w, cross(w, arm))
    for axis in positions:
        k = "xyz".index(axis)
        yield Coordinate(axis, "m", place[:, k], velocity[:, k], acceleration[:, k])
    for axis in turns:
        k = "xyz".index(axis)
        i, j = (k + 1) % 3, (k + 2) % 3
        angle = np.unwrap(np.arctan2(R[:, j, i], R[:, i, i]))
        yield Coordinate(f"angle about {axis}", "rad", angle, w[:, k], second[:, k])


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
