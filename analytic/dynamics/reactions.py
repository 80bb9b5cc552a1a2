"""Wrenches in the connections of a case, in two ways without common dynamics.

A connection is a body with its parent, or a closure of two bodies. Its wrench acts on the body from its parent, or on
body 1 from body 2, about a point of that body, in the axes of that body. Couplings of joints act along dofs alone.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import Uniqueness, Wrenches
from loopcheck.analytic.kinematics.redundancy import moving_part
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import Connection, connections
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class Reactions(NamedTuple):
    """Wrenches of a case in both ways, their uniqueness, and their agreement."""

    connections: list[Connection]
    motion: Motion
    """The samples."""
    recursive: Wrenches
    maximal: Wrenches
    of_file: Uniqueness
    """Uniqueness with the closures of the file."""
    of_robot: Uniqueness
    """Uniqueness that does not depend on the place of the cuts."""
    of_motion: Uniqueness
    """Uniqueness that does not depend on the efforts either, by which redundant drives share a load."""


def reactions(case: Case, motion: Motion, pin: Array | None, samples: int = 9) -> Reactions:
    """Wrenches of the connections at some samples of a motion.

    Args:
        pin: Normal of a planar robot (`loopcheck.analytic.motion.configurations.normal`) [-], shape (3,); None: the
            robot moves in space.
        samples: Number of samples, equally spaced, the first and the last included [-].
    """
    mechanism = case.mechanism
    at = np.unique(np.linspace(0, len(motion.t) - 1, samples).round().astype(int))
    motion = replace(motion, t=motion.t[at], q=motion.q[at], qd=motion.qd[at], qdd=motion.qdd[at])
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    recursive = recursive_wrenches(state, motion.qdd, needed_efforts(state, motion.qdd).effort)
    equations = MaximalWrenches(mechanism, motion.q)
    maximal = equations(motion.qd, motion.qdd, Lagrange().compute_efforts(case, motion).effort)
    of_file = equations.uniqueness()
    of_robot = of_file if pin is None else equations.uniqueness(pin)
    is_redundant = moving_part(mechanism, motion) is not None
    return Reactions(
        connections=connections(mechanism),
        motion=motion,
        recursive=recursive,
        maximal=maximal,
        of_file=of_file,
        of_robot=of_robot,
        of_motion=equations.uniqueness(pin, free_efforts=True) if is_redundant else of_robot,
    )
