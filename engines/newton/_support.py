"""Elements that Newton cannot represent, or not as built here: refused by name, all at once."""

from collections.abc import Iterator, Sequence

import numpy as np

from loopcheck.engines.boundary import coupled, want_representable
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.robots.mechanism import WORLD, Body, Joint, Mechanism

PERPENDICULAR = 1e-6
"""Largest cosine between axes of a compound joint [-]; Newton misreads axes that are not perpendicular."""
SAME_POINT = 1e-9
"""Largest distance of anchors that count as the same point [m]."""
KAMINO_AXES = {(1, 0), (0, 1), (0, 2), (3, 0), (0, 3)}
"""Numbers of slides and hinges of Kamino's joint types."""


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something in Newton's model.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("newton", (*_bodies(mechanism), *_joints(mechanism), *_coupled(mechanism)))


def want_simulated(mechanism: Mechanism, solver: str) -> None:
    """Refuse a mechanism if a solver of Newton would leave an element out.

    Raises:
        NotRepresentableError: If it has any such element; the message names all of them.
    """
    want_carried(mechanism)
    reasons = {"kamino": _kamino, "mujoco": _mujoco, "mujoco_warp": _mujoco, "steel": _steel}[solver]
    want_representable(f"newton, solver {solver}", reasons(mechanism))


def is_floating(mechanism: Mechanism, body: int) -> bool:
    """Whether the joints of a body leave it free: three slides and three hinges from the world.

    Args:
        body: Index of the body.
    """
    return mechanism.bodies[body].parent == WORLD and _axes(mechanism, body) == (3, 3)


def _axes(mechanism: Mechanism, body: int) -> tuple[int, int]:
    """Number of slides and hinges of a body."""
    kinds = [mechanism.joints[j].kind for j in mechanism.joints_of[body]]
    return kinds.count("slide"), kinds.count("hinge")


def _bodies(mechanism: Mechanism) -> Iterator[str]:
    for body in mechanism.bodies:
        if not body.mass:
            yield f"body '{body.name}' without mass (treated as fixed by the solvers)"


def _joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind == "free" and (joint.armature or joint.damping or joint.stiffness):
            yield f"rotor, damper or spring of free joint '{joint.name}' (unsupported, or only at the mass centre)"
    for body, own in zip(mechanism.bodies, mechanism.joints_of, strict=True):
        joints = [mechanism.joints[j] for j in own]
        if not any(joint.kind in BALL_OR_FREE for joint in joints):
            yield from _axes_of_one(body, joints)
        elif len(joints) > 1:
            yield (
                f"body '{body.name}' with a ball joint beside further joints (a ball must be the only joint of a body)"
            )


def _axes_of_one(body: Body, joints: Sequence[Joint]) -> Iterator[str]:
    """Reason why hinges and slides of a body are not a single joint of Newton."""
    slides = [joint for joint in joints if joint.kind == "slide"]
    hinges = [joint for joint in joints if joint.kind == "hinge"]
    if joints != [*slides, *hinges]:
        yield f"body '{body.name}' with a hinge before a slide (slides must come before hinges)"
    if not (_perpendicular(slides) and _perpendicular(hinges)):
        yield f"axes of body '{body.name}' (must be perpendicular)"
    if any(np.linalg.norm(joint.anchor - hinges[0].anchor) > SAME_POINT for joint in hinges):
        yield f"hinges of body '{body.name}' through different points (must have a common point)"


def _perpendicular(joints: Sequence[Joint]) -> bool:
    axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
    return len(axes) <= 3 and bool((np.abs(axes @ axes.T - np.eye(len(axes))) <= PERPENDICULAR).all())


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    return coupled(
        mechanism,
        equality="only closures between bodies",
        tendon="motors, springs and rotors only on single joints",
        spring="no springs between points of bodies",
    )


def _kamino(mechanism: Mechanism) -> Iterator[str]:
    for b, body in enumerate(mechanism.bodies):
        if any(mechanism.joints[j].kind in BALL_OR_FREE for j in mechanism.joints_of[b]):
            continue
        axes = _axes(mechanism, b)
        if axes != (0, 0) and axes not in KAMINO_AXES and not is_floating(mechanism, b):
            yield f"{axes[0]} slides and {axes[1]} hinges of body '{body.name}' (not a joint type of the solver)"
        loaded = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        if is_floating(mechanism, b) and any(joint.armature or joint.damping for joint in loaded):
            yield f"rotors and dampers of body '{body.name}' (floating base in this solver)"
    yield from _springs(mechanism)


def _steel(mechanism: Mechanism) -> Iterator[str]:
    yield from _springs(mechanism)


def _mujoco(mechanism: Mechanism) -> Iterator[str]:
    yield from ()


def _springs(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.stiffness:
            yield f"spring of joint '{joint.name}' (ignored by this solver)"
