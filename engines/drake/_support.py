"""What Drake's plant cannot carry: refused by name, all of it at once."""

from collections.abc import Iterator

from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import CoordinateClosure, Mechanism


def want_representable(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    reasons = (*_coupled(mechanism), *_on_joints(mechanism), *_between_points(mechanism))
    if reasons:
        raise NotRepresentableError(f"drake: not supported: {'; '.join(reasons)}")


def couples_joints(closure: CoordinateClosure) -> bool:
    """Whether an equality makes one joint a linear function of another."""
    linear = not closure.coefficients[2:].any()
    return linear and closure.follower.is_joint and closure.leader is not None and closure.leader.is_joint


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    """What acts on the coordinates of several joints."""
    for closure in mechanism.coordinate_closures:
        if not couples_joints(closure):
            yield f"equality '{closure.name}' (couplers are linear, between 2 joints)"
    driven = [drive.name for drive in mechanism.drives if not drive.is_joint]
    loaded = [tendon.name for tendon in mechanism.tendons if tendon.armature or tendon.damping or tendon.stiffness]
    for name in dict.fromkeys([*driven, *loaded]):
        yield f"tendon '{name}' (motors, springs and rotors only on single joints)"


def _on_joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind in ("hinge", "slide"):
            continue
        if joint.armature:
            yield f"armature of {joint.kind} joint '{joint.name}' (rotors only on hinges and slides)"
        if joint.stiffness:
            yield f"spring of {joint.kind} joint '{joint.name}' (springs only on hinges and slides)"


def _between_points(mechanism: Mechanism) -> Iterator[str]:
    for spring in mechanism.point_springs:
        if spring.rest[0] != spring.rest[1] and spring.stiffness:
            yield f"slack of spring '{spring.name}' (springs have a single rest length)"
        elif not spring.rest[0] and spring.stiffness:
            yield f"spring '{spring.name}' with zero rest length (rest lengths must be above 0)"
