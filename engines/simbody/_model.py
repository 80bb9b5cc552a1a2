"""The spanning tree of a mechanism in Simbody, its closures, rotors and loads, built through OpenSim's API.

A body with several joints gets bodies of negligible mass between them. Coordinates of hinges and slides are relative to
the reference of the joint. The velocity of a ball joint is the angular velocity along the axes of the body before it,
that of a free joint along the world's: both differ from ours by the rotation of the joint; its rate drops out of the
accelerations, as R (ω × ω) is zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.mechanics import BALL_OR_FREE, axes_along, rotation, without_mass
from loopcheck.engines.simbody._loads import add_actuator, add_efforts, add_loads
from loopcheck.engines.simbody._loops import add_couplers, add_loops, want_carried
from loopcheck.engines.simbody._opensim import angles, fixed_angles, matrix, opensim, vec3, vector
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, Coordinate, Joint, Mechanism

X, Z = np.eye(3)[0], np.eye(3)[2]
NO_EFFORTS = np.zeros(0)
NEXT_TO_NOTHING = 1e-100
"""Mass of bodies between joints of a body [kg]; OpenSim orders its tree by mass and rejects two zeros in sequence."""
UNASSEMBLED = 1e100
"""Gap up to which OpenSim leaves its initial positions alone [m or rad]: a route puts it in closed ones anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotor:
    """A body that turns on the ground as a coordinate of the mechanism moves: inertia that only its rate feels."""

    coordinate: Coordinate
    inertia: float
    """[kg or kg m²]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A mechanism in Simbody."""

    mechanism: Mechanism
    model: Any
    """OpenSim's model, owner of all objects below."""
    state: Any
    """A state of it, to be set."""
    bodies: tuple[Any, ...]
    """OpenSim's body of each body."""
    joints: tuple[Any, ...]
    """OpenSim's joint of each joint."""
    rotors: tuple[Rotor, ...]
    rotor_coordinates: tuple[Any, ...]
    """OpenSim's coordinate of each rotor."""
    places: tuple[tuple[int, ...], ...]
    """Indices of the coordinates of each joint, then of each rotor, among Simbody's velocities."""
    q_places: tuple[tuple[int, ...], ...]
    """Indices of the same coordinates among Simbody's positions."""
    actuators: Mapping[int, Any]
    """OpenSim's actuator by the index of its joint, if built with actuators."""
    drives: int
    """Number of rows of Simbody's constraints that are drives; they come first."""
    loop_rows: int
    """Number of the closures' rows; they come next."""

    def rates(self, q: JointPositions) -> Array:
        """Simbody's velocities per joint velocity [-, or m per rad], shape (nu, nv)."""
        mechanism = self.mechanism
        T = np.zeros((self.state.getNU(), mechanism.nv))
        for j, joint in enumerate(mechanism.joints):
            places, dofs = list(self.places[j]), mechanism.dof_slices[j]
            if joint.kind not in BALL_OR_FREE:
                T[places, dofs] = np.eye(1)
                continue
            T[places[:3], dofs.stop - 3 : dofs.stop] = rotation(q[mechanism.q_slices[j]]).as_matrix()
            T[places[3:], dofs.start : dofs.stop - 3] = np.eye(len(places) - 3)
        for rotor, (place,) in zip(self.rotors, self.places[len(mechanism.joints) :], strict=True):
            T[place] = mechanism.rates_of((rotor.coordinate,))[0]
        return T

    def place(self, coordinate: Coordinate) -> int:
        """Place of a driven coordinate among Simbody's velocities."""
        return self.places[self._own(coordinate)][0]

    def q_place(self, coordinate: Coordinate) -> int:
        """Place of a driven coordinate among Simbody's positions."""
        return self.q_places[self._own(coordinate)][0]

    def rotor(self, coordinate: Coordinate) -> int:
        """Place among the rotors of the rotor that turns with a tendon."""
        return [rotor.coordinate.name for rotor in self.rotors].index(coordinate.name)

    def _own(self, coordinate: Coordinate) -> int:
        return coordinate.joints[0] if coordinate.is_joint else len(self.joints) + self.rotor(coordinate)

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state."""
        mechanism, values = self.mechanism, np.zeros(self.state.getNQ())
        for j, joint in enumerate(mechanism.joints):
            x, places = q[mechanism.q_slices[j]], list(self.q_places[j])
            if joint.kind in BALL_OR_FREE:
                values[places] = [*angles(rotation(x).as_matrix()), *x[:-4]]
            else:
                values[places] = x - joint.rest_position
        off = (q - mechanism.rest_position)[None]
        for rotor, (place,) in zip(self.rotors, self.q_places[len(mechanism.joints) :], strict=True):
            values[place] = mechanism.values_of((rotor.coordinate,), off)[0, 0]
        self.state.setQ(vector(values))
        self.state.setU(vector(self.rates(q) @ qd))

    def start(self, q: JointPositions, qd: JointVelocities, t: float) -> None:
        """Set the state in which a simulation starts.

        Args:
            t: Time [s].

        Raises:
            NotRepresentableError: If rotors turn there and no body moves.
        """
        self.put(q, qd)
        self.state.setTime(t)
        self.model.realizePosition(self.state)
        mass = opensim.Matrix()
        self.model.getMatterSubsystem().calcM(self.state, mass)
        places = [place for joint in self.places[: len(self.joints)] for place in joint]
        T = self.rates(q)[places]
        M = T.T @ matrix(mass)[np.ix_(places, places)] @ T
        want_representable("simbody", without_mass(self.mechanism, M))


def build(
    mechanism: Mechanism,
    driven: Sequence[tuple[Coordinate, Any]] = (),
    *,
    efforts: Array = NO_EFFORTS,
    actuated: bool = False,
) -> Model:
    """A mechanism in Simbody, at rest in OpenSim's initial positions.

    Args:
        driven: Coordinates with prescribed motion, with OpenSim's function of time.
        efforts: Constant forces on the joints, hinges and slides only [N or N m], shape (nv,); by default none.
        actuated: Whether driven joints have actuators.

    Raises:
        NotRepresentableError: If an element of the mechanism has no counterpart.
    """
    want_carried(mechanism)
    model = opensim.Model()
    model.setGravity(vec3(mechanism.gravity))
    bodies: list[Any] = []
    joints: list[Any] = [None] * len(mechanism.joints)
    for b in range(len(mechanism.bodies)):
        bodies.append(_add_body(model, mechanism, b, bodies, joints))
    rotors = _rotors(mechanism, [coordinate for coordinate, _ in driven])
    axles = [_add_rotor(model, rotor, k) for k, rotor in enumerate(rotors)]
    rows = add_loops(model, mechanism, bodies, joints)
    add_couplers(model, mechanism, joints, [(r.coordinate, axle) for r, axle in zip(rotors, axles, strict=True)])
    add_loads(model, mechanism, bodies, joints)
    add_efforts(model, mechanism, joints, efforts)
    actuators = {j: add_actuator(model, joints[j]) for j in mechanism.actuated_joints} if actuated else {}
    by_name = {rotor.coordinate.name: axle for rotor, axle in zip(rotors, axles, strict=True)}
    for coordinate, function in driven:
        own = joints[coordinate.joints[0]] if coordinate.is_joint else by_name[coordinate.name]
        own.updCoordinate().setPrescribedFunction(function)
        own.updCoordinate().setDefaultIsPrescribed(True)
    model.set_assembly_accuracy(UNASSEMBLED)
    state = model.initSystem()
    places = [_places(joint, state) for joint in (*joints, *axles)]
    return Model(
        mechanism=mechanism,
        model=model,
        state=state,
        bodies=tuple(bodies),
        joints=tuple(joints),
        rotors=tuple(rotors),
        rotor_coordinates=tuple(axle.getCoordinate() for axle in axles),
        places=tuple(place for place, _ in places),
        q_places=tuple(place for _, place in places),
        actuators=actuators,
        drives=len(driven),
        loop_rows=rows,
    )


def added_inertia(model: Model, coordinate: Coordinate) -> float:
    """Inertia that a driven coordinate has in Simbody alone, to be a coordinate there [kg or kg m²]."""
    tendons = [tendon for tendon in model.mechanism.tendons if tendon.name == coordinate.name]
    if coordinate.is_joint or any(tendon.armature for tendon in tendons):
        return 0.0
    return model.rotors[model.rotor(coordinate)].inertia


def _add_body(model: Any, mechanism: Mechanism, b: int, bodies: list[Any], joints: list[Any]) -> Any:
    """Add a body with its joints, with massless bodies between them."""
    body = mechanism.bodies[b]
    carrier = model.getGround() if body.parent == WORLD else bodies[body.parent]
    position, R = body.position, body.rotation
    own = mechanism.joints_of[b]
    for k, j in enumerate(own[:-1]):
        between = _body(model, f"body{b}before{k}", NEXT_TO_NOTHING, np.zeros(3), np.zeros((3, 3)))
        joints[j] = _add_joint(model, mechanism.joints[j], j, (carrier, position, R), between)
        carrier, position, R = between, np.zeros(3), np.eye(3)
    added = _body(model, f"body{b}", body.mass, body.center, body.inertia)
    if own:
        joints[own[-1]] = _add_joint(model, mechanism.joints[own[-1]], own[-1], (carrier, position, R), added)
    else:
        placed = (vec3(position), fixed_angles(R), added, vec3(np.zeros(3)), vec3(np.zeros(3)))
        model.addJoint(opensim.WeldJoint(f"weld{b}", carrier, *placed))
    return added


def _body(model: Any, name: str, mass: float, center: Array, I: Array) -> Any:
    inertia = opensim.Inertia(*(float(I[place]) for place in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    body = opensim.Body(name, float(mass), vec3(center), inertia)
    model.addBody(body)
    return body


def _add_joint(model: Any, joint: Joint, j: int, place: tuple[Any, Array, Array], child: Any) -> Any:
    """Add a joint between a carrier, with the pose of the child on it, and the child."""
    carrier, position, R = place
    axes, anchor = np.eye(3), joint.anchor
    if joint.kind == "free":  # its position is not counted from where the body is given
        position, R, anchor = np.zeros(3), np.eye(3), np.zeros(3)
    elif joint.kind != "ball":
        axes = axes_along(joint.axis, Z if joint.kind == "hinge" else X)
    on_carrier = vec3(position + R @ anchor), fixed_angles(R @ axes)
    added = KINDS[joint.kind](f"joint{j}", carrier, *on_carrier, child, vec3(anchor), fixed_angles(axes))
    for k in range(added.numCoordinates()):
        added.upd_coordinates(k).setName(coordinate_name(j, k))
    model.addJoint(added)
    return added


KINDS = {
    "hinge": opensim.PinJoint,
    "slide": opensim.SliderJoint,
    "ball": opensim.BallJoint,
    "free": opensim.FreeJoint,
}
"""OpenSim's joint by kind."""


