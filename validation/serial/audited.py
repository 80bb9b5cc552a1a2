"""A transmission to be audited: a Python function, a C function in a library, or a table of its values."""

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.model_file import file_hash

LIBRARIES = frozenset({".so", ".dylib", ".dll"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A transmission from joints to motors."""

    label: str
    path: Path
    function: str
    """Name of the function; empty for a table."""
    count: int
    """Number of joints, and of motors."""
    sha256: str
    states: tuple[Array, ...] | None = None
    """Of a table: x, ẋ and efforts of the joints, then y, ẏ and efforts of the motors, each of shape (nt, n)."""

    def __call__(self, x: Array, xd: Array, efforts: Array) -> tuple[Array, Array, Array]:
        """Motors at some states.

        Args:
            x: Joint positions [rad or m], shape (nt, n).
            xd: Joint rates [rad/s or m/s], shape (nt, n).
            efforts: Efforts at the joints [N m or N], shape (nt, n).

        Returns:
            Positions, rates and efforts of the motors, each of shape (nt, n).

        Raises:
            MechanismError: If the function fails or returns something else.
        """
        function = (_library if self.path.suffix in LIBRARIES else _module)(self.path, self.function)
        found = np.zeros((3, *x.shape))
        for t in range(len(x)):
            try:
                found[:, t] = function(x[t].copy(), xd[t].copy(), efforts[t].copy())
            except Exception as error:  # any error of a foreign function
                raise MechanismError(
                    f"{self.label}: must return positions, rates and efforts of {self.count} motors, from those of as "
                    f"many joints, failed at x = {x[t].tolist()}: {type(error).__name__}: {error}"
                ) from error
        if not np.isfinite(found).all():
            pose = x[int(np.argmin(np.isfinite(found).all(axis=(0, 2))))].tolist()
            raise MechanismError(f"{self.label}: values must be finite at every sampled pose, got others at x = {pose}")
        return found[0], found[1], found[2]


def read_audited(text: str, joints: Sequence[str], motors: Sequence[str], count: int) -> Audited:
    """A transmission from FILE.py:NAME, LIB.so:NAME or FILE.csv.

    Args:
        text: That text.
        joints: Names of the joints, for the columns of a table.
        motors: Names of the motors.
        count: Number of joints without names.

    Raises:
        NotFoundError: If a column or function is missing.
        MechanismError: If the file is missing or cannot be read.
    """
    path, function = file_and_function(text)
    states = None
    if path.suffix == ".csv":
        states = _table(path, joints, motors)
    else:
        (_library if path.suffix in LIBRARIES else _module)(path, function)
    n = len(joints) or count
    return Audited(label=text, path=path.absolute(), function=function, count=n, sha256=file_hash(path), states=states)


def file_and_function(text: str) -> tuple[Path, str]:
    """File and function of a text FILE.py:NAME, LIB.so:NAME or FILE.csv.

    Raises:
        MechanismError: If the file is missing, or the function of a file other than a table.
    """
    place, _, function = text.rpartition(":") if ":" in text and not Path(text).is_file() else (text, "", "")
    path = Path(place)
    if not path.is_file():
        raise MechanismError(f"--audit {text}: the file must exist, got no such file '{path}'")
    if path.suffix != ".csv" and not function:
        raise MechanismError(f"--audit {text}: must name a function of the file, as {path.name}:NAME")
    return path, function


def _module(path: Path, name: str) -> Callable[..., Any]:
    """A function of a Python file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise MechanismError(
            f"{path}: must be a Python file, a library ({', '.join(sorted(LIBRARIES))}) or a .csv table"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any error of a foreign file
        raise MechanismError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(function := getattr(module, name, None)):
        raise NotFoundError(
            f"function of {path.name}", name, [key for key, value in vars(module).items() if callable(value)]
        )
    return function


def _library(path: Path, name: str) -> Callable[..., Any]:
    """A function of a C library: int NAME(x, xd, joint_tau, y, yd, tau), all pointers to double; 0 is success."""
    try:
        call = getattr(ctypes.CDLL(str(path.absolute())), name)
    except (OSError, AttributeError) as error:
        raise MechanismError(f"{path}: must be a library with the function {name}: {error}") from error

    def function(*given: Array) -> Array:
        found = np.zeros((3, len(given[0])))
        status = call(*(ctypes.c_void_p(array.ctypes.data) for array in (*given, *found)))
        if status:
            raise ValueError(f"status {status}")
        return found

    return function


def _table(path: Path, joints: Sequence[str], motors: Sequence[str]) -> tuple[Array, ...]:
    """Columns NAME.q, NAME.qd and NAME.effort of joints and motors."""
    try:
        frame = pd.read_csv(path, comment="#")
    except (OSError, ValueError) as error:
        raise MechanismError(f"{path}: must be a table with a header: {error}") from error
    parts = []
    for names in (joints, motors):
        for kind in ("q", "qd", "effort"):
            columns = [f"{name}.{kind}" for name in names]
            for column in columns:
                if column not in frame:
                    raise NotFoundError(f"column of {path.name}", column, [str(name) for name in frame])
            parts.append(frame[columns].to_numpy(dtype=np.float64))
    return tuple(parts)
