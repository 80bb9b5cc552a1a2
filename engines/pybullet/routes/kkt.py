"""PyBullet's inverse dynamics and point Jacobians at the exact state; the engine's constraint solver takes no part."""

import numpy as np

from loopcheck.engines.projection import RANK_TOLERANCE, loop_motions
from loopcheck.engines.pybullet._angles import in_angles
from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._jacobian import closure_bias, closure_jacobian
from loopcheck.engines.pybullet._loads import load_forces
from loopcheck.engines.pybullet._refusals import refuse
from loopcheck.engines.pybullet._world import World, opened
from loopcheck.robots.arrays import Array, JointAccelerations, JointForces, JointPositions, JointVelocities
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class PybulletKkt(Source):
    """Efforts from PyBullet's inverse dynamics of the spanning tree, projected on the motions of the closed loops."""

    name = "pybullet/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        refuse(case.mechanism, motion.q, closed=False)
        q, qd, qdd = in_angles(case.mechanism, motion.q, motion.qd, motion.qdd)
        with opened(case.mechanism) as world:
            S, scale, efforts = world.mechanism.selection, case.mechanism.effort_scales, []
            W = world.mechanism.rates_of(world.mechanism.drives)
            for k, x in enumerate(q):
                loop = loop_motions(closure_jacobian(world, x), W)
                v = loop.velocities(qd[k])
                a = loop.accelerations(qdd[k], closure_bias(world, x, v))
                efforts.append(loop.efforts(mass_matrix(world, x), tree_forces(world, x, v, a), S, scale))
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            settings={
                "tree forces": "calculateInverseDynamics at the exact state",
                "loop Jacobian": "calculateJacobian at the closure points",
                "state": "q and rates of independent drives; passive rates from J and J̇q̇ of the engine",
                "J̇q̇": "central difference of order eight of J q̇ along q̇",
                "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length",
            },
        )


def mass_matrix(world: World, q: JointPositions) -> Array:
    """Mass matrix of the spanning tree, with the rotors of the drives [kg, kg m or kg m²], shape (nv, nv)."""
    M = pybullet.calculateMassMatrix(world.tree, world.positions(q), physicsClientId=world.client)
    return world.summed(world.summed(M).T)


def tree_forces(world: World, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> JointForces:
    """Force on every joint of the cut tree along the motion.

    Returns:
        Force on the joints [N or N m], shape (nv,).
    """
    state = (world.positions(q), world.rates(qd), world.rates(qdd))
    force = pybullet.calculateInverseDynamics(world.tree, *state, physicsClientId=world.client)
    return world.summed(force) - load_forces(world, q, qd)
