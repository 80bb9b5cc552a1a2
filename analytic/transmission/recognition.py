"""Recognizes a closed mechanism as a chain of joints that motors move by cranks and rods (`CrankRod`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopcheck.analytic.kinematics.tree import Poses, poses
from loopcheck.analytic.transmission.crank_rod import CrankRod, Joint, Leg, Vector
from loopcheck.analytic.transmission.joint_space import JointSpace
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import WORLD, CoordinateClosure

MOST = 3
"""Joints of a chain."""
SAME = 1e-7
"""Distance between points that count as one, over the length of the rod [-]."""
ROUND_OFF = 1e-15
"""Moments of mass up to this are zero [kg]."""


def crank_rod_of(space: JointSpace, motors: Sequence[int], carried: Mapping[int, float] | None = None) -> CrankRod:
    """Geometry and loads of cranks and rods, in the axes of the body that carries the chain.

    A rod that does not stay in a plane counts as thin: its inertia about its own axis, and a mass centre beside it, are
    left out.

    Args:
        space: Closed mechanism and its shared joints.
        motors: Indices of the actuators that move them.
        carried: Mass of rods that the serial model has at their ends on the chain, by index of the body [kg].

    Raises:
        MechanismError: If it is another kind of mechanism; the message says why.
    """
    return _Parts(space, motors, carried or {}).transmission()


@dataclass(frozen=True)
class _Rod:
    """A rod between the crank of a motor and the chain."""

    bodies: list[int]
    joints: tuple[int, ...]
    """Between the rod and the part that it hangs on."""
    hangs_on_crank: bool
    tip: tuple[int, Array]
    """Body of the part that its loop joins, and the point of the closure in its frame [m]."""
    link: int
    """Index of the joint of the chain that moves its end."""


@dataclass(frozen=True)
class _Parts:
    space: JointSpace
    motors: Sequence[int]
    carried: Mapping[int, float]

    def transmission(self) -> CrankRod:
        chain, n = self.space.joints, len(self.space.joints)
        if not 1 <= n <= MOST or len(self.motors) != n:
            raise self._error(f"1 to {MOST} joints and as many motors, got {n} joints and {len(self.motors)} motors")
        first, last = (self.space.mechanism.joints[j].body for j in (chain[0], chain[-1]))
        if self._routes[last] != chain or (self.space.signs < 0).any():
            raise self._error(f"joints that carry each other on a fixed base, got {', '.join(self.space.names)}")
        base = self.space.mechanism.bodies[first].parent
        R = np.eye(3) if base == WORLD else self._zero.R[0, base]
        p = np.zeros(3) if base == WORLD else self._zero.p[0, base]
        joints = [
            Joint(
                name=name,
                slides=self._slides(j),
                axis=vector(R.T @ self._axis(j)),
                anchor=vector(R.T @ (self._anchor(j) - p)),
            )
            for name, j in zip(self.space.names, chain, strict=True)
        ]
        gravity = vector(R.T @ self.space.mechanism.gravity)
        return CrankRod(joints=tuple(joints), legs=tuple(self._leg(k, R, p) for k in self.motors), gravity=gravity)

    def _leg(self, k: int, R: Array, p: Array) -> Leg:
        """The leg of an actuator, in the frame of the base."""
        mechanism, actuator = self.space.mechanism, self.space.mechanism.actuators[k]
        m = actuator.coordinate.joints[0]
        joint = mechanism.joints[m]
        if not actuator.coordinate.is_joint or actuator.gear != 1 or self._routes[joint.body] != (m,):
            raise self._error(f"motors with gear 1 on the body that carries the chain, got '{actuator.name}'")
        rod = self._rod(m, actuator.name)
        (pin, end), (pin_now, end_now) = (self._ends(rod, here) for here in (self._zero, self._now))
        along = end_now - pin_now
        length = float(np.linalg.norm(along))
        axis, anchor, now = self._axis(m), self._anchor(m), mechanism.dof_slices[m].start
        arm = self._now.axes[0, now]
        v = arm if self._slides(m) else np.cross(arm, pin_now - self._now.anchors[0, now])
        crank = [b for b, route in enumerate(self._routes) if route == (m,)]
        centers = self._zero.c[0, crank] - anchor
        masses = np.array([mechanism.bodies[b].mass for b in crank])
        inertia = joint.armature
        for b, mass, center in zip(crank, masses, centers, strict=True):
            turning = axis @ self._zero.R[0, b] @ mechanism.bodies[b].inertia @ self._zero.R[0, b].T @ axis
            inertia += mass if self._slides(m) else turning + mass * float(np.sum(np.cross(axis, center) ** 2))
        moments, skew = self._moments(rod, pin_now, along, m)
        y = float(self.space.start[mechanism.q_slices[m].start])
        return Leg(
            motor=actuator.name,
            slides=self._slides(m),
            axis=vector(R.T @ axis),
            anchor=vector(R.T @ (anchor - p)),
            pin=vector(R.T @ (pin - p)),
            end=vector(R.T @ (end - p)),
            link=rod.link,
            length=length,
            elbow=1 if along @ v > 0 else -1,
            middle=0.0 if self._slides(m) else float(np.mean(joint.limits)) if joint.limits else y,
            inertia=float(inertia),
            damping=joint.damping,
            mass=float(masses.sum()),
            moment=vector(R.T @ (masses @ centers)),
            rod=vector(moments),
            skew=vector(R.T @ skew),
        )

    def _rod(self, m: int, name: str) -> _Rod:
        """The only rod between the crank of a motor and the chain."""
        mechanism, found = self.space.mechanism, []
        links = {self.space.joints[: k + 1]: k for k in range(len(self.space.joints))}
        for closure in mechanism.rigid_closures:
            ends = ((closure.body1, closure.point1), (closure.body2, closure.point2))
            for (body, _), tip in (ends, ends[::-1]):
                route, other = (() if b == WORLD else self._routes[b] for b in (body, tip[0]))
                part = next((part for part in ((m,), *reversed(links)) if route[: len(part)] == part), ())
                if len(route) > len(part) and ((part == (m,) and other in links) or (part in links and other == (m,))):
                    link = links[other] if part == (m,) else links[part]
                    bodies = [b for b, own in enumerate(self._routes) if own[: len(part) + 1] == route[: len(part) + 1]]
                    found.append(_Rod(bodies, route[len(part) :], part == (m,), tip, link))
        if len(found) != 1:
            raise self._error(f"one rod between the crank of '{name}' and the chain, got {len(found)}")
        return found[0]

    def _ends(self, rod: _Rod, here: Poses) -> tuple[Array, Array]:
        """End of a rod on the crank, and on the chain, world axes [m]."""
        body, point = rod.tip
        far = here.p[0, body] + here.R[0, body] @ point
        lines = []
        for j in rod.joints:
            joint, dof = self.space.mechanism.joints[j], self.space.mechanism.dof_slices[j].start
            across = np.eye(3) if joint.kind == "ball" else np.eye(3) - np.outer(here.axes[0, dof], here.axes[0, dof])
            lines.append((across, here.anchors[0, dof]))
        right = sum(across @ (anchor - far) for across, anchor in lines)  # on a single axis, the point next to `far`
        near = far + np.linalg.pinv(sum(across for across, _ in lines), rcond=SAME) @ right
        gap = max(float(np.linalg.norm(across @ (near - anchor))) for across, anchor in lines)
        if any(self._slides(j) for j in rod.joints) or gap > SAME * np.linalg.norm(far - near) + 1e-8:
            names = ", ".join(self.space.mechanism.joints[j].name for j in rod.joints)
            raise self._error(f"rods on hinges or balls that meet in a point, got {names}")
        return (near, far) if rod.hangs_on_crank else (far, near)

    def _moments(self, rod: _Rod, pin: Array, along: Array, m: int) -> tuple[Array, Array]:
        """Of the mass of a rod, without the part that the serial model carries: see `Leg.rod` and `Leg.skew` [kg]."""
        square, moments, skew = float(along @ along), np.zeros(3), np.zeros(3)
        normal = self._normal(rod, m, along)
        across = np.cross(normal, along) / square
        for b in rod.bodies:
            body, R = self.space.mechanism.bodies[b], self._now.R[0, b]
            center, inertia = self._now.c[0, b] - pin, R @ body.inertia @ R.T
            s, beside = float(center @ along) / square, float(center @ across)
            thin = float(np.trace(inertia) - along @ inertia @ along / square) / 2
            turning = float(normal @ inertia @ normal if normal.any() else thin) / square + body.mass * beside**2
            mass = body.mass
            moments += [mass * (1 - s) ** 2 + turning, mass * s * (1 - s) - turning, mass * s**2 + turning]
            moments[2] -= self.carried.get(b, 0.0)
            skew += mass * beside * normal
        return moments, np.where(np.abs(skew) > ROUND_OFF, skew, 0.0)

    def _normal(self, rod: _Rod, m: int, along: Array) -> Array:
        """Normal of the plane in which a rod stays, world axes [-]; zero without such a plane.

        On a hinge the rod turns about an axis that its carrier keeps; on several hinges if all that moves both its ends
        stays in the plane.
        """
        if {self.space.mechanism.joints[j].kind for j in rod.joints} != {"hinge"}:
            return np.zeros(3)
        chain = self.space.joints[: rod.link + 1]
        carriers = (m, *chain) if len(rod.joints) > 1 else (m,) if rod.hangs_on_crank else chain
        turning, sliding = ([self._axis(j) for j in carriers if self._slides(j) is slides] for slides in (False, True))
        in_plane = [*sliding, along / np.linalg.norm(along)] if len(rod.joints) > 1 else []
        for j in rod.joints:
            normal = np.asarray(self._now.axes[0, self.space.mechanism.dof_slices[j].start])
            off = [np.linalg.norm(np.cross(normal, axis)) for axis in turning] + [
                abs(normal @ axis) for axis in in_plane
            ]
            if max(off, default=0.0) < SAME:
                return normal
        return np.zeros(3)

    @cached_property
    def _routes(self) -> list[tuple[int, ...]]:
        """Moving joints between the world and each body."""
        mechanism = self.space.mechanism
        held = {
            closure.follower.joints[0]
            for closure in mechanism.closures
            if isinstance(closure, CoordinateClosure) and closure.leader is None and closure.follower.is_joint
        }
        held |= {j for j, joint in enumerate(mechanism.joints) if joint.kind == "free"}
        routes: list[tuple[int, ...]] = []
        for body, joints in zip(mechanism.bodies, mechanism.joints_of, strict=True):
            before = () if body.parent == WORLD else routes[body.parent]
            routes.append((*before, *(j for j in joints if j not in held)))
        return routes

    @cached_property
    def _now(self) -> Poses:
        """The closed start."""
        return poses(self.space.mechanism, self.space.start[None])

    @cached_property
    def _zero(self) -> Poses:
        """The start with chain and motors at zero, not closed."""
        q, mechanism = self.space.start.copy(), self.space.mechanism
        for j in (*self.space.joints, *(mechanism.actuators[k].coordinate.joints[0] for k in self.motors)):
            if mechanism.joints[j].kind in ("hinge", "slide"):
                q[mechanism.q_slices[j].start] = 0.0
        return poses(mechanism, q[None])

    def _axis(self, j: int) -> Array:
        return np.asarray(self._zero.axes[0, self.space.mechanism.dof_slices[j].start])

    def _anchor(self, j: int) -> Array:
        return np.asarray(self._zero.anchors[0, self.space.mechanism.dof_slices[j].start])

    def _slides(self, j: int) -> bool:
        return self.space.mechanism.joints[j].kind == "slide"

    def _error(self, text: str) -> MechanismError:
        return MechanismError(f"{self.space.mechanism.model.path}: a transmission by cranks and rods must have {text}")


def vector(values: Array) -> Vector:
    """Three numbers as a tuple.

    Args:
        values: Its coordinates [any unit], shape (3,).
    """
    x, y, z = (float(value) for value in values)
    return x, y, z
