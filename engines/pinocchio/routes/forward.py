"""Pinocchio's constrained forward dynamics on the closed loop, the driven joints held to the motion by its constraints.

Each driven joint gets a rigid constraint of all six directions between its two sides, with the prescribed acceleration
in the direction that the joint leaves free: the force of the constraint in that direction is the effort. The loops are
rigid constraints of the same solver. `constraintDynamics` gives the accelerations; the classical Runge-Kutta method,
written here because Pinocchio has no integrator of second-order systems, moves the state with several step sizes.

Of a redundantly actuated robot only as many joints are driven as it has degrees of freedom: the solver's sharing of the
effort among more drives has no meaning for the motors. The others follow at zero effort, which leaves the part of the
efforts that moves the robot unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Self

import numpy as np

from loopcheck.engines.equations import carried_note, held_drives
from loopcheck.engines.forward import (
    Readings,
    enough_steps,
    forward_history,
    omission,
    over_time,
    own_steps,
    remainder,
    surviving_rungs,
)
from loopcheck.engines.pinocchio._equations import equations
from loopcheck.engines.pinocchio._simulation import RUNGE_KUTTA, Simulation, Solver, least_mobility, want_rigid
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.engines.pinocchio.wrenches import wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Limits, ReadsWrenches, Refinable, Rung, Stepped
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINEST = 2.5e-3
"""Upper bound of the finest step [s]; the ladder doubles it twice."""
FINEST_FREE = FINEST / 16
"""The same for robots with unactuated motions, which may vibrate on springs."""
RUNGS = 3
ORDER = 4
"""Of the Runge-Kutta method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    steps: tuple[float, ...] = ()
    """Steps that divide the report grid, coarsest first [s]; empty: three steps, halved until `FINEST`."""
    division: int = 1
    """Divisor of `FINEST` [-]."""
    solver: Solver = field(default_factory=Solver)
    adapts: bool = False
    """Whether mu is relative to the least mobility of the constraints in the initial state."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


OWN = Settings(adapts=True)
"""Settings of the route."""


class PinocchioForward(Refinable, Stepped, ReadsWrenches):
    """Efforts from a simulation of the closed loop with Pinocchio's rigid constraints."""

    name = "pinocchio/forward"
    simulation: Callable[..., Simulation] = Simulation

    def __init__(self, settings: Settings = OWN, limits: Limits | None = None) -> None:
        """With the settings of the route or others, and limits of a verdict, which may omit steps."""
        self.settings, self.limits = settings, limits

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        want_rigid(mechanism, mechanism.drives)
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
            finest = (FINEST_FREE if undriven else FINEST) / self.settings.division
            steps = self.settings.steps or tuple(own_steps(motion.dt, finest=finest, rungs=RUNGS))
            with np.errstate(over="ignore", invalid="ignore"):
                enough = enough_steps(self.limits, mechanism, motion, partial(remainder, order=ORDER))
                ladder, diverged = surviving_rungs(partial(self._rung, mechanism, motion, drives), steps, enough)
        steps = tuple(dt for dt in steps if dt >= ladder[-1].dt)
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            settings={**in_words(replace(self.settings, steps=steps)), **omission(self.limits)},
            note="; ".join([*carried_note(mechanism, drives), *diverged]),
        )

    def within(self, limits: Limits) -> Self:
        """See `loopcheck.robots.efforts.Stepped.within`."""
        return type(self)(self.settings, limits)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True), self.limits)

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance is zero."""
        solver = self.settings.solver
        return type(self)(replace(self.settings, solver=replace(solver, iterations=2 * solver.iterations)))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; the regularisation makes constraints soft."""
        settings = self.settings
        solver = replace(settings.solver, mu=settings.solver.mu / 2)
        steps = tuple(dt / 2 for dt in settings.steps)
        return type(self)(replace(settings, steps=steps, division=2 * settings.division, solver=solver))

    def _rung(self, mechanism: Mechanism, motion: Motion, drives: Sequence[int], dt: float) -> Rung:
        """Simulate the whole motion at a step size and read the drives on the report grid."""
        clock = perf_counter()
        simulation = self.simulation(mechanism, [mechanism.drives[k] for k in drives], self.settings.solver)
        every, none = round(motion.dt / dt), np.zeros(mechanism.nv)
        times = motion.t[0] + np.arange(2 * (len(motion.t) - 1) * every + 1) * dt / 2
        targets = np.stack(motion.law(times), axis=1)  # (times, 3, drives)
        simulation.put(motion.q[0], motion.qd[0])
        if self.settings.adapts:
            mobility = least_mobility(simulation.tree, simulation.constraints, simulation.x)
            simulation.soften(self.settings.solver.mu * mobility)
        step = simulation.stepping(dt)
        forces, drift, positions, read = np.zeros((len(motion.t), len(drives))), Deviation(), [], []
        for k in range(0, len(times), 2):

            def acceleration(half_steps: int, k: int = k) -> Array:
                return simulation.acceleration(none, targets[k + half_steps][:, drives])

            a = acceleration(0)
            if not np.isfinite(a).all():
                where = f"the simulation with dt = {dt:g} s diverged at {times[k]:g} s"
                raise EngineError(f"{self.name}: {where}")
            sample, rest = divmod(k // 2, every)
            if not rest:
                forces[sample] = simulation.efforts()
                drift = drift.or_worse(simulation.opening())
                positions.append(simulation.q)
                if self.settings.wrenches:
                    read.append(wrenches(simulation, a))
            if k + 2 < len(times):
                step(a, acceleration)
        readings = Readings(
            dt=dt,
            drives=drives,
            forces=forces,
            tracked=mechanism.drives,
            miss=mechanism.values_of(mechanism.drives, np.array(positions)) - targets[:: 2 * every, 0],
            drift=drift,
            wrenches=over_time(read),
        )
        return readings.rung(mechanism, self.name, clock)


def in_words(settings: Settings) -> dict[str, str]:
    """Every relevant setting, as text."""
    solver = settings.solver
    own = solver.integrator == RUNGE_KUTTA
    return {
        "integrator": f"{'classical Runge-Kutta, 4th order' if own else solver.integrator}, on constraintDynamics",
        "steps": f"{', '.join(f'{1e3 * dt:g}' for dt in settings.steps)} ms; the finest is reported",
        "solver": f"proximal, mu {solver.mu:g}{' of the smallest mobility in the initial state' * settings.adapts}, "
        f"{solver.iterations} iterations",
        "drift feedback": f"Baumgarte, Kp {solver.stiffness:g} 1/s², Kd {solver.damping:g} 1/s",
        "loops": "a RigidConstraintModel per closure, 3D or 6D",
        "actuators": "a 6D RigidConstraintModel across each joint; its contact_force is the effort",
        "loads": "springs, dampers, external wrenches and gravity compensation as efforts on the joints at each stage",
    }
