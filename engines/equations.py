"""Functions of an engine's equations of motion, common to all engines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.computed_torque import Demand, Friction, demands, no_friction
from loopcheck.engines.projection import (
    RANK_TOLERANCE,
    LoopMotions,
    drives_along,
    loop_motions_along,
    null_space,
    other_drives_along,
)
from loopcheck.robots.arrays import (
    AccelerationSeries,
    AnyArray,
    Array,
    EffortSeries,
    JointAccelerations,
    JointPositions,
    JointVelocities,
    PositionSeries,
    VelocitySeries,
)
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import ClosureUnits, closure_units, resolved_part

STATE = "q and rates of independent drives; passive rates from J and J̇q̇ of the engine"
RANK = f"{RANK_TOLERANCE:g} relative to rows of unit length"
AT_ONCE = 256
"""Largest number of states whose matrices are in memory at once [-]."""
States: TypeAlias = tuple[PositionSeries, VelocitySeries, AccelerationSeries]
"""Joint positions [m or rad], shape (nt, nq), velocities and accelerations [per s, per s²], shape (nt, nv) each."""


class Equations(Protocol):
    """M q̈ + bias = passive + Sᵀτ + Jᵀλ of a mechanism as an engine has it, each call at a state of its own."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        ...

    def jacobian(self, q: JointPositions) -> Array:
        """Loop-closure Jacobian [m/rad or m/m], shape (nc, nv)."""
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

    def required(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> tuple[Array, Array, Array]:
        """Requirements of a motion; by default from the terms, with the selection of the mechanism.

        Returns:
            Inertia matrix with rotors [kg, kg m or kg m²], shape (nv, nv); generalized force on the joints
            [N or N m], shape (nv,); actuator velocities per joint velocity [-], shape (na, nv).
        """
        M, bias, passive = self.tree_terms(q, qd)
        return M, M @ qdd + bias - passive, self.mechanism.selection

    @property
    def row_units(self) -> ClosureUnits:
        """Units of the rows of the Jacobian."""
        return closure_units(self.mechanism)

    def resolved_jacobian(self, q: JointPositions) -> Array:
        """The Jacobian, as far as the digits of the file resolve it [m/rad or m/m], shape (nc, nv)."""
        J = self.jacobian(q)
        P = resolved_part(self.mechanism, J, self.row_units)
        return J if P is None else P @ J


class LoopEquations(Equations, Protocol):
    """The same, with the gaps of the loops."""

    def opening(self, q: JointPositions) -> Deviation:
        """Gap of the widest loop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kkt(Source):
    """Route `kkt`: efforts from an engine's matrices, projected on the motions that keep its loops closed."""

    name: str
    """As `dart/kkt`."""
    equations: Callable[[Mechanism], LoopEquations]
    """Makes the engine's equations of a mechanism."""
    guarded: Callable[[str], AbstractContextManager[None]]
    """Converts exceptions of the engine."""
    settings: Mapping[str, str]
    """The engine's function behind each term."""
    own_rows: Callable[[Mechanism], bool] = field(default=lambda _: False)
    """See `EffortHistory.own_rows`."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with self.guarded(self.name), silenced():
            equations = self.equations(case.mechanism)
            return EffortHistory(
                source=self.name,
                actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
                t=motion.t,
                closure_drift=Deviation().or_worse(*(equations.opening(q) for q in motion.q)),
                effort=efforts_along(equations, (motion.q, motion.qd, motion.qdd)),
                settings={**self.settings, "state": STATE, "rank tolerance": RANK},
                note=state_in_words(case.mechanism),
                own_rows=self.own_rows(case.mechanism),
            )


def state_in_words(mechanism: Mechanism) -> str:
    """Note of a route that evaluates an engine's terms at the state of the motion."""
    drift = "; closure drift is the loop gap computed by the engine in this state" if mechanism.closures else ""
    return f"prescribed state{drift}"


def efforts_along(equations: Equations, states: States) -> EffortSeries:
    """Efforts by the engine's matrices at the exact positions, and rates of drives, of a motion."""
    mechanism = equations.mechanism
    efforts = np.zeros((len(states[0]), mechanism.na))
    for k, loop, M, force, S in _loops_along(equations, states, mechanism.rates_of(mechanism.drives)):
        efforts[k] = loop.efforts(M, force[..., None], S, mechanism.effort_scales)[..., 0]
    return efforts


class Demands(NamedTuple):
    """Drives that hold a motion, by their places among `Mechanism.drives`, and the demands of its samples."""

    independent: tuple[int, ...]
    """As many drives as move independently."""
    demands: list[Demand]
    others: tuple[tuple[int, ...], ...] = ()
    """Other drives that can hold the motion, of a redundant robot."""


def demands_along(equations: Equations, states: States, friction: Friction | None = None) -> Demands:
    """The drives that hold a motion, and its demands.

    Args:
        friction: Dry friction that the simulation has, if any.
    """
    mechanism = equations.mechanism
    friction = friction or no_friction(mechanism.nv)
    W = mechanism.rates_of(mechanism.drives)
    independent = drives_along(equations.resolved_jacobian, states[0], W)
    loops = _loops_along(equations, states, W[independent])
    by_sample: dict[int, Demand] = {}
    for k, loop, M, force, S in loops:
        of_part = demands(loop, M, force, S, mechanism.effort_scales, friction)
        by_sample.update(zip(k, of_part, strict=True))
    in_order = [by_sample[k] for k in range(len(states[0]))]
    others = other_drives_along(equations.resolved_jacobian, states[0], W, independent)
    return Demands(tuple(independent), in_order, others)


def _loops_along(
    equations: Equations, states: States, W: Array
) -> Iterator[tuple[AnyArray, LoopMotions, Array, Array, Array]]:
    """Numbers of states, the possible motions of their loops, and their requirements.

    Passive rates come from J and J̇q̇; the requirements are those of `Equations.required`, for each state.
    """
    for begin in range(0, len(states[0]), AT_ONCE):
        q, qd, qdd = (values[begin : begin + AT_ONCE] for values in states)
        J = np.array([equations.jacobian(each) for each in q])
        P = resolved_part(equations.mechanism, J, equations.row_units)
        for k, loop in loop_motions_along(J if P is None else P @ J, W):
            v = loop.velocities(qd[k])
            closure_bias = np.array([equations.closure_bias(*state) for state in zip(q[k], v, strict=True)])
            if P is not None:
                closure_bias = (P[k] @ closure_bias[..., None])[..., 0]
            a = loop.accelerations(qdd[k], closure_bias)
            required = [equations.required(*state) for state in zip(q[k], v, a, strict=True)]
            M, force, S = (np.array(terms) for terms in zip(*required, strict=True))
            yield begin + k, loop, M, force, S


def held_drives(equations: Equations, motion: Motion) -> tuple[tuple[int, ...], int]:
    """Driven coordinates that a simulation holds (all unless redundantly actuated), and the number of undriven dofs."""
    mechanism = equations.mechanism
    drives = drives_along(equations.resolved_jacobian, motion.q, mechanism.rates_of(mechanism.drives))
    dof = null_space(equations.resolved_jacobian(motion.q[len(motion.t) // 2])).shape[1]
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
