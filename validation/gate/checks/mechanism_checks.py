"""Checks of loops, freedom and drives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.mobility import missing_loops, unactuated
from loopcheck.analytic.kinematics.redundancy import independent_rows
from loopcheck.analytic.motion.limits import TOUCHED, excess
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import listed
from loopcheck.robots.mechanism import WORLD, Actuator, Closure, CoordinateClosure, Mechanism, WeldClosure, bodies_of
from loopcheck.robots.size import closure_units, unit_rates
from loopcheck.validation.gate.checks.closure_checks import as_connect, closure_findings, is_part_of_joint
from loopcheck.validation.gate.checks.trusses import Loops, trusses
from loopcheck.validation.gate.closed_poses import (
    OPEN,
    STARTS,
    ClosedPoses,
    Freedom,
    closed_near,
    closed_poses,
    freedom,
    is_large,
    relative_gaps,
)
from loopcheck.validation.gate.findings import Finding, number_of

DEAD = 1e-6
"""Motion of an actuator along every motion of the loops, relative to that of its joint alone, that is none [-]."""
NAMED = 3
"""Names in a message."""
TRIED = 20
"""Closures that are tried as the cause of a lock."""


@dataclass(frozen=True, kw_only=True)  # without slots: derived quantities are kept in its dictionary
class Poses:
    """A mechanism in closed poses and in the start poses of its file."""

    mechanism: Mechanism

    @cached_property
    def is_large(self) -> bool:
        """Whether the mechanism is too large for closed poses."""
        return is_large(self.mechanism)

    @cached_property
    def closed(self) -> ClosedPoses:
        """Closed poses from all starts; none of a mechanism that is too large."""
        if self.is_large:
            return ClosedPoses(q=np.zeros((0, self.mechanism.nq)), residual={})
        return closed_poses(self.mechanism)

    @cached_property
    def judged(self) -> list[tuple[Array, Freedom]]:
        """The closed poses with a certain rank, and their motions."""
        found = zip(self.closed.q, freedom(self.mechanism, self.closed.q), strict=True)
        return [(q, entry) for q, entry in found if entry.is_certain]

    @property
    def freedoms(self) -> list[Freedom]:
        """Motions in the closed poses with a certain rank."""
        return [entry for _, entry in self.judged]

    @cached_property
    def trusses(self) -> list[Loops]:
        """Loops that cannot move in any closed pose."""
        found = list(trusses(self.mechanism, self.closed.q[0])) if len(self.closed.q) else []
        for q in self.closed.q[1:] if found else ():
            held = [loops.closures for loops in trusses(self.mechanism, q)]
            found = [loops for loops in found if loops.closures in held]
        return found

    @cached_property
    def starts(self) -> dict[str, Array]:
        """Start poses of the file: qpos0 and the keyframes, each of shape (nq,)."""
        return {"qpos0": self.mechanism.rest_position, **self.mechanism.keyframes}

    @cached_property
    def regular(self) -> tuple[Array, Freedom] | None:
        """A pose of largest rank, in which most drives move something, and its motions."""
        return max(self.judged, key=lambda each: (each[1].rank, int((each[1].drives > DEAD).sum())), default=None)

    @property
    def generic(self) -> Freedom | None:
        """Motions in the regular pose."""
        return self.regular[1] if self.regular else None

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
    if not poses.is_large:
        yield from _open_loops(poses)
        yield from _freedom_findings(poses)
    yield from _start_findings(poses)
    if not poses.is_large:
        yield from _counts(poses)
    by_urdf = 'Close it with <constraint type="revolute"> or a loop file: docs/how_to/convert_a_model.md.'
    for sentence in missing_loops(mechanism, mechanism.rest_position):
        advice = by_urdf if mechanism.model.path.suffix.lower() == ".urdf" else ""
        yield Finding(code="LC209", message=sentence, advice=advice)


def size_findings(poses: Poses) -> Iterator[Finding]:
    """What is not checked of a mechanism that is too large."""
    mechanism = poses.mechanism
    if poses.is_large and (mechanism.closures or mechanism.na):
        closures, dofs = len(mechanism.closures), number_of(mechanism.nv, "dof")
        yield Finding(
            code="LC224",
            message=f"{number_of(len(mechanism.bodies), 'body', 'bodies')}, {dofs} and "
            f"{number_of(closures, 'closure')} are too "
            "many for the checks of rank, freedom, trusses, drives, weights, servos and softness. Checked: the file, "
            "start "
            "poses, inertias, units, signs, friction, time step",
        )


def _open_loops(poses: Poses) -> Iterator[Finding]:
    mechanism, residual = poses.mechanism, poses.closed.residual
    for k, closure in enumerate(mechanism.closures if not len(poses.closed.q) else ()):
        if residual[closure.name] > allowed(OPEN, mechanism):
            at_best = _in_unit(mechanism, k, residual[closure.name])
            yield Finding(
                code="LC102",
                element=f"equality '{closure.name}'",
                extent=residual[closure.name],
                message=f"the loop of '{closure.name}' stays open by {residual[closure.name]:.2g} of the size of the "
                "robot "
                f"from {STARTS} starts, must be at most {OPEN:g}",
                advice=f"Bring {_ends(mechanism, closure)} together: at best they are {at_best} apart. Compare "
                "anchor or sites "
                "with the lengths of the links and their units.",
            )


def _in_unit(mechanism: Mechanism, k: int, residual: float) -> str:
    """A relative residual of a closure in its unit."""
    first = closure_of_rows(mechanism).index(k)
    scale = float(closure_units(mechanism).units[first])
    is_angle = isinstance(mechanism.closures[k], CoordinateClosure) and scale == 1
    return f"{residual * scale:.3g} {'rad' if is_angle else 'm'}"


def _ends(mechanism: Mechanism, closure: Closure) -> str:
    """Names of what a closure joins."""
    if isinstance(closure, CoordinateClosure):
        leader = f" and the polynomial of '{closure.leader.name}'" if closure.leader else " and its constant"
        return f"'{closure.follower.name}'{leader}"
    names = ["the world" if b == WORLD else f"'{mechanism.bodies[b].name}'" for b in bodies_of(closure)]
    return f"the ends of '{closure.name}' on {' and '.join(names)}"


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
    for loops in poses.trusses:
        joints = [
            mechanism.joints[j].name
            for j, s in enumerate(mechanism.dof_slices)
            if {*range(s.start, s.stop)} & {*loops.dofs}
        ]
        names = [mechanism.closures[k].name for k in loops.closures]
        yield Finding(
            code="LC107",
            element=f"equality '{names[0]}'",
            message=f"the loop of {_listed(names)} is a truss: a self-stress holds its joints {_listed(joints)} "
            "still, although the rank leaves them a motion",
            advice=f"Change the length of a link between {_listed(joints)}: the loop closes only with its links in "
            "line. Or "
            f"remove {_listed(names)}.",
        )
    if mechanism.na and not any(entry.N.shape[1] for entry in poses.freedoms):
        yield Finding(
            code="LC103",
            message=f"no degree of freedom is left in any of {number_of(count, 'closed pose')}, with "
            f"{number_of(mechanism.na, 'drive')}",
            advice=_unlocking(mechanism, poses.closed.q[0]),
        )
        return
    for actuator, motion in zip(mechanism.actuators, poses.actuator_motions(poses.freedoms), strict=True):
        if motion <= DEAD:
            yield Finding(
                code="LC104",
                element=f"actuator '{actuator.name}'",
                message=f"actuator '{actuator.name}' moves nothing in any of {number_of(count, 'closed pose')}: the "
                "loops lock "
                f"'{actuator.coordinate.name}'",
                advice=_elsewhere(mechanism, actuator, generic),
            )


def _unlocking(mechanism: Mechanism, q: Array) -> str:
    """Closures whose change leaves a degree of freedom."""
    for k, closure in enumerate(mechanism.closures[:TRIED]):
        pinned = replace(mechanism, closures=tuple(as_connect(c) if c is closure else c for c in mechanism.closures))
        dof = freedom(pinned, q[None])[0].N.shape[1]
        if isinstance(closure, WeldClosure) and dof and not is_part_of_joint(mechanism, closure.name):
            return f"Replace the weld '{closure.name}' by a connect: that leaves {number_of(dof, 'dof')}."
        without = replace(mechanism, closures=(*mechanism.closures[:k], *mechanism.closures[k + 1 :]))
        dof = freedom(without, q[None])[0].N.shape[1]
        if dof:
            return (
                f"Correct or remove '{closure.name}': without it {number_of(dof, 'dof')} are left. Check the "
                "directions of "
                "the joint axes of its loop."
            )
    return ""


def _elsewhere(mechanism: Mechanism, actuator: Actuator, generic: Freedom) -> str:
    """Joints that an actuator without effect could move."""
    moves = np.abs(generic.N).max(axis=1, initial=0.0) > DEAD
    driven = set(mechanism.actuated_joints)
    free = [
        joint.name
        for j, (joint, s) in enumerate(zip(mechanism.joints, mechanism.dof_slices, strict=True))
        if joint.kind in ("hinge", "slide") and moves[s.start] and j not in driven
    ]
    moved = f"Put it on {_listed(free)}, which the loops leave free, or remove" if free else "Remove"
    return f"{moved} the equality that holds '{actuator.coordinate.name}', or the actuator."


def _listed(names: Sequence[str]) -> str:
    return listed([f"'{name}'" for name in names], NAMED)


def _start_findings(poses: Poses) -> Iterator[Finding]:
    mechanism = poses.mechanism
    names = list(poses.starts)
    gaps = relative_gaps(mechanism, np.array(list(poses.starts.values())))
    for k, closure in enumerate(mechanism.closures if len(poses.closed.q) or poses.is_large else ()):
        opened = [name for name, gap in zip(names, gaps[:, k], strict=True) if gap > allowed(OPEN, mechanism)]
        if opened:
            yield Finding(
                code="LC201",
                element=f"equality '{closure.name}'",
                extent=float(gaps[:, k].max()),
                message=f"the loop of '{closure.name}' is open by {gaps[:, k].max():.2g} of the size of the robot in "
                f"{listed(opened, NAMED)}",
                advice=f"Start where the ends meet, {_in_unit(mechanism, k, float(gaps[:, k].max()))} from there: "
                "`--fix` writes a keyframe with closed loops."
                if not poses.is_large
                else "",
            )
    beyond = excess(mechanism, np.array(list(poses.starts.values())))
    for j, joint in enumerate(mechanism.joints):
        outside = [name for name, distance in zip(names, beyond[:, j], strict=True) if distance > TOUCHED]
        if outside:
            yield Finding(
                code="LC202",
                element=f"joint '{joint.name}'",
                extent=float(beyond[:, j].max()),
                message=f"joint '{joint.name}' is {beyond[:, j].max():.3g} {joint.unit} outside its range in "
                f"{listed(outside, NAMED)}",
                advice=f"Widen the range of '{joint.name}' by {beyond[:, j].max():.3g} {joint.unit}, or change "
                f"{listed(outside, NAMED)}.",
            )
    if not poses.is_large and not poses.trusses:
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
                advice=f"Start from a keyframe beside {name}: there the first step decides which way the loops fold.",
            )
        else:
            for k in np.flatnonzero(alive & (entry.drives <= DEAD)):
                dead.setdefault(mechanism.actuators[k].name, []).append(name)
    for actuator, where in dead.items():
        yield Finding(
            code="LC204",
            element=f"actuator '{actuator}'",
            message=f"actuator '{actuator}' moves nothing in {listed(where, NAMED)}, but does in other poses",
            advice=f"Start beside {listed(where, NAMED)}, or push '{actuator}' over this dead point by another drive.",
        )


def _freedoms_at_starts(poses: Poses) -> Iterator[tuple[str, Freedom]]:
    """Motions in the closed poses near the start poses, if their rank is certain."""
    for name, start in poses.starts.items():
        closed = closed_near(poses.mechanism, start)
        if closed is not None:
            yield from ((name, entry) for entry in freedom(poses.mechanism, closed[None]) if entry.is_certain)


def _counts(poses: Poses) -> Iterator[Finding]:
    mechanism, regular = poses.mechanism, poses.regular
    if regular is None or not mechanism.closures:
        return
    pose, generic = regular
    stuck = {k for loops in poses.trusses for k in loops.closures}
    of_closures = list(closure_findings(mechanism, pose, stuck))
    yield from of_closures
    is_welded = any(finding.code == "LC223" for finding in of_closures)  # says the same
    N = generic.N * unit_rates(mechanism)[:, None]
    idle = [_Idle.of(phrase) for phrase in (unactuated(mechanism, N) if mechanism.na else ())]
    drivable = generic.N.shape[1] - sum(each.count for each in idle if each.how != "moves freely")
    if mechanism.na and len(mechanism.drives) != drivable and not is_welded:
        yield _number_of_drives(mechanism, N, drivable, [each.name for each in idle if each.how == "moves freely"])
    yield from _without_drive(idle)


def _number_of_drives(mechanism: Mechanism, N: Array, drivable: int, free: Sequence[str]) -> Finding:
    """More or fewer drives than degrees of freedom that drives could move."""
    names = [drive.name for drive in mechanism.drives]
    kept = independent_rows(mechanism.rates_of(mechanism.drives) @ N)
    if len(names) > drivable:
        chosen = [names[k] for k in kept]
        advice = (
            f"Drive {_listed(chosen)} alone (--actuated {','.join(chosen)}), or keep all: efforts are then those of "
            "least "
            "norm, and a simulation may add an internal load."
        )
    else:
        advice = f"Add an actuator to {_listed(free)}, or prescribe its motion by the state of a log."
    return Finding(
        code="LC302",
        extent=float(abs(len(names) - drivable)),
        message=f"{number_of(len(names), 'drive')} for {number_of(drivable, 'dof')}",
        advice=advice,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """A joint that moves without a drive."""

    name: str
    how: str
    count: int
    """Its degrees of freedom."""

    @classmethod
    def of(cls, phrase: str) -> "_Idle":
        """From a phrase of `unactuated`, as "'rod' spins (2 dof)"."""
        name, _, rest = phrase[1:].rpartition("' ")
        how, _, count = rest.partition(" (")
        return cls(name=name, how=how, count=int(count.split()[0]) if count else 1)


IDLE = {
    "floats": "Leave '{0}' without an actuator: it is a floating base or a loose object, with no effort of its own.",
    "spins": "Give '{0}' some damping, so that its rod comes to rest; no effort depends on the spin of a slender rod.",
    "is held only by its spring": "Leave '{0}' without an actuator: its spring holds it, and the efforts contain the "
    "spring.",
    "moves freely": "Add an actuator to '{0}', or a spring or damper that brings it to rest.",
}
"""What to do about a motion without a drive."""


def _without_drive(idle: Sequence[_Idle]) -> Iterator[Finding]:
    """A finding for each joint that moves without a drive, and one for all floating bodies: a scene may have many."""
    floating = [each.name for each in idle if each.how == "floats"]
    if len(floating) > 1:
        yield Finding(
            code="LC303",
            element=f"joint '{floating[0]}'",
            message=f"{len(floating)} floating bodies have no drive: {_listed(floating)}",
            advice="Leave them without actuators: a base and loose objects have no effort of their own.",
        )
    for each in idle:
        if len(floating) == 1 or each.name not in floating:
            dofs = f" ({each.count} dof)" if each.count > 1 else ""
            yield Finding(
                code="LC303",
                element=f"joint '{each.name}'",
                message=f"no drive: '{each.name}' {each.how}{dofs}",
                advice=IDLE[each.how].format(each.name),
            )
