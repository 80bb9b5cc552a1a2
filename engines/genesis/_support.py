"""Elements of a mechanism that Genesis' loader of MJCF leaves out: refused by name, without an import of Genesis."""

from collections.abc import Iterator

from loopcheck.engines.boundary import coupled, want_representable
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
            "into a single body without a joint"
        )


def _joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind not in ("hinge", "slide"):
            yield f"{joint.kind} joint '{joint.name}' (only hinges and slides)"


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    yield from coupled(
        mechanism,
        equality="only closures between bodies",
        tendon="Genesis has no tendons",
        spring="no springs between points of bodies",
    )
    for body in mechanism.bodies:
        if body.gravity_compensation:
            yield f"gravity compensation of body '{body.name}' (ignored by the MJCF loader)"
