"""The dynamic model of a closed-loop mechanism in chosen coordinates, M ÿ + C ẏ + D ẏ + G = Aᵀτ.

The natural orthogonal complement (equations (8) to (20) of Kordjazi and Akbarzadeh 2011) with any coordinates y that
determine the motion: joints or lengths of tendons, the same for all samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from loopcheck.analytic.dynamics.noc import NocModel, model_along, shared_efforts
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE, null_space, row_factors, solve_dependent
from loopcheck.analytic.kinematics.redundancy import WELL_CONDITIONED, independent_rows, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries, frozen, svd
from loopcheck.robots.errors import NotFoundError, ShapeError, SingularityError
from loopcheck.robots.mechanism import DOFS, Mechanism
from loopcheck.robots.size import unit_rates

if TYPE_CHECKING:
    import pandas as pd

AXES = {"ball": ("wx", "wy", "wz"), "free": ("vx", "vy", "vz", "wx", "wy", "wz")}
"""Names of the dofs of a joint with several."""
FORCE = {"m": "N", "rad": "N m"}
"""Unit of the generalized force on a coordinate."""
CONJUGATE = {force: unit for unit, force in FORCE.items()}
TRIED = 25
"""Samples at which coordinates are chosen [-]."""


class _Coordinate(NamedTuple):
    rates: Array
    """Rate per joint velocity [-, or m per rad], shape (nv,)."""
    unit: str
    """m or rad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices:
    """M ÿ + C ẏ + D ẏ + G = Aᵀτ at some samples, with y the coordinates and τ the efforts of the actuators."""

    coordinates: tuple[str, ...]
    """Names of the n coordinates: joints, driven tendons, or single dofs, as `base.wx`."""
    units: tuple[str, ...]
    """Unit of each coordinate, m or rad; the generalized forces on them are in N or N m."""
    actuators: tuple[str, ...]
    """Names of the actuators."""
    actuator_units: tuple[str, ...]
    """Unit of the effort of each actuator, N or N m."""
    undriven: int
    """Number of degrees of freedom without a drive."""
    M: Array
    """Inertia matrix with rotors [N or N m, per unit of ÿ], shape (nt, n, n)."""
    C: Array
    """Coriolis and centrifugal matrix [N or N m, per unit of ẏ], shape (nt, n, n); Ṁ − 2C is skew."""
    D: Array
    """Viscous damping [N or N m, per unit of ẏ], shape (nt, n, n)."""
    G: Array
    """Weights, constant wrenches and springs [N or N m], shape (nt, n)."""
    A: Array
    """Rate of each actuator, after its gear, per rate of each coordinate [-, m or 1/m], shape (nt, na, n)."""
    L: Array
    """Velocities of all dofs per rate of each coordinate [-, m or 1/m], shape (nt, nv, n)."""
    _mechanism: Mechanism = field(repr=False)
    _model: NocModel = field(repr=False)
    _rates: Array = field(repr=False)
    """Rates of the coordinates [m/s or rad/s], shape (nt, n)."""

    def efforts(self, acceleration: ArrayLike) -> EffortSeries:
        """Efforts that accelerations of the coordinates require, of least norm if the drives are redundant.

        Motions that no drive moves accelerate by the dynamics, whatever is given for them.

        Args:
            acceleration: Of the coordinates [m/s² or rad/s²], shape (nt, n) or (n,).

        Returns:
            Efforts of the actuators, before their gears [N or N m], shape (nt, na).

        Raises:
            ShapeError: If the shape differs, or a number is not finite.
        """
        given = frozen(np.atleast_2d(np.asarray(acceleration)), (None, len(self.coordinates)), name="acceleration")
        if len(given) not in (1, len(self.M)):
            raise ShapeError(f"acceleration: must have {len(self.M)} samples or 1, got {len(given)}")
        force = self._model.force(np.broadcast_to(given, self._rates.shape), self._rates)
        return shared_efforts(self._mechanism, self._model, force, self.undriven)[0]

    def frame(self, name: str, sample: int = 0) -> "pd.DataFrame":
        """A matrix at a sample as a table, with names and units in rows and columns.

        Args:
            name: `M`, `C`, `D`, `G`, `A` or `L`.

        Raises:
            NotFoundError: If there is no such matrix.
        """
        import pandas as pd

        if name not in (names := ("M", "C", "D", "G", "A", "L")):
            raise NotFoundError("matrix", name, names)
        dofs = _dofs(self._mechanism)
        rows = {
            "A": zip(self.actuators, (f"{CONJUGATE[unit]}/s" for unit in self.actuator_units), strict=True),
            "L": ((dof, f"{coordinate.unit}/s") for dof, coordinate in dofs),
        }.get(name, zip(self.coordinates, (FORCE[unit] for unit in self.units), strict=True))
        per = "/s²" if name == "M" else "/s"
        columns = [f"{y} [{unit}{per}]" for y, unit in zip(self.coordinates, self.units, strict=True)]
        values = getattr(self, name)[sample]
        return pd.DataFrame(
            values[:, None] if name == "G" else values,
            index=[f"{row} [{unit}]" for row, unit in rows],
            columns=["G"] if name == "G" else columns,
        )


