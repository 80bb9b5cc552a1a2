"""A spanning tree in Pinocchio, built through its API, and the closed loop a user would write with it in Python."""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from robots.arrays import Array
from robots.errors import NotRepresentableError
from robots.mechanism import WORLD, Body, CoordinateClosure, Joint, Mechanism, WeldClosure

pin: Any = importlib.import_module("pinocchio") if importlib.util.find_spec("pinocchio") else None
"""Pinocchio, where it is installed."""
FACTORIES = {
    ("hinge", (1.0, 0.0, 0.0)): "JointModelRX",
    ("hinge", (0.0, 1.0, 0.0)): "JointModelRY",
    ("hinge", (0.0, 0.0, 1.0)): "JointModelRZ",
    ("slide", (1.0, 0.0, 0.0)): "JointModelPX",
    ("slide", (0.0, 1.0, 0.0)): "JointModelPY",
    ("slide", (0.0, 0.0, 1.0)): "JointModelPZ",
}
"""Name of the fastest model of a joint along an axis of its body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinocchioTree:
    """A mechanism in Pinocchio, its loops cut."""

    model: Any
    data: Any
    ends: tuple[tuple[int, int, int], ...]
    """Frames of both ends of each closure, and its number of equations."""
    reference: Array
    """Joint positions that are zero in Pinocchio [m or rad], shape (nv,)."""
    driven: tuple[int, ...]
    """Dofs with an actuator."""

    def states(self, q: Array, qd: Array, qdd: Array) -> list[tuple[Array, Array, Array]]:
        """Samples as Pinocchio wants them, one by one.

        Args:
            q: Joint positions [m or rad], shape (nt, nv).
            qd: Joint velocities [m/s or rad/s], shape (nt, nv).
            qdd: Joint accelerations [m/s² or rad/s²], shape (nt, nv).
        """
        return list(zip(q - self.reference, qd, qdd, strict=True))

    def bare(self, states: list[tuple[Array, Array, Array]]) -> None:
        """Inverse dynamics of the tree, and nothing else."""
        model, data, rnea = self.model, self.data, pin.rnea
        for q, qd, qdd in states:
            rnea(model, data, q, qd, qdd)

    def efforts(self, states: list[tuple[Array, Array, Array]]) -> Array:
        """Efforts of the closed loop: multipliers from the passive joints, then the actuated ones, shape (nt, na)."""
        model, data = self.model, self.data
        passive = np.setdiff1d(np.arange(model.nv), self.driven)
        found = np.zeros((len(states), len(self.driven)))
        for k, (q, qd, qdd) in enumerate(states):
            tau = pin.rnea(model, data, q, qd, qdd)
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            rows = [
                (
                    pin.getFrameJacobian(model, data, first, pin.LOCAL_WORLD_ALIGNED)
                    - pin.getFrameJacobian(model, data, second, pin.LOCAL_WORLD_ALIGNED)
                )[:size]
                for first, second, size in self.ends
            ]
            J = np.concatenate(rows)
            multipliers = np.linalg.lstsq(J[:, passive].T, tau[passive], rcond=1e-9)[0]
            found[k] = (tau - J.T @ multipliers)[list(self.driven)]
        return found


def pinocchio_tree(mechanism: Mechanism) -> PinocchioTree:
    """Build the spanning tree, without dampers, springs, gravity compensation and external loads: it only gets faster.

    Raises:
        NotRepresentableError: If the mechanism has more than hinges, slides, connects, welds and unit gears.
    """
    _want_simple(mechanism)
    model = pin.Model()
    model.gravity.linear = np.array(mechanism.gravity)
    places: list[tuple[int, Any]] = []  # joint that carries each body, and the body's pose in it
    for b, body in enumerate(mechanism.bodies):
        carrier, pose = (0, pin.SE3.Identity()) if body.parent == WORLD else places[body.parent]
        pose = pose * pin.SE3(np.array(body.rotation), np.array(body.position))
        for joint in (mechanism.joints[j] for j in mechanism.joints_of[b]):
            carrier, pose = _add_joint(model, joint, carrier, pose)
        places.append((carrier, pose))
        model.appendBodyToJoint(carrier, _inertia(body), pose)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        model.armature[dofs] = joint.armature
    ends = []
    for closure in mechanism.closures:
        if not isinstance(closure, CoordinateClosure):
            frames = [
                _add_frame(model, places, *end)
                for end in ((closure.body1, closure.point1), (closure.body2, closure.point2))
            ]
            ends.append((frames[0], frames[1], 6 if isinstance(closure, WeldClosure) else 3))
    return PinocchioTree(
        model=model,
        data=model.createData(),
        ends=tuple(ends),
        reference=np.array(mechanism.reference),
        driven=tuple(mechanism.dof_slices[actuator.coordinate.joints[0]].start for actuator in mechanism.actuators),
    )


def _want_simple(mechanism: Mechanism) -> None:
    simple = (
        all(joint.kind in ("hinge", "slide") for joint in mechanism.joints)
        and not any(isinstance(closure, CoordinateClosure) for closure in mechanism.closures)
        and all(actuator.gear == 1 and actuator.coordinate.is_joint for actuator in mechanism.actuators)
    )
    if not simple:
        raise NotRepresentableError(f"{mechanism.model.path}: the bench's loop in Pinocchio has hinges and slides only")


def _add_joint(model: Any, joint: Joint, carrier: int, pose: Any) -> tuple[int, Any]:
    axis = np.array(joint.axis)
    unaligned = pin.JointModelRevoluteUnaligned if joint.kind == "hinge" else pin.JointModelPrismaticUnaligned
    factory = FACTORIES.get((joint.kind, tuple(axis.tolist())))
    anchor = np.array(joint.anchor)
    place = pose * pin.SE3(np.eye(3), anchor)
    added = model.addJoint(carrier, getattr(pin, factory)() if factory else unaligned(axis), place, joint.name)
    return added, pin.SE3(np.eye(3), -anchor)


def _inertia(body: Body) -> Any:
    return pin.Inertia(body.mass, np.array(body.center), np.array(body.inertia))


def _add_frame(model: Any, places: list[tuple[int, Any]], body: int, point: Array) -> int:
    carrier, pose = (0, pin.SE3.Identity()) if body == WORLD else places[body]
    place = pose * pin.SE3(np.eye(3), np.array(point))
    return int(model.addFrame(pin.Frame(f"end {len(model.frames)}", carrier, place, pin.FrameType.OP_FRAME)))
