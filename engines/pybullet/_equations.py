"""PyBullet's equations of motion at any state, in the angles of its joints, and the loads that PyBullet lacks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.equations import Equations
from loopcheck.engines.loads import joint_springs, on_joints, pulls, tendon_forces
from loopcheck.engines.mechanics import without_mass
from loopcheck.engines.pybullet import _jacobian
from loopcheck.engines.pybullet._jacobian import point_jacobian
from loopcheck.engines.pybullet._world import World, body_pose, joint_state, place, pybullet
from loopcheck.robots.arrays import Array, JointAccelerations, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism, Wrench


@dataclass(frozen=True, slots=True)
class PybulletEquations(Equations):
    """See `loopcheck.engines.equations.Equations`; of the mechanism without balls."""

    world: World

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.world.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        return _jacobian.closure_jacobian(self.world, q)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        return _jacobian.closure_bias(self.world, q, qd)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        M = pybullet.calculateMassMatrix(self.world.tree, self.world.positions(q), physicsClientId=self.world.client)
        return self.world.summed(self.world.summed(M).T), self._force(q, qd, 0 * qd), load_forces(self.world, q, qd)

    def required(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.required`, by PyBullet's own inverse dynamics."""
        M, _, passive = self.tree_terms(q, qd)
        return M, self._force(q, qd, qdd) - passive, self.mechanism.selection

    def _force(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        state = (self.world.positions(q), self.world.rates(qd), self.world.rates(qdd))
        force = pybullet.calculateInverseDynamics(self.world.tree, *state, physicsClientId=self.world.client)
        return self.world.summed(force)


def load_forces(world: World, q: JointPositions, qd: JointVelocities) -> JointForces:
    """Generalized force of springs, dampers, external wrenches and gravity compensation [N or N m], shape (nv,)."""
    force = _on_joints(world, q, qd) - np.array([joint.damping for joint in world.mechanism.joints]) * qd
    if world.mechanism.point_springs:
        set_state(world, q, qd)  # they pull where the bodies are
    loads = (*world.constant, *_pulls(world, q, qd))
    return on_joints(force, loads, lambda body, point: np.concatenate(point_jacobian(world, body, point, q)))


def apply_loads(world: World) -> None:
    """Apply all but the dampers of joints (these are in the URDF) during the next step, at PyBullet's state."""
    where, loads = {"physicsClientId": world.client}, world.constant
    if world.is_sprung:
        q, qd = joint_state(world)
        forces = _on_joints(world, q, qd).tolist()
        pybullet.setJointMotorControlArray(world.tree, world.joints, pybullet.TORQUE_CONTROL, forces=forces, **where)
        loads = (*loads, *_pulls(world, q, qd))
    for load in loads:
        link, point = world.link(load.body), place(world, load.body, load.point)
        pybullet.applyExternalForce(world.tree, link, load.force.tolist(), point, pybullet.WORLD_FRAME, **where)
        pybullet.applyExternalTorque(world.tree, link, load.moment.tolist(), pybullet.WORLD_FRAME, **where)


def start(world: World, q: JointPositions, qd: JointVelocities) -> None:
    """Set the state in which a simulation starts, and switch off the motors that PyBullet starts with.

    Raises:
        NotRepresentableError: If rotors turn there and no body moves.
    """
    M = np.array(pybullet.calculateMassMatrix(world.tree, world.positions(q), physicsClientId=world.client))
    bodies = [world.moving.index(joint) for joint in world.joints]
    want_representable("pybullet", without_mass(world.mechanism, M[np.ix_(bodies, bodies)]))
    set_state(world, q, qd)
    for joint in world.moving:
        pybullet.setJointMotorControl2(
            world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, physicsClientId=world.client
        )


def set_state(world: World, q: JointPositions, qd: JointVelocities) -> None:
    """Set the positions and velocities of all joints and rotors."""
    for joint, position, velocity in zip(world.moving, world.positions(q), world.rates(qd), strict=True):
        pybullet.resetJointState(world.tree, joint, position, velocity, physicsClientId=world.client)


def _on_joints(world: World, q: Array, qd: Array) -> Array:
    """Springs of joints, and springs and dampers of tendons and balls [N or N m], shape (nv,)."""
    force = joint_springs(world.mechanism, q) + tendon_forces(world.mechanism, q, qd)
    for turn in world.turns:
        force[turn.dofs] += turn.effort(q[turn.dofs], qd[turn.dofs])
    return force


def _pulls(world: World, q: Array, qd: Array) -> Iterator[Wrench]:
    """Forces of springs and dampers between two points at PyBullet's positions of the bodies."""

    def position(body: int, point: Array) -> Array:
        p, R = body_pose(world, body)
        return p + R @ point

    return pulls(world.mechanism, position, lambda body, point: point_jacobian(world, body, point, q)[0] @ qd)
