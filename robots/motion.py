"""The prescribed motion of a robot: every joint on a time grid, with the loops closed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array, Times, frozen
from loopcheck.robots.errors import ShapeError

MOST_STEPS = 100_000
"""Largest number of steps of a report grid [-]; the matrices of more samples exceed the memory of any machine."""


class Drive(NamedTuple):
    """Prescribed motion of the driven coordinates, in the order of `Mechanism.drives`."""

    q: Array
    """Positions [m or rad], shape (nt, drives)."""
    qd: Array
    """Velocities [m/s or rad/s], shape (nt, drives)."""
    qdd: Array
    """Accelerations [m/s² or rad/s²], shape (nt, drives)."""


Law: TypeAlias = Callable[[Array], Drive]
"""A motion law: the prescribed motion at times [s] of shape (nt,), also slightly before and after the span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """A motion of a mechanism that closes its loops.

    A route that steps in time drives the robot by `law` and starts from `assemble(times)`; all other routes use the
    grid.
    """

    t: Array
    """Time [s], shape (nt,), equally spaced."""
    q: Array
    """Joint positions [m or rad], shape (nt, nq)."""
    qd: Array
    """Joint velocities [m/s or rad/s], shape (nt, nv)."""
    qdd: Array
    """Joint accelerations [m/s² or rad/s²], shape (nt, nv)."""
    law: Law
    """The prescribed coordinates at any time."""
    assemble: Callable[[Array], "Motion"]
    """The same motion on another grid of increasing times [s] of shape (nt,), for instance just before the span."""
    unforced: float = 0.0
    """Relative difference between logged and computed accelerations of unactuated dofs [-]; the motion has these."""

    contradiction: str = ""
    """Contradictions between the rates and the positions of a log (a simulation cannot follow both); usually empty."""
    notes: tuple[str, ...] = ()
    """Remarks on the motion, a sentence each: its initial state, exceeded limits."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", frozen(self.t, (None,), name="motion, t"))
        for name in ("q", "qd", "qdd"):
            values = frozen(getattr(self, name), (len(self.t), None), name=f"motion, {name}")
            object.__setattr__(self, name, values)

    @property
    def dt(self) -> float:
        """Step of the grid [s]."""
        return float(self.t[-1] - self.t[0]) / (len(self.t) - 1)


def altered(motion: Motion, change: Callable[[Array], Array]) -> Motion:
    """The motion with all its numbers changed, at any time.

    Args:
        motion: The motion; its times stay.
        change: Map of positions, velocities or accelerations [m or rad, per s, per s²] of any shape to the new values.
    """

    def law(t: Array) -> Drive:
        return Drive(*map(change, motion.law(t)))

    q, qd, qdd = map(change, (motion.q, motion.qd, motion.qdd))
    return replace(motion, q=q, qd=qd, qdd=qdd, law=law, assemble=lambda t: altered(motion.assemble(t), change))


def report_grid(span: tuple[float, float], *, dt: float | None = None) -> Times:
    """The times at which efforts are reported.

    Args:
        span: First and last time [s].
        dt: Step [s]; by default 10 ms for spans up to 2 s, 20 ms up to 4 s, 50 ms above.

    Raises:
        ShapeError: If the step does not divide the span, or there are more than `MOST_STEPS`.
    """
    length = span[1] - span[0]
    if dt is None:
        dt = 0.010 if length <= 2 else 0.020 if length <= 4 else 0.050
    steps = round(length / dt) if dt > 0 else 0
    if steps > MOST_STEPS:
        raise ShapeError(f"report grid: must have at most {MOST_STEPS} steps over {length:g} s, got steps of {dt:g} s")
    if steps < 1 or abs(steps * dt - length) > 1e-9 * length:
        raise ShapeError(f"report grid: the step must divide the span of {length:g} s, got {dt:g} s")
    return np.linspace(span[0], span[1], steps + 1)