def dynamic_model(state: State, coordinates: Sequence[str] = (), *, rank: int = 0) -> Matrices:
    """The matrices at given states.

    Args:
        state: Positions, and velocities that keep the loops closed.
        coordinates: Names of the coordinates; by default independent drives, as far as they determine the motion well,
            then other dofs.
        rank: Least rank of the closure equations, that of a regular pose; a sample with less is singular.

    Raises:
        NotFoundError: If a coordinate is unknown.
        ShapeError: If the number of coordinates is not that of the degrees of freedom.
        SingularityError: If the coordinates do not determine the motion at a sample; `time` is its number.
    """
    mechanism = state.mechanism
    known = dict(_coordinates(mechanism))
    for name in coordinates:
        if name not in known:
            raise NotFoundError("coordinate", name, known)
    N = _free_motions(state, rank)
    chosen = tuple(coordinates) or _choice(mechanism, known, N)
    if len(chosen) != N.shape[2]:
        raise ShapeError(
            f"coordinates: must be {N.shape[2]}, one for each degree of freedom, got {len(chosen)}: {', '.join(chosen)}"
        )
    Y = np.array([known[name].rates for name in chosen]).reshape(-1, mechanism.nv)
    sound = _conditioning(_unit_rows(mechanism, [known[name] for name in chosen]) @ N) > RANK_TOLERANCE
    _want_samples(mechanism, sound, f"{', '.join(chosen)} do not determine the motion there; name other coordinates")
    units = unit_rates(mechanism)
    N = units[:, None] * N
    L = np.asarray(N @ np.linalg.inv(Y @ N))
    bias = solve_dependent(state.Phi * units, state.Phi_dot @ L) * units[:, None]  # Φ L = 0, differentiated
    model = model_along(state, L, bias - L @ (Y @ bias))
    return Matrices(
        coordinates=chosen,
        units=tuple(known[name].unit for name in chosen),
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        actuator_units=mechanism.actuator_units,
        undriven=undriven_dofs(mechanism, state.q[len(state.q) // 2]),
        **{name: getattr(model, name) for name in "MCDGL"},
        A=mechanism.selection @ L,
        _mechanism=mechanism,
        _model=model,
        _rates=state.qd @ Y.T,
    )


def _dofs(mechanism: Mechanism) -> Iterator[tuple[str, _Coordinate]]:
    """Every dof by its name."""
    rows = iter(np.eye(mechanism.nv))
    for joint in mechanism.joints:
        for k in range(DOFS[joint.kind]):
            name = f"{joint.name}.{AXES[joint.kind][k]}" if joint.kind in AXES else joint.name
            slides = joint.kind == "slide" or (joint.kind == "free" and k < 3)
            yield name, _Coordinate(next(rows), "m" if slides else "rad")


def _coordinates(mechanism: Mechanism) -> Iterator[tuple[str, _Coordinate]]:
    """Every drive by its name, then every dof."""
    for drive, rates in zip(mechanism.drives, mechanism.rates_of(mechanism.drives), strict=True):
        yield drive.name, _Coordinate(rates, CONJUGATE[mechanism.effort_unit(drive)])
    yield from ((name, dof) for name, dof in _dofs(mechanism))


def _free_motions(state: State, least: int) -> Array:
    """Orthonormal bases of the motions that keep the loops closed, in unit rates, (nt, nv, n).

    Raises:
        SingularityError: If the rank of the closures differs at a sample.
    """
    units = unit_rates(state.mechanism)
    rows = state.Phi * units
    if not rows.size:
        return np.broadcast_to(np.eye(state.mechanism.nv), (len(rows), state.mechanism.nv, state.mechanism.nv))
    values, V_T = svd(row_factors(rows) * rows)[1:]
    ranks = (values > RANK_TOLERANCE).sum(axis=1)
    rank = max(least, int(ranks.max()))
    _want_samples(state.mechanism, ranks == rank, f"the rank of the closure equations must be {rank} everywhere")
    return np.asarray(V_T[:, rank:].swapaxes(1, 2))


def _choice(mechanism: Mechanism, known: dict[str, _Coordinate], N: Array) -> tuple[str, ...]:
    """Coordinates whose worst sample is the best among choices at some samples."""
    names, W = tuple(known), _unit_rows(mechanism, list(known.values()))
    drives = len(mechanism.drives)
    choices = list[tuple[int, ...]]()
    for k in np.unique(np.linspace(0, len(N) - 1, TRIED).round().astype(int)):
        rows = W @ N[k]
        first = independent_rows(rows[:drives], WELL_CONDITIONED)
        left = rows @ null_space(rows[first])
        choices.append((*first, *(drives + j for j in independent_rows(left[drives:]))))
    worst = {choice: _conditioning(W[[*choice]] @ N).min() for choice in choices}
    return tuple(names[k] for k in max(worst, key=lambda choice: (worst[choice], choice)))


def _unit_rows(mechanism: Mechanism, coordinates: Sequence[_Coordinate]) -> Array:
    """Rates of coordinates per unit rate of each dof, in rows of length one, (coordinates, nv)."""
    rows = np.array([coordinate.rates for coordinate in coordinates]).reshape(-1, mechanism.nv)
    rows = rows * unit_rates(mechanism)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _conditioning(rows: Array) -> Array:
    """Smallest singular value of the rates of coordinates along the free motions (nt, n, n), 0 if they are too few."""
    if rows.shape[1] != rows.shape[2]:
        return np.zeros(len(rows))
    return np.asarray(np.linalg.svd(rows, compute_uv=False)[:, -1]) if rows.size else np.ones(len(rows))


def _want_samples(mechanism: Mechanism, sound: AnyArray, reason: str) -> None:
    """Raise at the first sample (nt,) that is not sound."""
    if not sound.all():
        k = int(np.argmin(sound))
        raise SingularityError(
            f"{mechanism.model.path}: sample {k} is singular: {reason}", time=float(k), singular_value=float("nan")
        )
