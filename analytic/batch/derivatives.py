"""Derivatives of efforts and accelerations from the traced forces on the independent coordinates.

The equations of motion are G(q, q̇, q̈, τ) = f − Aᵀ τ = 0, A = S L the rates of the actuators. Both inverse and forward
dynamics follow from the derivatives of G with the other quantities held.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np

from loopcheck.analytic.batch import compiled
from loopcheck.analytic.batch.gradient import BLOCKS, CONSTANTS, Gradient, gradient
from loopcheck.analytic.batch.interpreter import outputs
from loopcheck.analytic.batch.trace import shape_of
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE, closure_jacobian_at
from loopcheck.analytic.kinematics.continuation import conditioning
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries, PositionSeries
from loopcheck.robots.errors import NotFoundError, SingularityError

RESOLVED = 1e-3
"""Conditioning of Φᵘ below which derivatives are refused [-]: round-off of the state grows with its inverse square."""
WEAK = 0.02
"""Smallest pivot relative to that at the pose of a trace [-]; below it, the elimination loses digits."""
BLOCK = 1024
"""Samples that the interpreter computes at once."""


def want_blocks(wanted: Collection[str], known: Sequence[str]) -> None:
    """Raise if a derivative is unknown.

    Raises:
        NotFoundError: Names the known derivatives.
    """
    for name in wanted:
        if name not in known:
            raise NotFoundError("derivative", name, known)


class Evaluation:
    """The tape of the derivatives at closed samples; samples with weak pivots are traced again at their pose."""

    def __init__(self, traced: Gradient, q: PositionSeries, *, is_compiled: bool) -> None:
        """Positions with closed loops.

        Args:
            is_compiled: Whether to run machine code.
        """
        self.traced, self.q = traced, q
        self._parts: list[tuple[Gradient, AnyArray]] = []
        self._run = compiled.load_map(_job(traced)) if is_compiled else None

    def __call__(self, rates: Array, changes: Array, effort: EffortSeries, y: Array | None = None) -> dict[str, Array]:
        """Outputs of the tape.

        Args:
            rates: Velocities of the independent dofs [m/s or rad/s], shape (nt, n).
            changes: Accelerations of the independent dofs [m/s² or rad/s²], shape (nt, n).
            effort: Efforts, used of `Gradient.actuators` alone.
            y: Velocities of the independent dofs in `Gradient.blocks` [any unit], shape (nt, n); zero by default.

        Raises:
            SingularityError: If a sample is too near to a singularity; `time` is its number.
        """
        inputs = [self.q, rates, changes]
        if self.traced.actuators:
            inputs += [effort[:, self.traced.actuators], np.zeros_like(rates) if y is None else y]
        values = self._run(inputs) if self._run else _interpreted(self.traced, inputs)
        if not self._parts:
            self._parts = [(self.traced, np.arange(len(self.q))), *self._again(values)]
        for traced, samples in self._parts[1:]:
            values[:, samples] = _interpreted(traced, [x[samples] for x in inputs])
        return {name: values[place].T for name, place in self.traced.blocks.items()}

    def _again(self, values: Array) -> list[tuple[Gradient, AnyArray]]:
        """Traces at further poses, with their samples."""
        guard = values[self.traced.blocks["guard"]][0]
        left = np.flatnonzero(~((guard >= WEAK) & (guard * self.traced.conditioning >= RESOLVED)))
        shape, parts = self.traced.shape, []
        _refuse_unresolved(self.traced, self.q, left)
        while left.size:
            again = gradient(shape_of(shape.mechanism, self.q[left[0]], shape.independent), tuple(self.traced.blocks))
            padded = np.zeros((len(left), again.inputs))
            padded[:, : self.q.shape[1]] = self.q[left]
            fits = _interpreted(again, [padded])[again.blocks["guard"]][0] >= WEAK
            parts.append((again, left[fits]))
            left = left[~fits]
        return parts


def _refuse_unresolved(traced: Gradient, q: PositionSeries, samples: AnyArray) -> None:
    """Raise if samples are too near to a singularity for derivatives."""
    shape = traced.shape
    if not (samples.size and shape.dependent):
        return
    ratios = conditioning(closure_jacobian_at(shape.mechanism, q[samples])[..., shape.dependent])[0]
    worst = int(np.argmin(ratios))
    if ratios[worst] < RESOLVED:
        raise SingularityError(
            f"{shape.mechanism.model.path}: derivatives at sample {samples[worst]} are not resolved: ratio of smallest "
            f"to largest singular value of the passive closure Jacobian must be at least {RESOLVED:g}, got "
            f"{ratios[worst]:.3g}. Keep away from the singularity",
            time=float(samples[worst]),
            singular_value=float(ratios[worst]),
        )


def _interpreted(traced: Gradient, inputs: list[Array]) -> Array:
    """Outputs of the tape by numpy, shape (outputs, nt)."""
    columns = np.concatenate(inputs, axis=1).T
    blocks = range(0, columns.shape[1], BLOCK)
    with np.errstate(all="ignore"):  # a weak sample may hold anything
        return np.concatenate([outputs(traced.tape, columns[:, k : k + BLOCK]) for k in blocks], axis=1)


@lru_cache(maxsize=8)
def _job(traced: Gradient) -> compiled.MapJob:
    """Module to compile; cached, as tapes are long."""
    return compiled.map_job(traced.tape, traced.inputs)


def is_compiled(traced: Gradient) -> bool:
    """Whether machine code of the derivatives is in the cache."""
    return _job(traced).is_compiled


def of_efforts(evaluation: Evaluation, rates: Array, changes: Array, effort: EffortSeries) -> Mapping[str, Array]:
    """Derivatives of efforts of least norm along the independent coordinates and the parameters.

    Args:
        rates: Velocities of the independent dofs [m/s or rad/s], shape (nt, n).
        changes: Accelerations of the independent dofs [m/s² or rad/s²], shape (nt, n).

    Returns:
        `q`, `qd`, `qdd` of shape (nt, na, n); `parameters` of shape (nt, na, bodies, 10) if they are traced.
    """
    traced = evaluation.traced
    found = evaluation(rates, changes, effort)
    blocks = _blocks(traced, found)
    if traced.is_direct:
        return blocks
    return _of_least_norm(evaluation, found, (rates, changes, effort), blocks, range(rates.shape[1]))


def _of_least_norm(
    evaluation: Evaluation,
    found: Mapping[str, Array],
    state: tuple[Array, Array, EffortSeries],
    blocks: Mapping[str, Array],
    driven: Sequence[int],
) -> Mapping[str, Array]:
    """Derivatives of efforts of least norm from those of the forces on driven coordinates.

    Args:
        found: Outputs at the state.
        state: Velocities and accelerations of the independent dofs, and efforts, see `of_efforts`.
        blocks: Derivatives of the forces with the efforts held [any unit], shape (nt, r, ...).
        driven: Numbers of the r driven dofs among the independent dofs.
    """
    traced, (rates, changes, effort) = evaluation.traced, state
    A, P = _least_norm(traced, found, driven)
    of_efforts = {name: _matrix(P @ _flat(block), block) for name, block in blocks.items()}
    if traced.actuators:
        W2, y = np.diag(traced.shape.mechanism.effort_scales**2), np.zeros_like(rates)
        y[:, driven] = _solved(A.swapaxes(1, 2) @ W2 @ A, A.swapaxes(1, 2) @ effort[..., None])[..., 0]
        mixed = evaluation(rates, changes, effort, y)["mixed"]
        internal = W2 - P @ A.swapaxes(1, 2) @ W2
        of_efforts["q"] += internal[..., list(traced.actuators)] @ mixed.reshape(len(y), -1, rates.shape[1])
    return of_efforts


def _least_norm(traced: Gradient, found: Mapping[str, Array], driven: Sequence[int]) -> tuple[Array, Array]:
    """Rates A of the actuators per driven velocity, and efforts of least norm per force, both of shape (nt, na, r)."""
    A, W2 = _actuator_rates(traced, found) @ traced.directions.T, np.diag(traced.shape.mechanism.effort_scales**2)
    A = A[..., driven]
    return A, W2 @ A @ np.linalg.inv(A.swapaxes(1, 2) @ W2 @ A)


def of_states(
    evaluation: Evaluation, rates: Array, changes: Array, driven: Sequence[int]
) -> tuple[EffortSeries, Array, Mapping[str, Array], Mapping[str, Array]]:
    """Efforts, and accelerations of undriven coordinates u, on which no force remains, with derivatives.

    From 0 = dfᵤ + Mᵤᵤ dq̈ᵤ follow the accelerations, and from them the forces on the driven coordinates, dfₐ + Mₐᵤ dq̈ᵤ.

    Args:
        rates: Velocities of the independent dofs [m/s or rad/s], shape (nt, n).
        changes: Prescribed accelerations of the independent dofs, zero for undriven [m/s² or rad/s²], shape (nt, n).
        driven: Numbers of the r driven dofs among the independent dofs.

    Returns:
        Efforts of least norm; accelerations of all dofs [m/s² or rad/s²], shape (nt, nv); derivatives of the efforts
        `q`, `qd` (nt, na, n), `qdd` (nt, na, r) and, if traced, `parameters` (nt, na, bodies, 10); the same of the
        accelerations of the undriven dofs, with n − r rows.

    Raises:
        SingularityError: If the undriven dofs move an actuator; `time` is the number of the sample.
    """
    traced, undriven = evaluation.traced, np.delete(range(rates.shape[1]), driven)
    found = evaluation(rates, changes, np.zeros((len(rates), traced.shape.mechanism.na)))
    _want_unmoved(traced, _actuator_rates(traced, found)[..., undriven])
    M = _blocks(traced, found)["qdd"]
    M_uu, M_au = M[:, undriven][..., undriven], M[:, driven][..., undriven]
    changes = changes.copy()
    changes[:, undriven] = -_solved(M_uu, found["force"][:, undriven, None])[..., 0]
    force = found["force"][:, driven] + (M_au @ changes[:, undriven, None])[..., 0]
    _, P = _least_norm(traced, found, driven)
    effort = (P @ force[..., None])[..., 0]
    found = evaluation(rates, changes, effort)
    blocks = _blocks(traced, found)
    blocks["qdd"] = blocks["qdd"][..., driven]
    free = {name: -_solved(M_uu, _flat(block)[:, undriven]) for name, block in blocks.items()}
    held = {name: block[:, driven] + _matrix(M_au @ free[name], block) for name, block in blocks.items()}
    of_efforts = _of_least_norm(evaluation, found, (rates, changes, effort), held, driven)
    of_undriven = {name: _matrix(free[name], block) for name, block in blocks.items()}
    return effort, found["accelerations"], of_efforts, of_undriven


def _want_unmoved(traced: Gradient, A: Array) -> None:
    """Raise if actuators move with undriven dofs: then their drives are not among the independent dofs.

    Args:
        A: Rates of the actuators per velocity of the undriven dofs [-], shape (nt, na, m).
    """
    mechanism = traced.shape.mechanism
    rates = np.abs(A).max(axis=2, initial=0.0) / np.linalg.norm(mechanism.selection, axis=1)
    for sample, k in np.argwhere(rates > RANK_TOLERANCE):
        raise SingularityError(
            f"{mechanism.model.path}: each drive must be independent of the others or follow from them in all poses, "
            f"but '{mechanism.actuators[k].name}' nearly follows at sample {sample}. Keep away from the singularity",
            time=float(sample),
            singular_value=float("nan"),
        )


def of_accelerations(
    evaluation: Evaluation, rates: Array, effort: EffortSeries
) -> tuple[Array, Mapping[str, Array], Mapping[str, Array]]:
    """Accelerations from efforts, with derivatives, and forces of the loops with theirs.

    Args:
        rates: Velocities of the independent dofs [m/s or rad/s], shape (nt, n).

    Returns:
        Accelerations of all dofs [m/s² or rad/s²], shape (nt, nv); derivatives of those of the independent dofs along
        `q`, `qd`, `effort` (nt, n, n or na) and `parameters` (nt, n, bodies, 10). If traced, forces of the loops on
        the dofs Φᵀ λ, `value` (nt, nv), and their derivatives `q`, `qd`, `effort` (nt, nv, n or na) and `parameters`
        (nt, nv, bodies, 10).
    """
    traced = evaluation.traced
    mechanism, independent = traced.shape.mechanism, traced.shape.independent
    found = evaluation(rates, np.zeros_like(rates), effort)
    M = _blocks(traced, found)["qdd"]
    others = np.delete(np.arange(mechanism.na), traced.actuators)  # on independent dofs
    direct = effort[:, others] @ mechanism.selection[others][:, independent] @ traced.directions.T
    changes: Array = -_solved(M, (found["force"] - direct)[..., None])[..., 0]
    found = evaluation(rates, changes, effort)
    blocks = dict(_blocks(traced, found))
    del blocks["qdd"]
    blocks["effort"] = -traced.directions @ _actuator_rates(traced, found).swapaxes(1, 2)
    derivatives = {name: _matrix(-_solved(M, _flat(block)), block) for name, block in blocks.items()}
    if "loops" not in found:
        return found["accelerations"], derivatives, {}
    nt, nv = found["loops"].shape
    held = {name: found[f"loops_{name}"].reshape(nt, nv, -1) for name in BLOCKS[:3]}
    loops = {name: held[name] + held["qdd"] @ derivatives[name] for name in ("q", "qd")}
    loops["effort"] = held["qdd"] @ derivatives["effort"] - mechanism.selection.T
    if "parameters" in derivatives:
        block = derivatives["parameters"]
        loops["parameters"] = found["loops_parameters"].reshape(nt, nv, *block.shape[2:])
        loops["parameters"] = loops["parameters"] + _matrix(held["qdd"] @ _flat(block), block)
    loops["value"] = found["loops"] - effort[:, others] @ mechanism.selection[others]
    return found["accelerations"], derivatives, loops


def _blocks(traced: Gradient, found: Mapping[str, Array]) -> dict[str, Array]:
    """Derivatives of the forces, each of shape (nt, n, columns) or (nt, n, bodies, 10)."""
    n = len(traced.shape.independent)
    shapes = dict.fromkeys(BLOCKS[:3], (n, n)) | {"parameters": (n, len(traced.shape.mechanism.bodies), CONSTANTS)}
    return {name: found[name].reshape(-1, *shapes[name]) for name in BLOCKS if name in found}


def _actuator_rates(traced: Gradient, found: Mapping[str, Array]) -> Array:
    """Rates of the actuators per independent velocity A = S L [-], shape (nt, na, n)."""
    selection = traced.shape.mechanism.selection[:, traced.shape.independent]
    A = np.repeat(selection[None], len(found["guard"]), axis=0)
    A[:, traced.actuators] = found["rates"].reshape(len(A), -1, A.shape[2])
    return A


def _solved(A: Array, B: Array) -> Array:
    return np.asarray(np.linalg.solve(A, B), dtype=np.float64)


def _flat(block: Array) -> Array:
    return block.reshape(*block.shape[:2], math.prod(block.shape[2:]))


def _matrix(flat: Array, block: Array) -> Array:
    return flat.reshape(*flat.shape[:2], *block.shape[2:])
