"""Functions of an engine that return derivatives of forward or inverse dynamics, with the engine's own values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from loopcheck.robots.arrays import Array, JointPositions, JointVelocities

ACCELERATION, FORCE = "accelerations", "forces"
"""Quantities: accelerations of all dofs along efforts; forces on the spanning tree that accelerations require."""
ACTING = {ACCELERATION: "effort", FORCE: "qdd"}
"""The third input of each quantity, beside positions and velocities."""
CONSTANTS = 10
"""Inertial parameters of a body: mass, first moments x, y, z, and inertia xx, xy, xz, yy, yz, zz about its origin."""

Value: TypeAlias = Callable[[JointPositions, JointVelocities, Array], Array]
"""Accelerations or forces [m/s² or rad/s², N or N m], shape (nv,), from positions, velocities and the third input."""
Derivatives: TypeAlias = Callable[[JointPositions, JointVelocities, Array], Mapping[str, Array]]
"""Derivatives by input, each of shape (nv, columns): `q` along displacements of all dofs, turns in body axes; `qd`;
`effort` (na columns) or `qdd`; `parameters` (10 columns of each body)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differentiated:
    """A function of an engine with its derivatives, each dof as in the mechanism."""

    name: str
    """The engine's name of the function that returns the derivatives."""
    quantity: str
    """`ACCELERATION` or `FORCE`."""
    meaning: str
    """The differentiated quantity, and how it differs from the exact accelerations or forces; empty if it does not."""
    value: Value
    derivatives: Derivatives
