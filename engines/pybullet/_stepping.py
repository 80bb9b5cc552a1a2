"""Steps PyBullet through a motion with the loops closed by its own constraints, and reads its motors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from engines.pybullet._bullet import pybullet
from engines.pybullet._loads import apply_loads, set_state
from engines.pybullet._loops import close_loops, follow_curves, opening
from engines.pybullet._motors import Motors, targets
from engines.pybullet._world import World, opened
from robots.arrays import Array
from robots.efforts import Rung
from robots.errors import EngineError
from robots.mechanism import Mechanism
from robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What the motors are to do during a step."""

    joints: tuple[int, ...]
    """Joints whose motors are on, by our indices."""
    q: Array
    """Where PyBullet has them at the beginning of the step [m or rad], shape (driven joints,)."""
    target: Array
    """Where they are prescribed to be at its end [m or rad], shape (driven joints,)."""
    dt: float
    """Length of the step [s]."""


Prepare: TypeAlias = Callable[[World, tuple[int, ...]], None]
"""Sets what is not left at PyBullet's defaults; called with PyBullet's numbers of the constraints."""
Drive: TypeAlias = Callable[[World, Command], None]
"""Commands the motors before a step."""


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
    drift, error = float(np.max(log.drift)), float(np.max(log.error))
    if not (np.isfinite(log.forces).all() and np.isfinite([drift, error]).all()):
        raise EngineError(f"pybullet: unstable at steps of {run.dt:g} s: its efforts or its state are not finite")
    on_drives = np.zeros((len(motion.t), len(mechanism.drives)))
    on_drives[:, run.motors.places] = run.motors.ratios * log.forces
    effort, took = on_drives @ np.linalg.pinv(mechanism.gearing), perf_counter() - clock
    rung = Rung(dt=run.dt, effort=effort, closure_drift=drift, tracking_error=error, wall_time=took)
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

    forces: Array
    """Forces of the motors at the samples [N or N m], shape (nt, motors)."""
    drift: list[float] = field(default_factory=list)
    """Widest opening of the loops at each sample [m or rad]."""
    error: list[float] = field(default_factory=list)
    """Largest tracking error at each sample [m or rad]."""
    at_limit: list[bool] = field(default_factory=list)
    """Whether the solver stopped at its limit of iterations, for each step."""


def _march(world: World, mechanism: Mechanism, motion: Motion, run: Run, loops: tuple[int, ...]) -> _Log:
    nt, per_sample = len(motion.t), round(motion.dt / run.dt)
    steps = np.arange(-run.lead, (nt - 1) * per_sample + 1)
    wanted = targets(mechanism, motion, run.motors, motion.t[0] + run.dt * np.append(steps, steps[-1] + 1))
    drives, driven = world.mechanism.drives, list(run.motors.joints)
    W, prescribed = world.mechanism.rates_of(drives), motion.law(motion.t).q
    limit = pybullet.getPhysicsEngineParameters(physicsClientId=world.client)["numSolverIterations"]
    log = _Log(forces=np.zeros((nt, len(driven))))
    pybullet.setPhysicsEngineParameter(numSolverIterations=run.patience * limit, physicsClientId=world.client)
    for k, following in zip(steps, wanted[1:], strict=True):
        sample, rest = divmod(int(k), per_sample)
        reported = sample >= 0 and not rest
        if reported:
            q, _ = _state(world)
            log.drift.append(opening(world, q))
            log.error.append(float(np.abs(W @ q - prescribed[sample]).max()))
        solved = _step(world, run, loops, following)
        if k == steps[0]:
            pybullet.setPhysicsEngineParameter(numSolverIterations=limit, physicsClientId=world.client)
        log.at_limit.append(any(island["numIterationsUsed"] >= limit for island in solved))
        if reported:
            log.forces[sample] = _motor_forces(world, run.motors.joints)
    return log


def _step(world: World, run: Run, loops: tuple[int, ...], target: Array) -> Sequence[Mapping[str, Any]]:
    """One step, its loads and motors set before it; returns what the solver tells of itself."""
    q, qd = _state(world)
    follow_curves(world, loops, q)
    apply_loads(world, q, qd)
    command = Command(joints=run.motors.joints, q=q[list(run.motors.joints)], target=target, dt=run.dt)
    run.drive(world, command)
    return pybullet.stepSimulation(physicsClientId=world.client) or ()


def _state(world: World) -> tuple[Array, Array]:
    """Joint positions and velocities as PyBullet has them [m or rad, per s], each of shape (nv,)."""
    states = pybullet.getJointStates(world.tree, world.joints, physicsClientId=world.client)
    read = np.array([state[:2] for state in states])
    return read[:, 0] + world.mechanism.reference, read[:, 1]


def _motor_forces(world: World, driven: tuple[int, ...]) -> list[float]:
    """What the motors did in the last step [N or N m]: their impulses, divided by the step."""
    joints = [world.joints[j] for j in driven]
    return [state[3] for state in pybullet.getJointStates(world.tree, joints, physicsClientId=world.client)]
