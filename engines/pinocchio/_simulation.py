"""A closed loop that moves in Pinocchio: `constraintDynamics` gives its accelerations, `integrate` moves it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.pinocchio._loops import Constraints, gathered, loop_constraints, opening
from loopcheck.engines.pinocchio._tree import Tree, build, is_loaded, load_forces, lost_of_tree
from loopcheck.engines.projection import RANK_TOLERANCE
from loopcheck.engines.runge_kutta import RungeKutta
from loopcheck.robots.arrays import AnyArray, Array, JointAccelerations, JointForces, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Coordinate, Mechanism

RUNGE_KUTTA, EULER = "Runge-Kutta", "semi-implicit Euler"
FIRST = {"slide": 0, "hinge": 3}
"""Index of a joint's axis in Pinocchio's motions and forces (linear part first)."""
TURNING = {"ball": 0, "free": 3}
"""Indices of the angular velocity among the dofs of a joint."""

Step: TypeAlias = Callable[[Array, Callable[[int], Array]], None]
"""Moves the state by a step: from its accelerations, and a function that gives them so many half steps later, (nv,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """Pinocchio's solver of the constraint forces, and its integration of the state."""

    integrator: str = RUNGE_KUTTA
    """`RUNGE_KUTTA` of fourth order, or `EULER`, as Pinocchio's examples step."""
    mu: float = 1e-6
    """Regularisation of a proximal iteration [1/kg or 1/(kg m²)]; without it redundant loops give NaN."""
    iterations: int = 5
    """Proximal iterations; each reduces the error of the regularization."""
    stiffness: float = 10.0
    """Feedback on the drift of loops and drives [1/s²]; for the loops, Pinocchio's own."""
    damping: float = 2 * 10**0.5
    """The same on its rate [1/s]."""


class Simulation:
    """A mechanism with its loops closed and some of its joints held."""

    def __init__(self, mechanism: Mechanism, drives: Sequence[Coordinate], solver: Solver) -> None:
        """Build it at rest in Pinocchio's zero positions.

        Args:
            drives: Held coordinates, each the position of a single joint.
            solver: Solver and integration.

        Raises:
            NotRepresentableError: If Pinocchio's constraints cannot hold the loops or the drives.
        """
        want_rigid(mechanism, drives)
        self.tree, self._solver = build(mechanism), solver
        driven = [drive.joints[0] for drive in drives]
        loops = loop_constraints(self.tree)
        for loop in loops:
            loop.m_baumgarte_parameters.Kp = solver.stiffness
            loop.m_baumgarte_parameters.Kd = solver.damping
        self.constraints = gathered([*loops, *(_hold(self.tree, j) for j in driven)])
        self.loops, self._holds = (
            Constraints(models=list(self.constraints.models)[part], datas=list(self.constraints.datas)[part])
            for part in (slice(0, len(loops)), slice(len(loops), None))
        )
        self._axes = np.array([_axis(mechanism, j) for j in driven]).reshape(-1, 6)
        self._dofs = [mechanism.dof_slices[j].start for j in driven]
        self._places = [mechanism.q_slices[j].start for j in driven]
        self.soften(solver.mu)
        self._loaded = is_loaded(mechanism)
        self._turns = [
            slice(dofs.start + TURNING[joint.kind], dofs.stop)
            for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
            if joint.kind in TURNING
        ]
        pin.initConstraintDynamics(self.tree.model, self.tree.data, self.constraints.models, self.constraints.datas)
        self.x, self.qd = pin.neutral(self.tree.model), np.zeros(self.tree.model.nv)

    @property
    def q(self) -> Array:
        """Joint positions [m or rad], shape (nq,)."""
        return self.tree.ours(self.x)

    def soften(self, mu: float) -> None:
        """Set the regularisation of a proximal iteration.

        Args:
            mu: See `Solver.mu` [1/kg or 1/(kg m²)].
        """
        self._proximal = pin.ProximalSettings(0.0, 0.0, mu, self._solver.iterations)

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state."""
        self.x, self.qd = self.tree.positions(q), np.array(qd)

    def acceleration(self, force: JointForces, target: Array | None = None) -> Array:
        """Accelerations of all dofs in the state [m/s² or rad/s²], shape (nv,).

        Args:
            force: On the joints, besides springs, dampers and loads of the model [N or N m], shape (nv,).
            target: Prescribed positions, velocities and accelerations of the held coordinates [m or rad, per s, per
                s²], shape
                (3, drives).
        """
        if target is not None:
            self._prescribe(target)
        if self._loaded:
            force = force + load_forces(self.tree, self.q, self.qd)
        return np.array(self.solve(force))

    def solve(self, force: JointForces) -> JointAccelerations:
        """Pinocchio's accelerations for a force on the joints.

        Args:
            force: All forces that Pinocchio lacks [N or N m], shape (nv,).

        Returns:
            Accelerations of all dofs [m/s² or rad/s²], shape (nv,).
        """
        tree, constraints = self.tree, self.constraints
        return pin.constraintDynamics(
            tree.model, tree.data, self.x, self.qd, force, constraints.models, constraints.datas, self._proximal
        )

    def efforts(self) -> Array:
        """Efforts on the held coordinates, at the last computed accelerations [N or N m], shape (drives,)."""
        forces = [hold.contact_force.vector for hold in self._holds.datas]
        return (self._axes * np.reshape(forces, (-1, 6))).sum(axis=1)

    def opening(self) -> Deviation:
        """Gap of the loops at the last computed accelerations."""
        return opening(self.tree, self.loops, self.q)

    def stepping(self, dt: float) -> Step:
        """Steps of a fixed length [s], which move the state."""
        if self._solver.integrator == EULER:
            return partial(self._euler_step, dt)
        method = RungeKutta(dt, len(self.qd), self._turns)

        def step(a: Array, acceleration: Callable[[int], Array]) -> None:
            method.step(partial(self._move, self.x), acceleration, (self.qd, a))

        return step

    def _euler_step(self, dt: float, a: Array, _: Callable[[int], Array]) -> None:
        qd = self.qd + dt * a
        self._move(self.x, dt * qd, qd)

    def _move(self, start: AnyArray, displacement: AnyArray, velocity: AnyArray) -> None:
        self.x, self.qd = pin.integrate(self.tree.model, start, displacement), velocity

    def _prescribe(self, target: Array) -> None:
        """Set the accelerations of the held coordinates, with feedback on their deviations."""
        solver, zero = self._solver, self.tree.zero[self._places]
        off, off_rate = self.x[self._places] + zero - target[0], self.qd[self._dofs] - target[1]
        accelerations = target[2] - solver.damping * off_rate - solver.stiffness * off
        for hold, motion in zip(self._holds.datas, self._axes * accelerations[:, None], strict=True):
            hold.contact_acceleration_desired = pin.Motion(motion)


def least_mobility(tree: Tree, constraints: Constraints, x: AnyArray) -> float:
    """Least acceleration per force along a constraint, in the state [1/kg or 1/(kg m²)]; 1 without constraints.

    The unit depends on the kind of the constraint; the regularisation is added to all alike.

    Args:
        x: Positions as Pinocchio counts them [m, rad or -], shape (tree.model.nq,).
    """
    M = np.triu(pin.crba(tree.model, tree.data, x))
    M += np.triu(M, 1).T
    pin.computeJointJacobians(tree.model, tree.data, x)
    rows = [np.zeros((0, tree.model.nv))]
    for model, data in zip(constraints.models, constraints.datas, strict=True):
        model.calc(tree.model, tree.data, data)
        jacobian = pin.getConstraintJacobian(tree.model, tree.data, model, data)
        rows.append(jacobian.reshape(-1, tree.model.nv))  # a single column comes as a vector
    J = np.concatenate(rows)
    length = np.linalg.norm(J, axis=1)
    J = J[length > RANK_TOLERANCE * length.max(initial=0.0)]  # some directions of a drive its joint blocks itself
    mobilities = np.einsum("ci,ic->c", J, np.linalg.solve(M, J.T))
    return float(mobilities.min(initial=np.inf)) if len(mobilities) else 1.0


def want_rigid(mechanism: Mechanism, drives: Sequence[Coordinate]) -> None:
    """Refuse loops and drives that are no constraints between frames, and elements that its tree lacks.

    Raises:
        NotRepresentableError: If there is any.
    """
    want_representable("pinocchio", (*lost_of_tree(mechanism), *_not_rigid(mechanism, drives)))


def _not_rigid(mechanism: Mechanism, drives: Sequence[Coordinate]) -> Iterator[str]:
    for closure in mechanism.coordinate_closures:
        yield f"equality '{closure.name}' of coordinates (constraints only on points and frames)"
    for drive in drives:
        if not drive.is_joint:
            yield f"drive of tendon '{drive.name}' (constraints only on single joints)"


def _hold(tree: Tree, joint: int) -> Any:
    """All six directions between the two sides of a joint; those that the joint blocks itself are redundant."""
    own = tree.joints[joint][-1]
    sides = (own, pin.SE3.Identity(), tree.model.parents[own], tree.model.jointPlacements[own])
    hold = pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, tree.model, *sides, pin.ReferenceFrame.LOCAL)
    hold.name = f"drive of {tree.mechanism.joints[joint].name}"
    return hold


def _axis(mechanism: Mechanism, j: int) -> Array:
    """The motion that a joint leaves free, in the axes of its body [-], shape (6,)."""
    joint, axis = mechanism.joints[j], np.zeros(6)
    axis[FIRST[joint.kind] : FIRST[joint.kind] + 3] = joint.axis
    return axis
