"""The upright four-bar of `planar_four_bar` as a USD of another program: centimetres, units of 0.5 kg, Y up, floats."""

import math
from pathlib import Path

from tests.planar_four_bar import COUPLER, CRANK, GROUND, ROCKER, START, terms

CRANK_ANGLE, COUPLER_ANGLE, ROCKER_ANGLE = map(float, terms(START).positions)
"""Angles of the bars at START, of the coupler relative to the crank [rad]."""
CM, HALF = 100.0, 2.0
"""Units of the file per metre and per kilogram."""
TO_Z = "(0.70710678, 0, -0.70710678, 0)"
"""Rotation that takes X to Z."""


def bar(name: str, length: float, x: float, y: float, angle: float) -> str:
    """A link with the inertia of a rod along X; its principal axes are turned by 90° about Z."""
    thin, about = HALF * CM**2 * 1e-3 * length**3 / 12, HALF * CM**2 * length * length**2 / 12
    return f"""
    def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
        float physics:mass = {HALF * length!r}
        point3f physics:centerOfMass = ({CM * length / 4!r}, 0, 0)
        float3 physics:diagonalInertia = ({about!r}, {thin!r}, {about!r})
        quatf physics:principalAxes = (0.70710678, 0, 0, 0.70710678)
        double3 xformOp:translate = ({CM * x!r}, {CM * y!r}, 3)
        double xformOp:rotateZ = {math.degrees(angle)!r}
        float3 xformOp:scale = (2, 2, 2)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ", "xformOp:scale"]
        def Sphere "picture" {{}}
    }}
"""


def end(k: int, body: str, x: float, y: float = 0.0, z: float = 0.0, rotation: str = TO_Z) -> str:
    """A side of a joint; links have a scale of 2."""
    scale = 2 if body else 1
    rel = f"rel physics:body{k} = </World/{body}>\n" if body else ""
    at = f"({CM * x / scale!r}, {CM * y / scale!r}, {z!r})"
    return f"{rel}        point3f physics:localPos{k} = {at}\n        quatf physics:localRot{k} = {rotation}\n        "


def hinge(name: str, ends: str, more: str = "", schemas: str = "") -> str:
    """A revolute joint about X of its frames."""
    return f"""
    def PhysicsRevoluteJoint "{name}" ({schemas}) {{
        uniform token physics:axis = "X"
        {ends}{more}
    }}
"""


def turned(angle: float) -> str:
    """A turn about Z after `TO_Z` [rad], so that a joint to the world is at zero at START."""
    w, z, c = math.cos(angle / 2), math.sin(angle / 2), math.sqrt(0.5)
    return f"({w * c!r}, {z * c!r}, {-w * c!r}, {z * c!r})"


B = (CRANK * math.cos(CRANK_ANGLE), CRANK * math.sin(CRANK_ANGLE))
LINKS = (
    bar("crank", CRANK, 0.0, 0.0, CRANK_ANGLE)
    + bar("coupler", COUPLER, *B, CRANK_ANGLE + COUPLER_ANGLE)
    + bar("rocker", ROCKER, GROUND, 0.0, ROCKER_ANGLE)
)
CRANK_JOINT = hinge(
    "crank_joint",
    end(0, "", 0.0, z=3.0, rotation=turned(CRANK_ANGLE)) + end(1, "crank", 0.0),
    schemas='prepend apiSchemas = ["PhysicsDriveAPI:angular"]',
)
COUPLER_JOINT = hinge("coupler_joint", end(0, "crank", CRANK) + end(1, "coupler", 0.0))
ROCKER_JOINT = hinge("rocker_joint", end(0, "", GROUND, z=3.0) + end(1, "rocker", 0.0))
LOOP = hinge(
    "loop", end(0, "coupler", COUPLER) + end(1, "rocker", ROCKER), "uniform bool physics:excludeFromArticulation = 1"
)
SCENE = 'def PhysicsScene "scene" {\n float physics:gravityMagnitude = 981\n}'


def usda(content: str = LINKS + LOOP + CRANK_JOINT + COUPLER_JOINT + ROCKER_JOINT + SCENE) -> str:
    """A USD of the robot."""
    return (
        '#usda 1.0\n(\n    defaultPrim = "World"\n    kilogramsPerUnit = 0.5\n    metersPerUnit = 0.01\n'
        f'    upAxis = "Y"\n)\ndef Xform "World" {{\n{content}\n}}\n'
    )


def write_usd(folder: Path, text: str = usda()) -> Path:
    """Write a USD."""
    path = folder / "model.usda"
    path.write_text(text, encoding="utf-8")
    return path
