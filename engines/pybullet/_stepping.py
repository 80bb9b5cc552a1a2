"""Steps PyBullet through a motion with the loops closed by its own constraints, and reads its motors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np

from engines.pybullet._bullet import pybullet
from engines.pybullet._loads import apply_loads, set_state
from engines.pybullet._loops import close_loops, follow_curves, opening
from engines.pybullet._motors import Motors, targets
from engines.pybullet._world import World, inertial_poses, joint_state, opened
from robots.arrays import AnyArray, Array
from robots.efforts import Rung
from robots.errors import EngineError
from robots.mechanism import Mechanism
from robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """The joints whose motors are on; the same in all steps."""

    world: World
    """The mechanism in PyBullet."""
    joints: AnyArray
    """Their indices among ours [-], shape (driven joints,)."""
    links: tuple[int, ...]
    """PyBullet's indices."""
    reference: Array
    """Where they are when PyBullet counts zero [m or rad], shape (driven joints,)."""
    dt: float
    """Length of a step [s]."""


Prepare: TypeAlias = Callable[[World, tuple[int, ...]], None]
"""Sets what is not left at PyBullet's defaults; called with PyBullet's numbers of the constraints."""
Drive: TypeAlias = Callable[[Driven, Array, Array], None]
"""Commands the motors before a step, from where PyBullet has their joints to where they are to be at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulation: its step, its start, and how PyBullet is set up and driven."""

    dt: float
    """Step, which divides that of the motion [s]."""
    lead: int
    """Number of steps before the span."""
    q: Array
    """Joint positions at the first step [m or rad], shape (nq,)."""
    qd: Array
    """Joint velocities that PyBullet starts with [m/s or rad/s], shape (nv,)."""
    motors: Motors
    """Motors that are on; what else is driven is carried along at zero effort."""
    prepare: Prepare
    drive: Drive
    patience: int = 1
    """How many times as many iterations the first step may take, whose solver starts from no impulses at all [-]."""


class Simulation(NamedTuple):
    """What a run gave."""

    rung: Rung
    """Efforts, and how well PyBullet kept to the motion, by its own poses and positions at the samples."""
    unconverged: float
    """Fraction of the steps in which the solver stopped at its limit of iterations; 0 if it was not asked to tell."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Simulation:
    """Simulate a motion at one step size.

    Args:
        mechanism: Robot; balls and all.
        motion: The prescribed motion.
        run: How PyBullet is set up and driven.

    Raises:
        NotRepresentableError: If the mechanism has something that PyBullet cannot carry.
        EngineError: If PyBullet fails, or becomes unstable.
    """
    clock = perf_counter()
    with opened(mechanism) as world:
        pybullet.setTimeStep(run.dt, physicsClientId=world.client)
        loops = close_loops(world)
        run.prepare(world, loops)
        _set_state(world, run)
        log = _march(world, mechanism, motion, run, loops)
    if not all(np.isfinite(values).all() for values in (log.forces, log.q, log.poses)):
        raise EngineError(f"pybullet: unstable at steps of {run.dt:g} s: its efforts or its state are not finite")
    on_drives = np.zeros((len(motion.t), len(mechanism.drives)))
    on_drives[:, run.motors.places] = run.motors.ratios * log.forces[:, run.motors.joints]
    drives = world.mechanism.values_of(world.mechanism.drives, log.q)
    rung = Rung(
        dt=run.dt,
        effort=on_drives @ np.linalg.pinv(mechanism.gearing),
        closure_drift=opening(world, log.q, log.poses),
        tracking_error=float(np.abs(drives - motion.law(motion.t).q).max()),
        wall_time=perf_counter() - clock,
    )
    return Simulation(rung, float(np.mean(log.at_limit)))


def _set_state(world: World, run: Run) -> None:
    """Set all joints and rotors, and switch off the motors that PyBullet starts with."""
    set_state(world, run.q, run.qd)
    for joint in world.moving:
        pybullet.setJointMotorControl2(
            world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, physicsClientId=world.client
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What is written down while stepping."""

    q: Array
    """Joint positions at the samples [m or rad], shape (nt, nq)."""
    poses: Array
    """Inertial frames of the bodies at the samples [m, -], shape (nt, bodies, 7)."""
    forces: Array
    """Forces of all joints' motors in the steps from the samples [N or N m], shape (nt, nv)."""
    at_limit: list[bool] = field(default_factory=list)
    """Whether the solver stopped at its limit of iterations, for each step."""


def _march(world: World, mechanism: Mechanism, motion: Motion, run: Run, loops: tuple[int, ...]) -> _Log:
    nt, per_sample, of = len(motion.t), round(motion.dt / run.dt), world.mechanism
    steps = range(-run.lead, (nt - 1) * per_sample + 1)
    wanted = targets(mechanism, motion, run.motors, motion.t[0] + run.dt * np.arange(steps.start, steps.stop + 1))
    driven = _driven(world, run)
    limit = pybullet.getPhysicsEngineParameters(physicsClientId=world.client)["numSolverIterations"]
    log = _Log(q=np.zeros((nt, of.nq)), poses=np.zeros((nt, len(of.bodies), 7)), forces=np.zeros((nt, of.nv)))
    pybullet.setPhysicsEngineParameter(numSolverIterations=run.patience * limit, physicsClientId=world.client)
    state = joint_state(world)
    for k, target in zip(steps, wanted[1:], strict=True):
        sample, rest = divmod(k, per_sample)
        reported = sample >= 0 and not rest
        if reported:
            log.q[sample], log.poses[sample] = state.q, inertial_poses(world)
        follow_curves(world, loops, state.q)
        apply_loads(world, state.q, state.qd)
        run.drive(driven, state.q[driven.joints], target)
        solved = pybullet.stepSimulation(physicsClientId=world.client) or ()
        if k == steps.start:
            pybullet.setPhysicsEngineParameter(numSolverIterations=limit, physicsClientId=world.client)
        log.at_limit.append(any(island["numIterationsUsed"] >= limit for island in solved))
        state = joint_state(world)
        if reported:
            log.forces[sample] = state.forces
    return log


def _driven(world: World, run: Run) -> Driven:
    joints = np.array(run.motors.joints, dtype=int)
    links = tuple(world.joints[j] for j in run.motors.joints)
    return Driven(world=world, joints=joints, links=links, reference=world.reference[joints], dt=run.dt)
