"""File of a repaired serial model: its MJCF with other joints and inertias."""

from pathlib import Path

import numpy as np

from loopcheck.analytic.transmission.constants import Constants, Pace, best_constants
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.regressor import links
from loopcheck.analytic.transmission.twin import Twin, Workspace
from loopcheck.robots.errors import HarnessError, MechanismError, OutputError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import is_in_degrees, read_mechanism
from loopcheck.robots.mjcf_patch import Patch, patched
from loopcheck.robots.mjcf_writer import numbers
from loopcheck.robots.model_file import ModelFile

REPAIRED, SETTINGS = "serial_repaired.xml", "serial_settings.py"
SAME, LIKE = 1e-9, 1e-6
"""Relative difference between a written value and the same value after reading [-]; MuJoCo rotates inertias to
their principal axes and back."""
JOINT_ATTRIBUTES = ("armature", "damping", "stiffness")


def repair(twin: Twin, samples: Workspace, pace: Pace, limits: Box | None, folder: Path) -> tuple[Constants, str]:
    """Fit the constants and write them, without constants of links if the file cannot express them.

    Args:
        pace: Rates and accelerations of the motions.
        limits: Limits of the efforts at the joints, in the sense of the shared coordinates; None keeps those of the
            file.

    Returns:
        The constants, and a description of the file, or the reason for its absence.
    """
    reason = ""
    for links_too in (True, False):
        constants = best_constants(twin, samples, pace, links_too)
        try:
            return constants, write_repaired(twin, constants, limits, folder)
        except HarnessError as error:
            reason = reason or str(error)
    return best_constants(twin, samples, pace), f"no repaired file: {reason}"


def write_settings(twin: Twin, constants: Constants, limits: Box | None, error: float, folder: Path) -> str:
    """Write the settings of the serial joints for Isaac Lab, and for URDF as far as it can hold them.

    Args:
        constants: Of the repair; armature and damping are written.
        limits: See `repair`.
        error: Largest error of a motor's effort with the repaired model, rms over the peak [-].

    Returns:
        A description of the file.

    Raises:
        OutputError: If it cannot be written.
    """
    names, places = [pair.serial for pair in twin.pairs], twin.serial.joints
    joints = [constants.mechanism.joints[j] for j in places]
    own = dict(zip(names, joints, strict=True))
    settings: dict[str, object] = {"joint_names_expr": names}
    settings["armature"] = {name: _rounded(joint.armature) for name, joint in own.items()}
    efforts = {}
    if limits is not None:
        ends = zip(names, limits.low, limits.high, strict=True)
        efforts = {name: _rounded(min(-low, high)) for name, low, high in ends}
        settings["effort_limit_sim"] = efforts
    lines = [
        f'<joint name="{name}"><dynamics damping="{_rounded(joint.damping)}"/>'
        + (f'<limit effort="{efforts[name]}"/></joint>' if efforts else "</joint>")
        for name, joint in own.items()
    ]
    text = f"""# Settings of the serial joints of {twin.serial.mechanism.model.path.name}, SI units.
# They leave an error of the motors' efforts of {100 * error:.2g} % rms of the peak; the functions in
# transmission.py or joint_map.py leave less.

# isaaclab.actuators.ImplicitActuatorCfg(**ISAAC_LAB, stiffness=..., damping=...)
ISAAC_LAB = {settings!r}

# URDF has no armature: give it to the engine, or the joints move as if the motors had no rotors.
URDF = {chr(10).join(lines)!r}
"""
    write_text(folder / SETTINGS, text)
    return f"wrote {SETTINGS}: armature and limits for Isaac Lab and URDF"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}") if abs(value) > SAME**2 else 0.0


