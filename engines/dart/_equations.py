"""Terms of DART's equations of motion of the spanning tree in the state it has."""

import numpy as np

from engines.dart._loads import apply_loads, joint_dampers, joint_springs
from engines.dart._skeleton import Tree
from robots.arrays import Array


def tree_terms(tree: Tree) -> tuple[Array, Array, Array]:
    """The engine's terms of the spanning tree's equations of motion.

    Args:
        tree: The mechanism in DART.

    Returns:
        Inertia matrix with rotors, which DART has not [kg, kg m or kg m²], shape (nv, nv); velocity terms and weights;
        springs, dampers, what holds weights and external wrenches [N or N m], shape (nv,) each.
    """
    apply_loads(tree)
    skeleton = tree.skeleton
    M = np.array(skeleton.getMassMatrix()) + np.diag(tree.armature)
    passive = np.array(skeleton.getExternalForces()) + joint_springs(tree) + joint_dampers(tree)
    return M, np.array(skeleton.getCoriolisAndGravityForces()), passive
