"""Writes links and joints as USD: UsdPhysics in floats, with a double beside each.

Damping, friction and rotor inertia of joints are attributes of Newton's schema, springs of MuJoCo's, rotor inertias of
PhysX' too. Joints that close loops are outside the articulation.
"""

from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.linkage import GROUND, Connection, Link, Linkage
from loopcheck.robots.formats.rigid_frames import of_axis, quaternion
from loopcheck.robots.formats.usd import AXES, DRIVES, KINDS, PREFIX, usd_modules

ROOT = "/World"
TYPES = {kind: name for name, kind in KINDS.items()}


def usd_text(linkage: Linkage) -> str:
    """A linkage as the text of a USD in metres, kilograms and with Z up.

    Raises:
        MechanismError: If usd-core is not installed.
    """
    writer = _Writer(linkage)  # a layer lives as long as its stage
    return str(writer.stage.GetRootLayer().ExportToString())


def write_without_doubles(path: Path, copy: Path) -> None:
    """Write a copy of a USD without the doubles of loopcheck: standard attributes alone.

    Raises:
        MechanismError: If usd-core is not installed.
    """
    usd = usd_modules(path)
    stage = usd.Usd.Stage.Open(usd.Sdf.Layer.OpenAsAnonymous(str(path)))
    for prim in stage.Traverse():
        for attribute in prim.GetAttributes():
            if attribute.GetName().startswith(PREFIX) and attribute.GetName().count(":") > 1:
                prim.RemoveProperty(attribute.GetName())
    copy.write_text(stage.GetRootLayer().ExportToString(), encoding="utf-8")


