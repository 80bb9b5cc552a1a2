"""Expected inventory of an engine, from the model itself."""

import numpy as np

from loopcheck.analytic.dynamics.lagrange import lengths
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses, retract
from loopcheck.robots.arrays import Array, JointForces, JointPositions
from loopcheck.robots.inventory import FREEDOM, Inventory, off_axis
from loopcheck.robots.mechanism import ConnectClosure, CoordinateClosure, Joint, Mechanism, PathClosure, WeldClosure

ROWS = {ConnectClosure: 3, WeldClosure: 6, CoordinateClosure: 1, PathClosure: 1}
"""Number of equations of each kind of closure."""
STEP = 1e-40
"""Imaginary step [m or rad]."""


def expected_inventory(mechanism: Mechanism, q: JointPositions, rest_force: JointForces) -> Inventory:
    """The inventory of a mechanism in a pose.

    Args:
        rest_force: Force that holds the tree at rest there.
    """
    state = State.at_rest(mechanism, q[None])
    body_poses = state.poses
    R = body_poses.R[0]
    force, moment = _loads(mechanism, body_poses)
    axis, anchor = _lines(mechanism, body_poses)
    joints = mechanism.joints
    dofs = [joint for joint, s in zip(joints, mechanism.dof_slices, strict=True) for _ in range(s.start, s.stop)]
    tendons = mechanism.tendons
    W = mechanism.rates_of([tendon.length for tendon in tendons])
    inertias = np.array([body.inertia for body in mechanism.bodies])
    return Inventory(
        bodies=tuple(body.name for body in mechanism.bodies),
        joints=tuple(joint.name for joint in joints),
        dofs=tuple(joint.name for joint in dofs),
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        mass=np.array([body.mass for body in mechanism.bodies]),
        total_mass=sum(body.mass for body in mechanism.bodies),
        center=body_poses.c[0],
        moments=np.linalg.eigvalsh(inertias),
        inertia=R @ inertias @ R.swapaxes(1, 2),
        freedom=np.array([FREEDOM[joint.kind] for joint in joints]),
        axis=axis,
        anchor=anchor,
        armature=np.diag([joint.armature for joint in dofs]) + (W.T * [t.armature for t in tendons]) @ W,
        damping=np.diag([joint.damping for joint in dofs])
        + (W.T * [t.damping for t in tendons]) @ W
        + _damping_between_points(mechanism, q),
        friction=np.zeros(mechanism.nv),  # left out by every source
        stiffness=np.array([joint.stiffness for joint in joints]),
        spring_reference=np.array([_rest(joint) for joint in joints]),
        gravity=mechanism.gravity,
        force=force,
        moment=moment,
        rest_force=rest_force,
        J=state.Phi[0],
        opening=_opening(mechanism, state.gap[0]),
        transmission=mechanism.selection,
    )


def _opening(mechanism: Mechanism, residual: Array) -> float:
    """Widest gap of a loop [m or rad].

    Args:
        residual: Closure residual, with the sine of a weld's angle [m or rad], shape (nc,).
    """
    widths = [0.0]
    for closure in mechanism.closures:
        rows, residual = np.split(residual, [ROWS[type(closure)]])
        widths.append(float(np.linalg.norm(rows[:3])))
        widths.append(float(np.arcsin(min(1.0, float(np.linalg.norm(rows[3:]))))))
    return max(widths)


def _damping_between_points(mechanism: Mechanism, q: Array) -> Array:
    """Damping of the straight tendons on the joint velocities [N s/m or N m s/rad], shape (nv, nv)."""
    moved = retract(mechanism, np.tile(q, (mechanism.nv, 1)), 1j * STEP * np.eye(mechanism.nv))
    slopes = lengths(mechanism, State.at_rest(mechanism, moved).poses).imag / STEP  # (nv, springs)
    return (slopes * [spring.damping for spring in mechanism.point_springs]) @ slopes.T


def _rest(joint: Joint) -> float:
    """Rest position of the spring of a hinge or slide [m or rad]; zero without a spring."""
    is_scalar = joint.kind in ("hinge", "slide")
    return float(joint.spring_reference[0]) if joint.stiffness and is_scalar else 0.0


def _lines(mechanism: Mechanism, body_poses: Poses) -> tuple[Array, Array]:
    """Axis [-] and anchor [m] of each joint as `Inventory` has them, each of shape (nj, 3)."""
    axes, anchors = np.zeros((len(mechanism.joints), 3)), np.zeros((len(mechanism.joints), 3))
    for j, (joint, dofs) in enumerate(zip(mechanism.joints, mechanism.dof_slices, strict=True)):
        if joint.kind in ("hinge", "slide"):
            axes[j] = body_poses.axes[0, dofs.start]
        if joint.kind in ("hinge", "ball"):
            anchors[j] = off_axis(body_poses.anchors[0, dofs.start], axes[j])
    return axes, anchors


def _loads(mechanism: Mechanism, body_poses: Poses) -> tuple[Array, Array]:
    """External force on each body [N] and moment about its mass centre [N m], each of shape (nb, 3)."""
    compensation = [-body.gravity_compensation * body.mass * mechanism.gravity for body in mechanism.bodies]
    force, moment = np.array(compensation) + 0.0, np.zeros((len(mechanism.bodies), 3))  # no negative zeros
    for load in mechanism.wrenches:
        b = load.body
        arm = body_poses.p[0, b] + body_poses.R[0, b] @ load.point - body_poses.c[0, b]
        force[b] += load.force
        moment[b] += load.moment + np.cross(arm, load.force)
    return force, moment
