"""Opening of MuJoCo's soft closures under the full effort of the drives."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, PositionSeries
from loopcheck.robots.errors import listed
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.mechanism import Closure, CoordinateClosure, Mechanism, PathClosure
from loopcheck.robots.size import size
from loopcheck.validation.gate.checks.drive_checks import full_effort
from loopcheck.validation.gate.checks.mechanism_checks import Poses
from loopcheck.validation.gate.closed_poses import closed_near, freedom
from loopcheck.validation.gate.findings import Finding

SOFT = 1e-3
"""Opening over the size of the robot that is reported [-]."""
REFSAFE = 1 << 12
"""MuJoCo's flag that switches off the lower limit of time constants."""
SITE = 6
"""MuJoCo's number of the kind site."""
JOINT, TENDON = 2, 3
"""MuJoCo's numbers of the kinds of equalities between coordinates."""
FAR = 0.1
"""Opening over the size of the robot, or in rad, beyond which the softness at the start says nothing more [-]."""
LITTLE = 0.01
"""Share of the force of a closure below which a drive is not named [-]."""
HALVINGS = 50
"""Bisections of the gap."""


def softness_findings(description: Description, poses: Poses) -> Iterator[Finding]:
    """Closures that open by more than `SOFT` while the drives push with their full effort from rest at the start.

    At the start of the file, where it closes and is regular, or else in the median of the closed poses: beside a
    singular pose the forces of a closure have no bound.
    """
    mechanism, m = description.mechanism, description.compiled
    efforts = np.array([full_effort(actuator) for actuator in mechanism.actuators])
    efforts = np.where(np.isfinite(efforts), efforts, 0.0)
    q = _poses(poses) if efforts.any() and mechanism.closures else {}
    if not q:
        return
    forces = closure_forces(mechanism, np.array([*q.values()]), efforts)
    numbers, of_rows = {name: i for i, name in equality_names(m)}, np.array(closure_of_rows(mechanism), dtype=int)
    for k, closure in enumerate(mechanism.closures):
        if closure.name not in numbers:
            continue  # the length of a tendon
        rows = np.flatnonzero(of_rows == k)[:3]
        shares = np.linalg.norm(forces[:, rows], axis=1)
        force = shares.sum(axis=1)  # each drive in its worst direction
        at, middle = sorted(zip(force, q, strict=True))[(len(q) - 1) // 2][::-1]
        where = at if at in poses.starts else f"the median of {len(q)} closed poses"
        gap = opening(m, numbers[closure.name], float(middle))
        unit, scale = _unit(mechanism, closure)
        if gap > SOFT * scale:
            is_pushing = (shares > LITTLE * force[:, None]).any(axis=0)
            pushing = [f"'{a.name}'" for a, pushes in zip(mechanism.actuators, is_pushing, strict=True) if pushes]
            yield _soft(closure, gap, unit, scale, f"under the full effort of {listed(pushing, 3)} in {where}")


def _soft(closure: Closure, gap: float, unit: str, scale: float, load: str) -> Finding:
    kind = {"ConnectClosure": "connect", "WeldClosure": "weld"}.get(type(closure).__name__, "coupling")
    share = f" ({gap / scale:.2g} of the size of the robot)" if unit == "m" else ""
    far = f"far, by more than {FAR * scale:.2g} {unit}," if gap > FAR * scale else f"by {gap:.2g} {unit}{share}"
    return Finding(
        code="LC306",
        element=f"equality '{closure.name}'",
        extent=min(gap / scale, FAR),
        message=f"the soft {kind} '{closure.name}' opens {far} {load}",
        advice=f"Reduce the time constant in the solref of '{closure.name}', or increase dmax in its solimp, until "
        "it opens "
        f"by less than {SOFT * scale:.2g} {unit}. `loopcheck tune` finds the settings.",
    )


def _poses(poses: Poses) -> dict[str, Array]:
    """A regular closed start of the file, or else all closed poses, by name."""
    rank = poses.generic.rank if poses.generic else np.inf
    for name, start in poses.starts.items() if poses.generic else ():
        q = closed_near(poses.mechanism, start)
        if q is not None and freedom(poses.mechanism, q[None])[0].rank == rank:
            return {name: q}
    return {f"pose {k}": q for k, q in enumerate(poses.closed.q)}


def _unit(mechanism: Mechanism, closure: Closure) -> tuple[str, float]:
    """Unit of the gap of a closure, and the length or angle that it is compared with [m or rad]."""
    joints = closure.follower.joints if isinstance(closure, CoordinateClosure) else ()
    return ("rad", 1.0) if any(mechanism.joints[j].kind == "hinge" for j in joints) else ("m", size(mechanism))


def _is_length(closure: Closure) -> bool:
    return isinstance(closure, PathClosure) and closure.slide is not None


def closure_forces(mechanism: Mechanism, q: PositionSeries, efforts: Array) -> Array:
    """Multipliers of the closures by the effort of each drive alone, at rest, the loops closed and without gravity.

    Args:
        efforts: Effort of each drive [N or N m], shape (na,).

    Returns:
        Forces of the closure rows by drive [N or N m], shape (nt, nc, na).
    """
    state = State.at_rest(mechanism, q)
    Phi = state.Phi
    rows = state.every_Phi[:, [_is_length(mechanism.closures[k]) for k in closure_of_rows(mechanism)]]
    # No motion of the closed loops feels the added rows, and slides of tendons need them.
    M = inertia_matrix(state) + rows.swapaxes(-1, -2) @ rows
    pushed = np.repeat((mechanism.selection.T * efforts)[None], len(q), axis=0)
    solved = np.linalg.solve(M, np.concatenate([pushed, Phi.swapaxes(1, 2)], axis=2))
    accelerations, A = solved[..., : mechanism.na], Phi @ solved[..., mechanism.na :]
    return np.asarray(-np.linalg.pinv(A, rcond=1e-8, hermitian=True) @ (Phi @ accelerations))


def opening(m: Any, equality: int, force: float) -> float:
    """Gap at which a constraint of MuJoCo exerts a force while its acceleration is zero [m or rad].

    The force is K d² r / ((1 − d) A) with the stiffness K of `solref`, the impedance d(r) of `solimp` and the inverse
    inertia A of both bodies, joints or tendons (MuJoCo's documentation, chapter Computation, "Constraint model").

    Args:
        m: Compiled model.
        equality: Number of the equality.
        force: Force of the row, of a connect or weld that between its points [N or N m].
    """
    solref, solimp = m.eq_solref[equality], m.eq_solimp[equality]
    highest = float(np.clip(solimp[1], 1e-4, 1 - 1e-4))
    constant = max(float(solref[0]), 0.0 if m.opt.disableflags & REFSAFE else 2 * float(m.opt.timestep))
    stiffness = 1 / (constant * solref[1]) ** 2 if solref[0] > 0 else -float(solref[0])
    stiffness /= highest**2
    if not stiffness:
        return np.inf
    inverse = _inverse_inertia(m, equality)
    largest = max(force * (1 - d) * inverse / (stiffness * d**2) for d in np.clip(solimp[:2], 1e-4, 1 - 1e-4))
    below, above = 0.0, float(largest)
    for _ in range(HALVINGS):  # the impedance rises with the gap, so that the force does
        gap = (below + above) / 2
        d = _impedance(solimp, gap)
        below, above = (below, gap) if stiffness * d**2 * gap > force * (1 - d) * inverse else (gap, above)
    return above


def equality_names(m: Any) -> Iterator[tuple[int, str]]:
    """Number and name of each equality of a compiled model."""
    for i in range(m.neq):
        yield i, m.equality(i).name or f"equality{i}"


def _inverse_inertia(m: Any, equality: int) -> float:
    """Inverse inertia of both ends of an equality, as MuJoCo approximates it [1/kg or 1/(kg m²)]."""
    ends = [int(end) for end in (m.eq_obj1id[equality], m.eq_obj2id[equality]) if end >= 0]
    kind = int(m.eq_type[equality])
    if kind == JOINT:
        return sum(float(m.dof_invweight0[m.jnt_dofadr[end]]) for end in ends)
    if kind == TENDON:
        return sum(float(m.tendon_invweight0[end]) for end in ends)
    by_site = int(m.eq_objtype[equality]) == SITE
    return sum(float(m.body_invweight0[m.site_bodyid[end] if by_site else end, 0]) for end in ends)


def _impedance(solimp: Array, gap: float) -> float:
    """Impedance at a gap, MuJoCo's power function [-]."""
    low, high = np.clip(solimp[:2], 1e-4, 1 - 1e-4)
    width, power = max(float(solimp[2]), 1e-15), max(float(solimp[4]), 1.0)
    middle = float(np.clip(solimp[3], 1e-4, 1 - 1e-4))
    x = min(gap / width, 1.0)
    y = x**power / middle ** (power - 1) if x <= middle else 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    return float(low + y * (high - low))
