"""Builds a mechanism in Exudyn: rigid bodies with Euler parameters, and a joint of Exudyn between each two of them."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.engines.exudyn._exudyn import exudyn, items, silenced
from loopcheck.engines.exudyn._frames import COORDINATES, Frame, Pose, coordinates, frames, places
from loopcheck.engines.exudyn._rotors import add_rotors
from loopcheck.engines.mechanics import BALL_OR_FREE, axes_along
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Joint, Mechanism, WeldClosure

X, Z = np.eye(3)[0], np.eye(3)[2]
UNTURNED = np.eye(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A mechanism in Exudyn, by Exudyn's numbers."""

    mechanism: Mechanism
    chain: tuple[Frame, ...]
    mbs: Any
    """Exudyn's system."""
    ground: int
    """The object that is the world."""
    nodes: tuple[int, ...]
    """Node of each frame."""
    bodies: tuple[int, ...]
    """Object of each frame."""
    joints: tuple[int | None, ...]
    """Object that places each frame on the preceding frame; None for a free joint."""
    closures: tuple[int, ...]
    """Object of each closure."""
    springs: tuple[int | None, ...]
    """Spring and damper of each joint that has them, by frames."""
    rotors: dict[int, int]
    """Constraint between a rotor and its joint, by the index of the joint."""

    def object_of(self, place: int) -> int:
        """The object of a frame, or of the world."""
        return self.ground if place == WORLD else self.bodies[place]

    def marker(self, place: int, point: Array, axes: Array = UNTURNED) -> int:
        """A new marker at a point of a frame.

        Args:
            place: Its place, or `WORLD`.
            point: The point in its axes [m], shape (3,).
            axes: Rotation from the marker's axes to those of the frame [-], shape (3, 3).
        """
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = axes, point - (0.0 if place == WORLD else self.chain[place].center)
        return int(self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=self.object_of(place), localHT=pose)))


@contextmanager
def built(mechanism: Mechanism, chain_poses: Sequence[Pose], left_out: Collection[int] = ()) -> Iterator[System]:
    """The mechanism in Exudyn, not assembled yet; Exudyn's exceptions become errors of the engine.

    Args:
        chain_poses: Initial poses of its frames.
        left_out: Redundant rows of the closures; only of closures between points.

    Raises:
        NotRepresentableError: If Exudyn's joints cannot represent it.
        EngineError: If Exudyn fails.
    """
    want_representable("exudyn", (*_coupled(mechanism), *_on_joints(mechanism)))
    with silenced():
        try:
            container = exudyn.SystemContainer()
            yield _build(mechanism, chain_poses, container.AddSystem(), left_out)
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineError(f"exudyn: {' '.join(str(error).split())[-300:]}") from error


def _build(mechanism: Mechanism, chain_poses: Sequence[Pose], mbs: Any, left_out: Collection[int]) -> System:
    chain, ground = frames(mechanism), int(mbs.AddObject(items.ObjectGround()))
    nodes, bodies = _bodies(mechanism, chain, chain_poses, mbs)
    bare = System(
        mechanism=mechanism,
        chain=chain,
        mbs=mbs,
        ground=ground,
        nodes=nodes,
        bodies=bodies,
        joints=(),
        closures=(),
        springs=(),
        rotors={},
    )
    pairs = [_joint(bare, place) for place in range(len(chain))]
    rotors = add_rotors(mechanism, chain, nodes, mbs)
    _add_loads(bare)
    return System(
        mechanism=mechanism,
        chain=chain,
        mbs=mbs,
        ground=ground,
        nodes=nodes,
        bodies=bodies,
        joints=tuple(joint for joint, _ in pairs),
        closures=tuple(_closures(bare, left_out)),
        springs=tuple(spring for _, spring in pairs),
        rotors=rotors,
    )


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    """Loads on the coordinates of several joints, and lengths of tendons."""
    yield from of_paths(mechanism)
    for closure in mechanism.coordinate_closures:
        yield f"equality '{closure.name}' (joints have no coordinates to couple)"
    driven = [drive for drive in mechanism.drives if not drive.is_joint]
    for tendon in (*driven, *(tendon.length for tendon in mechanism.tendons)):
        yield f"tendon '{tendon.name}' (joints have no coordinates to add)"


def _on_joints(mechanism: Mechanism) -> Iterator[str]:
    """Loads on a joint or along a line of an unsupported kind."""
    for joint in mechanism.joints:
        if joint.armature and joint.kind in BALL_OR_FREE:
            yield f"armature of {joint.kind} joint '{joint.name}' (rotors only on hinges and slides)"
        if joint.kind in BALL_OR_FREE and (joint.stiffness or joint.damping):
            yield (
                f"spring or damper of {joint.kind} joint '{joint.name}' (springs and dampers only on hinges and slides)"
            )
    for spring in mechanism.point_springs:
        if spring.stiffness and spring.rest[0] != spring.rest[1]:
            yield f"slack of spring '{spring.name}' (springs have a single rest length)"


