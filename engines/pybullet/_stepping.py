"""Steps PyBullet through a motion with the loops closed by its own constraints, and reads its motors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from loopcheck.engines.forward import Readings, settled
from loopcheck.engines.pybullet._equations import apply_loads, start
from loopcheck.engines.pybullet._loops import close_loops, follow_curves, geared, opening
from loopcheck.engines.pybullet._motors import Motors, targets
from loopcheck.engines.pybullet._world import World, inertial_poses, joint_state, opened, pybullet
from loopcheck.engines.pybullet.wrenches import Read, enable, read, wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Rung
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """The joints with active motors; the same in all steps."""

    world: World
    """The mechanism in PyBullet."""
    links: tuple[int, ...]
    """PyBullet's indices of them."""
    reference: Array
    """Positions at PyBullet's zero [m or rad], shape (driven joints,)."""
    dt: float
    """Length of a step [s]."""

    def positions(self) -> Array:
        """Their positions in PyBullet [m or rad], shape (driven joints,)."""
        return np.array([state[0] for state in self._states()]) + self.reference

    def forces(self) -> list[float]:
        """Efforts of their motors in the last step [N or N m]: their impulses, divided by the step."""
        return [state[3] for state in self._states()]

    def _states(self) -> tuple[tuple[Any, ...], ...]:
        return pybullet.getJointStates(self.world.tree, self.links, physicsClientId=self.world.client)


Prepare: TypeAlias = Callable[[World, tuple[int, ...]], None]
"""Changes PyBullet's defaults; called with PyBullet's numbers of the constraints."""
Drive: TypeAlias = Callable[[Driven, Array, Array], None]
"""Commands the motors before a step, from the current joint positions to the targets at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation: its step, its start, its settings of PyBullet and its drives."""

    dt: float
    """Step, a divisor of the step of the motion [s]."""
    lead: int
    """Number of steps before the span."""
    q: Array
    """Joint positions at the first step [m or rad], shape (nq,)."""
    qd: Array
    """Joint velocities that PyBullet starts with [m/s or rad/s], shape (nv,)."""
    motors: Motors
    """Active motors; all further driven joints move at zero effort."""
    prepare: Prepare
    drive: Drive
    patience: int = 1
    """Factor on the iterations of the first step, because its solver starts without impulses [-]."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


class Simulation(NamedTuple):
    """Results of a run."""

    rung: Rung
    """Efforts, and how well PyBullet kept to the motion, by its own poses and positions at the samples."""
    unconverged: float
    """Fraction of the steps in which the solver stopped at its limit of iterations; 0 if not measured."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Simulation:
    """Simulate a motion at a step size.

    Args:
        mechanism: Robot; balls and all.
        run: Settings of PyBullet and its drives.

    Raises:
        NotRepresentableError: If the mechanism has an element that PyBullet cannot represent.
        EngineError: If PyBullet fails, or becomes unstable.
    """
    clock = perf_counter()
    with opened(mechanism) as world:
        pybullet.setTimeStep(run.dt, physicsClientId=world.client)
        loops = close_loops(world)
        run.prepare(world, loops)
        start(world, run.q, run.qd)
        if run.wrenches:
            enable(world)
        log = _march(world, mechanism, motion, run, loops)
    q, poses, forces = np.array(log.q), np.array(log.poses), np.array(log.forces)
    if not all(np.isfinite(values).all() for values in (q, poses, forces)):
        raise EngineError(
            f"pybullet: the simulation with steps of {run.dt:g} s diverged: efforts or state are not finite"
        )
    readings = Readings(
        dt=run.dt,
        drives=run.motors.places,
        forces=run.motors.ratios * forces,
        tracked=mechanism.drives,
        miss=world.mechanism.values_of(world.mechanism.drives, q) - motion.law(motion.t).q,
        drift=opening(world, q, poses),
        wrenches=settled(wrenches(world, mechanism, poses, log.wrenches), run.lead) if run.wrenches else {},
    )
    return Simulation(readings.rung(mechanism, "pybullet", clock), float(np.mean(log.at_limit)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """Record of the steps."""

    q: list[Array] = field(default_factory=list)
    """Joint positions at each sample [m or rad], shape (nq,)."""
    poses: list[list[tuple[float, ...]]] = field(default_factory=list)
    """Inertial frames of the bodies at each sample [m, -], shape (bodies, 7)."""
    forces: list[list[float]] = field(default_factory=list)
    """Forces of the motors in the step from each sample [N or N m], shape (motors,)."""
    wrenches: list[Read] = field(default_factory=list)
    """Readings of forces in the joints in the step from each sample."""
    at_limit: list[bool] = field(default_factory=list)
    """Whether the solver stopped at its limit of iterations, for each step."""


def _march(world: World, mechanism: Mechanism, motion: Motion, run: Run, loops: tuple[int, ...]) -> _Log:
    per_sample = round(motion.dt / run.dt)
    steps = range(-run.lead, (len(motion.t) - 1) * per_sample + 1)
    targets_of_steps = targets(
        mechanism, motion, run.motors, motion.t[0] + run.dt * np.arange(steps.start, steps.stop + 1)
    )
    driven, gears, log = _driven(world, run), geared(world, loops), _Log()
    limit = pybullet.getPhysicsEngineParameters(physicsClientId=world.client)["numSolverIterations"]
    pybullet.setPhysicsEngineParameter(numSolverIterations=run.patience * limit, physicsClientId=world.client)
    for k, target in zip(steps, targets_of_steps[1:], strict=True):
        reported = k >= 0 and k % per_sample == 0
        if reported:
            log.q.append(joint_state(world)[0])
            log.poses.append(inertial_poses(world))
        if gears:
            follow_curves(world, gears, joint_state(world)[0])
        apply_loads(world)
        run.drive(driven, driven.positions(), target)
        solved = pybullet.stepSimulation(physicsClientId=world.client) or ()
        if k == steps.start:
            pybullet.setPhysicsEngineParameter(numSolverIterations=limit, physicsClientId=world.client)
        log.at_limit.append(any(island["numIterationsUsed"] >= limit for island in solved))
        if reported:
            log.forces.append(driven.forces())
            if run.wrenches:
                log.wrenches.append(read(world, loops))
    return log


def _driven(world: World, run: Run) -> Driven:
    joints = list(run.motors.joints)
    links = tuple(world.joints[j] for j in joints)
    return Driven(world=world, links=links, reference=world.reference[joints], dt=run.dt)
