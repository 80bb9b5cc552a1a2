"""Steps Exudyn through a motion with the drives as rheonomic constraints, and reads their multipliers."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.exudyn._drives import Drive, JointRate
from loopcheck.engines.exudyn._equations import quiet_settings
from loopcheck.engines.exudyn._exudyn import exudyn, items
from loopcheck.engines.exudyn._frames import COORDINATES, coordinates, frames, places, poses, poses_of
from loopcheck.engines.exudyn._rotors import with_rotors
from loopcheck.engines.exudyn._system import System, built
from loopcheck.engines.exudyn.wrenches import Read, read, wrenches
from loopcheck.engines.forward import Readings
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.efforts import Deviation, Rung
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, WeldClosure
from loopcheck.robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation."""

    dt: float
    """Step, a divisor of the step of the motion [s]."""
    lead: int
    """Number of steps before the span."""
    drives: tuple[int, ...]
    """Places of the driven coordinates that are driven."""
    tolerance: float
    """Of Newton's method, relative to the first increment of a step [-]."""
    exact_start: bool
    """Whether the initial accelerations are taken from the motion; otherwise they are zero."""
    left_out: tuple[int, ...] = ()
    """Redundant rows of the closures."""
    rank_revealing: bool = False
    """Whether redundant constraints make the equations of a step singular."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Rung:
    """Simulate a motion at a step size.

    Args:
        run: Settings of drives and solver.

    Raises:
        NotRepresentableError: If the mechanism has an element that Exudyn cannot represent.
        EngineError: If Exudyn fails, or its state is not finite.
    """
    clock = perf_counter()
    t0 = motion.t[0] - run.lead * run.dt
    start = motion.assemble(np.array([t0]))
    chain = frames(mechanism)
    chain_poses = poses(mechanism, chain, start.q[0], start.qd[0], start.qdd[0])
    steps = run.lead + round((motion.t[-1] - motion.t[0]) / run.dt)
    prescribed = motion.law(t0 + run.dt * np.arange(steps + 1))
    with built(mechanism, chain_poses, run.left_out) as system:
        driven = [_drive(system, k, run.dt, prescribed.qd[:, k]) for k in run.drives]
        system.mbs.Assemble()
        _, c_t, c_tt = coordinates(chain, chain_poses)
        velocity, acceleration = (
            with_rotors(mechanism, *rates) for rates in ((c_t, start.qd[0]), (c_tt, start.qdd[0]))
        )
        samples = np.arange(len(motion.t)) * round(motion.dt / run.dt) + run.lead
        states, multipliers, readings = _march(system, (velocity, acceleration * run.exact_start), steps, samples, run)
        rows, of_rotors = (
            [int(system.mbs.systemData.GetObjectLTGAE(number)[0]) for number in numbers]
            for numbers in (driven, system.rotors.values())
        )
    if len(states) != steps + 1 or not (np.isfinite(states).all() and np.isfinite(multipliers).all()):
        raise EngineError(
            f"exudyn: the simulation with steps of {run.dt:g} s diverged: its solver failed or its state is not finite"
        )
    R, p = poses_of(states[:, : COORDINATES * len(chain)])
    forces, along = -multipliers[samples][:, rows], np.zeros((len(samples), len(mechanism.joints)))
    along[:, [mechanism.drives[k].joints[0] for k in run.drives]] += forces
    along[:, [*system.rotors]] -= multipliers[samples][:, of_rotors]
    results = Readings(
        dt=run.dt,
        drives=run.drives,
        forces=forces,
        tracked=mechanism.drives,
        miss=_misses(system, R, p, prescribed.q),
        drift=_opening(system, R, p),
        wrenches=wrenches(system, R[samples], along, readings) if run.wrenches else {},
    )
    return results.rung(mechanism, "exudyn", clock)


def _drive(system: System, k: int, dt: float, rates: Array) -> int:
    """Add the constraint of a driven joint; returns its object."""
    j = system.mechanism.drives[k].joints[0]
    place = next(i for i, frame in enumerate(system.chain) if frame.joint == j)
    ends = [system.chain[place].before, place]
    nodes = [system.mbs.AddNode(items.NodePointGround()) if i == WORLD else system.nodes[i] for i in ends]
    drive = Drive(rate=JointRate.of_joint(system.mechanism, system.chain, j), dt=dt, rates=rates.tolist())
    markers = [system.mbs.AddMarker(items.MarkerNodeCoordinates(nodeNumber=node)) for node in nodes]
    constraint = items.ObjectConnectorCoordinateVector(
        markerNumbers=markers,
        scalingMarker0=np.zeros((1, drive.rate.coordinates - COORDINATES)),
        scalingMarker1=np.zeros((1, COORDINATES)),
        constraintUserFunction=drive.residual,
        jacobianUserFunction=drive.jacobian,
    )
    return int(system.mbs.AddObject(constraint))


def _march(
    system: System, start: tuple[Array, Array], steps: int, samples: AnyArray, run: Run
) -> tuple[Array, Array, list[Read]]:
    """Coordinates, shape (steps, 7 bodies + rotors), and multipliers, shape (steps, nc), at the ends of the steps.

    With the forces in the joints at the ends of some steps.
    """
    states, multipliers, readings = list[Array](), list[Array](), list[Read]()
    mbs, with_wrenches = system.mbs, {*samples.tolist()} if run.wrenches else set()
    reference = np.array(mbs.systemData.GetODE2Coordinates(configuration=exudyn.ConfigurationType.Reference))

    def keep(mbs: Any, t: float) -> bool:
        if len(states) in with_wrenches:
            readings.append(read(system))
        states.append(reference + mbs.systemData.GetODE2Coordinates())
        multipliers.append(np.array(mbs.systemData.GetAECoordinates()))
        return True

    mbs.SetPostStepUserFunction(keep)
    velocity, acceleration = (rates.tolist() for rates in start)
    mbs.systemData.SetODE2Coordinates_t(velocity, configuration=exudyn.ConfigurationType.Initial)
    mbs.systemData.SetODE2Coordinates_tt(acceleration, configuration=exudyn.ConfigurationType.Initial)
    mbs.SolveDynamic(_settings(steps, run), solverType=exudyn.DynamicSolverType.TrapezoidalIndex2)
    return np.array(states), np.array(multipliers), readings


def _settings(steps: int, run: Run) -> Any:
    settings = quiet_settings()
    integration = settings.timeIntegration
    integration.endTime, integration.numberOfSteps = steps * run.dt, steps
    integration.adaptiveStep = integration.automaticStepSize = False
    integration.generalizedAlpha.computeInitialAccelerations = False  # Exudyn's leave out what drives accelerate
    # The residual of the whole robot is met before that of a small part of it; an increment is still added when small.
    integration.newton.residualMode = 1
    integration.newton.relativeTolerance, integration.newton.absoluteTolerance = run.tolerance, 0.0
    integration.newton.useModifiedNewton = integration.newton.modifiedNewtonJacUpdatePerStep = True
    if run.rank_revealing:
        settings.linearSolver.solverType = exudyn.LinearSolverType.EigenDense
        settings.linearSolver.ignoreSingularJacobian = True
    else:
        settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    return settings


def _opening(system: System, R: Array, p: Array) -> Deviation:
    """Gap of the widest loop."""
    last, widest = places(system.chain), Deviation()
    for closure in system.mechanism.rigid_closures:
        ends = [(last[closure.body1], closure.point1), (last[closure.body2], closure.point2)]
        gaps = np.subtract(*(_point(system, R, p, place, point) for place, point in ends))
        widest = widest.or_worse(Deviation(float(np.linalg.norm(gaps, axis=-1).max())))
        match closure:
            case ConnectClosure():
                continue
            case WeldClosure():
                R1, R2 = (np.eye(3) if place == WORLD else R[:, place] for place, _ in ends)
                turned = np.swapaxes(R1, -1, -2) @ R2 @ closure.rotation.T
                angle = float(Rotation.from_matrix(turned.reshape(-1, 3, 3)).magnitude().max())
                widest = widest.or_worse(Deviation(angle=angle))
            case _:
                assert_never(closure)
    return widest


def _misses(system: System, R: Array, p: Array, targets: Array) -> Array:
    """By how much driven joints miss their prescribed positions [m or rad], shape (nt, drives)."""
    misses = []
    for k, drive in enumerate(system.mechanism.drives):
        joint = system.mechanism.joints[drive.joints[0]]
        place = next(i for i, frame in enumerate(system.chain) if frame.joint == drive.joints[0])
        frame = system.chain[place]
        R0 = np.eye(3) if frame.before == WORLD else R[:, frame.before]
        relative = np.swapaxes(R0 @ frame.rotation, -1, -2) @ R[:, place]
        x = targets[:, k] - joint.rest_position[0]
        if joint.kind == "slide":
            way = _point(system, R, p, place, joint.anchor) - _point(
                system, R, p, frame.before, frame.position + frame.rotation @ joint.anchor
            )
            misses.append(way[..., None, :] @ (R0 @ frame.rotation @ joint.axis)[..., None])
            misses[-1] = misses[-1].ravel() - x
        else:
            back = Rotation.from_rotvec(-x[:, None] * joint.axis).as_matrix()
            misses.append(Rotation.from_matrix(relative @ back).as_rotvec() @ joint.axis)
    return np.stack(misses, axis=1)


def _point(system: System, R: Array, p: Array, place: int, point: Array) -> Array:
    """A point of a frame in world axes [m], shape (nt, 3), or (3,) if the frame is the world."""
    return point if place == WORLD else p[:, place] + R[:, place] @ (point - system.chain[place].center)
