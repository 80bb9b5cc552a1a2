"""Mobility of a mechanism: its loops, their rank, its degrees of freedom, its actuation, and warnings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    closure_names,
    null_space,
)
from loopcheck.analytic.kinematics.redundancy import free_motions, independent_rows, unit_rates_of_drives
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import DOFS, WORLD, Mechanism
from loopcheck.robots.size import size, unit_rates

LINKAGE = re.compile(r"link(age)?s?\b|(four|five|six|4|5|6)[-_ ]?bar|parallel|delta|stewart|hexapod|closed|loop", re.I)
"""Words in a file name that suggest loops."""
OPEN_START = 1e-4
"""Gap of the start pose over the size of the robot above which it is reported [-]."""
FULL_TURN = 2 * np.pi
"""A full turn in radians: limits that are all less, counted in degrees, seem to be radians [-]."""
NEXT_TO_NOTHING = 1e-6
"""Mass relative to the total mass below which a body is reported [-]."""
FREE = 6
"""Freedoms of a body that no joint holds [-]."""
END_OF_LOOP = re.compile(r"closing_.+_[12]$")
"""Frames at which onshape-to-robot cuts a loop."""
NEAR = 1e-3
"""Distance of two sites, relative to the size of the robot, below which they seem to coincide [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mobility:
    """Counts of a mechanism in a closed pose."""

    bodies: int
    joints: int
    loops: int
    """Independent loops of the graph of bodies, see `independent_loops`."""
    closure_rows: int
    rank: int
    dof: int
    actuators: int
    driven: int
    """Degrees of freedom that actuators move."""
    unactuated: tuple[str, ...]
    """Unactuated motions, a phrase for each degree of freedom."""
    warnings: tuple[str, ...]
    """Probable mistakes in the model, a sentence each."""

    @property
    def counted(self) -> int:
        """Degrees of freedom by counting alone: those of the spanning tree less the closure equations."""
        return self.dof + self.rank - self.closure_rows

    @property
    def redundant(self) -> int:
        """Closure equations that others imply."""
        return self.closure_rows - self.rank

    @property
    def actuation(self) -> str:
        """Fully, under- or redundantly actuated, or both of the latter."""
        kinds = ["underactuated"] if self.driven < self.dof else []
        kinds += ["redundantly actuated"] if self.actuators > self.driven else []
        return " and ".join(kinds or ["fully actuated"])


def mobility(mechanism: Mechanism, q: JointPositions) -> Mobility:
    """Mobility of a mechanism."""
    Phi, N = closure_jacobian_at(mechanism, q[None])[0] * unit_rates(mechanism), free_motions(mechanism, q)
    driven = len(independent_rows(unit_rates_of_drives(mechanism) @ N))
    return Mobility(
        bodies=len(mechanism.bodies),
        joints=len(mechanism.joints),
        loops=independent_loops(mechanism),
        closure_rows=len(Phi),
        rank=mechanism.nv - N.shape[1],
        dof=N.shape[1],
        actuators=mechanism.na,
        driven=driven,
        unactuated=tuple(unactuated(mechanism, N)),
        warnings=tuple(_warnings(mechanism, q, Phi, N)),
    )


def independent_loops(mechanism: Mechanism) -> int:
    """Loops of the graph of bodies, ι = j − l + 1 for a connected graph of l bodies and j joints (Angeles 2014).

    All joints of a body are one joint with its parent, and all closures between two bodies one. Bodies without joints
    are one with their parents; six freedoms are no joint.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    freedoms = [sum(DOFS[mechanism.joints[j].kind] for j in joints) for joints in mechanism.joints_of]
    carrier = {WORLD: WORLD}
    for b, body in enumerate(mechanism.bodies):
        carrier[b] = b if freedoms[b] else carrier[body.parent]
    closed = {frozenset((carrier[a], carrier[b])) for a, b in _ends_of_closures(mechanism)}
    tree = [(b, carrier[mechanism.bodies[b].parent]) for b, count in enumerate(freedoms) if 0 < count < FREE]
    edges = np.array([*tree, *(tuple(pair) for pair in closed if len(pair) > 1)], dtype=int).reshape(-1, 2)
    bodies = sorted(set(carrier.values()))
    ends = np.searchsorted(bodies, edges).T
    graph = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(bodies), len(bodies)))
    components, _ = connected_components(graph, directed=False)
    return len(edges) - len(bodies) + int(components)


def _ends_of_closures(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Bodies that closures join; a rod is a tendon of constant length, and that of a driven tendon closes no loop."""
    rods = [closure.segments for closure in mechanism.path_closures if closure.slide is None and closure.segments]
    rigid = [(closure.body1, closure.body2) for closure in mechanism.rigid_closures]
    return rigid + [(segments[-1].body1, segments[0].body2) for segments in rods]


def in_words(analysis: Mobility) -> str:
    """Mobility of a mechanism, in a sentence."""
    loops = _counted(analysis.loops, "loop") if analysis.loops else "no loop (tree structure)"
    redundant = (
        f", {analysis.redundant} redundant: {analysis.counted} dof by counting alone" if analysis.redundant else ""
    )
    closed = (
        f" ({_counted(analysis.closure_rows, 'closure equation')} of rank {analysis.rank}{redundant})"
        if analysis.closure_rows
        else ""
    )
    parts = f"{_counted(analysis.bodies, 'bod', 'ies', 'y')}, {_counted(analysis.joints, 'joint')}, {loops}{closed}"
    moved = f"{analysis.driven} of them moved by {_counted(analysis.actuators, 'actuator')}: {analysis.actuation}"
    return f"{parts}; {analysis.dof} dof, {moved}"


def _counted(count: int, noun: str, many: str = "s", one: str = "") -> str:
    return f"{count} {noun}{one if count == 1 else many}"


def unactuated(mechanism: Mechanism, N: Array) -> Iterator[str]:
    """A phrase for each unactuated dof; floating bases first, then dofs held by springs, then the rest.

    Args:
        N: Basis of the free motions [m or rad], shape (nv, dof).
    """
    left = N @ null_space(unit_rates_of_drives(mechanism) @ N)
    dofs = [
        (joint, dof)
        for joint, s in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        for dof in range(s.start, s.stop)
    ]
    kinds = {
        "floats": [dof for joint, dof in dofs if joint.kind == "free"],
        "is held only by its spring": [dof for joint, dof in dofs if joint.kind != "free" and joint.stiffness],
        "spins": [dof for joint, dof in dofs if joint.kind == "ball" and not joint.stiffness],
        "moves freely": [dof for joint, dof in dofs if joint.kind in ("hinge", "slide") and not joint.stiffness],
    }
    for how, candidates in kinds.items():
        chosen = [candidates[k] for k in independent_rows(left[candidates])]
        names = [joint.name for joint, dof in dofs if dof in chosen]
        for name in dict.fromkeys(names):
            count = names.count(name)
            yield f"'{name}' {how}" + (f" ({count} dof)" if count > 1 else "")
        left = left @ null_space(left[chosen])


def _warnings(mechanism: Mechanism, q: Array, Phi: Array, N: Array) -> Iterator[str]:
    yield from missing_loops(mechanism, q)
    yield from _idle_closures(mechanism, Phi)
    yield from radians_as_degrees(mechanism)
    S = mechanism.selection * unit_rates(mechanism)
    idle = np.linalg.norm(S @ N, axis=1) <= RANK_TOLERANCE * np.linalg.norm(S, axis=1)
    for actuator, is_idle in zip(mechanism.actuators, idle, strict=True):
        if is_idle:
            yield f"actuator '{actuator.name}' has no effect: the loops lock its joint"
    masses = np.array([body.mass for body in mechanism.bodies])
    moving = {b for b, joints in enumerate(mechanism.joints_of) if joints}
    light = [mechanism.bodies[b].name for b in sorted(moving) if masses[b] < NEXT_TO_NOTHING * masses.sum()]
    if light:
        yield f"bodies with almost no mass: {', '.join(light)}"


def open_start(mechanism: Mechanism, q: JointPositions) -> str:
    """Gap of the loops in a start pose of the file, as a phrase; empty below `OPEN_START`."""
    gaps = np.abs(State.at_rest(mechanism, q[None]).gap)[0]
    widest = float(gaps.max(initial=0.0))
    relative = widest / size(mechanism)
    if relative <= allowed(OPEN_START, mechanism):
        return ""
    return (
        f"start pose of the file: closure '{closure_names(mechanism)[int(gaps.argmax())]}' is open by {widest:.3g} "
        f"(m or rad), {relative:.2g} of the size of the robot; used instead: the nearest closed pose"
    )


def radians_as_degrees(mechanism: Mechanism) -> Iterator[str]:
    """Ranges so narrow, all of them, that they seem to be radians in a file that gives degrees."""
    limited = {joint.name: joint.limits for joint in mechanism.joints if joint.kind == "hinge" and joint.limits}
    widest = max((abs(limit) for limits in limited.values() for limit in limits), default=np.inf)
    if widest <= np.deg2rad(FULL_TURN) and any(low < high for low, high in limited.values()):
        yield (
            f"ranges of all hinges are within {np.rad2deg(widest):.4g} degrees ({', '.join(limited)}). If they are "
            'radians, add <compiler angle="radian"/>'
        )


def missing_loops(mechanism: Mechanism, q: JointPositions) -> Iterator[str]:
    """Loops that a file without equalities seems to be meant to have."""
    if mechanism.closures:
        return
    path = mechanism.model.path
    if LINKAGE.search(path.stem):
        yield f"{path.name} is named like a linkage but has no equality that closes a loop: treated as a tree"
    ends = {*(body.name for body in mechanism.bodies), *(site.name for site in mechanism.sites)}
    cut = sorted(
        {name[:-2] for name in ends if END_OF_LOOP.match(name) and {f"{name[:-2]}_1", f"{name[:-2]}_2"} <= ends}
    )
    if cut:
        more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
        yield (
            f"frames '{cut[0]}_1' and '{cut[0]}_2' are named like the ends of a loop{more}, which the file does not "
            "close: treated as a tree"
        )
    body_poses = State.at_rest(mechanism, q[None]).poses
    points = np.array(
        [
            body_poses.p[0, s.body] + body_poses.R[0, s.body] @ s.position if s.body != WORLD else s.position
            for s in mechanism.sites
        ]
    )
    size = float(np.ptp(body_poses.c[0], axis=0).max(initial=0.0))
    for j, site in enumerate(mechanism.sites):
        for k in range(j):
            other = mechanism.sites[k]
            if site.body != other.body and np.linalg.norm(points[j] - points[k]) <= NEAR * size:
                yield f"sites '{other.name}' and '{site.name}' coincide. Is an equality between them missing?"


def _idle_closures(mechanism: Mechanism, Phi: Array) -> Iterator[str]:
    """Closures that remove no freedom: duplicates, and closures implied by others."""
    dof, names = null_space(Phi).shape[1], np.array(closure_names(mechanism))
    for closure in mechanism.closures if len(mechanism.closures) > 1 else ():
        if null_space(Phi[names != closure.name]).shape[1] == dof:
            yield f"closure '{closure.name}' is redundant: the remaining closures already imply it"
