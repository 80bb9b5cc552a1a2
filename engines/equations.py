"""Functions of an engine's equations of motion, common to all engines."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from loopcheck.engines.computed_torque import Demand, demand
from loopcheck.engines.projection import RANK_TOLERANCE, drives_along, loop_motions, null_space
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

STATE = "q and rates of independent drives; passive rates from J and J̇q̇ of the engine"


class Equations(Protocol):
    """M q̈ + bias = passive + Sᵀτ + Jᵀλ of a mechanism as an engine has it, each call at a state of its own."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        ...

    def jacobian(self, q: JointPositions) -> Array:
        """Loop-closure Jacobian [m/rad or m/m], shape (nc, nv)."""
        ...

    def opening(self, q: JointPositions) -> Deviation:
        """Gap of the widest loop."""
        ...

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """J̇ q̇ in the rows of the Jacobian [m/s² or rad/s²], shape (nc,)."""
        ...

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """Terms of the spanning tree.

        Returns:
            Inertia matrix with rotors [kg, kg m or kg m²], shape (nv, nv); velocity terms and weights; springs,
            dampers, gravity compensation and external wrenches [N or N m], shape (nv,) each.
        """
        ...


def kkt_history(source: str, equations: Equations, motion: Motion, settings: dict[str, str]) -> EffortHistory:
    """Efforts by the engine's matrices at the exact positions, and rates of drives, of a motion.

    Args:
        settings: The engine's function behind each term.
    """
    mechanism, gap, efforts = equations.mechanism, Deviation(), []
    S, scale, W = mechanism.selection, mechanism.effort_scales, mechanism.rates_of(mechanism.drives)
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        gap = gap.or_worse(equations.opening(q))
        loop = loop_motions(equations.jacobian(q), W)
        v = loop.velocities(qd)
        a = loop.accelerations(qdd, equations.closure_bias(q, v))
        M, bias, passive = equations.tree_terms(q, v)
        efforts.append(loop.efforts(M, M @ a + bias - passive, S, scale))
    return EffortHistory(
        source=source,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        t=motion.t,
        effort=np.array(efforts),
        closure_drift=gap,
        settings={**settings, "state": STATE, "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length"},
        note="prescribed state; closure drift is the loop gap computed by the engine in this state",
    )


def demands_along(equations: Equations, motion: Motion) -> tuple[tuple[int, ...], list[Demand]]:
    """The independent drives, by their places among `Mechanism.drives`, and the demands of a motion at its samples."""
    mechanism, demands = equations.mechanism, []
    S, scale, W = mechanism.selection, mechanism.effort_scales, mechanism.rates_of(mechanism.drives)
    independent = drives_along(equations.jacobian, motion.q, W)
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        loop = loop_motions(equations.jacobian(q), W[independent])
        v = loop.velocities(qd)
        a = loop.accelerations(qdd, equations.closure_bias(q, v))
        M, bias, passive = equations.tree_terms(q, v)
        demands.append(demand(loop, M, M @ a + bias - passive, S, scale))
    return tuple(independent), demands


def held_drives(equations: Equations, motion: Motion) -> tuple[tuple[int, ...], int]:
    """Driven coordinates that a simulation holds (all unless redundantly actuated), and the number of undriven dofs."""
    mechanism = equations.mechanism
    drives = drives_along(equations.jacobian, motion.q, mechanism.rates_of(mechanism.drives))
    dof = null_space(equations.jacobian(motion.q[len(motion.t) // 2])).shape[1]
    return tuple(drives), dof - len(drives)


def carried_note(mechanism: Mechanism, drives: Sequence[int]) -> list[str]:
    """A note on drives without effort, because the others move the robot; empty if all are held.

    Args:
        drives: Places of the held drives among `Mechanism.drives`.
    """
    names = ", ".join(drive.name for k, drive in enumerate(mechanism.drives) if k not in drives)
    return (
        [(f"{names} not driven, because fewer drives determine the motion: compare projected efforts")] if names else []
    )
