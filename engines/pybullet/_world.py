"""A PyBullet client with the spanning tree of a mechanism, and the positions of joints and bodies in the engine."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import of_paths, silenced, want_representable
from loopcheck.engines.loads import laws, wrenches
from loopcheck.engines.pybullet._angles import Turn, far_turns, turns, without_balls
from loopcheck.engines.pybullet._urdf import Rotor, origin_of_link, principal, rotors, urdf
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.mechanism import WORLD, Mechanism, Wrench

__all__ = ["pybullet", "silenced"]

with silenced():
    import pybullet  # prints when it was built


BASE_LINK = -1
"""PyBullet's index of the base, here the world."""
SAME = 1e-12
"""Largest round-off of masses and inertias that are read back [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The spanning tree of a mechanism in a PyBullet client, in the gravity of the mechanism, its balls as hinges.

    PyBullet's joint vectors have a place for each joint and for each hinge of a rotor, which moves with its joint.
    """

    mechanism: Mechanism
    """With hinges and slides only."""
    reference: Array
    """Joint positions in the given poses of the bodies [m or rad], shape (nq,)."""
    inertial_frames: tuple[tuple[Array, Array], ...]
    """Origin [m], shape (3,), and axes as columns [-], shape (3, 3), of each body's inertial frame in the body frame.

    The world is the last entry, at the index `WORLD`.
"""
    turns: tuple[Turn, ...]
    """Springs and dampers that act on the hinges of a ball together."""
    constant: tuple[Wrench, ...]
    """External wrenches and gravity compensation."""
    is_sprung: bool
    """Whether other loads than dampers of joints depend on the positions or velocities."""
    client: int
    """PyBullet's number of the connection."""
    tree: int
    """PyBullet's number of the multibody."""
    joints: tuple[int, ...]
    """PyBullet's index of each joint, also the index of the link behind it."""
    rotors: tuple[tuple[int, int], ...]
    """PyBullet's indices of each rotor's hinge and of the joint it is geared to."""
    links: tuple[int, ...]
    """PyBullet's index of the link of each body."""
    moving: tuple[int, ...]
    """PyBullet's index of the joint at each place of its joint vectors."""
    order: AnyArray
    """Our index of the joint at each place of PyBullet's joint vectors [-], shape (places,)."""
    summation: Array
    """1 at the joint of each place of PyBullet's joint vectors, 0 elsewhere [-], shape (places, nv)."""

    def link(self, body: int) -> int:
        """PyBullet's index of the link of a body, or of the world."""
        return BASE_LINK if body == WORLD else self.links[body]

    def positions(self, q: JointPositions) -> list[float]:
        """Joint positions in PyBullet's convention, relative to the given poses of the bodies, in its order."""
        return (q - self.reference)[self.order].tolist()

    def rates(self, qd: Array) -> list[float]:
        """Joint velocities or accelerations in PyBullet's order.

        Args:
            qd: Joint velocities or accelerations [m or rad, per s or s²], shape (nv,).
        """
        return qd[self.order].tolist()

    def summed(self, values: Any) -> Array:
        """PyBullet's values per place of its joint vectors, summed per joint; a rotor's value counts for its joint.

        Args:
            values: Forces [N or N m] or rows of a Jacobian [m/rad or m/m], shape (..., places).

        Returns:
            The same, shape (..., nv).

        Raises:
            EngineError: If it is not finite.
        """
        numbers = np.asarray(values, dtype=float)
        if not np.isfinite(numbers).all():
            raise EngineError("pybullet: forces and Jacobians must be finite, got NaN or infinity")
        return numbers @ self.summation

    def from_link(self, body: int, point: Array) -> Array:
        """A point of a body or of the world, seen from the origin of its link, body axes.

        Args:
            body: Index of the body, or `WORLD`.
            point: The point in the body frame [m], shape (3,).
        """
        return point - origin_of_link(self.mechanism, body)


