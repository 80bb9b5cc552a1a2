"""What repairs a stand-in, as files: its MJCF with other attributes of its joints, and a module of functions."""

import inspect
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from analytic.transmission import joint_map
from analytic.transmission.fit import FIELDS, Constants, fields
from analytic.transmission.joint_map import JointMap
from analytic.transmission.limits import Box
from analytic.transmission.twin import Twin
from robots.arrays import Array
from robots.errors import HarnessError, MechanismError, OutputError
from robots.mechanism import Mechanism, ModelFile
from robots.mjcf import read_mechanism
from robots.mjcf_patch import Patch, patched

REPAIRED, FUNCTIONS = "serial_repaired.xml", "joint_map.py"
SAME = 1e-9
"""Relative difference of a value that was written from one that is read again [-]."""
ASK = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from joint_map import MAP
x = np.load(sys.argv[1] + "/x.npy")
parts = (MAP.motor_positions, MAP.transmission, MAP.armature, MAP.damping, MAP.force)
values = np.concatenate([part(x).reshape(len(x), -1) for part in parts], axis=1)
unknown = {name.split(".")[0] for name in sys.modules} & {"robots", "analytic", "engines", "validation", "scipy"}
assert not unknown, unknown
np.save(sys.argv[1] + "/values.npy", values)
"""
"""A program that evaluates the module where nothing of ours is."""


def write_repaired(twin: Twin, constants: Constants, limits: Box | None, folder: Path) -> str:
    """Write the stand-in with more armature and damping, and with limits of efforts that break no motor.

    Args:
        twin: The mechanisms.
        constants: What is added to its joints.
        limits: Of the efforts at the joints, in the sense of the shared coordinates; None leaves those that it has.
        folder: Where it goes; parts that the file includes are read from where they are.

    Returns:
        What was written, or why nothing was.
    """
    model = twin.serial.mechanism.model
    joints = {}
    for k, j in enumerate(twin.serial.joints):
        joint = twin.serial.mechanism.joints[j]
        attributes = {
            "armature": repr(float(joint.armature + constants.armature[k])),
            "damping": repr(float(joint.damping + constants.damping[k])),
        }
        if limits is not None:
            low, high = sorted((twin.serial.signs[k] * limits.low[k], twin.serial.signs[k] * limits.high[k]))
            attributes |= {"actuatorfrclimited": "true", "actuatorfrcrange": f"{float(low)!r} {float(high)!r}"}
        joints[joint.name] = attributes
    path = folder / REPAIRED
    try:
        changed = patched(model, Patch(option={}, equalities={}, joints=joints), 0)
        if set(changed) != {model.path.absolute()}:
            raise MechanismError(f"{model.path}: its joints stand in files that it includes")
        if path.resolve() == model.path.resolve():
            raise OutputError(f"{folder}: holds {path.name} itself, want another folder by --out")
        _write(path, changed[model.path.absolute()])
        _want_written(twin, constants, read_mechanism(ModelFile(path=path)))
    except HarnessError as error:
        return f"no repaired file: {error}"
    return f"wrote {REPAIRED}: armature, damping{' and limits of efforts' if limits is not None else ''} of its joints"


def module_of(functions: JointMap) -> str:
    """The text of a module of the functions, which needs NumPy alone.

    Args:
        functions: The functions.
    """
    shape = functions.coefficients.shape
    numbers = ", ".join(repr(float(value)) for value in functions.coefficients.ravel())
    low, high = ([float(value) for value in side] for side in (functions.low, functions.high))
    return (
        f"{inspect.getsource(joint_map)}\n\n"
        f"MAP = JointMap(\n    joints={functions.joints!r},\n    motors={functions.motors!r},\n"
        f"    low=np.array({low!r}),\n    high=np.array({high!r}),\n"
        f"    coefficients=np.array([{numbers}]).reshape{shape!r},  # noqa: E501\n)\n"
    )


def accuracy_of_module(text: str, twin: Twin, functions: JointMap, seed: int) -> dict[str, float]:
    """Errors of the module's functions, run in an interpreter of its own, against the closed mechanism's equations.

    Args:
        text: Of the module.
        twin: The mechanisms.
        functions: What it was made of.
        seed: Of the poses.

    Returns:
        Largest error of each kind of function over its peak [-].

    Raises:
        OutputError: If the module does not run.
    """
    generator = np.random.default_rng(seed)
    x = generator.uniform(functions.low, functions.high, (256, len(functions.low)))
    exact, sizes = fields(twin, x)
    with TemporaryDirectory() as place:
        Path(place, "joint_map.py").write_text(text, encoding="utf-8")
        np.save(Path(place, "x.npy"), x)
        program = [sys.executable, "-I", "-c", ASK, place]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OutputError(f"{FUNCTIONS}: does not run by itself: {done.stderr.strip().splitlines()[-1]}")
        values: Array = np.load(Path(place, "values.npy"))
    error = np.abs(values - exact).max(axis=0) / np.where(sizes > 0, sizes, 1.0)
    na, n = len(functions.motors), len(functions.joints)
    ends = np.cumsum([0, na, na * n, n * n, n * n, n])
    return {name: float(error[begin:end].max()) for name, begin, end in zip(FIELDS, ends[:-1], ends[1:], strict=True)}


def write_text(path: Path, text: str) -> None:
    """Write a file of text.

    Args:
        path: Where.
        text: What.

    Raises:
        OutputError: If it cannot be written.
    """
    _write(path, text.encode())


def _want_written(twin: Twin, constants: Constants, mechanism: Mechanism) -> None:
    """Refuse a file that does not say what was meant: actuators may add armature of their own."""
    read = {joint.name: joint for joint in mechanism.joints}
    for k, j in enumerate(twin.serial.joints):
        joint = twin.serial.mechanism.joints[j]
        for attribute in ("armature", "damping"):
            meant = getattr(joint, attribute) + getattr(constants, attribute)[k]
            value = getattr(read[joint.name], attribute)
            if abs(value - meant) > SAME * max(abs(meant), 1.0):
                raise MechanismError(
                    f"{mechanism.model.path}: joint '{joint.name}': want {attribute} {meant:.6g}, got {value:.6g}: an "
                    "actuator adds to it"
                )


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
