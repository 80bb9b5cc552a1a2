"""Opening of MuJoCo's soft loops under the full effort of the drives."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_names
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, PositionSeries
from loopcheck.robots.errors import listed
from loopcheck.robots.mechanism import Mechanism, WeldClosure
from loopcheck.robots.mjcf import Description
from loopcheck.robots.size import size
from loopcheck.validation.gate.findings import Finding

SOFT = 1e-3
"""Opening over the size of the robot that is reported [-]."""
REFSAFE = 1 << 12
"""MuJoCo's flag that switches off the lower limit of time constants."""
SITE = 6
"""MuJoCo's number of the kind site."""
HALVINGS = 50
"""Bisections of the gap."""
LARGEST = 2_000_000
"""Entries of all inertia matrices together, so that a scene with hundreds of loose bodies takes no longer [-]."""


def softness_findings(description: Description, q: PositionSeries) -> Iterator[Finding]:
    """Loops that open by more than `SOFT` of the size while the drives push with their full effort from rest."""
    mechanism, m = description.mechanism, description.compiled
    efforts = np.array([_full_effort(mechanism, k) for k in range(mechanism.na)])
    if not mechanism.rigid_closures or not efforts.any() or not len(q):
        return
    q = q[: max(1, LARGEST // mechanism.nv**2)]
    forces, numbers = closure_forces(mechanism, q, efforts), {name: i for i, name in equality_names(m)}
    for closure in mechanism.rigid_closures:
        rows = [k for k, name in enumerate(closure_names(mechanism)) if name == closure.name][:3]
        force = np.linalg.norm(forces[:, rows], axis=1).sum(axis=1)  # each drive in its worst direction
        openings = [opening(m, numbers[closure.name], float(value)) for value in (force.min(), force.max())]
        if openings[1] > SOFT * size(mechanism):
            pushing = [a.name for a, effort in zip(mechanism.actuators, efforts, strict=True) if effort]
            kind = "weld" if isinstance(closure, WeldClosure) else "connect"
            yield Finding(
                code="LC306",
                element=f"equality '{closure.name}'",
                message=f"the soft {kind} '{closure.name}' opens by {openings[0]:.2g} to {openings[1]:.2g} m (at most "
                f"{openings[1] / size(mechanism):.2g} of the size of the robot) under the full effort of "
                f"{listed(pushing, 3)} in {len(q)} closed poses",
            )


def closure_forces(mechanism: Mechanism, q: PositionSeries, efforts: Array) -> Array:
    """Multipliers of the closures by the effort of each drive alone, at rest, the loops closed and without gravity.

    Args:
        efforts: Effort of each drive [N or N m], shape (na,).

    Returns:
        Forces of the closure rows by drive [N or N m], shape (nt, nc, na).
    """
    state = State.at_rest(mechanism, q)
    M, Phi = inertia_matrix(state), state.Phi
    pushed = np.repeat((mechanism.selection.T * efforts)[None], len(q), axis=0)
    solved = np.linalg.solve(M, np.concatenate([pushed, Phi.swapaxes(1, 2)], axis=2))
    accelerations, A = solved[..., : mechanism.na], Phi @ solved[..., mechanism.na :]
    return np.asarray(-np.linalg.pinv(A, rcond=1e-8, hermitian=True) @ (Phi @ accelerations))


def opening(m: Any, equality: int, force: float) -> float:
    """Gap at which a constraint of MuJoCo exerts a force while its acceleration is zero [m].

    The force is K d² r / ((1 − d) A) with the stiffness K of `solref`, the impedance d(r) of `solimp` and the inverse
    inertia A of both bodies (MuJoCo's documentation, chapter Computation, "Constraint model").

    Args:
        m: Compiled model.
        equality: Number of the connect or weld.
        force: Force [N].
    """
    solref, solimp = m.eq_solref[equality], m.eq_solimp[equality]
    highest = float(np.clip(solimp[1], 1e-4, 1 - 1e-4))
    constant = max(float(solref[0]), 0.0 if m.opt.disableflags & REFSAFE else 2 * float(m.opt.timestep))
    stiffness = 1 / (constant * solref[1]) ** 2 if solref[0] > 0 else -float(solref[0])
    stiffness /= highest**2
    if not stiffness:
        return np.inf
    inverse = sum(float(m.body_invweight0[body, 0]) for body in _bodies(m, equality))
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


def _bodies(m: Any, equality: int) -> list[int]:
    ends = [int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])]
    by_site = int(m.eq_objtype[equality]) == SITE
    return [int(m.site_bodyid[end]) if by_site else end for end in ends]


def _impedance(solimp: Array, gap: float) -> float:
    """Impedance at a gap, MuJoCo's power function [-]."""
    low, high = np.clip(solimp[:2], 1e-4, 1 - 1e-4)
    width, power = max(float(solimp[2]), 1e-15), max(float(solimp[4]), 1.0)
    middle = float(np.clip(solimp[3], 1e-4, 1 - 1e-4))
    x = min(gap / width, 1.0)
    y = x**power / middle ** (power - 1) if x <= middle else 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    return float(low + y * (high - low))


def _full_effort(mechanism: Mechanism, k: int) -> float:
    """Largest effort of an actuator within its limits; 0 without limits [N or N m]."""
    limits = mechanism.actuators[k].limits
    return min((max(abs(limit.low), abs(limit.high)) for limit in limits), default=0.0)
