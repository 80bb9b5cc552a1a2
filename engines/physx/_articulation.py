"""A mechanism as articulations of PhysX, its loops closed by drives without play.

Each branch that hangs on the world is an articulation of its own: PhysX's force on a joint lacks the force of a loop
between two links of the same articulation. A body with several joints gets links of hardly any mass between them.
Positions are relative to the given poses of the bodies. The axis of each joint is x of its frame. SAPIEN's builder
accepts a friction and drops it: PhysX fills in 0.05. A body with a free joint is the root of its articulation.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import converted
from loopcheck.engines.loads import wrenches
from loopcheck.engines.physx._support import branches, is_floating, want_carried
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, RigidClosure, WeldClosure
from loopcheck.robots.size import size

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sapien
    from sapien import physx

__all__ = ["physx", "sapien"]


NOTHING = 1e-7
"""Mass of a link between joints, and least moment of inertia, over the values of its body [-]."""
UNLIMITED = 3e38
"""Strength of drives and ends of the range of joints: as good as the largest number of single precision."""
KINDS = {"hinge": "revolute_unwrapped", "slide": "prismatic"}
"""SAPIEN's name of a joint by kind."""
guarded = partial(converted, errors=(ValueError, RuntimeError, TypeError, AssertionError))
"""Converts the exceptions of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """Stepping of PhysX: by default at 200 Hz, as for legged robots; other settings are SAPIEN's, except friction."""

    step: float = 0.005
    """Step [s]."""
    tgs: bool = False
    """The solver of small steps, instead of projected Gauss-Seidel."""
    position_iterations: int = 10
    velocity_iterations: int = 1
    friction: float | None = 0.0
    """Friction of every joint [-]; None keeps PhysX's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A mechanism in PhysX."""

    mechanism: Mechanism
    stepping: Stepping
    scene: Any
    articulations: tuple[Any, ...]
    """An articulation per branch."""
    links: tuple[Any, ...]
    """PhysX's link of each body."""
    joints: Mapping[int, Any]
    """PhysX's joint of each hinge and slide, by its number."""
    roots: Mapping[int, Any]
    """The articulation that each free joint leaves free, by its number."""
    loops: tuple[tuple[Any, ...], ...]
    """The drives that close each rigid closure."""
    places: Mapping[int, int]
    """Index of each hinge or slide in PhysX's positions, articulation by articulation."""
    incoming: Mapping[int, int]
    """Index of the link behind each joint among PhysX's links, counted in the same way."""

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state."""
        x, v = np.zeros(len(self.places), np.float32), np.zeros(len(self.places), np.float32)
        places, dofs = list(self.places.values()), self.dofs
        x[places], v[places] = (q - self.mechanism.rest_position)[self.entries], qd[dofs]
        ends = np.cumsum([articulation.dof for articulation in self.articulations])[:-1]
        for articulation, own_x, own_v in zip(self.articulations, np.split(x, ends), np.split(v, ends), strict=True):
            articulation.set_qpos(own_x)
            articulation.set_qvel(own_v)
        for j, articulation in self.roots.items():
            body, place = self.mechanism.joints[j].body, q[self.mechanism.q_slices[j]]
            moving, turning = np.split(qd[self.mechanism.dof_slices[j]], 2)
            R = Rotation.from_quat(np.roll(place[3:], -1)).as_matrix()
            articulation.set_root_pose(_pose(place[:3], R))
            center = R @ self.mechanism.bodies[body].center
            articulation.set_root_linear_velocity(np.asarray(moving + np.cross(R @ turning, center), np.float32))
            articulation.set_root_angular_velocity(np.asarray(R @ turning, np.float32))

    @property
    def entries(self) -> list[int]:
        """Places of hinges and slides among the joint positions."""
        return [self.mechanism.q_slices[j].start for j in self.joints]

    @property
    def dofs(self) -> list[int]:
        """Places of hinges and slides among the joint velocities."""
        return [self.mechanism.dof_slices[j].start for j in self.joints]

    def state(self) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,)."""
        q, qd = np.array(self.mechanism.rest_position), self.along("qvel")
        q[self.entries] += self.along("qpos")[self.dofs]
        for j, articulation in self.roots.items():
            body = self.mechanism.joints[j].body
            p, R = self.pose_of(body)
            moving, turning = (
                np.asarray(values, float)
                for values in (articulation.root_linear_velocity, articulation.root_angular_velocity)
            )
            center = R @ self.mechanism.bodies[body].center
            q[self.mechanism.q_slices[j]] = *p, *np.roll(Rotation.from_matrix(R).as_quat(), 1)
            qd[self.mechanism.dof_slices[j]] = *(moving - np.cross(turning, center)), *(R.T @ turning)
        return q, qd

    def along(self, quantity: str) -> Array:
        """A property of hinges and slides, by SAPIEN's name, shape (nv,); zero along free joints."""
        every = [np.asarray(getattr(articulation, quantity), float) for articulation in self.articulations]
        return self.of_dofs(every)

    def of_dofs(self, every: Sequence[Array]) -> Array:
        """Numbers of each articulation's joints along joint velocities, shape (nv,); otherwise zero.

        Args:
            every: Of each articulation, in the order of its positions [any unit], each of shape (its joints,).
        """
        values = np.zeros(self.mechanism.nv)
        values[self.dofs] = np.concatenate([np.zeros(0), *every])[list(self.places.values())]
        return values

    def wrenches(self) -> dict[int, Array]:
        """Force and moment that reach the link behind each hinge and slide, in its frame [N and N m], each (6,)."""
        every = [
            np.asarray(articulation.get_link_incoming_joint_forces(), float) for articulation in self.articulations
        ]
        rows = np.concatenate([np.zeros((0, 6)), *every])
        return {j: rows[place] for j, place in self.incoming.items()}

    def load(self) -> None:
        """Let external wrenches and gravity compensation act over the next step."""
        for load in wrenches(self.mechanism):
            link, (p, R) = self.links[load.body], self.pose_of(load.body)
            link.add_force_at_point(np.asarray(load.force, np.float32), np.asarray(p + R @ load.point, np.float32))
            link.add_force_torque(np.zeros(3, np.float32), np.asarray(load.moment, np.float32))

    def pose_of(self, body: int) -> tuple[Array, Array]:
        """Position of the origin of a body [m], shape (3,), and its axes [-], shape (3, 3), as PhysX has them.

        Args:
            body: Index of the body, or `WORLD`.
        """
        return (np.zeros(3), np.eye(3)) if body == WORLD else position_and_axes(self.links[body].entity_pose)


