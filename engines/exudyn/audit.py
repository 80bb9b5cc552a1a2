"""Exudyn's model and terms: read from its items, and from the terms of its equations.

Its equations are in the coordinates of all bodies, c. The motions of the bodies per joint velocity, ċ = T q̇, project
them on the joints by congruence. Forces of dampers are separated from velocity terms by their sign: they alone change
it with that of the velocities.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.exudyn._equations import closure_bias, equations, rates_of_coordinates, rows_of
from loopcheck.engines.exudyn._frames import coordinates, frames, places, poses
from loopcheck.engines.exudyn._rotors import rotor_dofs, with_rotors
from loopcheck.engines.exudyn._system import System, X, Z, built
from loopcheck.engines.inventory_fields import joint_fields, names_of
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism

KINDS = {"JointRevoluteZ": "hinge", "JointPrismaticX": "slide", "JointSpherical": "ball"}
"""Kind of a joint by Exudyn's name of it."""
REBUILT = {
    "armature": "separate coordinate with a mass, constrained to the rate of its joint",
    "transmission": "drives act on joints; multipliers are divided by the gears",
}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    chain, at_rest = frames(mechanism), np.zeros(mechanism.nv)
    T = rates_of_coordinates(mechanism, chain, q)
    with built(mechanism, poses(mechanism, chain, q, at_rest, at_rest)) as system:
        system.mbs.Assemble()
        tried = equations(system, [0 * T[:, 0], *T.T, *-T.T] if T.size else [np.zeros(len(T))])
        rest, forward, backward = (
            tried.forces[0],
            tried.forces[1 : 1 + T.shape[1]],
            tried.forces[1 + T.shape[1] :],
        )
        against = [(b - f) / 2 for f, b in zip(forward, backward, strict=True)]
        force, moment = _loads(system)
        stiffness, reference = _springs(system)
        return Inventory(
            **names_of(mechanism),
            **_bodies(system),
            **joint_fields(_joints(system)),
            armature=_armature(mechanism, tried.M),
            damping=T.T @ np.reshape(against, T.T.shape).T,
            friction=np.zeros(mechanism.nv),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=_gravity(system),
            force=force,
            moment=moment,
            rest_force=-T.T @ rest,
            J=tried.C[rows_of(system, system.closures)] @ T,
            opening=_opening(system),
            transmission=mechanism.selection,
            rebuilt=REBUILT,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    of_states = [_at_state(mechanism, *state) for state in zip(q, qd, strict=True)]
    M, bias, passive, J, J_dot_qd = (np.array(values) for values in zip(*of_states, strict=True))
    return Matrices(M=M, bias=bias, passive=passive, J=J, closure_bias=J_dot_qd)


def _at_state(mechanism: Mechanism, q: Array, qd: Array) -> tuple[Array, ...]:
    """M, bias, passive forces, loop Jacobian and J̇ q̇ in the coordinates of the joints."""
    chain = frames(mechanism)
    chain_poses = poses(mechanism, chain, q, qd, 0 * qd)
    T, (_, c_t, c_tt) = rates_of_coordinates(mechanism, chain, q), coordinates(chain, chain_poses)
    c_t, c_tt = with_rotors(mechanism, c_t, qd), with_rotors(mechanism, c_tt, 0 * qd)
    with built(mechanism, chain_poses) as system:
        system.mbs.Assemble()
        terms = equations(system, [c_t, -c_t])
        rows = rows_of(system, system.closures)
    forward, backward = terms.forces
    bias = T.T @ (terms.M @ c_tt - (forward + backward) / 2)
    loops = terms.C[rows] @ T, closure_bias(mechanism, q, qd)
    return T.T @ terms.M @ T, bias, T.T @ (forward - backward) / 2, *loops


def _bodies(system: System) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    last = places(system.chain)
    items = [system.mbs.GetObject(system.bodies[last[b]]) for b in range(len(system.mechanism.bodies))]
    placed = [_pose(system, system.bodies[last[b]]) for b in range(len(system.mechanism.bodies))]
    about_center = [_about_center(item) for item in items]
    return {
        "mass": np.array([item["mass"] for item in items]),
        "total_mass": sum(system.mbs.GetObject(body)["mass"] for body in system.bodies),
        "center": np.array([p + R @ item["centerOfMass"] for (R, p), item in zip(placed, items, strict=True)]),
        "moments": np.array([np.linalg.eigvalsh(I) for I in about_center]),
        "inertia": np.array([R @ I @ R.T for (R, _), I in zip(placed, about_center, strict=True)]),
    }


def _about_center(item: Any) -> Array:
    """Inertia of a body of Exudyn about the mass centre, from that about its origin [kg m²], shape (3, 3)."""
    xx, yy, zz, yz, xz, xy = item["inertia"]
    c = np.array(item["centerOfMass"])
    steiner = item["mass"] * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - steiner


def _pose(system: System, body: int) -> tuple[Array, Array]:
    """Pose of a body in Exudyn: its axes [-], shape (3, 3), and its origin [m], shape (3,)."""
    if body == system.ground:
        return np.eye(3), np.zeros(3)
    node = system.mbs.GetObject(body)["nodeNumber"]
    c = np.array(system.mbs.GetNode(node)["referenceCoordinates"])
    return Rotation.from_quat(np.roll(c[3:], -1)).as_matrix(), c[:3]


def _marker(system: System, marker: int) -> tuple[int, Array, Array]:
    """Body of a marker of Exudyn, its position [m], shape (3,), and its axes [-], shape (3, 3)."""
    item = system.mbs.GetMarker(marker)
    R, p = _pose(system, int(item["bodyNumber"]))
    local = np.array(item["localHT"])
    return int(item["bodyNumber"]), p + R @ local[:3, 3], R @ local[:3, :3]


def _joints(system: System) -> Iterator[tuple[str, Any, Any]]:
    """Kind of each joint, its axis and a point on the axis."""
    items = {frame.joint: number for frame, number in zip(system.chain, system.joints, strict=True)}
    for number in (items[j] for j in range(len(system.mechanism.joints))):
        if number is None:
            yield "free", None, None
        else:
            item = system.mbs.GetObject(number)
            _, point, R = _marker(system, item["markerNumbers"][0])
            kind = KINDS[item["objectType"]]
            yield kind, R @ (Z if kind == "hinge" else X), point


def _springs(system: System) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest position of its spring, each of shape (nj,)."""
    stiffness, rest = np.zeros(len(system.mechanism.joints)), np.zeros(len(system.mechanism.joints))
    for frame, number in zip(system.chain, system.springs, strict=True):
        if number is not None and frame.joint is not None:
            item = system.mbs.GetObject(number)
            stiffness[frame.joint] = item["stiffness"]
            if item["stiffness"]:
                rest[frame.joint] = item["offset"] + system.mechanism.joints[frame.joint].rest_position[0]
    return stiffness, rest


def _armature(mechanism: Mechanism, M: Array) -> Array:
    """Inertia of the rotors on the dofs of their joints [kg or kg m²], shape (nv, nv), from Exudyn's mass matrix."""
    armature, dofs = np.zeros(mechanism.nv), rotor_dofs(mechanism)
    armature[dofs] = np.diag(M)[len(M) - len(dofs) :]
    return np.diag(armature)


def _every_load(system: System) -> list[Any]:
    return [system.mbs.GetLoad(k) for k in range(system.mbs.systemData.NumberOfLoads())]


def _gravity(system: System) -> Array:
    """Acceleration of gravity, a load on each body in Exudyn [m/s²], shape (3,)."""
    weights = [load["loadVector"] for load in _every_load(system) if load["loadType"] == "MassProportional"]
    return np.array(weights[0]) if weights else np.zeros(3)


def _loads(system: System) -> tuple[Array, Array]:
    """Force on each body and moment about its mass centre, each of shape (nb, 3)."""
    nb, last = len(system.mechanism.bodies), places(system.chain)
    whose = {system.bodies[last[b]]: b for b in range(nb)}
    force, moment = np.zeros((nb, 3)), np.zeros((nb, 3))
    for load in _every_load(system):
        if load["loadType"] == "MassProportional":
            continue
        body, point, _ = _marker(system, load["markerNumber"])
        R, p = _pose(system, body)
        vector = np.array(load["loadVector"])
        if load["loadType"] == "ForceVector":
            force[whose[body]] += vector
            moment[whose[body]] += np.cross(point - p - R @ system.mbs.GetObject(body)["centerOfMass"], vector)
        else:
            moment[whose[body]] += vector
    return force, moment


def _opening(system: System) -> float:
    """Gap of the widest loop [m or rad]."""
    widest = 0.0
    for closure in system.closures:
        item = system.mbs.GetObject(closure)
        (_, p1, R1), (_, p2, R2) = (_marker(system, marker) for marker in item["markerNumbers"])
        widest = max(widest, float(np.linalg.norm(p1 - p2)))
        if item["objectType"] == "JointGeneric":
            widest = max(widest, float(Rotation.from_matrix(R1.T @ R2).magnitude()))
    return widest
