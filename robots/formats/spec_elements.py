"""Elements added to an `MjSpec`, motors and equalities that close loops, and its text."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from packaging.version import Version

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.rigid_frames import of_quaternion, quaternion

KINDS = {"hinge": mujoco.mjtJoint.mjJNT_HINGE, "slide": mujoco.mjtJoint.mjJNT_SLIDE, "ball": mujoco.mjtJoint.mjJNT_BALL}

FREE = mujoco.mjtJoint.mjJNT_FREE
SHAPES = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
}
DIGITS = 15
"""Of the numbers in a written MJCF."""
LEAST = 2e-15
"""Principal moment of a rod about its axis [kg m²]: MuJoCo refuses 0, and round-off is larger in every sum with it."""
ROUND_OFF = 1e-12
"""Largest excess of a principal moment over the sum of the others, as for a plate, relative to this moment [-]."""
FINDS_MOMENTS = Version(mujoco.__version__) >= Version("3.14")
"""Whether MuJoCo diagonalizes tensors to round-off; before, to 6e-7 of the largest moment."""
GET_DIGITS, SET_DIGITS = "_mjPRIVATE__get_xml_precision", "_mjPRIVATE__set_xml_precision"


def add_motor(spec: Any, joint: str) -> Any:
    """Add a motor of the same name to a joint, or to a tendon if no joint has the name, and return it."""
    motor, is_joint = spec.add_actuator(), any(each.name == joint for each in spec.joints)
    motor.name, motor.target = joint, joint
    motor.trntype = mujoco.mjtTrn.mjTRN_JOINT if is_joint else mujoco.mjtTrn.mjTRN_TENDON
    motor.set_to_motor()
    return motor


def add_joint(body: Any, name: str, kind: str, axis: Array) -> Any:
    """Add a joint at the origin of a body, and return it.

    Args:
        kind: A key of `KINDS`.
        axis: Axis in the body frame [-], shape (3,); unused by balls.
    """
    joint = body.add_joint()
    joint.name, joint.type, joint.axis = name, KINDS[kind], axis
    return joint


def set_inertia(body: Any, mass: float, center: Array, inertia: Array) -> None:
    """State the inertia of a body by its principal moments, which every release of MuJoCo reads alike.

    Args:
        mass: Mass [kg].
        center: Mass centre in the frame of the body [m], shape (3,).
        inertia: Tensor about the mass centre, axes of the body [kg m²], shape (3, 3).
    """
    body.explicitinertial, body.mass, body.ipos = True, mass, center
    if not np.any(inertia):
        return
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, LEAST)
    if 0 < moments[2] - moments[:2].sum() < ROUND_OFF * moments[2]:
        moments[2] = moments[:2].sum()  # MuJoCo refuses it for an ulp
    axes[:, 2] *= np.linalg.det(axes)  # a rotation, not a reflection
    body.inertia, body.iquat = moments, quaternion(axes)


def exact_tensors(spec: Any) -> None:
    """State full tensors by principal moments, with a MuJoCo that does not find them to round-off."""
    for body in () if FINDS_MOMENTS else spec.bodies[1:]:
        xx, yy, zz, xy, xz, yz = body.fullinertia
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        is_plain = (
            np.array_equal(body.iquat, [1, 0, 0, 0]) and body.ialt.type == mujoco.mjtOrientation.mjORIENTATION_QUAT
        )
        if is_plain and np.isfinite(I).all() and np.linalg.eigvalsh(I)[0] > 0:  # else MuJoCo has a message
            set_inertia(body, body.mass, body.ipos, I)
            body.fullinertia = np.full(6, np.nan)


def set_passive(joint: Any, damping: float, stiffness: float) -> None:
    """Set damping and stiffness of a joint of an `MjSpec`.

    Args:
        damping: Viscous damping [N s/m or N m s/rad].
        stiffness: Stiffness of the spring [N/m or N m/rad].
    """
    for name, value in (("damping", damping), ("stiffness", stiffness)):
        if np.ndim(getattr(joint, name)):  # from 3.7 on the coefficients of a polynomial
            getattr(joint, name)[0] = value
        else:
            setattr(joint, name, value)


def want_moments(inertia: Array, where: str) -> None:
    """Refuse a tensor that no body has.

    Args:
        inertia: Tensor about the mass centre [kg m²], shape (3, 3).
        where: Its place in the file, for the message.

    Raises:
        MechanismError: If a principal moment is negative, or above the sum of the others.
    """
    moments = np.linalg.eigvalsh(inertia)
    found = ", ".join(f"{moment:.6g}" for moment in moments)
    if moments[0] < -ROUND_OFF * moments[2]:
        raise MechanismError(f"{where} must have principal moments that are not negative, got {found}")
    excess = moments[2] - moments[:2].sum()
    if excess > ROUND_OFF * moments[2]:
        raise MechanismError(
            f"{where} must have no principal moment above the sum of the others, got {found}. No body has such an "
            f"inertia: raise the smaller moments by {excess:.2g} together, or lower the largest"
        )


def add_polynomial(spec: Any, follower: str, leader: str, coefficients: Array) -> None:
    """Add an equality to an `MjSpec` that makes a joint follow another, both from their rest positions.

    Args:
        spec: The model.
        leader: Name of the other.
        coefficients: From the constant up [m or rad, per powers of m or rad], shape (5,).
    """
    equality = spec.add_equality()
    equality.type, equality.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    equality.name, equality.name1, equality.name2 = f"{follower} follows {leader}", follower, leader
    equality.data[:5] = coefficients


def add_closure(spec: Any, name: str, ends: Sequence[tuple[Any, Array]], *, is_weld: bool) -> None:
    """Add a connect or a weld between sites of two bodies, which does not depend on the pose of the file.

    Args:
        ends: Both bodies with the frame that closes the loop, in the axes of the body [m and -], shape (4, 4).
    """
    equality = spec.add_equality()
    equality.type = mujoco.mjtEq.mjEQ_WELD if is_weld else mujoco.mjtEq.mjEQ_CONNECT
    equality.objtype, equality.name = mujoco.mjtObj.mjOBJ_SITE, name
    names = [f"{name}, end {k}" for k in (1, 2)]
    equality.name1, equality.name2 = names
    for site_name, (body, X) in zip(names, ends, strict=True):
        site = body.add_site()
        site.name, site.pos, site.quat = site_name, X[:3, 3], quaternion(X[:3, :3])


class Shape(NamedTuple):
    """A solid of constant density, fixed to a link."""

    kind: str
    """A key of `SHAPES`."""
    size: tuple[float, ...]
    """Half sizes of a box, radii of an ellipsoid, or radius and half of the length [m]."""
    X: Array
    """Frame in the link [m and -], shape (4, 4)."""
    density: float
    """[kg/m³]."""


def inertia_of(shapes: Sequence[Shape]) -> tuple[float, Array, Array]:
    """Mass [kg], mass centre in the link [m], shape (3,), and inertia about it, axes of the link [kg m²], shape (3, 3).

    MuJoCo's compiler computes them.

    Raises:
        ValueError: If a size or a density is not positive.
    """
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body()
    for shape in shapes:
        geom = body.add_geom()
        geom.type, geom.size, geom.density = SHAPES[shape.kind], [*shape.size, 0.0, 0.0][:3], shape.density
        geom.pos, geom.quat = shape.X[:3, 3], quaternion(shape.X[:3, :3])
    m = spec.compile()
    R = of_quaternion(m.body_iquat[1])
    return float(m.body_mass[1]), np.array(m.body_ipos[1]), np.asarray(R @ np.diag(m.body_inertia[1]) @ R.T)


def text_of(spec: Any) -> str:
    """The MJCF of an `MjSpec` with 15 digits: MuJoCo writes 6, which moves efforts by 1e-6.

    The number of digits is set by a function of MuJoCo's library that its headers do not declare; without it, 6 remain.

    Raises:
        ValueError: If a file that it names is missing.
    """
    files = Path(mujoco.__file__).parent.iterdir()
    library = next((file for file in files if file.name.startswith(("libmujoco.", "mujoco.dll"))), None)
    loaded = ctypes.CDLL(str(library)) if library else None
    if not hasattr(loaded, SET_DIGITS):
        return str(spec.to_xml())
    before = getattr(loaded, GET_DIGITS)()
    getattr(loaded, SET_DIGITS)(DIGITS)
    try:
        return str(spec.to_xml())
    finally:
        getattr(loaded, SET_DIGITS)(before)
