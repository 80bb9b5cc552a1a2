"""A robot in PhysX under its own drives, and its readings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from loopcheck.engines.mechanics import opening
from loopcheck.engines.own_drives import REACTION, REPORTED, Gains, Order
from loopcheck.engines.physx._articulation import UNLIMITED, Built, Stepping, build
from loopcheck.engines.physx._readings import ON_JOINT
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysxDriven:
    """See `loopcheck.engines.own_drives.Driven`."""

    built: Built
    driven: Sequence[int]
    """The joint of each drive."""
    precision: DTypeLike = np.float32
    timeconst: float = np.inf
    note: str = ""

    @classmethod
    def from_state(cls, mechanism: Mechanism, stepping: Stepping, gains: Gains, state: tuple[Array, Array]) -> Self:
        """The robot in a state.

        Args:
            stepping: How it is stepped.
            gains: Of its drives.
            state: Joint positions [m or rad], shape (nq,), and velocities [per s], shape (nv,).

        Raises:
            NotRepresentableError: If PhysX cannot carry it.
        """
        built = build(mechanism, stepping)
        built.put(*state)
        driven = [drive.joints[0] for drive in mechanism.drives]
        for j, stiffness, damping in zip(driven, gains.stiffness, gains.damping, strict=True):
            built.joints[j].set_drive_properties(stiffness, damping, UNLIMITED, "force")
        return cls(built=built, driven=driven)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.simulation.Observed.mechanism`."""
        return self.built.mechanism

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Observed.timestep`."""
        return self.built.stepping.step

    @property
    def iterations(self) -> float:
        """See `loopcheck.engines.own_drives.Driven.iterations`: it always makes the full number."""
        return self.built.stepping.position_iterations + self.built.stepping.velocity_iterations

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self.built.state()

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return opening_of(self.built)

    def step(self, command: Order, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`."""
        for j, position, velocity in zip(self.driven, *command, strict=True):
            joint = self.built.joints[j]
            joint.set_drive_target(float(position - self.mechanism.joints[j].rest_position[0]))
            joint.set_drive_velocity_target(float(velocity))
        dofs = [self.mechanism.dof_slices[j].start for j in self.driven]
        for _ in range(count):
            self.built.load()
            rates = self.state()[1][dofs]
            self.built.scene.step()
        along = {"slide": 0, "hinge": 3}  # the axis is x of the joint; forces stand before moments
        wrenches = self.built.wrenches()
        reaction = np.array([wrenches[j][along[self.mechanism.joints[j].kind]] for j in self.driven])
        rotors = np.array([self.mechanism.joints[j].armature for j in self.driven])
        speeding_up = rotors * (self.state()[1][dofs] - rates) / self.timestep
        return {REACTION: reaction, ON_JOINT: reaction + speeding_up, REPORTED: self.built.along("qf")[dofs]}


def opening_of(built: Built) -> Deviation:
    """Gap of the widest loop in the state."""
    poses = [built.pose_of(b) for b in range(len(built.links))]
    return opening(built.mechanism, (np.array([p for p, _ in poses]), np.array([R for _, R in poses])))
