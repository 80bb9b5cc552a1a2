"""Loads that engines lack, from the `Mechanism` and the state that an engine has: forces on bodies and on joints.

An engine that takes a law from here declares it in `Engine.laws`: engines with the same law do not confirm each other
on it. The reference has its own laws.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.mechanics import BALL_OR_FREE, rotation
from loopcheck.robots.arrays import Array, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, Joint, Mechanism, PointSpring, Tendon, Wrench


def laws(mechanism: Mechanism) -> tuple[str, ...]:
    """Names of the functions of this file with a law that the loads of a mechanism need."""
    sprung = {joint.kind for joint in mechanism.joints if joint.stiffness}
    lines: tuple[PointSpring | Tendon, ...] = (*mechanism.point_springs, *mechanism.tendons)
    needed = {
        "compensations": any(body.gravity_compensation for body in mechanism.bodies),
        "pull": any(line.stiffness or line.damping for line in lines),
        "ball_spring": bool(sprung & {*BALL_OR_FREE}),
        "joint_spring": bool(sprung - {"ball"}),
    }
    return tuple(name for name, is_needed in needed.items() if is_needed)


def compensations(mechanism: Mechanism) -> Iterator[Wrench]:
    """The force at the mass centre of each body with gravity compensation."""
    for b, body in enumerate(mechanism.bodies):
        if body.gravity_compensation:
            compensation = -body.gravity_compensation * body.mass * mechanism.gravity
            yield Wrench(body=b, point=body.center, moment=np.zeros(3), force=compensation)


def pull(line: PointSpring | Tendon, length: float, rate: float) -> float:
    """Pull of a spring that is slack in a range of lengths, and of a damper [N or N m].

    Args:
        length: Its length [m or rad].
        rate: The rate of its length [m/s or rad/s].
    """
    return float(line.stiffness * (length - np.clip(length, *line.rest)) + line.damping * rate)


def ball_spring(joint: Joint, R: Rotation) -> Array:
    """Moment of the spring of a ball or free joint along the shortest rotation, body axes [N m], shape (3,).

    Args:
        R: Rotation of the joint.
    """
    return np.asarray(-joint.stiffness * (rotation(joint.spring_reference).inv() * R).as_rotvec())


def joint_spring(joint: Joint, x: JointPositions) -> Array:
    """Force of the spring of a hinge or slide, or of the slides of a free joint [N or N m].

    Args:
        x: Positions along straight or fixed axes [m or rad], shape (1,) or (3,).
    """
    return np.asarray(-joint.stiffness * (x - joint.spring_reference[: len(x)]))


def wrenches(mechanism: Mechanism) -> Iterator[Wrench]:
    """Constant loads on bodies: external wrenches and gravity compensation."""
    yield from (wrench for wrench in mechanism.wrenches if wrench.body != WORLD)
    yield from compensations(mechanism)


def pulls(
    mechanism: Mechanism, position: Callable[[int, Array], Array], velocity: Callable[[int, Array], Array]
) -> Iterator[Wrench]:
    """Forces of springs and dampers between two points on bodies other than the world.

    Args:
        position: Position of a point of a body or the world, in the engine [m], shape (3,).
        velocity: Its velocity [m/s], shape (3,); asked for only if there is a damper.
    """
    for spring in mechanism.point_springs:
        p1, p2 = (position(*end) for end in spring.ends)
        line, rate = p2 - p1, 0.0
        length = float(np.linalg.norm(line))
        if spring.damping:
            v1, v2 = (velocity(*end) for end in spring.ends)
            rate = float((line / length) @ (v2 - v1))
        size = pull(spring, length, rate)
        for (body, point), sign in zip(spring.ends, (1, -1), strict=True):
            if body != WORLD:
                yield Wrench(body=body, point=point, moment=np.zeros(3), force=sign * size * line / length)


def turns(mechanism: Mechanism, pose: Callable[[int], tuple[Rotation, Array]]) -> Iterator[Wrench]:
    """Moments of the springs of balls and free joints, on both bodies.

    Args:
        pose: Rotation of a joint, and the axes of its body [-], shape (3, 3), in the engine.
    """
    for j, joint in enumerate(mechanism.joints):
        if joint.kind in BALL_OR_FREE and joint.stiffness:
            turned, axes = pose(j)
            moment = axes @ ball_spring(joint, turned)
            for body, sign in ((joint.body, 1), (mechanism.bodies[joint.body].parent, -1)):
                if body != WORLD:
                    yield Wrench(body=body, point=np.zeros(3), moment=sign * moment, force=np.zeros(3))


def joint_springs(mechanism: Mechanism, q: JointPositions) -> JointForces:
    """Forces of the springs of joints [N or N m], shape (nv,)."""
    force = np.zeros(mechanism.nv)
    for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if not joint.stiffness:
            continue
        if joint.kind not in BALL_OR_FREE:
            force[dofs] = joint_spring(joint, q[places])
            continue
        force[dofs][:-3] = joint_spring(joint, q[places][:-4])
        force[dofs][-3:] = ball_spring(joint, rotation(q[places]))
    return force


def tendon_forces(mechanism: Mechanism, q: JointPositions, qd: JointVelocities) -> JointForces:
    """Forces of the springs and dampers of tendons on the joints [N or N m], shape (nv,)."""
    force = np.zeros(mechanism.nv)
    for tendon in mechanism.tendons:
        w = mechanism.rates_of((tendon.length,))[0]
        force -= pull(tendon, float(mechanism.values_of((tendon.length,), q[None])[0, 0]), float(w @ qd)) * w
    return force


def on_joints(force: JointForces, loads: Iterable[Wrench], rows: Callable[[int, Array], Array]) -> JointForces:
    """Generalized force of loads on bodies, added to a force on the joints [N or N m], shape (nv,).

    Args:
        rows: Linear and angular velocity of a point of a body per joint velocity, world axes, shape (6, nv).
    """
    for load in loads:
        J = rows(load.body, load.point)
        force = force + load.force @ J[:3] + load.moment @ J[3:]
    return force


def at_centers(mechanism: Mechanism, lever: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """Sum of the constant loads on each body, about its mass centre.

    Args:
        lever: Vector from the mass centre of a body to a point of the body, world axes [m], shape (..., 3).

    Returns:
        Forces [N], shape (nb, 3), and moments [N m], shape (..., nb, 3).
    """
    force, moment = np.zeros((len(mechanism.bodies), 3)), [np.zeros(3) for _ in mechanism.bodies]
    for load in wrenches(mechanism):
        force[load.body] += load.force
        moment[load.body] = moment[load.body] + (load.moment + np.cross(lever(load.body, load.point), load.force))
    return force, np.stack(np.broadcast_arrays(*moment), axis=-2)
