"""Forces in the joints as Exudyn reports them: outputs of its joints, with drives, rotors and springs beside them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.exudyn._exudyn import exudyn
from loopcheck.engines.exudyn._frames import places
from loopcheck.engines.exudyn._system import System, X, Z
from loopcheck.engines.mechanics import axes_along
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD, WeldClosure

TURNS = np.array([1.0, -1.0, -1.0])
"""Signs of `TorqueLocal` of a joint without rotation: its multipliers are those of products of axes, z·y, z·x, x·y."""
READINGS = (
    WrenchReading(
        name="ForceLocal",
        carriers="bodies",
        point="marker on the child",
        axes="force: marker on the parent, of a spherical joint world; moment: marker on the child",
        sign="minus on the child; moments are multipliers of products of axes, with other signs and places",
        code="""
F, T = (mbs.GetObjectOutput(joint, kind) for kind in (OutputVariableType.ForceLocal, OutputVariableType.TorqueLocal))
force = -R_child.T @ R_parent @ R_marker_on_parent @ F
moment = R_marker_on_child @ [-T[1], T[0], 0]  # ObjectJointRevoluteZ; others: R_marker_on_child @ [-T[0], T[1], T[2]]
moment += axis * (effort - spring)  # of a slide: force; both are other objects: drive and spring with damper
""",
        drive="not included",
    ),
    WrenchReading(
        name="Force",
        carriers="closures",
        point="marker on body 1",
        axes="world; ForceLocal and TorqueLocal of a generic joint: marker on body 1",
        sign="on body 1; moments along y and z minus",
        code="""
force = R_body_1.T @ mbs.GetObjectOutput(spherical, OutputVariableType.Force)
force = R_marker @ mbs.GetObjectOutput(generic, OutputVariableType.ForceLocal)
moment = R_marker @ (mbs.GetObjectOutput(generic, OutputVariableType.TorqueLocal) * [1, -1, -1])
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


class Read(NamedTuple):
    """Outputs at the end of a step: force and moment of each object, zero if it has none [N, N m]."""

    joints: Array
    """Of the joints of the frames, shape (frames, 6)."""
    springs: Array
    """Along the joints of the frames, shape (frames,)."""
    closures: Array
    """Shape (closures, 6)."""


def read(system: System) -> Read:
    """Outputs in the present state."""
    kinds = exudyn.OutputVariableType

    def output(number: int, *kinds: object) -> Array:
        return np.concatenate([np.atleast_1d(system.mbs.GetObjectOutput(number, kind)) for kind in kinds])

    def wrench(number: int | None) -> Array:
        if number is None:
            return np.zeros(6)
        if "Spherical" in system.mbs.GetObject(number)["objectType"]:
            return np.concatenate([output(number, kinds.Force), np.zeros(3)])
        return output(number, kinds.ForceLocal, kinds.TorqueLocal)

    def along(place: int, spring: int | None) -> float:
        joint = system.chain[place].joint
        if spring is None or joint is None:
            return 0.0
        is_slide = system.mechanism.joints[joint].kind == "slide"
        return float(output(spring, kinds.ForceLocal if is_slide else kinds.TorqueLocal)[0])

    return Read(
        np.array([wrench(joint) for joint in system.joints]).reshape(-1, 6),
        np.array([along(place, spring) for place, spring in enumerate(system.springs)]),
        np.array([wrench(closure) for closure in system.closures]).reshape(-1, 6),
    )


def wrenches(system: System, R: Array, along: Array, readings: Sequence[Read]) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (nt, connections, 6).

    Args:
        R: Rotations of all frames [-], shape (nt, frames, 3, 3).
        along: Efforts of drives and rotors on the joints [N or N m], shape (nt, joints).
        readings: Results of `read`.
    """
    mechanism, last, carriers = system.mechanism, places(system.chain), connections(system.mechanism)
    of_joints, springs, of_closures = (np.array(values) for values in zip(*readings, strict=True))
    bodies, closures = np.full((2, len(R), len(carriers), 6), np.nan)
    number = iter(range(len(system.closures)))
    for k, (_, body, _, closure) in enumerate(carriers):
        R_T = np.eye(3) if body == WORLD else R[:, last[body]].swapaxes(1, 2)
        if closure is not None:
            force, moment = np.split(of_closures[:, next(number)], 2, axis=1)
            axes = closure.rotation if isinstance(closure, WeldClosure) else R_T
            force, moment = _turned(axes, force), _turned(axes, TURNS * moment)
            closures[:, k] = np.concatenate([moment, force], axis=1)
            continue
        frame = system.chain[place := last[body]]
        j = -1 if frame.joint is None else frame.joint
        joint = None if j < 0 else mechanism.joints[j]
        kind = "" if joint is None else joint.kind
        axes = np.eye(3) if joint is None else axes_along(joint.axis, X if kind == "slide" else Z)
        before = np.eye(3) if frame.before == WORLD else R[:, frame.before]
        force, moment = np.split(of_joints[:, place], 2, axis=1)
        force = -_turned(R_T if kind == "ball" else R_T @ before @ frame.rotation @ axes, force)
        moment = _turned(axes, moment[:, [1, 0, 2]] * [-1, 1, 0] if kind == "hinge" else -TURNS * moment)
        if joint is not None and kind in ("hinge", "slide"):
            added = (along[:, [j]] - springs[:, [place]]) * joint.axis
            force, moment = (force + added, moment) if kind == "slide" else (force, moment + added)
        bodies[:, k] = np.concatenate([moment, force], axis=1)
    return {"ForceLocal": bodies, "Force": closures}


def _turned(R: Array, vectors: Array) -> Array:
    """Vectors (nt, 3) by a rotation (3, 3) or by one each (nt, 3, 3)."""
    return np.asarray((R @ vectors[..., None])[..., 0])
