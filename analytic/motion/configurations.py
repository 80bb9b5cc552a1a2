"""Direction of gravity, named by its relation to the robot, independent of the axes of its file.

A robot is planar if all its actuated motions turn about a common direction and displace across it; undriven spinning
or floating does not count. A planar robot lies flat, `horizontal`, if gravity is along that direction, and stands
upright, `vertical`, if it is across it.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from loopcheck.analytic.dynamics.powers import tree_inertia
from loopcheck.analytic.kinematics.closures import closure_jacobian_at, null_space
from loopcheck.analytic.kinematics.continuation import CLOSED, Tracer
from loopcheck.analytic.kinematics.redundancy import actuator_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.start import regular_start
from loopcheck.robots.arrays import Array, svd
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import GIVEN, HORIZONTAL, TURNED, VERTICAL, Robot, modes, turned

PLANAR = 1e-3
"""Largest part of a velocity out of the plane, relative to the largest velocity [-]."""
ALONG = 0.999
"""Part of gravity along the normal above which a robot lies flat [-]; below `PLANAR` it stands upright."""
BESIDE = (1e-1, 3e-2, 1e-2)
"""Displacements of joints to a second pose; the first that closes is used [m or rad]."""


def with_configurations(robot: Robot) -> Robot:
    """A robot with its configurations, its own gravity first; unless its file names them.

    Args:
        robot: Robot outside the catalogue.

    Raises:
        MechanismError: If the MJCF is bad.
    """
    if robot.configurations is not None:
        return robot
    gravities = named_gravities(robot.mechanism())
    return robot.model_copy(update={"gravities": {name: tuple(map(float, g)) for name, g in gravities.items()}})


def named_gravities(mechanism: Mechanism) -> Mapping[str, Array]:
    """Named accelerations of gravity, that of the file first [m/s²], each of shape (3,).

    Args:
        mechanism: Robot in the gravity of its file.
    """
    g = mechanism.gravity
    size = float(np.linalg.norm(g))
    if not size:
        return {GIVEN: g}
    n = normal(mechanism)
    across = 1.0 if n is None else abs(float(g @ n)) / size
    if n is not None and across > ALONG:
        x = np.eye(3)[0] - n[0] * n if abs(n[0]) < ALONG else np.eye(3)[1]
        return {HORIZONTAL: g, VERTICAL: -size * np.cross(n, x / np.linalg.norm(x))}
    if n is not None and across < PLANAR:
        return {VERTICAL: g, HORIZONTAL: -size * n}
    return {GIVEN: g, TURNED: turned(g)}


def normal(mechanism: Mechanism) -> Array | None:
    """Normal of the plane of a robot's motion (3,), its largest component positive; None for motion in space."""
    free = Tracer.free(mechanism)
    try:
        first = regular_start(free, next(iter(modes(mechanism).values()))).q[None]
    except HarnessError:  # the motion will say why; a robot that cannot move has no plane
        return None
    here, beside = (_normal_at(mechanism, q) for q in (first, _beside(free, first)))
    if here is None or beside is None or np.abs(here - beside).max() > PLANAR:
        return None
    return here


def _beside(free: Tracer, q: Array) -> Array:
    """A closed pose beside another that has as many dofs, both (1, nq); the same in every run."""
    mechanism, random = free.mechanism, np.random.default_rng(0)
    dof = null_space(closure_jacobian_at(mechanism, q)[0]).shape[1]
    for step in BESIDE:
        moved, residual = free.close(retract(mechanism, q, random.uniform(-step, step, (1, mechanism.nv))), 0.0)
        if residual <= CLOSED and null_space(closure_jacobian_at(mechanism, moved)[0]).shape[1] == dof:
            return moved
    return q


def _normal_at(mechanism: Mechanism, q: Array) -> Array | None:
    """The normal at a closed pose (1, nq)."""
    state = State.at_rest(mechanism, q)
    body_poses, D = state.poses, actuator_motions(mechanism, state.Phi, partial(tree_inertia, state))[0]
    twist = state.twists.K[0] @ D  # (nb, 6, na)
    w, v = twist[:, :3].swapaxes(1, 2), twist[:, 3:].swapaxes(1, 2)
    extent = float(np.ptp(body_poses.c[0], axis=0).max(initial=0.0)) or 1.0
    w, v = (x / np.maximum(_largest(w) * extent + _largest(v), np.finfo(float).tiny) for x in (extent * w, v))
    turning = _largest(w).max(initial=0.0) > PLANAR
    directions = (w if turning else v).reshape(-1, 3)
    _, values, axes = svd(np.concatenate([directions, np.zeros((2, 3))]), full_matrices=False)  # at least three rows
    if turning:
        n = axes[0]
    elif values[1] > PLANAR * values[0] and values[2] <= PLANAR * values[0]:
        n = axes[2]  # two directions of translation
    else:
        return None
    out_of_plane = max(np.abs(v @ n).max(), np.linalg.norm(w - (w @ n)[..., None] * n, axis=-1).max())
    return n * np.sign(n[np.abs(n).argmax()]) if out_of_plane <= PLANAR else None


def _largest(vectors: Array) -> Array:
    """Largest length of any body's vector, for each actuator, shape (1, na, 1); vectors of (nb, na, 3)."""
    return np.linalg.norm(vectors, axis=-1, keepdims=True).max(axis=0, keepdims=True)