def position_and_axes(pose: Any) -> tuple[Array, Array]:
    """A pose of SAPIEN's.

    Args:
        pose: The pose.

    Returns:
        Position [m], shape (3,), and axes [-], shape (3, 3).
    """
    turned = Rotation.from_quat(np.roll(np.asarray(pose.q, float), -1))
    return np.asarray(pose.p, float), turned.as_matrix()


def build(mechanism: Mechanism, stepping: Stepping) -> Built:
    """A mechanism in PhysX, at rest in the given poses of its bodies.

    Args:
        stepping: Settings of the stepping.

    Raises:
        NotRepresentableError: If an element of the mechanism has no counterpart.
    """
    want_carried(mechanism)
    scene = _scene(mechanism, stepping)
    articulations = tuple(_branch(scene, mechanism, branch) for branch in branches(mechanism))
    links = {link.name: link for articulation in articulations for link in articulation.links}
    if "world" not in links:  # all branches float: one that bears nothing is held to for loops that end there
        links["world"] = _branch(scene, mechanism, ()).root
    named = {joint.name: joint for articulation in articulations for joint in articulation.joints}
    order = [joint.name for articulation in articulations for joint in articulation.active_joints]
    behind = [link.name for articulation in articulations for link in articulation.links]
    joints = {j: named[f"joint {j}"] for j, joint in enumerate(mechanism.joints) if joint.kind != "free"}
    free = {joint.body: j for j, joint in enumerate(mechanism.joints) if joint.kind == "free"}
    built = Built(
        mechanism=mechanism,
        stepping=stepping,
        scene=scene,
        articulations=articulations,
        links=tuple(links[f"body {b}"] for b in range(len(mechanism.bodies))),
        joints=joints,
        roots={
            free[branch[0]]: articulation
            for branch, articulation in zip(branches(mechanism), articulations, strict=True)
            if branch[0] in free
        },
        loops=tuple(_loop(scene, links, mechanism, closure) for closure in mechanism.rigid_closures),
        places={j: order.index(f"joint {j}") for j in joints},
        incoming={j: behind.index(joint.child_link.name) for j, joint in joints.items()},
    )
    _settle(built)
    built.put(mechanism.rest_position, np.zeros(mechanism.nv))
    return built


def _branch(scene: Any, mechanism: Mechanism, branch: Sequence[int]) -> Any:
    builder = scene.create_articulation_builder()
    floats = any(is_floating(mechanism, b) for b in branch)
    if not floats:
        base = builder.create_link_builder()
        base.set_name("world")
        base.set_mass_and_inertia(1.0, sapien.Pose(), [1.0, 1.0, 1.0])
    for b in branch:
        _add_body(builder, mechanism, b)
    return builder.build(fix_root_link=not floats)


