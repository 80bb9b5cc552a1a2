"""Exudyn's rigid bodies and joints, driven by rheonomic constraints, stepped at several sizes and extrapolated to zero.

The bodies have redundant coordinates, every joint is a true constraint, and the trapezoidal rule meets all constraints
on the level of velocities at the end of each step: a differential-algebraic equation of index two, of second order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Self

import numpy as np
from scipy.linalg import qr

from loopcheck.engines.equations import carried_note
from loopcheck.engines.extrapolation import readings_at_zero, relative_change, value_at_zero
from loopcheck.engines.exudyn._equations import closure_jacobian
from loopcheck.engines.exudyn._stepping import Run, simulate
from loopcheck.engines.forward import (
    EXTRAPOLATED,
    divided,
    enough_steps,
    forward_history,
    in_ms,
    omission,
    until,
)
from loopcheck.engines.projection import drives_along, null_space
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Limits, ReadsWrenches, Refinable, Rung, Stepped
from loopcheck.robots.mechanism import ConnectClosure, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINER = 8
"""Divisor of the steps for robots with unactuated motions, which may vibrate on springs [-]."""
NEXT_TERM = 1 / 4
"""Ratio of the fourth-order term of the error to the second derivative of the second-order term [-].

Over the catalogue it is .2 to 1 times this value.
"""
POSES = 3
"""At how many places along the motion constraints are looked at for redundancy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    parts: tuple[int, ...] = (2, 4, 8)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    lead: int = 1
    """Number of these parts before the span (multipliers exist only at the ends of steps); the same for all steps.

    With unactuated dofs the number of steps: the state before the span is approximate there, to the square of the lead.
    """
    tolerance: float = 1e-8
    """Newton's method stops at this increment, relative to the first increment of a step [-]."""
    exact_start: bool = True
    """Whether the simulation starts with the accelerations of the motion; otherwise with zero."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


OWN = Settings()
"""Settings of the route."""


class ExudynForward(Refinable, Stepped, ReadsWrenches):
    """Efforts read from the multipliers of Exudyn's drives, extrapolated to step zero."""

    name = "exudyn/forward"
    reduces_rows = True
    """Redundant rows of the loops are left out."""

    def __init__(self, settings: Settings = OWN, limits: Limits | None = None) -> None:
        """With the settings of the route or others, and limits of a verdict, which may omit steps."""
        self.settings, self.limits = settings, limits

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, plan = case.mechanism, _plan(case.mechanism, motion)
        whole = divided(motion.dt) / (FINER if plan.undriven else 1)
        runs = (self._run(plan, whole, count) for count in self.settings.parts)
        enough = enough_steps(self.limits, mechanism, motion, partial(_left, motion.dt))
        ladder = until(enough, (simulate(mechanism, motion, run) for run in runs))
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            effort=value_at_zero([rung.dt**2 for rung in ladder], [rung.effort for rung in ladder]),
            wrenches=readings_at_zero([rung.dt**2 for rung in ladder], [rung.wrenches for rung in ladder]),
            settings={"steps": in_ms(ladder), **_in_words(self.settings), **omission(self.limits)},
            note=_note(mechanism, plan, len(ladder)),
        )

    def within(self, limits: Limits) -> Self:
        """See `loopcheck.robots.efforts.Stepped.within`."""
        return type(self)(self.settings, limits)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True), self.limits)

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`."""
        return type(self)(replace(self.settings, tolerance=self.settings.tolerance / 100))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its constraints are rigid."""
        return type(self)(replace(self.settings, parts=tuple(2 * count for count in self.settings.parts)))

    def _run(self, plan: "_Plan", whole: float, count: int) -> Run:
        return Run(
            dt=whole / count,
            lead=self.settings.lead * (1 if plan.undriven else count),
            drives=plan.drives,
            tolerance=self.settings.tolerance,
            exact_start=self.settings.exact_start,
            left_out=plan.left_out,
            rank_revealing=plan.rank_revealing,
            wrenches=self.settings.wrenches,
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    drives: tuple[int, ...]
    undriven: bool
    """Whether the robot has unactuated motions."""
    left_out: tuple[int, ...]
    """Rows of the closures that are redundant and left out."""
    rank_revealing: bool
    """Whether redundant constraints remain."""


def _plan(mechanism: Mechanism, motion: Motion) -> _Plan:
    """Driven coordinates and used rows of the closures, all along the motion.

    More drives than degrees of freedom would contradict each other. After some drift, redundant constraints contradict
    each other too, and Newton's method cannot satisfy them all.
    """
    samples = np.linspace(0, len(motion.t) - 1, POSES + 2).round().astype(int)[1:-1]
    all_rows = [closure_jacobian(mechanism, motion.q[k]) for k in samples]
    J = all_rows[POSES // 2]
    drives = drives_along(partial(closure_jacobian, mechanism), motion.q, mechanism.rates_of(mechanism.drives))
    rank = mechanism.nv - null_space(J).shape[1]
    kept = _independent_rows(J, rank)
    left_out = tuple(row for row in range(len(J)) if row not in kept)
    droppable = all(isinstance(closure, ConnectClosure) for closure in mechanism.closures) and all(
        _rank(J[kept]) == _rank(J) for J in all_rows
    )
    return _Plan(
        drives=tuple(drives),
        undriven=mechanism.nv - rank > len(drives),
        left_out=left_out if droppable else (),
        rank_revealing=bool(left_out) and not droppable,
    )


def _independent_rows(J: Array, rank: int) -> list[int]:
    """So many rows of a Jacobian that span the others best, ascending."""
    if not J.size:
        return []
    _, order = qr(J.T, pivoting=True, mode="r")
    return sorted(int(row) for row in order[:rank])


def _rank(J: Array) -> int:
    return J.shape[1] - null_space(J).shape[1]


def _left(report: float, ladder: Sequence[Rung]) -> float:
    """Estimated error of the efforts extrapolated from two steps, over their peak [-]; infinite without two steps.

    The error of a step h is a series a h² + b h⁴, of which the extrapolation leaves b h₁² h₂². The change between the
    steps contains a, and b is at most about `NEXT_TERM` times the second derivative of a in time.

    Args:
        report: Time between two samples of the efforts [s].
        ladder: Simulations at several steps, coarsest first.
    """
    if len(ladder) < 2 or len(ladder[-1].effort) < 3:
        return inf
    before, last = ladder[-2:]
    coarse, fine = before.dt**2, last.dt**2
    a = (before.effort - last.effort) / (coarse - fine)
    efforts = last.effort[1:-1]
    return relative_change(efforts + NEXT_TERM * coarse * fine * np.diff(a, 2, axis=0) / report**2, efforts)


def _in_words(settings: Settings) -> dict[str, str]:
    """Every relevant setting, as text."""
    start = "of the motion" if settings.exact_start else "zero"
    return {
        "integrator": "TrapezoidalIndex2, constant step",
        "bodies": "ObjectRigidBody on NodeRigidBodyEP, massless between two joints of a body",
        "joints": "ObjectJointRevoluteZ, PrismaticX, Spherical and Generic, for the tree and the loops",
        "drives": "ObjectConnectorCoordinateVector on the rate of the joint, prescribed at the end of each step; "
        "its multiplier is the effort",
        "Newton": f"modified Newton until an increment is {settings.tolerance:g} of the first, EigenDense",
        "start": f"{settings.lead} steps before the span, accelerations {start}",
        "extrapolation": "Richardson extrapolation of all efforts, in the square of the step, to zero step size",
    }


def _note(mechanism: Mechanism, plan: _Plan, rungs: int) -> str:
    notes = [EXTRAPOLATED.replace("first", "second")] if rungs > 1 else []
    notes += carried_note(mechanism, plan.drives)
    if plan.left_out:
        notes.append(f"{len(plan.left_out)} redundant rows of the loops left out")
    if plan.rank_revealing:
        notes.append("redundant constraints, solved by full pivoting (ignoreSingularJacobian)")
    return "; ".join(notes)