class _Writer:
    """A stage under construction."""

    def __init__(self, linkage: Linkage) -> None:
        self.usd = usd_modules(linkage.path)
        self.linkage = linkage
        self.stage = self.usd.Usd.Stage.CreateInMemory()
        self.usd.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.usd.UsdGeom.SetStageUpAxis(self.stage, "Z")
        self.usd.UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        world = self.usd.UsdGeom.Xform.Define(self.stage, ROOT).GetPrim()
        self.stage.SetDefaultPrim(world)
        self.usd.UsdPhysics.ArticulationRootAPI.Apply(world)
        self.add_scene()
        self.paths = {link.name: self.unique(link.name) for link in linkage.links}
        for link in linkage.links:
            self.add_link(link)
        self.joints = {connection.name: self.unique(connection.name) for connection in linkage.connections}
        for connection in linkage.connections:
            self.add_joint(connection)

    def unique(self, name: str) -> str:
        """A path below the root that no prim has; it is reserved."""
        path = f"{ROOT}/{self.usd.Tf.MakeValidIdentifier(name)}"
        while self.stage.GetPrimAtPath(path):
            path += "_"
        self.stage.DefinePrim(path)
        return path

    def put(self, prim: Any, name: str, value: float | Array) -> None:
        """A standard attribute and its double."""
        types, Gf = self.usd.Sdf.ValueTypeNames, self.usd.Gf
        numbers = [float(number) for number in np.atleast_1d(value)]
        kinds = {1: (types.Float, types.Double), 3: (types.Float3, types.Double3), 4: (types.Quatf, types.Quatd)}
        make: Any = {1: (float, float), 3: (Gf.Vec3f, Gf.Vec3d), 4: (Gf.Quatf, Gf.Quatd)}[len(numbers)]
        standard = prim.GetAttribute(name)
        kind = standard.GetTypeName() if standard else kinds[len(numbers)][0]
        prim.CreateAttribute(name, kind, custom=False).Set(make[0](*numbers))
        prim.CreateAttribute(f"{PREFIX}{name}", kinds[len(numbers)][1], custom=True).Set(make[1](*numbers))

    def note(self, prim: Any, name: str, value: str) -> None:
        """A text of loopcheck."""
        prim.CreateAttribute(f"{PREFIX}{name}", self.usd.Sdf.ValueTypeNames.String, custom=True).Set(value)

    def add_scene(self) -> None:
        scene = self.usd.UsdPhysics.Scene.Define(self.stage, f"{ROOT}/physicsScene").GetPrim()
        g = self.linkage.gravity
        length = float(np.linalg.norm(g))
        self.put(scene, "physics:gravityDirection", g / length if length else np.array([0.0, 0.0, -1.0]))
        self.put(scene, "physics:gravityMagnitude", length)

    def add_link(self, link: Link) -> None:
        Gf, UsdPhysics = self.usd.Gf, self.usd.UsdPhysics
        xform = self.usd.UsdGeom.Xform.Define(self.stage, self.paths[link.name])
        precision = self.usd.UsdGeom.XformOp.PrecisionDouble
        xform.AddTranslateOp(precision).Set(Gf.Vec3d(*map(float, link.X[:3, 3])))
        xform.AddOrientOp(precision).Set(Gf.Quatd(*map(float, quaternion(link.X[:3, :3]))))
        prim = xform.GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        UsdPhysics.MassAPI.Apply(prim)
        self.note(prim, "name", link.name)
        if link.free_joint:
            self.note(prim, "free_joint", link.free_joint)
        if not np.any(link.inertia):
            self.note(prim, "massless", "true")
        moments, axes = np.linalg.eigh(link.inertia)
        axes[:, 2] *= np.linalg.det(axes)  # a rotation, not a reflection
        self.put(prim, "physics:mass", link.mass)
        self.put(prim, "physics:centerOfMass", link.center)
        self.put(prim, "physics:diagonalInertia", np.maximum(moments, 0.0))
        self.put(prim, "physics:principalAxes", quaternion(axes))

    def add_joint(self, connection: Connection) -> None:
        types = self.usd.Sdf.ValueTypeNames
        prim = self.stage.DefinePrim(self.joints[connection.name], TYPES[connection.kind])
        self.note(prim, "name", connection.name)
        letter, Q = _axis(connection.axis)
        ends = ((connection.parent, connection.parent_frame), (connection.child, connection.child_frame))
        for k, (link, X) in enumerate(ends):
            if link != GROUND:
                prim.CreateRelationship(f"physics:body{k}", custom=False).SetTargets([self.paths[link]])
            self.put(prim, f"physics:localPos{k}", X[:3, 3])
            self.put(prim, f"physics:localRot{k}", quaternion(X[:3, :3] @ Q))
        if connection.closes_loop:
            prim.CreateAttribute("physics:excludeFromArticulation", types.Bool, custom=False).Set(True)
        if connection.kind in DRIVES:
            prim.CreateAttribute("physics:axis", types.Token, custom=False).Set(letter)
            self.add_forces(prim, connection)
            self.add_drive(prim, connection)

    def add_forces(self, prim: Any, connection: Connection) -> None:
        """Limits, forces and drive of a revolute or prismatic joint."""
        degrees = 180 / np.pi if connection.kind == "revolute" else 1.0
        for name, value in zip(("lower", "upper"), connection.limits or (), strict=False):
            self.put(prim, f"physics:{name}Limit", value * degrees)
        passive = {
            "newton:damping": connection.damping / degrees,
            "newton:friction": connection.friction,
            "newton:armature": connection.armature,
            "physxJoint:armature": connection.armature,
        }
        for name, value in passive.items():
            if value:
                prim.AddAppliedSchema("NewtonJointAPI" if name.startswith("newton") else "PhysxJointAPI")
                self.put(prim, name, value)
        if connection.stiffness:
            prim.AddAppliedSchema("MjcJointAPI")
            spring = {"stiffness": connection.stiffness, "springref": connection.spring_reference * degrees}
            for name, value in spring.items():
                kind = self.usd.Sdf.ValueTypeNames.Double
                prim.CreateAttribute(f"mjc:{name}", kind, custom=False).Set(float(value))
        if connection.mimic is not None:
            prim.AddAppliedSchema("NewtonMimicAPI")
            leader = self.joints[connection.mimic.leader]
            prim.CreateRelationship("newton:mimicJoint", custom=False).SetTargets([leader])
            self.put(prim, "newton:mimicCoef0", connection.mimic.offset * degrees)
            self.put(prim, "newton:mimicCoef1", connection.mimic.multiplier)

    def add_drive(self, prim: Any, connection: Connection) -> None:
        """The motor of a joint."""
        drive = DRIVES[connection.kind][0]
        for motor in self.linkage.motors:
            if motor.joint == connection.name:
                self.usd.UsdPhysics.DriveAPI.Apply(prim, drive)
                self.note(prim, "actuator", motor.name)
                prim.CreateAttribute(f"{PREFIX}gear", self.usd.Sdf.ValueTypeNames.Double).Set(float(motor.gear))
                if connection.effort is not None:
                    self.put(prim, f"drive:{drive}:physics:maxForce", connection.effort)


def _axis(axis: Array) -> tuple[str, Array]:
    """Letter of an axis, and the rotation that takes the axis with this letter to it [-], shape (3, 3)."""
    for letter, direction in AXES.items():
        if np.array_equal(axis, direction):
            return letter, np.eye(3)
    normal = np.cross(AXES["X"], axis)
    sine, cosine = float(np.linalg.norm(normal)), float(axis[0])
    about = normal / sine if sine else AXES["Z"]
    return "X", of_axis(about, float(np.arctan2(sine, cosine)))
