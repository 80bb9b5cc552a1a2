"""What Genesis' loader of MJCF leaves out, or the adapter does not tell: refused by name, all of it at once."""

from collections.abc import Iterator

from loopcheck.engines.refusal import want_representable
from loopcheck.robots.mechanism import WORLD, Mechanism


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("genesis", (*_loops(mechanism), *_joints(mechanism), *_coupled(mechanism)))


def _loops(mechanism: Mechanism) -> Iterator[str]:
    ending = [c.name for c in mechanism.rigid_closures if WORLD in (c.body1, c.body2)]
    if ending:
        names = ", ".join(f"'{name}'" for name in ending)
        yield (
            f"equality {names} on the world (Genesis has no world link). Put all bodies and the sites on the world "
            "into "
            "a single body without a joint"
        )


def _joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind not in ("hinge", "slide"):
            yield f"{joint.kind} joint '{joint.name}' (only hinges and slides)"


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    for closure in mechanism.coordinate_closures:
        yield f"equality '{closure.name}' (only closures between bodies)"
    driven = [drive.name for drive in mechanism.drives if not drive.is_joint]
    loaded = [tendon.name for tendon in mechanism.tendons if tendon.armature or tendon.damping or tendon.stiffness]
    for name in dict.fromkeys([*driven, *loaded]):
        yield f"tendon '{name}' (Genesis has no tendons)"
    for spring in mechanism.point_springs:
        yield f"spring '{spring.name}' (no springs between points of bodies)"
    for body in mechanism.bodies:
        if body.gravity_compensation:
            yield f"gravity compensation of body '{body.name}' (ignored by the MJCF loader)"
