"""Elements of a robot and its motion that PyBullet cannot represent."""

from collections.abc import Iterator

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.engines.pybullet._angles import far_turns
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism


def refuse(mechanism: Mechanism, q: Array | None = None, *, closed: bool) -> None:
    """Refuse all such elements at once.

    Args:
        mechanism: Robot, with its balls.
        q: Its positions [m or rad], shape (nt, nq); None if they are unknown.
        closed: Whether PyBullet's own constraints close the loops.

    Raises:
        NotRepresentableError: If there is any.
    """
    reasons = [*_of_tree(mechanism)]
    reasons += of_loops(mechanism) if closed else ()
    reasons += far_turns(mechanism, q) if q is not None else ()
    want_representable("pybullet", reasons)


def of_loops(mechanism: Mechanism) -> Iterator[str]:
    """Closures that its constraints cannot hold."""
    for closure in mechanism.coordinate_closures:
        for coordinate in (closure.follower, *filter(None, [closure.leader])):
            if len(coordinate.joints) != 1:
                yield f"equality '{closure.name}' of tendon '{coordinate.name}' (gears couple only 2 joints)"


def _of_tree(mechanism: Mechanism) -> Iterator[str]:
    yield from of_paths(mechanism)
    for tendon in mechanism.tendons:
        if tendon.armature:
            yield f"armature of tendon '{tendon.name}' (rotors only on single joints)"
