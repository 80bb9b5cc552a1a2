"""Trusses: loops that close in a single pose, with a self-stress that holds them in it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, svd
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism, PathClosure, bodies_of
from loopcheck.robots.size import closure_units, unit_rates
from loopcheck.validation.gate.closed_poses import ZERO, rank_of, row_factors_of_closures

STEP = 1e-3
"""Step of the second differences [rad, or sizes of the robot]."""
NOISE, MOST_NOISE = 10.0, 1e-3
"""Singular values below `NOISE` times the root of the relative gap are noise, at most up to `MOST_NOISE` [-].

A truss closes with the square of its distance from the closed pose, and Newton's method stops at that distance.
"""
FLAT = 1e-3
"""Second derivative of a closure below which a motion does not open it [-]."""
STEPS = 200
"""Steps of the search for a definite form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """Closures that share joints, with these joints: one independent part of a mechanism."""

    closures: list[int]
    dofs: list[int]


def independent_loops(mechanism: Mechanism) -> list[Loops]:
    """The closures in groups without common joints; joints that carry both ends of a closure are none of it."""
    groups: list[tuple[set[int], set[int]]] = []
    for k in range(len(mechanism.closures)):
        joined, joints = {k}, _joints_of(mechanism, k)
        apart = []
        for closures, of_group in groups:
            if joints.isdisjoint(of_group):
                apart.append((closures, of_group))
            else:
                joined, joints = joined | closures, joints | of_group
        groups = [*apart, (joined, joints)]
    return [_loops(mechanism, closures, joints) for closures, joints in groups]


def _loops(mechanism: Mechanism, closures: set[int], joints: set[int]) -> Loops:
    dofs = [d for j in sorted(joints) for d in range(*mechanism.dof_slices[j].indices(mechanism.nv))]
    return Loops(closures=sorted(closures), dofs=dofs)


def _joints_of(mechanism: Mechanism, k: int) -> set[int]:
    closure = mechanism.closures[k]
    if isinstance(closure, CoordinateClosure):
        return {*closure.follower.joints, *(closure.leader.joints if closure.leader else ())}
    ways = [set(mechanism.way(body)) - {WORLD} for body in bodies_of(closure)]
    carrying = ways[0].intersection(*ways) if ways else set[int]()
    moving = set[int]().union(*ways) - carrying
    slides = [closure.slide] if isinstance(closure, PathClosure) and closure.slide is not None else []
    return {*slides, *(j for body in moving for j in mechanism.joints_of[body])}


def trusses(mechanism: Mechanism, q: JointPositions) -> Iterator[Loops]:
    """Independent loops that cannot move out of a closed pose, although their Jacobian leaves them a motion.

    A self-stress is a row vector λ with λJ = 0. A motion v with Jv = 0 continues to the second order only if vᵀ(λ·∂²g)v
    is 0 for every λ: if the form of one λ is definite, nothing moves (Connelly and Whiteley 1996, prestress stability).
    The form is judged without motions that open no closure to the second order. Such motions may be spins of balls
    alone; a hinge or slide that moves so leaves the loop a motion.

    Args:
        q: Closed pose.
    """
    groups = independent_loops(mechanism)
    shared = {k for loops in groups if len(loops.closures) > 1 for k in loops.closures}
    alone = [_loops(mechanism, {k}, _joints_of(mechanism, k)) for k in sorted(shared)]  # other closures free nothing
    groups, stuck = [loops for loops in (*alone, *groups) if loops.dofs], set[int]()
    if not groups:
        return
    units, of_rows = unit_rates(mechanism), np.array(closure_of_rows(mechanism), dtype=int)
    state = State.at_rest(mechanism, q[None])
    Phi, gaps = state.Phi * units, np.abs(state.gap[0]) / closure_units(mechanism).units
    factors = row_factors_of_closures(mechanism, Phi)
    scaled = (factors * Phi)[0]
    is_spin = np.array([joint.kind in ("ball", "free") for joint in mechanism.joints])
    spins = np.repeat(is_spin, [s.stop - s.start for s in mechanism.dof_slices])
    for loops in groups:
        if stuck & {*loops.closures}:
            continue
        rows = np.flatnonzero(np.isin(of_rows, loops.closures))
        U, values, V_T = svd(scaled[np.ix_(rows, np.array(loops.dofs))])
        noise = np.clip(NOISE * np.sqrt(gaps[rows].max()), ZERO, MOST_NOISE)
        rank = rank_of(values, float(noise))
        stresses, N = U[:, rank:].T, V_T[rank:].T
        if not len(stresses) or not N.shape[1]:
            continue
        motions = np.zeros((N.shape[1], mechanism.nv))
        motions[:, loops.dofs] = N.T
        forms = _second_derivatives(mechanism, q, motions * units, rows) @ (factors[0, rows] * stresses.T)
        held = held_dofs(np.moveaxis(forms, -1, 0), N, spins[loops.dofs])
        if held.any():
            stuck |= {*loops.closures}
            yield Loops(
                closures=loops.closures, dofs=[d for d, is_held in zip(loops.dofs, held, strict=True) if is_held]
            )


