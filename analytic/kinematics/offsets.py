"""Offsets along the pin: two anchors of a closure that lie apart in a direction in which nothing moves them.

No pose closes such a loop. In the frame of the carrier C, the nearest body that carries both ends, the gap is
h = R_Cᵀ g and its derivative R_Cᵀ (J_a − J_b + [g]× J_ω,C). A direction u is one of an offset if uᵀ ∂h vanishes in all
poses. In world axes it is not found on a carrier that moves.

The pin transmits its force at one point, so both anchors are moved to their mean along u. A simulation of the file
applies the force at two points instead, and so adds a couple that acts on a moving carrier.
"""

from dataclasses import replace

import numpy as np

from loopcheck.analytic.kinematics.closing import LARGEST, allowed, closed_start, with_closing
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.tree import Poses, point_of, poses, retract, skew, twist_matrices
from loopcheck.robots.arrays import Array, PositionSeries, svd
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, PinOffset
from loopcheck.robots.size import size, unit_rates

LEAST = 1e-4
"""Smallest offset over the size of the robot [-]; `LARGEST` where singular values show that the file is rounded."""
ROUNDING = 30.0
"""The same over the accuracy to which the loops close without it [-]: rounding moves anchors along a pin, too."""
CLOSED = 1e-9
"""Largest gap over the size of loops that close exactly [-]."""
STILL = 1e-4
"""Largest singular value of the derivative of the gap along an offset, relative to the largest [-]."""
POSES, REACH = 6, 0.3
"""Poses in which an offset must be one, and their distances from the nearest pose [-; rad, or sizes of the robot]."""
FIXED = 1e-3
"""Largest change of the direction of an offset in the axes of the bodies [-]."""


def pin_offsets(mechanism: Mechanism) -> tuple[PinOffset, ...]:
    """Offsets along the pins of a mechanism; none unless its loops close without them."""
    if not mechanism.closures or not mechanism.nv:
        return ()
    q, gap = closed_start(mechanism)
    if gap <= LEAST:
        return ()
    near = retract(
        mechanism,
        np.repeat(q, POSES, axis=0),
        np.random.default_rng(0).uniform(-REACH, REACH, (POSES, mechanism.nv)) * unit_rates(mechanism),
    )
    every = np.concatenate([q, near])
    connects = (closure for closure in mechanism.closures if isinstance(closure, ConnectClosure))
    found = tuple(filter(None, (_offset(mechanism, closure, every) for closure in connects)))
    if not found:
        return ()
    repaired = with_closing(without_offsets(mechanism, found))
    start, left = closed_start(repaired)
    values = np.linalg.svd(closure_jacobian_at(repaired, start)[0] * unit_rates(mechanism), compute_uv=False)
    is_rounded = ((values > CLOSED * values[0]) & (values < LARGEST * values[0])).any()
    least = max(LARGEST if is_rounded else LEAST, ROUNDING * repaired.closing.accuracy) * size(mechanism)
    is_closed = left <= allowed(CLOSED, repaired)
    return tuple(offset for offset in found if offset.length > least) if is_closed else ()


def with_closed_loops(mechanism: Mechanism) -> Mechanism:
    """The mechanism without the offsets along its pins that keep its loops open, and with their accuracy."""
    return with_closing(without_offsets(mechanism, pin_offsets(mechanism)))


def without_offsets(mechanism: Mechanism, offsets: tuple[PinOffset, ...]) -> Mechanism:
    """The mechanism with both anchors of each offset at their mean along the pin."""
    points = {offset.closure: offset.points for offset in offsets}
    closures = tuple(
        replace(closure, point1=np.array(points[closure.name][0]), point2=np.array(points[closure.name][1]))
        if isinstance(closure, ConnectClosure) and closure.name in points
        else closure
        for closure in mechanism.closures
    )
    return replace(mechanism, closures=closures, offsets=offsets)


def in_words(offset: PinOffset) -> str:
    """An offset along a pin, with its axis and its remedy."""
    axis = " ".join(f"{x:.3g}" for x in np.round(offset.axes[0], 6) + 0.0)
    return (
        f"the anchors of closure '{offset.closure}' lie {1e3 * offset.length:.3g} mm apart along the pin (axis {axis} "
        "in body 1). A pin transmits its force at one point: `loopcheck gate --fix` moves both anchors to their mean"
    )


def _offset(mechanism: Mechanism, closure: ConnectClosure, q: PositionSeries) -> PinOffset | None:
    """The offset of a closure, from its nearest pose and poses beside it, or None."""
    body_poses = poses(mechanism, q)
    K = twist_matrices(mechanism, body_poses)
    carrier = next(body for body in mechanism.way(closure.body1) if body in mechanism.way(closure.body2))
    ends = ((closure.body1, closure.point1), (closure.body2, closure.point2))
    R_C, gap = _axes(body_poses, carrier), np.subtract(*(point_of(body_poses, *end) for end in ends))
    slope = np.subtract(*(_velocity(body_poses, K, *end) for end in ends)) + skew(gap) @ _spin(K, carrier)
    slopes = (R_C.swapaxes(1, 2) @ slope) * unit_rates(mechanism)
    U, values, _ = svd(np.concatenate(slopes, axis=1))
    still = U[:, values <= STILL * values[0]]
    h = R_C[0].T @ gap[0]
    along = still @ (still.T @ h)
    length = float(np.linalg.norm(along))
    if length <= LEAST * size(mechanism):
        return None
    u = R_C @ (along / length)
    in_bodies = [(_axes(body_poses, body).swapaxes(1, 2) @ u[..., None])[..., 0] for body, _ in ends]
    if max(float(np.abs(axis - axis[0]).max()) for axis in in_bodies) > FIXED:
        return None
    (first, second), half = (axis[0] for axis in in_bodies), length / 2
    return PinOffset(
        closure=closure.name,
        length=length,
        axes=(tuple(first.tolist()), tuple(second.tolist())),
        points=(tuple((closure.point1 - half * first).tolist()), tuple((closure.point2 + half * second).tolist())),
    )


def _axes(body_poses: Poses, body: int) -> Array:
    return np.tile(np.eye(3), (len(body_poses.p), 1, 1)) if body == WORLD else np.asarray(body_poses.R[:, body])


def _spin(K: Array, body: int) -> Array:
    return np.zeros_like(K[:, 0, :3]) if body == WORLD else K[:, body, :3]


def _velocity(body_poses: Poses, K: Array, body: int, point: Array) -> Array:
    if body == WORLD:
        return np.zeros_like(K[:, 0, :3])
    arm = point_of(body_poses, body, point) - body_poses.c[:, body]
    return np.asarray(K[:, body, 3:] - skew(arm) @ K[:, body, :3])
