"""Pinocchio's mass matrix, bias, constraint Jacobians and their rates at the exact state; its solver takes no part."""

import numpy as np
import pinocchio as pin

from engines.pinocchio._loads import load_forces
from engines.pinocchio._loops import closure_bias, closure_jacobian, gathered, loop_constraints, opening
from engines.pinocchio._tree import Tree, build, guarded
from engines.projection import RANK_TOLERANCE, loop_motions
from robots.arrays import Array
from robots.efforts import Deviation, EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class PinocchioKkt(Source):
    """Efforts from Pinocchio's matrices, projected on the motions that keep its loops closed."""

    name = "pinocchio/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        tree = build(case.mechanism)
        loops, gap = gathered(loop_constraints(tree)), Deviation()
        S, scale, efforts = case.mechanism.selection, case.mechanism.effort_scales, []
        W = case.mechanism.rates_of(case.mechanism.drives)
        with guarded(self.name):
            for k, q in enumerate(motion.q):
                loop = loop_motions(closure_jacobian(tree, loops, q), W)
                gap = gap.or_worse(opening(tree, loops, q))
                qd = loop.velocities(motion.qd[k])
                qdd = loop.accelerations(motion.qdd[k], closure_bias(tree, loops, q, qd))
                M, bias, passive = tree_terms(tree, q, qd)
                efforts.append(loop.efforts(M, M @ qdd + bias - passive, S, scale))
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            closure_drift=gap,
            settings={
                "tree": "crba and nonLinearEffects at the exact state",
                "loop Jacobian": "getConstraintJacobian of a RigidConstraintModel for each closure",
                "state": "q, and rates of drives independent there; the others from J and J̇q̇ of the engine",
                "J̇q̇": "getFrameClassicalAcceleration of the ends; curvature of equalities of coordinates written here",
                "rank tolerance": f"{RANK_TOLERANCE:g} of rows of length one",
            },
            note="state given; drift is the gap the engine sees in it",
        )


def tree_terms(tree: Tree, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """The engine's terms of the spanning tree's equations of motion.

    Args:
        tree: The mechanism in Pinocchio.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).

    Returns:
        Inertia matrix [kg, kg m or kg m²], shape (nv, nv); velocity terms and weights; springs, dampers, what holds
        weights and external wrenches [N or N m], shape (nv,) each.
    """
    x = tree.positions(q)
    M = np.array(pin.crba(tree.model, tree.data, x))
    bias = np.array(pin.nonLinearEffects(tree.model, tree.data, x, qd))
    return M, bias, load_forces(tree, q, qd)
