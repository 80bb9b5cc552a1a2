"""Paired robots as mechanisms with the same bodies, frames and joints, and the forces of their spanning trees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.powers import powers_along
from loopcheck.analytic.kinematics.continuation import close_batch
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import (
    WORLD,
    Body,
    Closure,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Joint,
    Mechanism,
    WeldClosure,
)
from loopcheck.robots.rigid_frames import of_axis, rigid_frame
from loopcheck.validation.gate.closed_poses import closed_poses, freedom
from loopcheck.validation.same.links import Tree
from loopcheck.validation.same.pairs import Pair, inverse, moved

STATES, RATE = 20, 2.0
"""Number of random states, and standard deviation of their rates [rad/s, m/s]."""
LEAST = 1e-3
"""Part of the sum of all terms that the scale of a force is at least [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A robot in the frames of the pairs."""

    tree: Tree
    pairs: Sequence[Pair]
    is_a: bool
    """Whether it is A; otherwise it is B in the frames of A."""
    is_free: bool
    """Whether the base moves freely."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot without actuators."""
        bodies, joints = [], []
        for k, pair in enumerate(self.pairs):
            here = rigid_frame(pair.origin, np.eye(3))
            link, T = (pair.a, np.eye(4)) if self.is_a else (pair.b, pair.T)
            G = np.eye(4) if self.is_a or not k else pair.rest
            X = here if not k else rigid_frame(-self.pairs[pair.parent].origin, np.eye(3)) @ G @ here
            if k:
                joint = self._joint(pair, inverse(G @ here))
                joints.append(replace(joint, body=k))
                X = X @ _displacement(joint)
            elif self.is_free:
                joints.append(_free_joint(X))
            inertial, R = link.inertial, T[:3, :3]
            bodies.append(
                Body(
                    name=pair.a.name,
                    parent=pair.parent if k else WORLD,
                    position=X[:3, 3],
                    rotation=X[:3, :3],
                    mass=inertial.mass,
                    center=moved(T, inertial.center) - pair.origin,
                    inertia=R @ inertial.inertia @ R.T,
                    gravity_compensation=inertial.held,
                )
            )
        turn = np.eye(3) if self.is_a else self.pairs[0].T[:3, :3]
        return Mechanism(
            model=self.tree.mechanism.model,
            bodies=tuple(bodies),
            joints=tuple(joints),
            closures=tuple(each for each in map(self._closure, self.tree.mechanism.closures) if each is not None),
            actuators=(),
            sites=(),
            keyframes={},
            gravity=turn @ self.tree.mechanism.gravity,
            tendons=tuple(
                replace(tendon, length=length, rest=tendon.rest - self._shift(tendon.length))
                for tendon in self.tree.mechanism.tendons
                if (length := self._coordinate(tendon.length)) is not None
            ),
            point_springs=tuple(
                replace(spring, body1=ends[0][0], point1=ends[0][1], body2=ends[1][0], point2=ends[1][1])
                for spring in self.tree.mechanism.point_springs
                if (ends := [self._point(*end) for end in spring.ends])
            ),
        )

    def _joint(self, pair: Pair, to_frame: Array) -> Joint:
        """A joint in the frame of its link, at A's zero."""
        joint = pair.a.joint if self.is_a else pair.b.joint
        assert joint is not None
        if self.is_a:
            return replace(joint, axis=pair.a.axis, anchor=np.zeros(3))
        anchor, axis = moved(to_frame, pair.anchor), to_frame[:3, :3] @ pair.axis
        if joint.kind == "ball":
            return replace(joint, axis=np.array([0.0, 0.0, 1.0]), anchor=anchor)
        ends = None if joint.limits is None else np.sort([pair.sign * end - pair.offset for end in joint.limits])
        return replace(
            joint,
            name=pair.a.name,
            axis=axis / np.linalg.norm(axis),
            anchor=anchor,
            limits=None if ends is None else (float(ends[0]), float(ends[1])),
            rest_position=pair.sign * joint.rest_position - pair.offset,
            spring_reference=pair.sign * joint.spring_reference - pair.offset,
        )

    def _index(self) -> dict[int, int]:
        """Pair of each joint, by its index in the file."""
        names = [joint.name for joint in self.tree.mechanism.joints]
        return {
            names.index(link.name): k
            for k, pair in enumerate(self.pairs)
            if (link := pair.a if self.is_a else pair.b).name in names
        }

    def _coordinate(self, coordinate: Coordinate) -> Coordinate | None:
        index = self._index()
        if any(j not in index for j in coordinate.joints):
            return None
        signs = [1.0 if self.is_a else self.pairs[index[j]].sign for j in coordinate.joints]
        joints = tuple(index[j] - (not self.is_free) for j in coordinate.joints)
        return replace(coordinate, joints=joints, weights=coordinate.weights * signs)

    def _shift(self, coordinate: Coordinate) -> float:
        """Length of a tendon of B at the zero of A's joints [m or rad]."""
        index = self._index()
        of = [] if self.is_a else zip(coordinate.joints, coordinate.weights, strict=True)
        return float(sum(weight * self.pairs[index[j]].sign * self.pairs[index[j]].offset for j, weight in of))

    def _frame(self, body: int) -> tuple[int, Array]:
        """Link of a body, and the body's frame in it, shape (4, 4)."""
        link = self.tree.place.get(body, WORLD)
        frame = self.tree.frames[body]
        if link == WORLD:
            return WORLD, frame if self.is_a else self.pairs[0].T @ frame
        of = self.tree.links[link]
        k = next(k for k, pair in enumerate(self.pairs) if (pair.a if self.is_a else pair.b) is of)
        T = np.eye(4) if self.is_a else self.pairs[k].T
        return k, rigid_frame(-self.pairs[k].origin, np.eye(3)) @ T @ frame

    def _point(self, body: int, point: Array) -> tuple[int, Array]:
        k, X = self._frame(body)
        return k, moved(X, point)

    def _closure(self, closure: Closure) -> Closure | None:
        if isinstance(closure, CoordinateClosure):
            follower = self._coordinate(closure.follower)
            leader = None if closure.leader is None else self._coordinate(closure.leader)
            lost = follower is None or (leader is None) != (closure.leader is None)
            return None if lost or follower is None else replace(closure, follower=follower, leader=leader)
        (body1, X1), (body2, X2) = self._frame(closure.body1), self._frame(closure.body2)
        points = {"point1": moved(X1, closure.point1), "point2": moved(X2, closure.point2)}
        if isinstance(closure, WeldClosure):
            R = X1[:3, :3] @ closure.rotation @ X2[:3, :3].T
            return replace(closure, body1=body1, body2=body2, rotation=R, **points)
        assert isinstance(closure, ConnectClosure)
        return replace(closure, body1=body1, body2=body2, **points)


class Dynamics(NamedTuple):
    """Forces on the joints of both spanning trees at the same states."""

    joints: tuple[str, ...]
    """Joint of each dof."""
    units: tuple[str, ...]
    error: Array
    """Largest difference over the states [N or N m], shape (nv,)."""
    scale: Array
    """Largest force in A, at least a part of the sum of its terms [N or N m], shape (nv,)."""
    gap: float
    """Largest gap of B's loops where A's are closed [m or rad]; 0 without loops in both."""
    freedoms: tuple[int, int]
    """Degrees of freedom of both."""

    @property
    def relative(self) -> Array:
        """Difference of each joint's force over the largest [-], shape (nv,)."""
        return self.error / np.maximum(self.scale, np.finfo(float).tiny)


def compare(a: Mechanism, b: Mechanism) -> Dynamics:
    """Compare the forces on the joints at random states, with closed loops if both have loops.

    B gets the damping, friction and rotor inertia of A.

    Raises:
        MechanismError: If the loops of A cannot be closed.
    """
    loops = bool(a.closures and b.closures)
    a, b = (each if loops else replace(each, closures=()) for each in (a, b))
    drives = ("armature", "damping", "friction")
    joints = [
        replace(q, **{name: getattr(p, name) for name in drives}) for p, q in zip(a.joints, b.joints, strict=True)
    ]
    tendons = {tendon.name: tendon for tendon in a.tendons}
    b = replace(
        b,
        joints=tuple(joints),
        tendons=tuple(
            replace(each, **{name: getattr(tendons.get(each.name, each), name) for name in drives[:2]})
            for each in b.tendons
        ),
    )
    q = closed_poses(a).q[:STATES]
    if not len(q):
        raise MechanismError(f"{a.model.path}: its loops must close")
    qd, qdd = RATE * np.random.default_rng(0).normal(size=(2, len(q), a.nv))
    (left, magnitude), (right, _) = (_forces(each, q, qd, qdd) for each in (a, b))
    dofs = [joint for joint, of in zip(a.joints, a.dof_slices, strict=True) for _ in range(of.start, of.stop)]
    gap, freedoms = 0.0, (a.nv, b.nv)
    if loops:
        closed, _ = close_batch(b, q, np.ones(b.nv, dtype=bool))
        gap = float(np.abs(State.at_rest(b, q).gap).max())
        least = [min(each.N.shape[1] for each in freedom(*model)) for model in ((a, q), (b, closed))]
        freedoms = (least[0], least[1])
    return Dynamics(
        joints=tuple(joint.name for joint in dofs),
        units=tuple(joint.effort_unit for joint in dofs),
        error=np.abs(left - right).max(0),
        scale=np.maximum(np.abs(left).max(0), LEAST * magnitude.max(0)),
        gap=gap,
        freedoms=freedoms,
    )


def _forces(mechanism: Mechanism, q: PositionSeries, qd: Array, qdd: Array) -> tuple[Array, Array]:
    """Forces on the joints of the spanning tree, and the sum of the magnitudes of their terms; shape (nt, nv)."""
    along = np.tile(np.eye(mechanism.nv), (len(q), 1, 1))
    powers = powers_along(State(mechanism=mechanism, q=q, qd=qd), qdd, along)
    return powers.signed.sum(1), powers.magnitude.sum(1)


def _displacement(joint: Joint) -> Array:
    """Displacement of a link by its joint from zero to rest, shape (4, 4)."""
    if joint.kind == "slide":
        return rigid_frame(joint.rest_position[0] * joint.axis, np.eye(3))
    if joint.kind != "hinge":
        return np.eye(4)
    R = of_axis(joint.axis, float(joint.rest_position[0]))
    return rigid_frame(joint.anchor - R @ joint.anchor, R)


def _free_joint(X: Array) -> Joint:
    rest: JointPositions = np.array([*X[:3, 3], 1.0, 0.0, 0.0, 0.0])
    return Joint(
        name="base", kind="free", body=0, axis=np.array([0.0, 0.0, 1.0]), anchor=np.zeros(3), rest_position=rest
    )