def coordinate_name(j: int, k: int = 0) -> str:
    """Name of a coordinate of a joint in OpenSim."""
    return f"q{j}_{k}"


STAND_IN = 1.0
"""Inertia of the rotor of a driven tendon without armature; its effort is subtracted [kg or kg m²]."""


def _rotors(mechanism: Mechanism, driven: Sequence[Coordinate]) -> list[Rotor]:
    """Rotors of joints and tendons with armature, and of driven tendons, which are no coordinates there."""
    rotors = [
        Rotor(coordinate=Coordinate(name=f"rotor{j}", joints=(j,), weights=np.ones(1)), inertia=joint.armature)
        for j, joint in enumerate(mechanism.joints)
        if joint.armature
    ]
    tendons = {tendon.name: tendon.armature for tendon in mechanism.tendons if tendon.armature}
    lengths = {tendon.name: tendon.length for tendon in mechanism.tendons if tendon.armature}
    lengths |= {coordinate.name: coordinate for coordinate in driven if not coordinate.is_joint}
    rotors += [Rotor(coordinate=length, inertia=tendons.get(name, STAND_IN)) for name, length in lengths.items()]
    return rotors


def _add_rotor(model: Any, rotor: Rotor, k: int) -> Any:
    """A wheel on the ground, with an immobile mass centre."""
    wheel = _body(model, f"rotor{k}", rotor.inertia, np.zeros(3), rotor.inertia * np.eye(3))
    none = vec3(np.zeros(3))
    axle = opensim.PinJoint(f"axle{k}", model.getGround(), none, none, wheel, none, none)
    axle.updCoordinate().setName(f"rotor{k}")
    model.addJoint(axle)
    return axle


def _places(joint: Any, state: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Places of the coordinates of a joint among Simbody's velocities and positions."""
    places, q_places = [], []
    for k in range(joint.numCoordinates()):
        coordinate, probe = joint.get_coordinates(k), opensim.State(state)
        probe.setU(vector(np.zeros(state.getNU())))
        coordinate.setSpeedValue(probe, 1.0)
        places.append(int(np.flatnonzero(probe.getU().to_numpy())[0]))
        before = np.array(probe.getQ().to_numpy())
        coordinate.setValue(probe, float(coordinate.getValue(probe)) + 0.25, False)
        q_places.append(int(np.flatnonzero(probe.getQ().to_numpy() != before)[0]))
    return tuple(places), tuple(q_places)
