"""DART's equations of motion at any state: terms of the tree, rows of the loops, loads on the bodies."""

from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.dart._skeleton import Tree, build
from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.loads import pulls, turns, wrenches
from loopcheck.engines.mechanics import closure_rows, gap, rotation
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD, Mechanism


class DartEquations(LoopEquations):
    """See `loopcheck.engines.equations.LoopEquations`."""

    def __init__(self, mechanism: Mechanism) -> None:
        """For a mechanism that DART can represent."""
        self.tree = build(mechanism)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.tree.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return self._rows("Jacobian")

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return opening(self.tree)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        self.tree.put(q, qd)
        return self._rows("JacobianDeriv") @ qd

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`; DART has no rotors."""
        self.tree.put(q, qd)
        apply_loads(self.tree)
        skeleton = self.tree.skeleton
        M = np.array(skeleton.getMassMatrix()) + np.diag(self.tree.armature)
        springs, dampers = joint_forces(self.tree)
        passive = np.array(skeleton.getExternalForces()) + springs + dampers
        return M, np.array(skeleton.getCoriolisAndGravityForces()), passive

    def _rows(self, kind: str) -> Array:
        """Rows of the loops along the world's axes, by DART's Jacobians of points or their rates."""
        linear, angular = (getattr(self.tree.skeleton, f"get{part}{kind}") for part in ("Linear", "Angular"))

        def end(body: int, point: Array) -> Array:
            node = self.tree.bodies[body]
            return np.concatenate([linear(node, point), angular(node)])

        return closure_rows(self.mechanism, end)


def opening(tree: Tree) -> Deviation:
    """Gap of the widest loop in the state."""

    def end(body: int, point: Array) -> tuple[Array, Array]:
        axes = np.eye(3) if body == WORLD else np.array(tree.bodies[body].getWorldTransform().rotation())
        return position_of(tree, body, point), axes

    return Deviation().or_worse(*(gap(closure, end) for closure in tree.mechanism.rigid_closures))


def apply_loads(tree: Tree) -> None:
    """Let the loads of a mechanism act in the state that DART has; DART keeps them along the axes of the body."""
    tree.skeleton.clearExternalForces()
    between = pulls(tree.mechanism, partial(position_of, tree), partial(velocity_of, tree))
    for load in (*wrenches(tree.mechanism), *between, *turns(tree.mechanism, partial(turn_of, tree))):
        body = tree.bodies[load.body]
        body.addExtForce(load.force, load.point, False, True)
        body.addExtTorque(load.moment, False)


def joint_forces(tree: Tree) -> tuple[Array, Array]:
    """Forces of the springs of joints except balls, and of the dampers of joints [N or N m], shape (nv,) each.

    By DART's values: its inverse dynamics evaluates them at the joints of the next step.
    """
    springs = -per_dof(tree, "SpringStiffness") * (tree.skeleton.getPositions() - per_dof(tree, "RestPosition"))
    return springs, -per_dof(tree, "DampingCoefficient") * tree.skeleton.getVelocities()


def per_dof(tree: Tree, quantity: str) -> Array:
    """A quantity of DART's joints at each of their dofs, shape (nv,)."""
    joints = [joint for parts in tree.joints for joint in parts]
    return np.array([getattr(joint, f"get{quantity}")(k) for joint in joints for k in range(joint.getNumDofs())])


def turn_of(tree: Tree, j: int) -> tuple[Rotation, Array]:
    """Rotation of a ball or free joint in DART, and the axes of its body [-], shape (3, 3)."""
    q = tree.ours(np.array(tree.skeleton.getPositions()))[tree.mechanism.q_slices[j]]
    return rotation(q), tree.bodies[tree.mechanism.joints[j].body].getWorldTransform().rotation()


def position_of(tree: Tree, body: int, point: Array) -> Array:
    """Position in DART of a point [m], shape (3,).

    Args:
        body: Index of the body, or `WORLD`.
        point: The point in the body frame [m], shape (3,).
    """
    if body == WORLD:
        return point
    pose = tree.bodies[body].getWorldTransform()
    return np.asarray(pose.rotation() @ point + pose.translation())


def velocity_of(tree: Tree, body: int, point: Array) -> Array:
    """Velocity in DART of a point [m/s], shape (3,).

    Args:
        body: Index of the body, or `WORLD`.
        point: The point in the body frame [m], shape (3,).
    """
    return np.zeros(3) if body == WORLD else np.array(tree.bodies[body].getLinearVelocity(point))