@contextmanager
def opened(mechanism: Mechanism) -> Iterator[World]:
    """Connect to PyBullet, load the spanning tree, and disconnect in the end.

    Args:
        mechanism: Robot; balls and all.

    Raises:
        NotRepresentableError: If the mechanism has an element that PyBullet cannot represent.
        EngineError: If PyBullet fails, here or in the block.
    """
    refuse(mechanism, closed=False)
    tree, own_rotors = without_balls(mechanism), rotors(mechanism)
    text = urdf(tree, own_rotors)
    with silenced():
        try:
            client = pybullet.connect(pybullet.DIRECT)
            try:
                world = _load(tree, own_rotors, turns(mechanism), text, client)
                want_as_given(world)
                yield world
            finally:
                pybullet.disconnect(client)
        except pybullet.error as error:
            raise EngineError(f"pybullet: {' '.join(str(error).split())}") from error


def joint_state(world: World) -> tuple[Array, Array]:
    """Joint positions and velocities as PyBullet has them [m or rad, per s], each of shape (nv,)."""
    states = pybullet.getJointStates(world.tree, world.joints, physicsClientId=world.client)
    positions, rates, _, _ = zip(*states, strict=True)
    return np.array(positions) + world.reference, np.array(rates)


def body_pose(world: World, body: int) -> tuple[Array, Array]:
    """Pose of a body, or the world, in PyBullet: origin [m], shape (3,), and axes [-], shape (3, 3), of its frame."""
    if body == WORLD:
        return np.zeros(3), np.eye(3)
    center, Q = world.inertial_frames[body]
    origin, axes = _inertial_frame(world, body)
    R = np.array(axes).reshape(3, 3) @ Q.T
    return np.array(origin) - R @ center, R


def place(world: World, body: int, point: Array) -> tuple[float, float, float]:
    """Position of a point of a body in PyBullet, world axes [m].

    Args:
        body: Index of the body.
        point: The point in the body frame [m], shape (3,).
    """
    center, Q = world.inertial_frames[body]
    (px, py, pz), (xx, xy, xz, yx, yy, yz, zx, zy, zz) = _inertial_frame(world, body)
    x, y, z = ((point - center) @ Q).tolist()  # plain numbers: this is done at every step
    return px + xx * x + xy * y + xz * z, py + yx * x + yy * y + yz * z, pz + zx * x + zy * y + zz * z


