"""Elements of a mechanism that PhysX can represent through SAPIEN's Python API, and its number of articulations."""

from collections.abc import Iterator

import numpy as np

from loopcheck.engines.boundary import coupled, want_representable
from loopcheck.robots.mechanism import WORLD, Mechanism


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("physx", (*_joints(mechanism), *_coupled(mechanism), *_loads(mechanism)))


def branches(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Bodies of each branch that hangs on the world, each after its parent."""
    branch_of: list[int] = []
    for b, body in enumerate(mechanism.bodies):
        branch_of.append(b if body.parent == WORLD else branch_of[body.parent])
    return tuple(tuple(np.flatnonzero(np.equal(branch_of, b)).tolist()) for b in dict.fromkeys(branch_of))


def is_floating(mechanism: Mechanism, body: int) -> bool:
    """Whether a free joint carries a body.

    Args:
        body: Its number.
    """
    return any(mechanism.joints[j].kind == "free" for j in mechanism.joints_of[body])


def _joints(mechanism: Mechanism) -> Iterator[str]:
    driven = mechanism.actuated_joints
    for j, joint in enumerate(mechanism.joints):
        if joint.kind == "ball":
            yield f"ball joint '{joint.name}' (only hinges and slides; three hinges instead are singular when aligned)"
        elif joint.kind == "free":
            if joint.armature or joint.damping or joint.stiffness:
                yield f"rotor, damper or spring of free joint '{joint.name}' (PhysX has no free joints)"
        elif j in driven and (joint.damping or joint.stiffness):
            yield f"spring or damper of the driven joint '{joint.name}' (a joint has a single drive)"


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    tendons = "drives, springs and rotors only on single joints"
    return coupled(mechanism, equality="PhysX couples joints only by springs", tendon=tendons)


def _loads(mechanism: Mechanism) -> Iterator[str]:
    for spring in mechanism.point_springs:
        yield f"spring '{spring.name}' between points"
