"""The spanning tree of a mechanism as a skeleton of DART.

A body with several joints gets massless bodies between them, and a free joint is a translation along the world's
axes with a ball behind it, so that all velocities are those of the `Mechanism`. Positions are relative to the reference
of a joint; those of balls are rotation vectors, with an offset of one radian: DART truncates its series for vectors
below 1e-3 rad, with an error of 1e-10.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import dartpy
import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import converted, coupled, silenced, want_representable
from loopcheck.engines.mechanics import BALL_OR_FREE, rotation
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, Joint, Mechanism

ASIDE = Rotation.from_rotvec(np.ones(3) / np.sqrt(3))
"""Origin of the balls' coordinates."""
guarded = partial(converted, errors=(ValueError, RuntimeError, TypeError))
"""Converts the exceptions of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A mechanism in DART, its loops cut; velocities stand as in the mechanism."""

    mechanism: Mechanism
    skeleton: Any
    bodies: tuple[Any, ...]
    """DART's node of each body."""
    joints: tuple[tuple[Any, ...], ...]
    """DART's joints that each joint is made of."""
    armature: Array
    """Inertia of rotors, absent from DART [kg or kg m²], shape (nv,)."""

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state, and the loads of the mechanism, which DART keeps along the axes of the bodies."""
        self.skeleton.setPositions(self.positions(q))
        self.skeleton.setVelocities(qd)

    def positions(self, q: JointPositions) -> Array:
        """Joint positions as DART has them [m or rad], shape (nv,)."""
        mechanism, x = self.mechanism, np.zeros(self.mechanism.nv)
        for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
            if joint.kind not in BALL_OR_FREE:
                x[dofs] = q[places] - joint.rest_position
                continue
            x[dofs][:-3] = q[places][:-4]
            x[dofs][-3:] = (ASIDE.inv() * rotation(q[places])).as_rotvec()
        return x

    def ours(self, x: Array) -> Array:
        """Joint positions as the mechanism has them [m or rad], shape (nq,).

        Args:
            x: DART's [m or rad], shape (nv,).
        """
        mechanism, q = self.mechanism, np.zeros(self.mechanism.nq)
        for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
            if joint.kind not in BALL_OR_FREE:
                q[places] = x[dofs] + joint.rest_position
                continue
            q[places][:-4] = x[dofs][:-3]
            q[places][-4:] = np.roll((ASIDE * Rotation.from_rotvec(x[dofs][-3:])).as_quat(), 1)
        return q


@silenced()  # it warns of bodies without mass, of which a model may have some
def build(mechanism: Mechanism) -> Tree:
    """The spanning tree in DART, in the gravity of the mechanism, with the springs and dampers of its joints.

    Raises:
        NotRepresentableError: If something of the mechanism has no counterpart.
    """
    couplers, tendons = "couplers cannot be set from Python", "motors, springs and rotors only on single joints"
    rotors = (  # the torque of a rotor is determined for prescribed motions only
        f"armature of the unactuated {joint.kind} joint '{joint.name}' (joints have no rotors)"
        for j, joint in enumerate(mechanism.joints)
        if joint.armature and j not in mechanism.actuated_joints
    )
    want_representable("dart", (*coupled(mechanism, equality=couplers, tendon=tendons), *rotors))
    skeleton = dartpy.dynamics.Skeleton("robot")
    bodies: list[Any] = []
    joints: list[tuple[Any, ...]] = [()] * len(mechanism.joints)
    for b, body in enumerate(mechanism.bodies):
        carrier: Any = None if body.parent == WORLD else bodies[body.parent]
        position, R = body.position, body.rotation
        own = mechanism.joints_of[b]
        for k, j in enumerate(own):
            name = f"body{b}" if k == len(own) - 1 else f"body{b} before joint {k + 1}"
            joints[j], carrier = _add_joint(skeleton, mechanism.joints[j], (carrier, position, R), name)
            position, R = np.zeros(3), np.eye(3)
        node = carrier
        if not own:
            _, node = _add(
                skeleton, "Weld", carrier, f"body{b}", {"setTransformFromParentBodyNode": _pose(position, R)}
            )
        node.setInertia(dartpy.dynamics.Inertia(body.mass, body.center, body.inertia))
        bodies.append(node)
    skeleton.setGravity(mechanism.gravity)
    sizes = [dofs.stop - dofs.start for dofs in mechanism.dof_slices]
    armature = np.repeat([joint.armature for joint in mechanism.joints], sizes)
    return Tree(mechanism=mechanism, skeleton=skeleton, bodies=tuple(bodies), joints=tuple(joints), armature=armature)


def _pose(position: Array, R: Array) -> Any:
    pose = dartpy.math.Isometry3()
    pose.set_rotation(R)
    pose.set_translation(position)
    return pose


def _add_joint(skeleton: Any, joint: Joint, place: tuple[Any, Array, Array], name: str) -> tuple[tuple[Any, ...], Any]:
    """DART's joints for a joint, and the body behind them, placed on its carrier."""
    carrier, position, R = place
    if joint.kind == "free":  # its position is not counted from where the body is given
        moved, between = _add(skeleton, "Translational", carrier, f"{name} moved", {})
        turn = {"setTransformFromParentBodyNode": _pose(np.zeros(3), ASIDE.as_matrix())}
        turned, body = _add(skeleton, "Ball", between, name, turn)
        between.setInertia(NOTHING)
        _passive(moved, joint, joint.spring_reference[:3])
        _passive(turned, joint)
        return (moved, turned), body
    before = R if joint.kind != "ball" else R @ ASIDE.as_matrix()
    properties = {
        "setTransformFromParentBodyNode": _pose(position + R @ joint.anchor, before),
        "setTransformFromChildBodyNode": _pose(joint.anchor, np.eye(3)),
    }
    if joint.kind == "ball":
        added, body = _add(skeleton, "Ball", carrier, name, properties)
        _passive(added, joint)
    else:
        added, body = _add(skeleton, KINDS[joint.kind], carrier, name, {**properties, "setAxis": joint.axis})
        _passive(added, joint, joint.spring_reference - joint.rest_position)
    body.setInertia(NOTHING)  # until its own is set, if it is no body on the way to another
    return (added,), body


KINDS = {"hinge": "Revolute", "slide": "Prismatic"}
"""DART's name of a joint by kind."""
NOTHING = dartpy.dynamics.Inertia(1e-300, np.zeros(3), 1e-300 * np.eye(3))
"""Inertia of bodies between joints; DART warns of an inertia of zero."""


def _add(skeleton: Any, kind: str, carrier: Any, name: str, values: dict[str, Any]) -> tuple[Any, Any]:
    """A joint of DART's and the body behind it."""
    joint, body = getattr(skeleton, f"create{kind}JointAndBodyNodePair")(carrier)
    joint.setName(f"joint of {name}")
    body.setName(name)
    for key, value in values.items():
        getattr(joint, key)(value)
    return joint, body


def _passive(added: Any, joint: Joint, rest: Array | None = None) -> None:
    """Damper of a joint, and the spring of all joints except balls: their springs are loads."""
    for k in range(added.getNumDofs()):
        added.setDampingCoefficient(k, joint.damping)
        if rest is not None:
            added.setSpringStiffness(k, joint.stiffness)
            added.setRestPosition(k, float(rest[k]))