def _inertial_frame(world: World, body: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Origin [m] and axes [-], row by row, of a body's inertial frame; PyBullet rounds that of the link to 32 bit."""
    where = {"computeForwardKinematics": True, "physicsClientId": world.client}
    state = pybullet.getLinkState(world.tree, world.links[body], **where)
    return state[0], pybullet.getMatrixFromQuaternion(state[1])


def inertial_poses(world: World) -> list[tuple[float, ...]]:
    """Inertial frames of all bodies in PyBullet: origin [m] and quaternion (x, y, z, w) [-] of each."""
    where = {"computeForwardKinematics": True, "physicsClientId": world.client}
    return [state[0] + state[1] for state in pybullet.getLinkStates(world.tree, world.links, **where)]


def body_frames(world: World, poses: Array) -> tuple[Array, Array]:
    """Frames of the bodies from their inertial frames, the world's last, at the index `WORLD`.

    Args:
        poses: Results of `inertial_poses` at some times [m, -], shape (nt, bodies, 7).

    Returns:
        Origins [m], shape (nt, bodies + 1, 3), and axes [-], shape (nt, bodies + 1, 3, 3).
    """
    nt, count, _ = poses.shape
    p, R = np.zeros((nt, count + 1, 3)), np.tile(np.eye(3), (nt, count + 1, 1, 1))
    for b, (center, Q) in enumerate(world.inertial_frames[:-1]):
        R[:, b] = Rotation.from_quat(poses[:, b, 3:]).as_matrix() @ Q.T
        p[:, b] = poses[:, b, :3] - R[:, b] @ center
    return p, R


def _load(mechanism: Mechanism, own_rotors: Sequence[Rotor], balls: tuple[Turn, ...], text: str, client: int) -> World:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mechanism.urdf"
        path.write_text(text, encoding="utf-8")
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        tree = pybullet.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
    pybullet.setGravity(*mechanism.gravity, physicsClientId=client)
    count = pybullet.getNumJoints(tree, physicsClientId=client)
    infos = [pybullet.getJointInfo(tree, i, physicsClientId=client) for i in range(count)]
    if text.count("<joint ") != count:
        raise EngineError(f"pybullet: must load {text.count('<joint ')} joints from the URDF, got {count}")
    index = {info[k].decode(): info[0] for info in infos for k in (1, 12)}  # by the names of joints and of links
    joints = tuple(index[f"joint{j}"] for j in range(len(mechanism.joints)))
    hinges = {index[f"rotor{k}.{i}"]: j for k, rotor in enumerate(own_rotors) for i, j in enumerate(rotor.joints)}
    place = {i: infos[i][4] for i in (*joints, *hinges)}  # in the joint vectors
    whose = {**{i: j for j, i in enumerate(joints)}, **hinges}
    moving = tuple(sorted(place, key=lambda i: place[i]))
    order = np.array([whose[i] for i in moving], dtype=int)
    return World(
        mechanism=mechanism,
        reference=mechanism.rest_position,
        inertial_frames=(*((body.center, principal(body)[1]) for body in mechanism.bodies), (np.zeros(3), np.eye(3))),
        turns=balls,
        constant=tuple(wrenches(mechanism)),
        is_sprung=bool(balls or {*laws(mechanism)} - {"compensations"}),
        client=client,
        tree=tree,
        joints=joints,
        rotors=tuple((hinge, joints[j]) for hinge, j in hinges.items()),
        links=tuple(index[f"body{b}"] for b in range(len(mechanism.bodies))),
        moving=moving,
        order=order,
        summation=np.eye(mechanism.nv)[order],
    )


def want_as_given(world: World) -> None:
    """Check the masses and inertias that PyBullet has; it takes over tensors that it thinks bad wrong.

    Raises:
        NotRepresentableError: If that of a body is another than the mechanism's.
    """
    bodies, where = world.mechanism.bodies, {"physicsClientId": world.client}
    infos = [pybullet.getDynamicsInfo(world.tree, link, **where) for link in world.links]
    own_values = np.array([(info[0], *info[2]) for info in infos])
    mass, inertia = np.array([body.mass for body in bodies]), np.array([body.inertia for body in bodies])
    model_values = np.column_stack([mass, np.linalg.eigvalsh(inertia)])
    for b in np.flatnonzero((np.abs(own_values - model_values) > SAME * model_values[:, [0, 3, 3, 3]]).any(axis=1)):
        raise NotRepresentableError(
            f"pybullet: body '{bodies[b].name}': loaded mass must be {model_values[b, 0]:g} kg and principal moments "
            f"{model_values[b, 1:]} kg m², got {own_values[b, 0]:g} kg and {own_values[b, 1:]} kg m²"
        )


def refuse(mechanism: Mechanism, q: Array | None = None, *, closed: bool) -> None:
    """Refuse all such elements at once.

    Args:
        mechanism: Robot, with its balls.
        q: Its positions [m or rad], shape (nt, nq); None if they are unknown.
        closed: Whether PyBullet's own constraints close the loops.

    Raises:
        NotRepresentableError: If there is any.
    """
    reasons = [*_of_tree(mechanism)]
    reasons += of_loops(mechanism) if closed else ()
    reasons += far_turns(mechanism, q) if q is not None else ()
    want_representable("pybullet", reasons)


def of_loops(mechanism: Mechanism) -> Iterator[str]:
    """Closures that its constraints cannot hold."""
    for closure in mechanism.coordinate_closures:
        for coordinate in (closure.follower, *filter(None, [closure.leader])):
            if len(coordinate.joints) != 1:
                yield f"equality '{closure.name}' of tendon '{coordinate.name}' (gears couple only 2 joints)"


def _of_tree(mechanism: Mechanism) -> Iterator[str]:
    yield from of_paths(mechanism)
    for tendon in mechanism.tendons:
        if tendon.armature:
            yield f"armature of tendon '{tendon.name}' (rotors only on single joints)"