def _bodies(
    mechanism: Mechanism, chain: Sequence[Frame], chain_poses: Sequence[Pose], mbs: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Nodes and objects of all frames; intermediate frames have no mass."""
    c, c_t, _ = coordinates(chain, chain_poses)
    last, nodes, bodies = places(chain), [], []
    for place, frame in enumerate(chain):
        own = slice(COORDINATES * place, COORDINATES * (place + 1))
        node = items.NodeRigidBodyEP(referenceCoordinates=c[own].tolist(), initialVelocities=c_t[own].tolist())
        nodes.append(int(mbs.AddNode(node)))
        body = mechanism.bodies[frame.body]
        mass, I = 0.0, np.zeros((3, 3))
        if last[frame.body] == place:
            mass, I = body.mass, body.inertia
        tensor = [I[0, 0], I[1, 1], I[2, 2], I[1, 2], I[0, 2], I[0, 1]]
        rigid = items.ObjectRigidBody(mass=mass, inertia=tensor, nodeNumber=nodes[-1])
        bodies.append(int(mbs.AddObject(rigid)))
    return tuple(nodes), tuple(bodies)


def _joint(system: System, place: int) -> tuple[int | None, int | None]:
    """The joint that places a frame, and its spring and damper."""
    frame, mbs = system.chain[place], system.mbs
    if frame.joint is None:
        fixed = [system.marker(frame.before, frame.position, frame.rotation), system.marker(place, np.zeros(3))]
        return int(mbs.AddObject(items.ObjectJointGeneric(markerNumbers=fixed))), None
    joint = system.mechanism.joints[frame.joint]
    if joint.kind == "free":
        return None, None
    axes = axes_along(joint.axis, X if joint.kind == "slide" else Z)
    markers = [
        system.marker(frame.before, frame.position + frame.rotation @ joint.anchor, frame.rotation @ axes),
        system.marker(place, joint.anchor, axes),
    ]
    return int(mbs.AddObject(OBJECTS[joint.kind](markerNumbers=markers))), _spring(system, joint, markers)


OBJECTS = {
    "hinge": items.ObjectJointRevoluteZ,
    "slide": items.ObjectJointPrismaticX,
    "ball": items.ObjectJointSpherical,
}
"""Exudyn's joint by kind."""


def _spring(system: System, joint: Joint, markers: list[int]) -> int | None:
    if not joint.stiffness and not joint.damping:
        return None
    values = {
        "markerNumbers": markers,
        "stiffness": joint.stiffness,
        "damping": joint.damping,
        "offset": float(joint.spring_reference[0] - joint.rest_position[0]),
    }
    if joint.kind == "slide":
        return int(system.mbs.AddObject(items.ObjectConnectorLinearSpringDamper(axisMarker0=X.tolist(), **values)))
    turns = system.mbs.AddNode(items.NodeGenericData(initialCoordinates=[0.0], numberOfDataCoordinates=1))
    spring = items.ObjectConnectorTorsionalSpringDamper(nodeNumber=turns, **values)  # the node counts full turns
    return int(system.mbs.AddObject(spring))


def _closures(system: System, left_out: Collection[int]) -> Iterator[int]:
    last, row = places(system.chain), 0
    for closure in system.mechanism.rigid_closures:
        second = system.marker(last[closure.body2], closure.point2)
        match closure:
            case WeldClosure():
                markers = [system.marker(last[closure.body1], closure.point1, closure.rotation), second]
                yield int(system.mbs.AddObject(items.ObjectJointGeneric(markerNumbers=markers)))
                row += 6
            case ConnectClosure():
                markers = [system.marker(last[closure.body1], closure.point1, UNTURNED), second]
                rows = [int(row + k not in left_out) for k in range(3)]
                yield int(system.mbs.AddObject(items.ObjectJointSpherical(markerNumbers=markers, constrainedAxes=rows)))
                row += 3
            case _:
                assert_never(closure)


def _add_loads(system: System) -> None:
    """Weights, gravity compensation, external wrenches, and springs between points."""
    mechanism, mbs, last = system.mechanism, system.mbs, places(system.chain)
    for b, body in enumerate(mechanism.bodies):
        if body.mass:
            marker = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=system.bodies[last[b]]))
            mbs.AddLoad(items.LoadMassProportional(markerNumber=marker, loadVector=mechanism.gravity.tolist()))
        if body.gravity_compensation:
            compensation = -body.gravity_compensation * body.mass * mechanism.gravity
            marker = system.marker(last[b], body.center)
            mbs.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=compensation.tolist()))
    for wrench in mechanism.wrenches:
        marker = system.marker(last[wrench.body], wrench.point)
        mbs.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=wrench.force.tolist()))
        mbs.AddLoad(items.LoadTorqueVector(markerNumber=marker, loadVector=wrench.moment.tolist()))
    for spring in mechanism.point_springs:
        markers = [system.marker(last[body], point) for body, point in spring.ends]
        values = {"referenceLength": spring.rest[0], "stiffness": spring.stiffness, "damping": spring.damping}
        mbs.AddObject(items.ObjectConnectorSpringDamper(markerNumbers=markers, **values))
