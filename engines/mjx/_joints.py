"""Moves joints from a pose in MJX, by displacements with turns in body axes."""

from typing import Any, TypeAlias

from loopcheck.engines.mjx._mjx import jax
from loopcheck.robots.mechanism import Mechanism

jnp = jax.numpy

Joints: TypeAlias = tuple[tuple[str, int, int], ...]
"""Kind of each joint, and its first index in q and in the velocities."""


def joints_of(mechanism: Mechanism) -> Joints:
    """Kinds and places of the joints."""
    places = zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True)
    return tuple((str(joint.kind), q.start, dof.start) for joint, q, dof in places)


def moved(q: Any, displacement: Any, joints: Joints) -> Any:
    """Positions after a displacement, with turns in body axes."""
    parts = []
    for kind, place, dof in joints:
        shifts = {"free": 3, "ball": 0}.get(kind, 1)
        parts.append(q[place : place + shifts] + displacement[dof : dof + shifts])
        if kind in ("free", "ball"):
            first, turn = place + shifts, dof + shifts
            parts.append(_turned(q[first : first + 4], displacement[turn : turn + 3]))
    return jnp.concatenate(parts)


def _turned(quaternion: Any, theta: Any) -> Any:
    """A quaternion times that of a turn, which may be zero."""
    square = theta @ theta
    angle = jnp.sqrt(jnp.where(square > 0, square, 1))
    c = jnp.where(square > 0, jnp.cos(angle / 2), 1)
    s = jnp.where(square > 0, jnp.sin(angle / 2) / angle, 0.5) * theta
    w, x = quaternion[:1], quaternion[1:]
    turned = jnp.concatenate([w * c - x @ s, w * s + c * x + jnp.cross(x, s)])
    return turned / jnp.sqrt(turned @ turned)
