"""Genesis as its user steps it: the file as its loader reads it, and drives of velocity on the driven joints."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.genesis._genesis import device
from loopcheck.engines.genesis._scene import STEP, Built, Stepping, build, guarded, numbers
from loopcheck.engines.own_drives import REPORTED, Gains, Order, Reading, driven_by_own_drives
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

READING = Reading(effort=REPORTED, reason="get_dofs_control_force, read at the end of the step")
UNLIMITED = 1e12
"""Largest force of the drives [N or N m]; the force limits of the file do not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenesisDriven:
    """See `loopcheck.engines.own_drives.Driven`."""

    built: Built
    dofs: tuple[int, ...]
    """Dofs of the drives."""
    timestep: float
    precision: type[np.floating] = np.float64
    iterations: float = np.nan
    """Iterations, unknown on a CPU."""
    timeconst: float = np.inf
    note: str = ""

    @classmethod
    def from_state(cls, built: Built, gains: Gains, state: tuple[Array, Array], step: float = STEP) -> Self:
        """The robot in a state.

        Args:
            built: The robot in Genesis.
            gains: Of its drives.
            state: Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,).
            step: Step of its scene [s].
        """
        mechanism = built.mechanism
        dofs = tuple(mechanism.dof_slices[drive.joints[0]].start for drive in mechanism.drives)
        built.scene.reset()
        built.entity.set_dofs_kp(gains.stiffness.copy(), dofs)  # PyTorch warns of arrays that are read-only
        built.entity.set_dofs_kv(gains.damping.copy(), dofs)
        limits = np.full(len(dofs), UNLIMITED)
        built.entity.set_dofs_force_range(-limits, limits, dofs)
        built.put(*state)
        return cls(built=built, dofs=dofs, timestep=step)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.simulation.Observed.mechanism`."""
        return self.built.mechanism

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return self.built.state()

    def opening(self) -> Deviation:
        """See `loopcheck.engines.simulation.Observed.opening`."""
        return self.built.opening()

    def step(self, command: Order, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`: drives of velocity, without a target position."""
        built = self.built
        for _ in range(count):
            built.load()
            built.entity.control_dofs_velocity(command.rate.copy(), self.dofs)
            built.scene.step()
        return {REPORTED: numbers(built.entity.get_dofs_control_force(self.dofs))}


def held_by_drives(
    source: str, case: Case, motion: Motion, stepping: Stepping, *, as_loaded: bool = False
) -> EffortHistory:
    """Result of a route.

    Args:
        stepping: Settings of the stepping; drives have the same gains with all steps.
        as_loaded: Whether rotors keep the defaults of Genesis' loader.

    Raises:
        NotRepresentableError: If an element of the mechanism would be lost.
        EngineError: If Genesis fails, or its state is not finite any more.
    """
    mechanism = case.mechanism
    gains = Gains.of_velocity(mechanism, motion, STEP)
    with guarded(source), silenced():
        built = build(mechanism, stepping, as_loaded=as_loaded)

        def start(k: int) -> tuple[GenesisDriven, Gains]:
            return GenesisDriven.from_state(built, gains, (motion.q[k], motion.qd[k]), stepping.step), gains

        settings = {
            "precision": f"double, on {device()}",
            "solver": "defaults of RigidOptions: approximate implicitfast, Newton, "
            f"{stepping.iterations} iterations; no collisions",
            "options of the file": "ignored by the MJCF loader of Genesis, except solref and solimp of equalities",
            "rotors": "as filled in by the loader" if as_loaded else "set back to the values of the file",
        }
        return driven_by_own_drives(source, case, motion, start, READING, settings)
