"""Functions of the pose as a module for NumPy and as C, independent of loopcheck, and measured by running them."""

import ctypes
import inspect
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from loopcheck.analytic.transmission import crank_rod, joint_map
from loopcheck.analytic.transmission.crank_rod import CrankRod
from loopcheck.analytic.transmission.crank_rod_in_c import c_header
from loopcheck.analytic.transmission.fit import FIELDS, fields
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.joint_map_in_c import c_source
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.twin import Twin, Workspace, sound_poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import OutputError
from loopcheck.validation.serial.writing import write_text

MODULE, SOURCE = "joint_map.py", "joint_map.c"
CLOSED_FORM, HEADER = "transmission.py", "transmission.h"
POSES = 256
"""Number of poses for the measurement of the functions."""
PACE = 5.0
"""Rates and accelerations at these poses, over the half width of the box [1/s and 1/s²]."""
COMPILERS = ("cc", "gcc", "clang")
ASK = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from joint_map import MAP
x = np.load(sys.argv[1] + "/x.npy")
parts = (MAP.motor_positions, MAP.transmission, MAP.armature, MAP.damping, MAP.force)
values = np.concatenate([part(x).reshape(len(x), -1) for part in parts], axis=1)
unknown = {name.split(".")[0] for name in sys.modules} & {"loopcheck", "scipy"}
assert not unknown, unknown
np.save(sys.argv[1] + "/values.npy", values)
"""
"""A program that evaluates the module without loopcheck."""


ASK_TRANSMISSION = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from transmission import TRANSMISSION
x = np.load(sys.argv[1] + "/x.npy")
unknown = {name.split(".")[0] for name in sys.modules} & {"loopcheck", "scipy"}
assert not unknown, unknown
np.save(sys.argv[1] + "/values.npy", TRANSMISSION.motor_state(x).transmission)
"""
WRAPPER = """#include "transmission.h"
int transmission_at(const double *x, const double *zero, double *y, double *yd, double *ydd, double *tau, double *T)
{ return transmission_motors(x, zero, zero, zero, y, yd, ydd, tau, T); }
"""


def write_transmission(
    transmission: CrankRod, twin: Twin, samples: Workspace, folder: Path
) -> tuple[dict[str, float], list[str]]:
    """Write a transmission by cranks and rods as a module and as a header, run both, and compare T at all samples.

    Returns:
        Largest error of T over its peak by file [-], and notes.

    Raises:
        OutputError: If a file cannot be written, or does not run.
    """
    x, exact = samples.x[samples.common], samples.closed.transmission[:, list(twin.motors)]
    module = f"{inspect.getsource(crank_rod)}\n\nTRANSMISSION = {transmission!r}  # noqa: E501\n"
    header = c_header(transmission, twin.closed.coordinates(twin.closed.start[None])[0])
    write_text(folder / CLOSED_FORM, module)
    write_text(folder / HEADER, header)
    found = {CLOSED_FORM: _run_module(CLOSED_FORM, module, ASK_TRANSMISSION, x)}
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler:
        found[HEADER] = _run_header(compiler, header, x)
    peak = np.abs(exact).max()
    errors = {name: float(np.abs(T.reshape(exact.shape) - exact).max() / peak) for name, T in found.items()}
    measured = {name: f"{error:.1e} of the peak" for name, error in errors.items()}
    unmeasured = f"not measured, no compiler is installed ({', '.join(COMPILERS)})"
    return errors, [f"wrote {name}: error of T {measured.get(name, unmeasured)}" for name in (CLOSED_FORM, HEADER)]


