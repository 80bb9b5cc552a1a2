"""Elements that Simbody cannot represent through OpenSim's Python API: refused by name, all at once."""

from collections.abc import Iterator

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.robots.mechanism import CoordinateClosure, Mechanism


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("simbody", (*of_paths(mechanism), *_on_joints(mechanism), *_curved(mechanism)))


def _on_joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind in ("hinge", "slide"):
            continue
        if joint.armature:
            yield f"armature of {joint.kind} joint '{joint.name}' (rotors only on single coordinates)"
        if joint.stiffness or joint.damping:
            yield (
                f"spring or damper of {joint.kind} joint '{joint.name}' (springs and dampers only on hinges and slides)"
            )


def _curved(mechanism: Mechanism) -> Iterator[str]:
    for closure in mechanism.coordinate_closures:
        if not is_linear(closure) and not (closure.follower.is_joint and closure.leader and closure.leader.is_joint):
            yield f"equality '{closure.name}' (polynomials couple 2 joints, not sums of joints)"


def is_linear(closure: CoordinateClosure) -> bool:
    """Whether the polynomial of an equality is a straight line."""
    return not closure.coefficients[2:].any()
