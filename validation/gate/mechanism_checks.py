"""Checks of loops, freedom and drives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_names
from loopcheck.analytic.kinematics.mobility import missing_loops, unactuated
from loopcheck.analytic.motion.limits import TOUCHED, excess
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import listed
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import unit_rates
from loopcheck.validation.gate.closed_poses import (
    OPEN,
    STARTS,
    ClosedPoses,
    Freedom,
    closed_near,
    closed_poses,
    freedom,
    rank_without,
    relative_gaps,
)
from loopcheck.validation.gate.findings import Finding, number_of

DEAD = 1e-6
"""Motion of an actuator along every motion of the loops, relative to that of its joint alone, that is none [-]."""
NAMED = 3
"""Names in a message."""


@dataclass(frozen=True, kw_only=True)  # without slots: derived quantities are kept in its dictionary
class Poses:
    """A mechanism in closed poses and in the start poses of its file."""

    mechanism: Mechanism

    @cached_property
    def closed(self) -> ClosedPoses:
        """Closed poses from all starts."""
        return closed_poses(self.mechanism)

    @cached_property
    def freedoms(self) -> list[Freedom]:
        """Motions in the closed poses with a certain rank."""
        return [entry for entry in freedom(self.mechanism, self.closed.q) if entry.is_certain]

    @cached_property
    def starts(self) -> dict[str, Array]:
        """Start poses of the file: qpos0 and the keyframes, each of shape (nq,)."""
        return {"qpos0": self.mechanism.rest_position, **self.mechanism.keyframes}

    @property
    def generic(self) -> Freedom | None:
        """Motions in a pose of largest rank."""
        return max(self.freedoms, key=lambda entry: entry.rank, default=None)

    def actuator_motions(self, entries: Sequence[Freedom]) -> Array:
        """Largest motion of each actuator in several poses [-], shape (na,)."""
        return (
            np.array([entry.drives for entry in entries])
            .reshape(len(entries), self.mechanism.na)
            .max(axis=0, initial=0.0)
        )


def mechanism_findings(poses: Poses) -> Iterator[Finding]:
    """Findings on loops, freedom and drives."""
    mechanism = poses.mechanism
    never = [name for name, gap in poses.closed.residual.items() if gap > OPEN]
    for name in never if not len(poses.closed.q) else ():
        yield Finding(
            code="LC102",
            element=f"equality '{name}'",
            message=f"the loop of '{name}' stays open by {poses.closed.residual[name]:.2g} of the size of the robot "
            f"from {STARTS} starts, must be at most {OPEN:g}",
        )
    yield from _freedom_findings(poses)
    yield from _start_findings(poses)
    yield from _counts(poses)
    for sentence in missing_loops(mechanism, mechanism.rest_position):
        yield Finding(code="LC209", message=sentence)


def _freedom_findings(poses: Poses) -> Iterator[Finding]:
    mechanism, generic = poses.mechanism, poses.generic
    if generic is None:
        if len(poses.closed.q):
            yield Finding(
                code="LC304",
                message="the rank of the closure equations is uncertain in every closed pose, because no gap separates "
                "the singular values. Locked joints and drives without effect are not judged",
            )
        return
    count = len(poses.freedoms)
    if mechanism.na and not any(entry.N.shape[1] for entry in poses.freedoms):
        yield Finding(
            code="LC103",
            message=f"no degree of freedom is left in any of {count} closed poses, with {mechanism.na} drives",
        )
        return
    for actuator, motion in zip(mechanism.actuators, poses.actuator_motions(poses.freedoms), strict=True):
        if motion <= DEAD:
            yield Finding(
                code="LC104",
                element=f"actuator '{actuator.name}'",
                message=f"actuator '{actuator.name}' moves nothing in any of {count} closed poses: the loops lock "
                f"'{actuator.coordinate.name}'",
            )


def _start_findings(poses: Poses) -> Iterator[Finding]:
    mechanism = poses.mechanism
    names = list(poses.starts)
    gaps = relative_gaps(mechanism, np.array(list(poses.starts.values())))
    for k, closure in enumerate(mechanism.closures if len(poses.closed.q) else ()):
        opened = [name for name, gap in zip(names, gaps[:, k], strict=True) if gap > OPEN]
        if opened:
            yield Finding(
                code="LC201",
                element=f"equality '{closure.name}'",
                message=f"the loop of '{closure.name}' is open by {gaps[:, k].max():.2g} of the size of the robot in "
                f"{listed(opened, NAMED)}",
            )
    beyond = excess(mechanism, np.array(list(poses.starts.values())))
    for j, joint in enumerate(mechanism.joints):
        outside = [name for name, distance in zip(names, beyond[:, j], strict=True) if distance > TOUCHED]
        if outside:
            yield Finding(
                code="LC202",
                element=f"joint '{joint.name}'",
                message=f"joint '{joint.name}' is {beyond[:, j].max():.3g} {joint.unit} outside its range in "
                f"{listed(outside, NAMED)}",
            )
    yield from _singular_starts(poses)


def _singular_starts(poses: Poses) -> Iterator[Finding]:
    generic = poses.generic
    if generic is None or not poses.mechanism.closures:
        return
    mechanism, alive = poses.mechanism, poses.actuator_motions(poses.freedoms) > DEAD
    dead: dict[str, list[str]] = {}
    for name, entry in _freedoms_at_starts(poses):
        if entry.rank < generic.rank:
            yield Finding(
                code="LC203",
                message=f"the closed pose at {name} is singular: {entry.N.shape[1]} degrees of freedom, "
                f"{generic.N.shape[1]} in other poses",
            )
        else:
            for k in np.flatnonzero(alive & (entry.drives <= DEAD)):
                dead.setdefault(mechanism.actuators[k].name, []).append(name)
    for actuator, where in dead.items():
        yield Finding(
            code="LC204",
            element=f"actuator '{actuator}'",
            message=f"actuator '{actuator}' moves nothing in {listed(where, NAMED)}, but does in other poses",
        )


def _freedoms_at_starts(poses: Poses) -> Iterator[tuple[str, Freedom]]:
    """Motions in the closed poses near the start poses, if their rank is certain."""
    for name, start in poses.starts.items():
        closed = closed_near(poses.mechanism, start)
        if closed is not None:
            yield from ((name, entry) for entry in freedom(poses.mechanism, closed[None]) if entry.is_certain)


def _counts(poses: Poses) -> Iterator[Finding]:
    mechanism, generic = poses.mechanism, poses.generic
    if generic is None or not mechanism.closures:
        return
    dof, total = generic.N.shape[1], len(closure_names(mechanism))
    if generic.rank < total:
        pose = poses.closed.q[0]
        implied = [
            closure.name
            for k, closure in enumerate(mechanism.closures)
            if len(mechanism.closures) > 1 and rank_without(mechanism, pose, k) == generic.rank
        ]
        named = f"; each of these can be removed without loss of rank: {', '.join(implied)}" if implied else ""
        yield Finding(
            code="LC301",
            element=f"equality '{(implied or [mechanism.closures[0].name])[-1]}'",
            message=f"{total - generic.rank} of {total} closure rows are redundant (rank {generic.rank}){named}",
        )
    if mechanism.na and mechanism.na != dof:
        yield Finding(code="LC302", message=f"{number_of(mechanism.na, 'drive')} for {number_of(dof, 'dof')}")
    N = generic.N * unit_rates(mechanism)[:, None]
    yield from _without_drive(list(unactuated(mechanism, N)) if mechanism.na else [])


def _without_drive(phrases: Sequence[str]) -> Iterator[Finding]:
    """A finding for each joint that moves without a drive, and one for all floating bodies: a scene may have many."""
    named = [(phrase[: phrase.index("' ") + 1], phrase) for phrase in phrases]
    floating = [name for name, phrase in named if phrase.startswith(f"{name} floats")]
    if len(floating) > 1:
        message = f"{len(floating)} floating bodies have no drive: {listed(floating, NAMED)}"
        yield Finding(code="LC303", element=f"joint {floating[0]}", message=message)
    for name, phrase in named:
        if len(floating) == 1 or name not in floating:
            yield Finding(code="LC303", element=f"joint {name}", message=f"no drive: {phrase}")