def _run_module(name: str, text: str, program: str, x: Array) -> Array:
    """Values of a module at some poses, in an interpreter without loopcheck."""
    with TemporaryDirectory() as place:
        Path(place, name).write_text(text, encoding="utf-8")
        np.save(Path(place, "x.npy"), x)
        done = subprocess.run([sys.executable, "-I", "-c", program, place], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OutputError(f"{name}: must run without loopcheck: {done.stderr.strip().splitlines()[-1]}")
        return np.asarray(np.load(Path(place, "values.npy")))


def _run_header(compiler: str, header: str, x: Array) -> Array:
    """T at some poses, by compiled C."""
    n = x.shape[1]
    with TemporaryDirectory() as place:
        Path(place, HEADER).write_text(header, encoding="utf-8")
        transmission_at = _compiled(compiler, WRAPPER, Path(place, "transmission.c"))["transmission_at"]
        zero, y, yd, ydd, tau, T = *np.zeros((5, n)), np.zeros((len(x), n * n))
        for own, row in zip(np.ascontiguousarray(x), T, strict=True):
            arrays = (own, zero, y, yd, ydd, tau, row)
            if transmission_at(*(ctypes.c_void_p(array.ctypes.data) for array in arrays)):
                raise OutputError(f"{HEADER}: must reach every pose of the workspace, refused a pose")
    return T


def _compiled(compiler: str, source: str, path: Path) -> ctypes.CDLL:
    """A library made of a C source."""
    path.write_text(source, encoding="utf-8")
    library = path.with_suffix(".so")
    program = [compiler, "-std=c99", "-O1", "-shared", "-fPIC", "-o", str(library), str(path), "-lm"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OutputError(f"{path.name}: must compile: {(done.stderr.strip().splitlines() or ['no reason'])[0]}")
    return ctypes.CDLL(str(library))


def write_functions(twin: Twin, functions: JointMap, seed: int, folder: Path) -> tuple[dict[str, float], list[str]]:
    """Write the functions as a module and as C, and measure both.

    Args:
        functions: The missing terms of the serial model.
        seed: Seed of the poses of the measurement.

    Returns:
        Largest error of each function over its peak, by file and function [-], and notes.

    Raises:
        OutputError: If a file cannot be written, or the module does not run.
    """
    module, source = module_of(functions), c_source(functions)
    write_text(folder / MODULE, module)
    write_text(folder / SOURCE, source)
    errors = accuracy_of_module(module, twin, functions, seed)
    compiled, reason = dict[str, float](), f"no compiler is installed ({', '.join(COMPILERS)})"
    try:
        compiled = accuracy_of_c(source, twin, functions, seed)
    except OutputError as error:
        reason = str(error)
    accuracy = {f"{name}, {MODULE}": error for name, error in errors.items()}
    accuracy |= {f"{name}, {SOURCE}": error for name, error in compiled.items()}
    notes = [f"wrote {MODULE}: largest error {max(errors.values()):.1e} relative to the peaks"]
    if compiled:
        notes.append(f"wrote {SOURCE}: largest error {max(compiled.values()):.1e} relative to the peaks")
    else:
        notes.append(f"wrote {SOURCE}: not measured, {reason}")
    return accuracy, notes


def module_of(functions: JointMap) -> str:
    """The text of a module of the functions that imports NumPy only."""
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
    """Errors of the module's functions, run in a separate interpreter, against the equations of the closed mechanism.

    Args:
        text: Text of the module.
        functions: Functions of the module.
        seed: Seed of the poses.

    Returns:
        Largest error of each kind of function over its peak [-].

    Raises:
        OutputError: If the module does not run.
    """
    x = _positions(functions, seed)
    exact, sizes = fields(twin, x)
    values = _run_module(MODULE, text, ASK, x)
    error = np.abs(values - exact).max(axis=0) / np.where(sizes > 0, sizes, 1.0)
    na, n = len(functions.motors), len(functions.joints)
    ends = np.cumsum([0, na, na * n, n * n, n * n, n])
    return {name: float(error[begin:end].max()) for name, begin, end in zip(FIELDS, ends[:-1], ends[1:], strict=True)}


def accuracy_of_c(source: str, twin: Twin, functions: JointMap, seed: int) -> dict[str, float]:
    """Errors of the functions in C, compiled and run, against the closed mechanism's equations.

    Args:
        functions: Functions of the source.
        seed: Seed of the poses.

    Returns:
        Largest error of each kind of function over its peak [-]; empty without a compiler.

    Raises:
        OutputError: If it does not compile, or refuses a pose of its box.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return {}
    x = _positions(functions, seed)
    generator, half = np.random.default_rng(seed), (functions.high - functions.low) / 2
    xd, xdd = (PACE * half * generator.uniform(-1, 1, x.shape) for _ in range(2))
    efforts = [_efforts(space, x, xd, xdd) for space in (twin.closed, twin.serial)]
    exact, sizes = fields(twin, x)
    na, n = len(functions.motors), len(functions.joints)
    with TemporaryDirectory() as place:
        values = [np.concatenate(row) for row in _run(compiler, source, Path(place), (x, xd, xdd), na)]
    kinematic = np.array(values)[:, : na * (1 + n)]
    error = np.abs(kinematic - exact[:, : na * (1 + n)]).max(axis=0) / sizes[: na * (1 + n)]
    missing = np.array(values)[:, na * (1 + n) :]
    peak = np.abs(efforts[0]).max()
    return {
        FIELDS[0]: float(error[:na].max()),
        FIELDS[1]: float(error[na:].max()),
        "effort of a motion": float(np.abs(missing - (efforts[0] - efforts[1])).max() / peak),
    }


def _positions(functions: JointMap, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(functions.low, functions.high, (POSES, len(functions.low)))


def _efforts(space: Any, x: Array, xd: Array, xdd: Array) -> Array:
    q = sound_poses(space, x)[0]
    return joint_efforts(space, q, *moved(space, q, xd, xdd))


def _run(
    compiler: str, source: str, folder: Path, motion: tuple[Array, Array, Array], na: int
) -> Iterator[tuple[Array, Array, Array]]:
    """Motor positions, transmission and missing efforts at each sample, by compiled C."""
    functions, pointer = _compiled(compiler, source, folder / SOURCE), ctypes.c_void_p
    functions.joint_map.argtypes = [pointer] * 3
    functions.joint_map_missing_efforts.argtypes = [pointer] * 4
    n = motion[0].shape[1]
    for x, xd, xdd in zip(*map(np.ascontiguousarray, motion), strict=True):
        y, T, tau = np.zeros(na), np.zeros(na * n), np.zeros(n)
        refused = functions.joint_map(*(values.ctypes.data for values in (x, y, T)))
        refused |= functions.joint_map_missing_efforts(*(values.ctypes.data for values in (x, xd, xdd, tau)))
        if refused:
            raise OutputError(f"{SOURCE}: must accept every pose of its box, refused a pose")
        yield y, T, tau
