"""Rotors: inertia that turns or slides with a hinge or slide relative to the body before it, as armature does.

Exudyn's joints in redundant coordinates have no coordinate that could carry it. So each rotor is a coordinate with a
mass of its own, and a constraint on the level of velocities makes it move at the rate of its joint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.engines.exudyn._drives import JointRate
from loopcheck.engines.exudyn._exudyn import items
from loopcheck.engines.exudyn._frames import Frame
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """The constraint between a rotor and its joint."""

    rate: JointRate

    def residual(self, mbs: Any, t: float, item: int, q: Any, q_t: Any, on_velocities: bool) -> list[float]:
        """Rate of the joint less that of the rotor [m/s or rad/s], as Exudyn's `constraintUserFunction`."""
        return [sum(x * v for x, v in zip(self._row(q), q_t, strict=True))]

    def jacobian(self, mbs: Any, t: float, item: int, q: Any, q_t: Any, on_velocities: bool) -> Any:
        """Derivative of it per velocity of the coordinates [-, m or rad], as Exudyn's `jacobianUserFunction`."""
        return np.array([self._row(q)])

    def _row(self, q: Any) -> list[float]:
        return [*self.rate.row(q[:-1]), -1.0]


def rotor_dofs(mechanism: Mechanism) -> list[int]:
    """Places of the rotors' joints among the velocities, in the order of their coordinates, behind those of bodies."""
    return [mechanism.dof_slices[j].start for j in _with_rotor(mechanism)]


def add_rotors(mechanism: Mechanism, chain: Sequence[Frame], nodes: Sequence[int], mbs: Any) -> dict[int, int]:
    """Add the rotors of all joints with armature; their coordinates come behind those of the bodies.

    Args:
        nodes: Exudyn's node of each frame.
        mbs: Exudyn's system.

    Returns:
        Exudyn's object of each constraint between a rotor and its joint, by the index of the joint.
    """
    return {j: _add_rotor(mechanism, chain, nodes, mbs, j) for j in _with_rotor(mechanism)}


def _add_rotor(mechanism: Mechanism, chain: Sequence[Frame], nodes: Sequence[int], mbs: Any, j: int) -> int:
    place = next(i for i, frame in enumerate(chain) if frame.joint == j)
    bodies = [nodes[i] for i in (chain[place].before, place) if i != WORLD]
    node = items.NodeGenericODE2(
        referenceCoordinates=[0.0], initialCoordinates=[0.0], initialCoordinates_t=[0.0], numberOfODE2Coordinates=1
    )
    coupling = Coupling(rate=JointRate.of_joint(mechanism, chain, j))
    size = coupling.rate.coordinates + 1
    mass = np.zeros((size, size))
    mass[-1, -1] = mechanism.joints[j].armature
    inertia = mbs.AddObject(items.ObjectGenericODE2(nodeNumbers=[*bodies, mbs.AddNode(node)], massMatrix=mass))
    ends = [
        mbs.AddMarker(items.MarkerNodeCoordinates(nodeNumber=mbs.AddNode(items.NodePointGround()))),
        mbs.AddMarker(items.MarkerObjectODE2Coordinates(objectNumber=inertia)),
    ]
    constraint = items.ObjectConnectorCoordinateVector(
        markerNumbers=ends,
        scalingMarker0=np.zeros((1, 0)),
        scalingMarker1=np.zeros((1, size)),
        constraintUserFunction=coupling.residual,
        jacobianUserFunction=coupling.jacobian,
    )
    return int(mbs.AddObject(constraint))


def with_rotors(mechanism: Mechanism, of_bodies: Array, of_joints: Array) -> Array:
    """Velocities or accelerations of all coordinates in Exudyn: those of the bodies, then those of the rotors.

    Args:
        of_bodies: Of the bodies' coordinates [m or -, per s or s²], shape (7 bodies, ...).
        of_joints: Of the joints [m or rad, per s or s²], shape (nv, ...).

    Returns:
        Shape (7 bodies + rotors, ...).
    """
    return np.concatenate([of_bodies, of_joints[rotor_dofs(mechanism)]])


def _with_rotor(mechanism: Mechanism) -> list[int]:
    return [j for j, joint in enumerate(mechanism.joints) if joint.armature]
