"""Motions from a CSV file: of the actuated joints, or a full logged state in MuJoCo's order.

Columns: `t` [s] and either `NAME.q`, `NAME.qd`, `NAME.qdd` for every actuated joint [rad or m, per s, per s²], or
`qpos.0 …`, `qvel.0 …`, `qacc.0 …`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.arrays import Array, want_equal_steps
from loopcheck.robots.errors import MechanismError, ShapeError
from loopcheck.robots.logs.text_table import numbers, read_text_table
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Drive, Law

if TYPE_CHECKING:
    from scipy.interpolate import BPoly

if TYPE_CHECKING:
    import pandas as pd

EQUAL = 1e-6
"""Largest deviation of a time step from the median step, relative to the median [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A motion file."""

    t: Array
    """Time [s], shape (nt,), equally spaced."""
    law: Law
    """Motion of the actuated joints, by polynomials of fifth degree between the samples."""
    states: tuple[Array, Array, Array] | None
    """Joint positions (nt, nq), velocities and accelerations (nt, nv), if the file has the full state."""


def read_recording(path: Path, mechanism: Mechanism) -> Recording:
    """Read a motion file; raises as `read_samples` does.

    Args:
        path: The CSV.
        mechanism: Robot that is to move.
    """
    t, motion, states = read_samples(path, mechanism)
    return Recording(t=t, law=_interpolation(t, *motion), states=states)


def read_samples(path: Path, mechanism: Mechanism) -> tuple[Array, Sequence[Array], tuple[Array, Array, Array] | None]:
    """Times of a motion file [s], positions, rates and their rates of the drives, and the full state if it is there.

    Args:
        path: The CSV.
        mechanism: Robot that is to move.

    Raises:
        MechanismError: If the file is missing, a column is missing or not a number, or the times do not increase in
            equal steps.
    """
    columns = _read_columns(path)
    t = _column(path, columns, "t")
    try:
        want_equal_steps(t, name=f"{path}: column 't'", fewest=2, unequal=EQUAL)
    except ShapeError as error:
        raise MechanismError(str(error)) from error
    drives = mechanism.drives
    if "qpos.0" in columns:
        sizes = {"qpos": mechanism.nq, "qvel": mechanism.nv, "qacc": mechanism.nv}
        for name, size in sizes.items():
            if f"{name}.{size}" in columns:
                raise MechanismError(
                    f"{path}: must have {size} columns '{name}.*' for this model, got more: '{name}.{size}'"
                )
        q, qd, qdd = (
            np.stack([_column(path, columns, f"{name}.{k}") for k in range(size)], axis=1)
            for name, size in sizes.items()
        )
        W_T = mechanism.rates_of(drives).T
        return t, (mechanism.values_of(drives, q), qd @ W_T, qdd @ W_T), (q, qd, qdd)
    given = [
        np.stack([_of_drive(path, columns, mechanism, drive, rate) for drive in drives], axis=1)
        for rate in ("q", "qd", "qdd")
    ]
    return t, given, None


def _of_drive(path: Path, columns: "pd.DataFrame", mechanism: Mechanism, drive: Coordinate, rate: str) -> Array:
    """A drive's own column, or for a tendon the columns of its joints."""
    of_joints = [f"{mechanism.joints[j].name}.{rate}" for j in drive.joints]
    if f"{drive.name}.{rate}" not in columns and all(name in columns for name in of_joints):
        return np.stack([_column(path, columns, name) for name in of_joints], axis=1) @ drive.weights
    return _column(path, columns, f"{drive.name}.{rate}")


def _read_columns(path: Path) -> "pd.DataFrame":
    try:
        columns, _ = read_text_table(path)
    except (OSError, ValueError) as error:
        raise MechanismError(f"{path}: a motion file must be CSV: {str(error).splitlines()[0]}") from error
    return columns


def _column(path: Path, columns: "pd.DataFrame", name: str) -> Array:
    if name not in columns:
        raise MechanismError(f"{path}: must have a column '{name}', got {', '.join(map(str, columns)) or 'no columns'}")
    values = numbers(columns[name])
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise MechanismError(
            f"{path}: column '{name}': numbers must be finite, got '{columns[name][row]}' in row {row + 1}"
        )
    return values


def _interpolation(t: Array, q: Array, qd: Array, qdd: Array) -> Law:
    """The law through samples, each of shape (nt, joints), with continuous accelerations."""
    from scipy.interpolate import BPoly

    curve = BPoly.from_derivatives(t, np.stack([q, qd, qdd], axis=1))
    return partial(_evaluate, curve, curve.derivative(), curve.derivative(2), float(t[0]), float(t[-1]))


def _evaluate(q: "BPoly", qd: "BPoly", qdd: "BPoly", first: float, last: float, t: Array) -> Drive:
    """The law at times [s], shape (nt,); before and after the file the acceleration is constant."""
    inside = np.clip(t, first, last)
    ahead = (t - inside)[:, None]
    x, v, a = (np.asarray(curve(inside)) for curve in (q, qd, qdd))
    return Drive(q=x + v * ahead + a * ahead**2 / 2, qd=v + a * ahead, qdd=a)