def _second_derivatives(mechanism: Mechanism, q: JointPositions, motions: Array, rows: AnyArray) -> Array:
    """Second derivatives of rows of the closures along motions, by differences [m or rad], shape (n, n, rows)."""
    n = len(motions)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    steps = np.array([[motions[i] + motions[j], motions[i] - motions[j]] for i, j in pairs]).reshape(
        -1, motions.shape[1]
    )
    moved = retract(mechanism, np.repeat(q[None], 2 * len(steps), axis=0), STEP * np.concatenate([steps, -steps]))
    gaps = State.at_rest(mechanism, moved).gap[:, rows].reshape(2, len(pairs), 2, len(rows)).sum(axis=0)
    second = (gaps[:, 0] - gaps[:, 1]) / (4 * STEP**2)
    result = np.zeros((n, n, len(rows)))
    for (i, j), values in zip(pairs, second, strict=True):
        result[i, j] = result[j, i] = values
    return result


def held_dofs(forms: Array, N: Array, spins: AnyArray) -> AnyArray:
    """Mask of the dofs that a definite form holds, shape (dofs,).

    All is false if no combination of the forms is definite where any of them acts, or if a hinge or slide moves where
    none acts.

    Args:
        forms: Quadratic forms on the motions [-], shape (any, n, n).
        N: The motions [-], shape (dofs, n).
        spins: Mask of the dofs of balls [-], shape (dofs,).
    """
    n, small = forms.shape[1], np.sqrt(FLAT)
    _, values, V_T = svd(forms.reshape(-1, n))
    acting = int((values > FLAT).sum())
    C, idle = V_T[:acting].T, N @ V_T[acting:].T
    if not acting or np.abs(idle[~spins]).max(initial=0.0) > small:
        return np.zeros(len(N), dtype=bool)
    _, sizes, basis = svd((C.T @ forms @ C).reshape(len(forms), -1))
    independent = basis[: int((sizes > FLAT).sum())].reshape(-1, acting, acting)
    return np.asarray(has_definite(independent) & (np.abs(N @ C).max(axis=1) > small))


def has_definite(forms: Array) -> bool:
    """Whether a combination of symmetric forms is positive definite: the least eigenvalue of the best is positive.

    The least eigenvalue is a concave function of the coefficients; its supergradient is the square of the eigenvector.

    Args:
        forms: Symmetric matrices [-], shape (any, n, n).
    """
    c = np.trace(forms, axis1=1, axis2=2)
    c = c / np.linalg.norm(c) if c.any() else np.ones(len(forms)) / np.sqrt(len(forms))
    for step in range(1, STEPS + 1):
        values, vectors = np.linalg.eigh(np.tensordot(c, forms, axes=1))
        if values[0] > FLAT:
            return True
        if len(forms) == 1:
            return False  # the trace is positive, so the negative of the form is no better
        v = vectors[:, 0]
        c = c + np.array([v @ form @ v for form in forms]) / np.sqrt(step)
        c = c / max(1.0, float(np.linalg.norm(c)))
    return False
