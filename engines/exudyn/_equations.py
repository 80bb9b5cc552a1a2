"""Terms of Exudyn's own equations, projected on the joints by the motions of its bodies per joint velocity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.engines.extrapolation import slope_along
from loopcheck.engines.exudyn._exudyn import exudyn
from loopcheck.engines.exudyn._frames import Frame, coordinates, frames, poses
from loopcheck.engines.exudyn._rotors import with_rotors
from loopcheck.engines.exudyn._system import System, built
from loopcheck.engines.mechanics import moved
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

STEP = 4e-3
"""Largest change of a joint between two points of a difference [rad or m]: truncation is below round-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equations:
    """Terms of M c̈ + Cᵀ λ = f in the coordinates c of bodies and rotors, in the position that a system starts with."""

    M: Array
    """Mass matrix [kg, kg m or kg m²], shape (n, n)."""
    C: Array
    """Jacobian of all constraints [-, m or 1/m], shape (nc, n)."""
    forces: tuple[Array, ...]
    """Forces f at each of the velocities [N or N m], of shape (n,)."""


def equations(system: System, velocities: Sequence[Array] = ()) -> Equations:
    """Terms of Exudyn's equations.

    Args:
        system: The mechanism in Exudyn, assembled.
        velocities: Velocities of the coordinates [m/s, rad/s or 1/s], each of shape (n,).
    """
    mbs, settings = system.mbs, quiet_settings()
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = False
    solver = exudyn.MainSolverImplicitSecondOrder()
    solver.InitializeSolver(mbs, settings)
    n, size = solver.GetODE2size(), solver.GetODE2size() + solver.GetAEsize()
    solver.ComputeMassMatrix(mbs)
    M = np.array(solver.GetSystemMassMatrix())[:n, :n]
    forces = []
    for velocity in velocities:
        mbs.systemData.SetODE2Coordinates_t(velocity.tolist())
        solver.ComputeODE2RHS(mbs)
        forces.append(np.array(solver.GetSystemResidual())[:n])
    solver.SetSystemJacobian(np.zeros((size, size)))  # what Exudyn computes is added to it
    solver.ComputeJacobianAE(mbs)
    C = np.array(solver.GetSystemJacobian())[n:, :n]
    solver.FinalizeSolver(mbs, settings)
    return Equations(M=M, C=C, forces=tuple(forces))


def closure_jacobian(mechanism: Mechanism, q: JointPositions) -> Array:
    """Rates of the closures, as Exudyn's joints have them, per joint velocity [m/rad or m/m], shape (nc, nv)."""
    chain, at_rest = frames(mechanism), np.zeros(mechanism.nv)
    with built(mechanism, poses(mechanism, chain, q, at_rest, at_rest)) as system:
        system.mbs.Assemble()
        C = equations(system).C
        rows = rows_of(system, system.closures)
    return C[rows] @ rates_of_coordinates(mechanism, chain, q)


def closure_bias(mechanism: Mechanism, q: JointPositions, qd: JointVelocities) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`: J q̇ differenced along q̇ [m/s² or rad/s²], shape (nc,)."""
    return slope_along(lambda move: closure_jacobian(mechanism, moved(mechanism, q, move)) @ qd, qd, STEP)


def quiet_settings() -> Any:
    """Exudyn's settings, without anything printed or written to files."""
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = settings.timeIntegration.verboseModeFile = 0
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenDense
    return settings


def rates_of_coordinates(mechanism: Mechanism, chain: Sequence[Frame], q: JointPositions) -> Array:
    """Velocities of the coordinates of bodies and rotors per joint velocity [-, m or 1/m], shape (n, nv)."""
    units, at_rest = np.eye(mechanism.nv), np.zeros((mechanism.nv, mechanism.nv))
    columns = coordinates(chain, poses(mechanism, chain, q, units, at_rest))[1].T
    return with_rotors(mechanism, columns, units)


def rows_of(system: System, objects: Sequence[int]) -> list[int]:
    """Rows of the constraints of some objects.

    Args:
        system: The mechanism in Exudyn, assembled.
        objects: Numbers of the objects.
    """
    return [int(row) for item in objects for row in system.mbs.systemData.GetObjectLTGAE(item)]
