"""Efforts of redundantly actuated robots: among all efforts with the same effect, the efforts of least norm.

The norm is over the efforts divided by their scales, `Actuator.effort_scale`, so that newtons and newton metres add up.
"""

from collections.abc import Callable

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    null_space,
    pseudo_inverse,
    row_factors,
    solve_dependent,
)
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array, Efforts, EffortSeries, JointPositions, PositionSeries, svd
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.size import unit_rates

WELL_CONDITIONED = 1e-2
"""Least independent part of a driven dof that makes it an independent coordinate [-]."""
WORSE = 0.1
"""Fraction of the initial conditioning down to which a choice of independent coordinates is kept [-]."""


def minimum_norm(A: Array, force: Array, scale: Efforts) -> EffortSeries:
    """Efforts of least norm with a given generalized force on the independent coordinates.

    From the QR decomposition W A = Q U, W = diag(scale), the efforts are W Q U⁻ᵀ f; if there are as many actuators as
    dofs they are unique, A⁻ᵀ f.

    Args:
        A: Actuator velocities per independent velocity [-], shape (nt, na, n) with na ≥ n and full column rank.
        force: Generalized force on the independent coordinates [N or N m], shape (nt, n).
        scale: Reference effort of each actuator.
    """
    if A.shape[-2] == A.shape[-1]:
        return np.asarray(np.linalg.solve(A.swapaxes(1, 2), force[..., None])[..., 0], dtype=np.float64)
    Q, U = np.linalg.qr(scale[:, None] * A)
    return scale * (Q @ np.linalg.solve(U.swapaxes(1, 2), force[..., None]))[..., 0]


