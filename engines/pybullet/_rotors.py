"""Armature as rotors: inertia that depends only on the motion of joints, not on that of the robot.

PyBullet has no such element. A rotor is a small chain of its own on the base; only its last link has inertia, and no
weight; its hinges are geared to the joints. Geared one to one it is the armature of a hinge or slide. Three hinges
that turn as those of a ball joint move their link as the ball moves relative to its parent: ½ a |ω|², with all velocity
terms. A tendon, with a rate that is a sum, would need two hinges about the same axis, with a massless link between
them, which Bullet lacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.robots.arrays import Array, frozen
from loopcheck.robots.mechanism import Joint, Mechanism

Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotor:
    """A chain of hinges that are geared to joints, with a round inertia at its end."""

    joints: tuple[int, ...]
    """Indices of the joints in the mechanism without balls, of the first hinge on."""
    axes: Array
    """Axes of the hinges in the unrotated pose [-], shape (joints, 3)."""
    inertia: float
    """Each principal moment of the last link [kg m²]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", frozen(self.axes, (len(self.joints), 3), name="rotor, axes"))


def rotors(mechanism: Mechanism) -> tuple[Rotor, ...]:
    """The rotors of all joints of a mechanism.

    Args:
        mechanism: Robot, with its balls.
    """
    return tuple(
        rotor
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        for rotor in _of_joint(joint, dofs)
    )


def _of_joint(joint: Joint, dofs: slice) -> Iterator[Rotor]:
    if not joint.armature:
        return
    turning = tuple(range(dofs.stop - 3, dofs.stop)) if joint.kind in ("ball", "free") else ()
    for j in range(dofs.start, dofs.stop - len(turning)):
        yield Rotor(joints=(j,), axes=Z[None], inertia=joint.armature)
    if turning:
        yield Rotor(joints=turning, axes=np.eye(3), inertia=joint.armature)
