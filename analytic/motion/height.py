"""Height of a floating base at the start of a generated motion: it falls, and no source of equations has a ground."""

from collections.abc import Iterator

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import WORLD, Mechanism

STEEP = 0.7
"""Smallest rise of a slide that raises a robot, over the distance along it [-]."""


def raised(mechanism: Mechanism, q: JointPositions, duration: float) -> tuple[JointPositions, tuple[str, ...]]:
    """The pose with floating bases so high that nothing of their robots is on the ground after a fall.

    Uniform gravity does the same at each height, so that the required efforts are those at the ground, but a
    simulation with a ground would need its contact forces, too.

    Args:
        q: Initial pose [m or rad], shape (nq,).
        duration: Duration of the motion [s].

    Returns:
        The pose [m or rad], shape (nq,), and a note for each base; the same pose without a floating base, or if
        anything but the ground depends on its height.
    """
    strength = float(np.linalg.norm(mechanism.gravity))
    if not strength:
        return q, ()
    raised_q, notes = q.copy(), []
    for j, rise, bodies in _bases(mechanism, q, -mechanism.gravity / strength):
        poses = State.at_rest(mechanism, q[None]).poses
        points = np.concatenate([poses.p[0, bodies], poses.c[0, bodies]])
        reach = 2 * float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
        height = reach + strength * duration**2 / 2
        first = mechanism.q_slices[j].start
        raised_q[first : first + len(rise)] += height * rise
        notes.append(
            f"the motion starts with '{mechanism.joints[j].name}' {height:.2g} m above the pose of the file, so that "
            "the robot does not fall to the ground, which is not part of the equations"
        )
    return raised_q, tuple(notes)


def _bases(mechanism: Mechanism, q: JointPositions, up: Array) -> Iterator[tuple[int, Array, list[int]]]:
    """Joints that raise a whole robot with actuators, the displacement per height, and the bodies that it moves."""
    axes = State.at_rest(mechanism, q[None]).poses.axes[0]
    actuated = {mechanism.joints[j].body for j in mechanism.actuated_joints}
    for j, joint in enumerate(mechanism.joints):
        slope = float(axes[mechanism.dof_slices[j].start] @ up)
        is_steep = joint.kind == "free" or (joint.kind == "slide" and abs(slope) > STEEP)
        if is_steep and all(mechanism.joints[k].kind == "slide" for k in _before(mechanism, j)):
            bodies = _carried(mechanism, joint.body)
            if actuated & set(bodies) and not _depends_on_height(mechanism, j, set(bodies)):
                yield j, up if joint.kind == "free" else np.array([1 / slope]), bodies


def _before(mechanism: Mechanism, j: int) -> list[int]:
    """The joints between the world and a joint."""
    body = mechanism.joints[j].body
    before = [k for k in mechanism.joints_of[body] if k < j]
    while (body := mechanism.bodies[body].parent) != WORLD:
        before += mechanism.joints_of[body]
    return before


def _carried(mechanism: Mechanism, body: int) -> list[int]:
    """A body and its descendants."""
    carried = [body]
    for b in range(body + 1, len(mechanism.bodies)):
        if mechanism.bodies[b].parent in carried:
            carried.append(b)
    return carried


def _depends_on_height(mechanism: Mechanism, j: int, bodies: set[int]) -> bool:
    """Whether a limit, spring, loop, tendon or actuator depends on the height of these bodies above all others."""
    joint, closures = mechanism.joints[j], mechanism.coordinate_closures
    ends = [(each.body1, each.body2) for each in (*mechanism.rigid_closures, *mechanism.point_springs)]
    coordinates = [
        *mechanism.drives,
        *(tendon.length for tendon in mechanism.tendons),
        *(side for closure in closures for side in (closure.follower, closure.leader) if side),
    ]
    return (
        bool(joint.stiffness)
        or joint.limits is not None
        or any(j in coordinate.joints for coordinate in coordinates)
        or any((one in bodies) != (other in bodies) for one, other in ends)
    )