def moving_part(mechanism: Mechanism, motion: Motion) -> Array | None:
    """The projector of efforts on the part that moves a redundantly actuated robot; the rest is internal.

    With D the motions of independent drives, each by itself, W the scales of the efforts and U an orthonormal basis of
    the range of W S D, it is Π = W U Uᵀ W⁻¹: Π τ moves the robot as τ does and has the least norm.

    Returns:
        Π at each sample [ratios of the units of the efforts], shape (nt, na, na). None if there are no more actuators
        than degrees of freedom that they move: then efforts are unique.
    """
    drives = independent_drives(mechanism, motion.q[len(motion.t) // 2])
    if mechanism.na <= len(drives):
        return None
    W, Phi = mechanism.rates_of(drives), closure_jacobian_at(mechanism, motion.q)
    constraints = np.concatenate([Phi, np.broadcast_to(W, (len(Phi), *W.shape))], axis=1)
    D = solve_dependent(constraints, -np.eye(constraints.shape[1])[:, Phi.shape[1] :])
    scale = mechanism.effort_scales
    U = np.linalg.qr((scale[:, None] * mechanism.selection) @ D)[0]
    return scale[:, None] * (U @ U.swapaxes(-1, -2)) / scale


def shared_loads(mechanism: Mechanism, motion: Motion) -> tuple[tuple[int, ...], ...]:
    """Groups of redundant actuators that share a load: Π couples their efforts.

    Returns:
        Numbers of the actuators in each group; empty without redundant actuators.
    """
    from scipy.sparse.csgraph import connected_components

    Pi = moving_part(mechanism, motion)
    if Pi is None:
        return ()
    scale = mechanism.effort_scales
    coupling = np.abs(Pi * scale / scale[:, None]).max(axis=0)
    np.fill_diagonal(coupling, 0.0)
    count, labels = connected_components(coupling > RANK_TOLERANCE, directed=False)
    groups = (tuple(map(int, np.flatnonzero(labels == label))) for label in range(count))
    return tuple(group for group in groups if len(group) > 1)


def actuator_motions(mechanism: Mechanism, Phi: Array, inertia: Callable[[], Array]) -> Array:
    """The motions that move a single actuator at unit rate, keep all others at rest, and keep the loops closed.

    D = N pinv(W S N) W with N = null(Φ) and W the scales of the efforts: for a redundantly actuated robot the motions
    that belong to efforts of least norm. Less their part along the motions Z of no actuator, D − Z (ZᵀMZ)⁻¹ ZᵀMD, so
    that Dᵀ times a generalized force is the effort whatever the accelerations along Z are. Made from the projector P =
    1 − Φ⁺Φ, because a basis of the null space may mix independent actuators.

    Args:
        Phi: Closure Jacobian [m/rad or m/m], shape (nt, nc, nv).
        inertia: Gives the inertia matrix of the spanning tree [kg, kg m or kg m²], of shape (nt, nv, nv), if needed.

    Returns:
        Joint velocities per rate of each actuator [-, or ratios of the units], shape (nt, nv, na).
    """
    units = unit_rates(mechanism)  # a slide in millimetres would hide what turns, and one in kilometres be hidden
    middle, J = len(Phi) // 2, Phi * units
    J = row_factors(J) * J
    gears = np.linalg.norm(mechanism.selection * units, axis=1)
    S = mechanism.selection * units / gears[:, None]
    dof = null_space(J[middle]).shape[1]
    if dof == mechanism.na == len(independent_rows(S @ null_space(J[middle]))):
        constraints = np.concatenate([J, np.broadcast_to(S, (len(J), *S.shape))], axis=1)
        D = solve_dependent(constraints, -np.eye(constraints.shape[1])[:, J.shape[1] :]) / gears
        return units[:, None] * D
    P = np.eye(mechanism.nv) - pseudo_inverse(J) @ J if J.size else np.eye(mechanism.nv)[None]
    A = np.broadcast_to(S @ P, (len(Phi), *S.shape))
    idle = np.linalg.norm(A[middle], axis=1) <= RANK_TOLERANCE  # moves nothing: of what is left, round-off is made
    A = np.where(idle[:, None], 0.0, A)
    values, V_T = svd(A, full_matrices=False)[1:]
    driven = int((values[middle] > RANK_TOLERANCE).sum())
    V = V_T[:, :driven].swapaxes(1, 2)
    weights = np.ones(mechanism.na) if driven == mechanism.na else mechanism.effort_scales * gears
    D = V @ np.linalg.pinv(weights[:, None] * (A @ V)) * (weights / gears)
    undriven = dof - driven
    if undriven:
        stacked = np.concatenate([J, np.broadcast_to(S, A.shape)], axis=1)
        Z_T = svd(stacked)[2][:, mechanism.nv - undriven :]
        Z, M = Z_T.swapaxes(1, 2), inertia() * units[:, None] * units
        D = D - Z @ np.linalg.solve(Z_T @ M @ Z, Z_T @ M @ D)
    if driven == mechanism.na:  # Newton's step for S D = 1: round-off of the largest actuator is much for the smallest
        D = D @ (2 * np.eye(driven) - gears[:, None] * S @ D)
    return units[:, None] * D


def independent_drives(mechanism: Mechanism, q: JointPositions) -> tuple[Coordinate, ...]:
    """Driven coordinates that determine the motion of all driven coordinates, chosen by pivoting."""
    N = free_motions(mechanism, q)
    return tuple(mechanism.drives[k] for k in independent_rows(unit_rates_of_drives(mechanism) @ N))


def mixed_drives(mechanism: Mechanism, q: JointPositions) -> tuple[tuple[Coordinate, ...], Array]:
    """Independent coordinates, each a mixture of driven coordinates, and the weights of the mixtures.

    If drives are redundant and loops a little open, as in simulations, the drives contradict each other: a choice among
    them must not depend on round-off. The mixtures, as many as are independent, are the directions in which the drives
    move most. An independent drive stays by itself.

    Returns:
        The coordinates, and weights [-, or per m], shape (coordinates, drives).
    """
    independent, drives = independent_drives(mechanism, q), mechanism.drives
    if len(independent) == len(drives):
        return independent, np.eye(len(drives))
    U = svd(unit_rates_of_drives(mechanism) @ free_motions(mechanism, q))[0]
    W = mechanism.rates_of(drives)
    weights = U[:, : len(independent)].T / np.linalg.norm(W * unit_rates(mechanism), axis=1)
    joints = [j for j, dofs in enumerate(mechanism.dof_slices) if W[:, dofs].any()]
    columns = [mechanism.dof_slices[j].start for j in joints]
    mixtures = (
        Coordinate(name=f"combination {k + 1} of the drives", joints=tuple(joints), weights=row[columns])
        for k, row in enumerate(weights @ W)
    )
    return tuple(mixtures), weights


def independent_dofs(mechanism: Mechanism, motion: Motion) -> AnyArray:
    """Mask of the dofs taken as independent coordinates at the middle of a motion.

    Returns:
        Mask [-], shape (nv,).
    """
    return independent_dofs_at(mechanism, motion.q[len(motion.t) // 2])


def independent_dofs_at(mechanism: Mechanism, q: JointPositions) -> AnyArray:
    """Mask of dofs that determine all dofs: driven dofs first, as far as they do so well, chosen by pivoting.

    Returns:
        Mask [-], shape (nv,); as many as the robot has dofs.
    """
    N = free_motions(mechanism, q)
    driven = mechanism.selection.any(axis=0)
    mask = np.zeros(mechanism.nv, dtype=bool)
    for candidates, least in ((np.flatnonzero(driven), WELL_CONDITIONED), (np.arange(mechanism.nv), RANK_TOLERANCE)):
        left = N @ null_space(N[mask])  # motions that do not move what is chosen already
        mask[candidates[independent_rows(left[candidates], least)]] = True
    return mask


def independent_choices(state: State) -> list[tuple[AnyArray, AnyArray]]:
    """Dofs used as independent coordinates along a motion; an ill conditioned choice is replaced by another.

    Args:
        state: Closed poses; velocities do not matter.

    Returns:
        Mask of the dofs (nv,) and of their samples (nt,), for each choice; every sample has a choice.
    """
    choices, left = [], np.arange(len(state.q))
    while left.size:
        middle = left[len(left) // 2]
        mask = independent_dofs_at(state.mechanism, state.q[middle])
        worst = _conditioning(state, mask)
        sound = left[worst[left] >= worst[middle] * WORSE]
        choices.append((mask, np.isin(np.arange(len(state.q)), sound)))
        left = np.setdiff1d(left, sound)
    return choices


def _conditioning(state: State, mask: AnyArray) -> Array:
    """Smallest rate of dofs in any motion of unit size that keeps the loops closed [-], shape (nt,)."""
    if not mask.any():
        return np.ones(len(state.q))
    dependent, units = state.dependent_rates(mask), unit_rates(state.mechanism)
    rates = dependent(state.Phi[..., mask] * units[mask]) / units[~mask, None]
    worst = 1 / np.sqrt(1 + np.linalg.eigvalsh(rates.swapaxes(1, 2) @ rates)[:, -1])
    singular = ~dependent.is_regular  # there rates of least norm do not tell
    if singular.any():
        Phi = state.Phi[singular] * units
        N = svd(row_factors(Phi) * Phi)[2][:, state.mechanism.nv - int(mask.sum()) :].swapaxes(1, 2)
        worst[singular] = np.linalg.svd(N[:, mask], compute_uv=False)[:, -1]
    return worst


def undriven_dofs(mechanism: Mechanism, q: JointPositions) -> int:
    """Number of degrees of freedom without an actuator: their motion follows from the dynamics."""
    N = free_motions(mechanism, q)
    return N.shape[1] - len(independent_rows(unit_rates_of_drives(mechanism) @ N))


def free_motions(mechanism: Mechanism, q: JointPositions) -> Array:
    """Orthonormal basis of the motions that keep the loops closed in a pose, in unit rates, lest units decide ranks.

    Returns:
        Basis, rates over `unit_rates` [-], shape (nv, dof).
    """
    return null_space(closure_jacobian_at(mechanism, q[None])[0] * unit_rates(mechanism))


def rates_of_drives(mechanism: Mechanism) -> Array:
    """Rates of all driven coordinates per joint velocity, in rows of length one and before the gears of actuators.

    Ranks are judged by these rows: a gear of 1e6 does not hide the other drives.

    Returns:
        Rows in the order of `Mechanism.drives` [-], shape (drives, nv).
    """
    W = mechanism.rates_of(mechanism.drives)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def unit_rates_of_drives(mechanism: Mechanism) -> Array:
    """Rates of all driven coordinates per unit rate of each dof, in rows of length one.

    Returns:
        Rows in the order of `Mechanism.drives` [-], shape (drives, nv).
    """
    W = mechanism.rates_of(mechanism.drives) * unit_rates(mechanism)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def independent_rows(A: Array, least: float = RANK_TOLERANCE) -> list[int]:
    """Rows that span all rows, chosen by pivoting.

    Args:
        A: Rows of length one times an orthonormal basis [-], shape (rows, columns).
        least: Least addition of a row to the rows before it [-].

    Returns:
        Their indices, ascending.
    """
    from scipy.linalg import qr

    if not A.size:
        return []
    R, order = qr(A.T, pivoting=True, mode="r")
    size = np.abs(np.diag(R))
    return sorted(int(k) for k in order[: int((size > least).sum())])


def drive_motions(mechanism: Mechanism, q: PositionSeries) -> Array:
    """Rates of the driven coordinates along the motions that keep the loops closed: their singular values judge ranks.

    Returns:
        Rows of length one times the projector on these motions, of unit rates [-], shape (nt, drives, nv).
    """
    Phi = closure_jacobian_at(mechanism, q) * unit_rates(mechanism)
    rows = row_factors(Phi) * Phi
    free = np.eye(mechanism.nv) - pseudo_inverse(rows) @ rows if rows.size else np.eye(mechanism.nv)
    return np.broadcast_to(unit_rates_of_drives(mechanism) @ free, (len(q), len(mechanism.drives), mechanism.nv))
