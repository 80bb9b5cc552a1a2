"""Mass carried by the joints of a closed mechanism: decides the carrier among two links of a loop."""

from collections.abc import Iterator

import numpy as np

from loopcheck.robots.mechanism import WORLD, Mechanism


def carried_masses(mechanism: Mechanism) -> list[float]:
    """Mass carried by each body of the spanning tree, its own included [kg].

    A rod counts for both its ends, by the place of its mass centre between them: otherwise a crank with its rod would
    carry more than the foot that the two move.
    """
    masses = [body.mass for body in mechanism.bodies]
    for rod, share, other in _rods(mechanism):
        masses[other] += share * mechanism.bodies[rod].mass
        masses[rod] -= share * mechanism.bodies[rod].mass
    for b in reversed(range(len(masses))):
        if mechanism.bodies[b].parent != WORLD:
            masses[mechanism.bodies[b].parent] += masses[b]
    return masses


def _rods(mechanism: Mechanism) -> Iterator[tuple[int, float, int]]:
    """Rods: bodies at the end of the tree that close a single loop and do not turn on its carrier.

    With the part of their mass at the far end [-], and the body there.
    """
    parents = {body.parent for body in mechanism.bodies}
    ends = [
        end
        for closure in mechanism.rigid_closures
        for end in ((closure.body1, closure.point1, closure.body2), (closure.body2, closure.point2, closure.body1))
    ]
    for rod, tip, other in ends:
        closes = sum(end[0] == rod for end in ends)
        if WORLD in (rod, other) or rod in parents or closes > 1 or not mechanism.joints_of[rod]:
            continue
        if mechanism.bodies[rod].parent in mechanism.way(other):
            continue  # a rocker, as a foot that turns on what its crank turns on too
        start = mechanism.joints[mechanism.joints_of[rod][-1]].anchor
        along, center = tip - start, mechanism.bodies[rod].center - start
        length = float(along @ along)
        yield rod, float(np.clip(center @ along / length, 0, 1)) if length > 0 else 0.0, other