def _scene(mechanism: Mechanism, stepping: Stepping) -> Any:
    config = physx.PhysxSceneConfig()
    config.gravity = np.asarray(mechanism.gravity, np.float32)
    config.enable_tgs = stepping.tgs
    physx.set_scene_config(config)
    bodies = physx.PhysxBodyConfig()
    bodies.solver_position_iterations = stepping.position_iterations
    bodies.solver_velocity_iterations = stepping.velocity_iterations
    bodies.sleep_threshold = 0.0
    physx.set_body_config(bodies)
    scene = sapien.Scene([physx.PhysxCpuSystem()])
    scene.set_timestep(stepping.step)
    return scene


def _add_body(builder: Any, mechanism: Mechanism, b: int) -> None:
    """The links of a body: a link behind each of its joints, with its mass in the last."""
    body, own = mechanism.bodies[b], mechanism.joints_of[b]
    carrier = None if is_floating(mechanism, b) else builder.link_builders[0]
    if body.parent != WORLD:
        carrier = next(link for link in builder.link_builders if link.name == f"body {body.parent}")
    position, R = body.position, body.rotation
    moments, axes = np.linalg.eigh(body.inertia)
    axes = axes * np.linalg.det(axes)
    heaviest = max(mechanism.bodies, key=lambda other: other.mass)  # one without mass would get 1 kg
    mass = max(body.mass, NOTHING * heaviest.mass)
    moments = np.maximum(moments, NOTHING * (moments.max() or np.linalg.eigvalsh(heaviest.inertia).max()))
    for k, j in enumerate(own or (-1,)):
        link = builder.create_link_builder(*([] if carrier is None else [carrier]))
        is_last = k >= len(own) - 1
        link.set_name(f"body {b}" if is_last else f"body {b} before joint {j}")
        if is_last:
            link.set_mass_and_inertia(mass, _pose(body.center, axes), moments)
        else:
            link.set_mass_and_inertia(
                NOTHING * mass, _pose(body.center, np.eye(3)), np.full(3, NOTHING * moments.max())
            )
        if carrier is None:
            continue
        if j < 0:
            link.set_joint_properties("fixed", [], _pose(position, R), sapien.Pose())
            continue
        joint = mechanism.joints[j]
        frame = _frame_along(joint.axis)
        link.set_joint_name(f"joint {j}")
        ends = _pose(position + R @ joint.anchor, R @ frame), _pose(joint.anchor, frame)
        link.set_joint_properties(KINDS[joint.kind], [[-UNLIMITED, UNLIMITED]], *ends, 0.0, 0.0)
        carrier, position, R = link, np.zeros(3), np.eye(3)


def _settle(built: Built) -> None:
    """Properties that the builder lacks: rotors, springs, dampers and friction of joints; no damping of links."""
    friction = built.stepping.friction
    for j, joint in built.joints.items():
        own = built.mechanism.joints[j]
        joint.set_armature(np.full(1, own.armature, np.float32))
        joint.set_drive_properties(own.stiffness, own.damping, UNLIMITED, "force")
        joint.set_drive_target(float(own.spring_reference[0] - own.rest_position[0]))
        if friction is not None:
            joint.set_friction(friction)
    for link in (link for articulation in built.articulations for link in articulation.links):
        link.set_linear_damping(0.0)
        link.set_angular_damping(0.0)


def _loop(scene: Any, links: dict[str, Any], mechanism: Mechanism, closure: RigidClosure) -> tuple[Any, ...]:
    """Joints of six degrees of freedom between two links, without play of translations; a weld takes three.

    SAPIEN's joints do not hold turns: limits of 0 of their cone and pyramid have no effect.
    """
    first, second = (links["world" if b == WORLD else f"body {b}"] for b in (closure.body1, closure.body2))
    match closure:
        case ConnectClosure():
            arms, R = np.zeros((1, 3)), np.eye(3)
        case WeldClosure():
            arms, R = size(mechanism) * np.eye(3)[[0, 1, 2]] - size(mechanism) / 3, closure.rotation
        case _:
            assert_never(closure)
    points = []
    for arm in arms:
        ends = _pose(closure.point1 + R @ arm, np.eye(3)), _pose(closure.point2 + arm, np.eye(3))
        point = scene.create_drive(first, ends[0], second, ends[1])
        for limit in (point.set_limit_x, point.set_limit_y, point.set_limit_z):
            limit(0, 0)
        points.append(point)
    return tuple(points)


def _frame_along(axis: Array) -> Array:
    """Axes with a given first axis [-], shape (3, 3)."""
    side = np.eye(3)[int(np.argmin(np.abs(axis)))]
    y = np.cross(axis, side)
    y /= np.linalg.norm(y)
    return np.stack([axis, y, np.cross(axis, y)], axis=1)


def _pose(position: Array, R: Array) -> Any:
    return sapien.Pose(position, np.roll(Rotation.from_matrix(R).as_quat(), 1))
