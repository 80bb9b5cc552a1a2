"""The size of a robot: the reference for its lengths.

It does not depend on the pose, so a relative limit has the same meaning all along a motion. It grows with all lengths:
a robot in metres and the same robot in millimetres get the same verdict.
"""

from collections.abc import Iterable
from typing import NamedTuple, assert_never

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, svd
from loopcheck.robots.mechanism import Closure, ConnectClosure, CoordinateClosure, Mechanism, PathClosure, WeldClosure
from loopcheck.robots.motion import Motion


def size(mechanism: Mechanism) -> float:
    """The longest of its links [m]: distance of two joints, closures or mass centres of a body, or of the world.

    1 m if it has no length at all.
    """
    return mechanism.stacked.longest_link or 1.0


def size_in_motion(mechanism: Mechanism, motion: Motion) -> float:
    """Its size, or the travel of a slide if that is larger [m]."""
    slides = [
        columns.start
        for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True)
        if joint.kind == "slide"
    ]
    stroke = float(np.ptp(motion.q[:, slides], axis=0).max(initial=0.0))
    return max(mechanism.stacked.longest_link, stroke) or 1.0


def unit_rates(mechanism: Mechanism) -> Array:
    """Reference rate of each dof, used to compare rotations with translations.

    Returns:
        1 rad of a turn, the size of the robot of a slide [m or rad], shape (nv,).
    """
    length, units = size(mechanism), np.ones(mechanism.nv)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind in ("slide", "free"):
            units[dofs.start : dofs.start + (1 if joint.kind == "slide" else 3)] = length
    return units


class ClosureUnits(NamedTuple):
    """Units of the closure equations, and their blocks: translations, rotations and coordinates of a closure."""

    units: Array
    """The size for lengths, 1 rad for angles [m or rad], shape (nc,)."""
    blocks: AnyArray
    """First equation of each block [-], shape (blocks,)."""


def closure_units(mechanism: Mechanism) -> ClosureUnits:
    """Units of the closure equations."""
    return units_of_closures(mechanism, mechanism.closures)


def units_of_closures(
    mechanism: Mechanism, closures: Iterable[Closure], *, turn: float = 1.0, turn_first: bool = False
) -> ClosureUnits:
    """Units of the equations of some closures, in the order of an engine.

    Args:
        mechanism: Robot.
        closures: Closures in the order of the equations.
        turn: Values of the equations of a weld per rad of its rotation [-].
        turn_first: Whether the rotation of a weld comes before its translation.
    """
    length, blocks = size(mechanism), list[tuple[float, int]]()
    for closure in closures:
        match closure:
            case CoordinateClosure():
                slides = all(mechanism.joints[j].kind == "slide" for j in closure.follower.joints)
                blocks.append((length if slides else 1.0, 1))
            case PathClosure():
                blocks.append((length, 1))
            case ConnectClosure():
                blocks.append((length, 3))
            case WeldClosure():
                of_weld = [(length, 3), (turn, 3)]
                blocks += of_weld[::-1] if turn_first else of_weld
            case _:
                assert_never(closure)
    units, rows = np.array(blocks).reshape(-1, 2).T
    return ClosureUnits(np.repeat(units, rows.astype(int)), np.cumsum([0, *rows[:-1]]).astype(int)[: len(rows)])


def resolved_part(mechanism: Mechanism, J: Array, of_rows: ClosureUnits | None = None) -> Array | None:
    """Projector of closure equations on the part that the numbers of the file resolve.

    Loops of a rounded file do not close exactly, and redundant equations contradict each other by as much. The part of
    J with singular values below `Closing.noise` is removed; P J has the same rank in every scaling of its rows, so that
    all routes have one null space.

    Args:
        mechanism: Robot.
        J: Closure Jacobian [m/rad or m/m], shape (..., nc, nv).
        of_rows: Units of the rows of J; by default `closure_units`.

    Returns:
        P [ratios of the units of the equations], shape (..., nc, nc); None without a known noise.
    """
    if not mechanism.closing.noise or not J.size:
        return None
    units, blocks = closure_units(mechanism) if of_rows is None else of_rows
    A = J / units[:, None] * unit_rates(mechanism)
    lengths = np.sqrt(np.add.reduceat((A**2).sum(axis=-1), blocks, axis=-1))
    lengths = np.repeat(lengths, np.diff([*blocks, len(units)]), axis=-1)
    D = 1 / (units * np.maximum(lengths, 1.0))  # a gear of 100 must not hide the other loops
    U, values, _ = svd(D[..., None] * J * unit_rates(mechanism), full_matrices=False)
    counts = values > mechanism.closing.noise * np.maximum(values[..., :1], 1.0)
    U = U * counts[..., None, :]
    return (U @ U.swapaxes(-1, -2)) * D[..., None, :] / D[..., None]
