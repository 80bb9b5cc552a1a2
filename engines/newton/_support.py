"""What Newton cannot carry, or not as it is built here: refused by name, all of it at once."""

from collections.abc import Iterator, Sequence

import numpy as np

from engines.refusal import want_representable
from robots.mechanism import WORLD, Joint, Mechanism

PERPENDICULAR = 1e-6
"""Largest cosine between axes of one joint of Newton's [-]: it takes what is not perpendicular for something else."""
SAME_POINT = 1e-9
"""Largest distance of anchors that are one point [m]."""
KAMINO_AXES = {(1, 0), (0, 1), (0, 2), (3, 0), (0, 3)}
"""Numbers of slides and hinges that Kamino has as one joint."""


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something in Newton's model.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("newton", (*_bodies(mechanism), *_joints(mechanism), *_coupled(mechanism)))


def want_simulated(mechanism: Mechanism, solver: str) -> None:
    """Refuse a mechanism of which one of Newton's solvers would leave something out.

    Args:
        mechanism: Robot.
        solver: Name of the solver.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_carried(mechanism)
    reasons = {"kamino": _kamino, "mujoco": _mujoco, "mujoco_warp": _mujoco, "steel": _steel}[solver]
    want_representable(f"newton, its solver {solver}", reasons(mechanism))


def is_floating(mechanism: Mechanism, body: int) -> bool:
    """Whether the joints of a body leave it free: three slides and three hinges from the world.

    Args:
        mechanism: Robot.
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
            yield f"body '{body.name}' without mass: its solvers take it for one that never moves"


def _joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind not in ("hinge", "slide"):
            yield f"{joint.kind} joint '{joint.name}': built here are hinges and slides"
    for body, own in zip(mechanism.bodies, mechanism.joints_of, strict=True):
        joints = [mechanism.joints[j] for j in own]
        if any(joint.kind not in ("hinge", "slide") for joint in joints):
            continue
        slides = [joint for joint in joints if joint.kind == "slide"]
        hinges = [joint for joint in joints if joint.kind == "hinge"]
        if joints != [*slides, *hinges]:
            yield f"body '{body.name}' with a hinge before a slide: a joint of Newton's slides before it turns"
        if not (_perpendicular(slides) and _perpendicular(hinges)):
            yield f"axes of body '{body.name}': those of one joint of Newton's are perpendicular"
        if any(np.linalg.norm(joint.anchor - hinges[0].anchor) > SAME_POINT for joint in hinges):
            yield f"hinges of body '{body.name}' through different points: one joint of Newton's has one"


def _perpendicular(joints: Sequence[Joint]) -> bool:
    axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
    return len(axes) <= 3 and bool((np.abs(axes @ axes.T - np.eye(len(axes))) <= PERPENDICULAR).all())


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    """What acts on several joints or between points."""
    for closure in mechanism.coordinate_closures:
        yield f"equality '{closure.name}': built here are closures between bodies"
    driven = [drive.name for drive in mechanism.drives if not drive.is_joint]
    loaded = [tendon.name for tendon in mechanism.tendons if tendon.armature or tendon.damping or tendon.stiffness]
    for name in dict.fromkeys([*driven, *loaded]):
        yield f"tendon '{name}': its motors, springs and rotors are on single joints"
    for spring in mechanism.point_springs:
        yield f"spring '{spring.name}': it has none between points of bodies"


def _kamino(mechanism: Mechanism) -> Iterator[str]:
    for b, body in enumerate(mechanism.bodies):
        axes = _axes(mechanism, b)
        if axes != (0, 0) and axes not in KAMINO_AXES and not is_floating(mechanism, b):
            yield f"{axes[0]} slides and {axes[1]} hinges of body '{body.name}': not one of its joints"
        loaded = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        if is_floating(mechanism, b) and any(joint.armature or joint.damping for joint in loaded):
            yield f"rotors and dampers of body '{body.name}', which floats there"
    yield from _springs(mechanism)


def _steel(mechanism: Mechanism) -> Iterator[str]:
    yield from ()


def _mujoco(mechanism: Mechanism) -> Iterator[str]:
    yield from ()


def _springs(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.stiffness:
            yield f"spring of joint '{joint.name}', which it leaves out"