def write_repaired(twin: Twin, constants: Constants, limits: Box | None, folder: Path) -> str:
    """Write the serial model with other constants, and with limits of efforts that are safe for all motors.

    Args:
        constants: Constants of its joints and links.
        limits: Limits of the efforts at the joints, in the sense of the shared coordinates; None keeps those of the
            file.
        folder: Output folder; included parts of the file are read from their places.

    Returns:
        A description of the file.

    Raises:
        MechanismError: If MJCF cannot express it.
        OutputError: If it cannot be written.
    """
    model = twin.serial.mechanism.model
    turns = np.rad2deg(1.0) if is_in_degrees(model) else 1.0
    joints = {}
    for k, j in enumerate(twin.serial.joints):
        joint = constants.mechanism.joints[j]
        unit = turns if joint.kind == "hinge" else 1.0
        attributes = {name: repr(float(getattr(joint, name))) for name in JOINT_ATTRIBUTES}
        attributes["springref"] = repr(float(joint.spring_reference[0] * unit))
        if limits is not None:
            low, high = sorted((twin.serial.signs[k] * limits.low[k], twin.serial.signs[k] * limits.high[k]))
            attributes |= {"actuatorfrclimited": "true", "actuatorfrcrange": f"{float(low)!r} {float(high)!r}"}
        joints[joint.name] = attributes
    path = folder / REPAIRED
    patch = Patch(option={}, equalities={}, joints=joints, inertials=_inertials(twin, constants))
    changed = patched(model, patch, 0)
    if set(changed) != {model.path.absolute()}:
        raise MechanismError(f"{model.path}: its joints must be in the file itself, not in an included file")
    if path.resolve() == model.path.resolve():
        raise OutputError(f"{folder}: contains the input {path.name}; name another folder with --out")
    _write(path, changed[model.path.absolute()])
    try:
        _want_written(twin, constants, read_mechanism(ModelFile(path=path)))
    except HarnessError:
        path.unlink()
        raise
    of_links = ", mass centres and inertias of its links" if patch.inertials else ""
    of_joints = "armature, damping, springs" + (" and limits of efforts" if limits is not None else "")
    return f"wrote {REPAIRED}: {of_joints} of its joints{of_links}"


def _inertials(twin: Twin, constants: Constants) -> dict[str, dict[str, str]]:
    """The inertia of each link that differs, by the name of a joint of it."""
    old, new, inertials = twin.serial.mechanism, constants.mechanism, dict[str, dict[str, str]]()
    for b in links(twin.serial):
        if new.bodies[b] is old.bodies[b]:
            continue
        name = next(old.joints[j].name for j in twin.serial.joints if old.joints[j].body == b)
        body, I = new.bodies[b], new.bodies[b].inertia
        moments = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        inertials[name] = {
            "mass": repr(body.mass),
            "pos": numbers(body.center),
            "fullinertia": numbers(moments),
        }
    return inertials


def write_text(path: Path, text: str) -> None:
    """Write a file of text.

    Raises:
        OutputError: If it cannot be written.
    """
    _write(path, text.encode())


def _want_written(twin: Twin, constants: Constants, mechanism: Mechanism) -> None:
    """Refuse a file that compiles to other constants: actuators may add armature of their own."""
    read = {joint.name: joint for joint in mechanism.joints}
    where = f"{mechanism.model.path}:"
    for j in twin.serial.joints:
        joint = constants.mechanism.joints[j]
        for attribute in (*JOINT_ATTRIBUTES, "spring_reference"):
            meant, value = (np.asarray(getattr(own, attribute)) for own in (joint, read[joint.name]))
            if np.abs(value - meant).max() > SAME * max(float(np.abs(meant).max()), 1.0):
                raise MechanismError(
                    f"{where} {attribute} of joint '{joint.name}' must be {meant.item():.6g}, got {value.item():.6g}: "
                    "another element of the file sets it or adds to it"
                )
    for b in links(twin.serial):
        body, other = constants.mechanism.bodies[b], mechanism.bodies[b]
        for attribute in ("mass", "center", "inertia"):
            meant, value = (np.asarray(getattr(own, attribute)) for own in (body, other))
            if np.abs(value - meant).max() > LIKE * max(float(np.abs(meant).max()), 1e-12):
                raise MechanismError(
                    f"{where} {attribute} of body '{body.name}' must be the written value, got the value of its geoms"
                )


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
