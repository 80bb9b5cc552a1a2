"""Height of a floating base at the start of a generated motion: it falls, and no source of equations has a ground."""

from collections.abc import Iterator

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.mechanism import WORLD, Mechanism, pairs_of_points

UP = np.array([0.0, 0.0, 1.0])
"""Normal of the ground that model files have, world axes [-]."""
SHIFTED = 1e-9
"""Least part of the displacement along a slide that is more than round-off of its axis [-]."""


def raised(mechanism: Mechanism, q: JointPositions, duration: float) -> tuple[JointPositions, tuple[str, ...]]:
    """The pose with floating bases so high that nothing of their robots is on the ground after a fall.

    Uniform gravity does the same at each place, so that the required efforts are those at the ground, but a simulation
    with a ground would need its contact forces, too.

    Args:
        q: Initial pose.
        duration: Duration of the motion [s].

    Returns:
        The pose [m or rad], shape (nq,), and a note for each displaced base; the same pose without a floating base, or
        if anything but the ground depends on its place.
    """
    raised_q, notes, poses = q.copy(), [], State.at_rest(mechanism, q[None]).poses
    for j, bodies in _bases(mechanism):
        points = np.concatenate([poses.p[0, bodies], poses.c[0, bodies]])
        reach = 2 * float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
        displacement = reach * UP - mechanism.gravity * duration**2 / 2
        first, axis = mechanism.q_slices[j].start, poses.axes[0, mechanism.dof_slices[j].start]
        shift = displacement if mechanism.joints[j].kind == "free" else np.array([axis @ displacement])
        if (size := float(np.linalg.norm(shift))) > SHIFTED * np.linalg.norm(displacement):
            raised_q[first : first + len(shift)] += shift
            notes.append(
                f"the motion starts with '{mechanism.joints[j].name}' {size:.2g} m from the pose of the file, so that "
                "the robot does not fall to the ground, which is not part of the equations"
            )
    return raised_q, tuple(notes)


def _bases(mechanism: Mechanism) -> Iterator[tuple[int, list[int]]]:
    """Joints that displace a whole robot with actuators, and the bodies that they move."""
    actuated = {mechanism.joints[j].body for j in mechanism.actuated_joints}
    for j, joint in enumerate(mechanism.joints):
        if joint.body == WORLD:
            continue  # the length of a tendon
        way = [b for b in mechanism.way(joint.body) if b != WORLD]
        before = [mechanism.joints[k].kind for b in way for k in mechanism.joints_of[b] if k < j]
        if joint.kind in ("free", "slide") and set(before) <= {"slide"}:
            bodies = [b for b in range(len(mechanism.bodies)) if joint.body in mechanism.way(b)]
            if actuated & set(bodies) and not _depends_on_place(mechanism, j, set(bodies)):
                yield j, bodies


def _depends_on_place(mechanism: Mechanism, j: int, bodies: set[int]) -> bool:
    """Whether a limit, spring, loop, tendon or actuator depends on the place of these bodies among all others."""
    joint, closures = mechanism.joints[j], mechanism.coordinate_closures
    pairs = [pair for closure in mechanism.closures for pair in pairs_of_points(closure)]
    ends = [(each.body1, each.body2) for each in (*pairs, *mechanism.point_springs)]
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
