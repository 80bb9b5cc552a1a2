"""Faults of the robot, the motion and the reading of a source, and faults of inputs shared with the reference.

A fault of the robot is written as overrides of the MJCF, so that every source builds the wrong robot: MuJoCo compiles
the overrides, and all other sources get the mechanism read from the compiled model.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.analytic.dynamics import lagrange, noc
from loopcheck.analytic.kinematics.closures import closure_jacobian_rate
from loopcheck.analytic.kinematics.redundancy import undriven_dofs
from loopcheck.engines.projection import LoopMotions
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.formats.mjcf import with_overrides
from loopcheck.robots.mechanism import Body, Joint, Mechanism
from loopcheck.robots.motion import Motion, altered
from loopcheck.robots.robot import Case
from loopcheck.validation.studies.sweep.parameters import inertial

SHIFT = 1e-4
"""Displacement of a mass centre or of the point of a closure [m]."""
DAMPING = 0.04
"""Damping of every hinge and slide; same number as Bullet's default for links [N s/m or N m s/rad]."""

Change: TypeAlias = Callable[[Mechanism], Mechanism]
Compute: TypeAlias = Callable[[Source, Case, Motion], EffortHistory]
"""Efforts of a source with a fault."""
Seed: TypeAlias = Callable[[Case], AbstractContextManager[Case]]
"""Context with a fault in the reference, in the motion and in the inputs of the engines."""


def heaviest(mechanism: Mechanism) -> Body:
    """The body with the largest mass."""
    return max(mechanism.bodies, key=lambda body: body.mass)


def _heavier(part: float) -> Change:
    def wrong(mechanism: Mechanism) -> Mechanism:
        body = heaviest(mechanism)
        return with_overrides(mechanism, {"body": {body.name: {"mass": body.mass * (1 + part)}}})

    return wrong


def _inertia_about_joint(mechanism: Mechanism) -> Mechanism:
    """Steiner's part is not taken off: tensors about the joints, used as if about the mass centres."""
    joints = {joint.body: joint for joint in mechanism.joints}  # the last of a body
    wrong = {}
    for b, joint in joints.items():
        body, arm = mechanism.bodies[b], mechanism.bodies[b].center - joint.anchor
        steiner = body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        wrong[body.name] = inertial(body, inertia=body.inertia + steiner)
    return with_overrides(mechanism, {"body": wrong})


def _center_moved(mechanism: Mechanism) -> Mechanism:
    body = heaviest(mechanism)
    return with_overrides(mechanism, {"body": {body.name: inertial(body, center=body.center + SHIFT / np.sqrt(3))}})


def _gravity(angle: float) -> Change:
    def wrong(mechanism: Mechanism) -> Mechanism:
        gravity = mechanism.gravity
        axis = np.cross(gravity, np.eye(3)[np.argmin(np.abs(gravity))])
        turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        return mechanism.with_gravity(turn.as_matrix() @ gravity)

    return wrong


def _axis_flipped(mechanism: Mechanism) -> Mechanism:
    joint = mechanism.joints[mechanism.actuated_joints[0]]
    return with_overrides(mechanism, {"joint": {joint.name: {"axis": (-joint.axis).tolist()}}})


def _damped(mechanism: Mechanism) -> Mechanism:
    scalar = [joint for joint in mechanism.joints if joint.kind in ("hinge", "slide")]
    return with_overrides(mechanism, {"joint": {j.name: {"damping": [j.damping + DAMPING, 0.0, 0.0]} for j in scalar}})


def _closure_dropped(mechanism: Mechanism) -> Mechanism:
    return with_overrides(mechanism, {"equality": {mechanism.closures[-1].name: {"active": False}}})


ROBOTS: Mapping[str, Change] = {
    "mass 1 %": _heavier(0.01),
    "mass 1 ppm": _heavier(1e-6),
    "inertia about the joint": _inertia_about_joint,
    "mass centre": _center_moved,
    "gravity turned": _gravity(np.deg2rad(1.0)),
    "gravity flipped": _gravity(np.pi),
    "axis flipped": _axis_flipped,
    "joint damping": _damped,
    "loop dropped": _closure_dropped,
}
"""Another robot than that of the reference: the heaviest body, the first driven joint, or the last closure is wrong."""


def rounded(motion: Motion) -> Motion:
    """The motion in single precision, also at requested times."""
    return altered(motion, lambda values: values.astype(np.float32).astype(np.float64))


def late(effort: Array) -> Array:
    """The effort of the sample before in each row."""
    return np.concatenate([effort[:1], effort[:-1]])


def _swapped(effort: Array) -> Array:
    return np.concatenate([effort[:, 1::-1], effort[:, 2:]], axis=1)


def _one_sign(effort: Array) -> Array:
    return effort * np.append(np.ones(effort.shape[1] - 1), -1.0)


READINGS: Mapping[str, Callable[[Array], Array]] = {
    "one step late": late,
    "actuators swapped": _swapped,
    "one sign": _one_sign,
}
"""Other columns than the efforts, or other rows."""


def _velocity_term_dropped(source: Source, case: Case, motion: Motion) -> EffortHistory:
    """Passive accelerations from J q̈ = 0, in a source that finds them itself at a state."""
    with patch.object(*VELOCITY_TERMS[source.name.split("/")[1]]):
        return source.compute_efforts(case, motion)


def _zeros_of(right: Callable[..., Any]) -> Callable[..., Any]:
    """Zeros instead of the values of a function."""
    return lambda *arguments: 0 * right(*arguments)


_ACCELERATIONS, _COMPLEMENT = LoopMotions.accelerations, noc._joint_orthogonal_complement


def _without_rate(*arguments: Any) -> tuple[Array, Array]:
    L, L_dot = _COMPLEMENT(*arguments)
    return L, 0 * L_dot


def _without_bias(loop: LoopMotions, qdd: Array, closure_bias: Array) -> Array:
    return _ACCELERATIONS(loop, qdd, 0 * closure_bias)


VELOCITY_TERMS: Mapping[str, tuple[Any, str, Any]] = {
    "noc": (noc, "_joint_orthogonal_complement", _without_rate),
    "lagrange": (lagrange, "_opening_rate_near", _zeros_of(lagrange._opening_rate_near)),
    **dict.fromkeys(("kkt", "kkt_single"), (LoopMotions, "accelerations", _without_bias)),
}
"""Place of the term in a route, and its replacement without the term."""


def _on_robot(wrong: Change) -> Compute:
    return lambda source, case, motion: source.compute_efforts(replace(case, mechanism=wrong(case.mechanism)), motion)


def _on_reading(wrong: Callable[[Array], Array]) -> Compute:
    def compute(source: Source, case: Case, motion: Motion) -> EffortHistory:
        history = source.compute_efforts(case, motion)
        return replace(history, effort=wrong(history.effort))

    return compute


WRONG: Mapping[str, Compute] = {
    **{key: _on_robot(wrong) for key, wrong in ROBOTS.items()},
    "velocity term": _velocity_term_dropped,
    "single precision": lambda source, case, motion: source.compute_efforts(case, rounded(motion)),
    **{key: _on_reading(wrong) for key, wrong in READINGS.items()},
}
"""Faults of a source that the reference does not have."""


def _in_model(wrong: Change) -> Seed:
    return lambda case: nullcontext(replace(case, mechanism=wrong(case.mechanism)))


def _in_code(right: Callable[..., Any], wrong: Callable[..., Any]) -> Seed:
    """A function is wrong wherever analytic uses it."""

    @contextmanager
    def seed(case: Case) -> Iterator[Case]:
        name = right.__name__
        with ExitStack() as stack:
            for module_name, module in tuple(sys.modules.items()):
                if module_name.startswith("loopcheck.analytic.") and getattr(module, name, None) is right:
                    stack.enter_context(patch.object(module, name, wrong))
            yield case

    return seed


def _geared(mechanism: Mechanism) -> Mechanism:
    first, *others = mechanism.actuators
    return replace(mechanism, actuators=(replace(first, gear=2 * first.gear), *others))


def _heavier_in_model(mechanism: Mechanism) -> Mechanism:
    body = heaviest(mechanism)
    return replace(
        mechanism, bodies=tuple(replace(b, mass=1.01 * b.mass) if b is body else b for b in mechanism.bodies)
    )


def _on_scalar_joints(change: Callable[[Joint], Joint]) -> Seed:
    def wrong(mechanism: Mechanism) -> Mechanism:
        joints = (change(joint) if joint.kind in ("hinge", "slide") else joint for joint in mechanism.joints)
        return replace(mechanism, joints=tuple(joints))

    return _in_model(wrong)


def _with_rotor(mechanism: Mechanism) -> Mechanism:
    joints, first = list(mechanism.joints), mechanism.actuated_joints[0]
    joints[first] = replace(joints[first], armature=joints[first].armature + 0.01)
    return replace(mechanism, joints=tuple(joints))


def _wrenches_moved(mechanism: Mechanism) -> Mechanism:
    moved = tuple(replace(load, point=load.point + 100 * SHIFT / np.sqrt(3)) for load in mechanism.wrenches)
    return replace(mechanism, wrenches=moved)


def _closure_moved(mechanism: Mechanism) -> Mechanism:
    """Within the plane of a planar robot: the point moves along its arm."""
    closure, end = next(
        (closure, end)
        for closure in reversed(mechanism.rigid_closures)
        for end in ("point1", "point2")
        if getattr(closure, end).any()
    )
    point = getattr(closure, end)
    moved = replace(closure, **{end: point * (1 + SHIFT / np.linalg.norm(point))})
    return replace(mechanism, closures=tuple(moved if c is closure else c for c in mechanism.closures))


SHARED: Mapping[str, Seed] = {
    "gears": _in_model(_geared),
    "inertia": _in_model(_heavier_in_model),
    "geometry": _in_model(_closure_moved),
    "springs": _on_scalar_joints(lambda joint: replace(joint, stiffness=joint.stiffness + 1)),
    "dampers": _on_scalar_joints(lambda joint: replace(joint, damping=joint.damping + DAMPING)),
    "rotors": _in_model(_with_rotor),
    "loads": _in_model(_wrenches_moved),
    "gravity": _in_model(lambda mechanism: mechanism.with_gravity(1.01 * mechanism.gravity)),
    "velocity term": _in_code(closure_jacobian_rate, _zeros_of(closure_jacobian_rate)),
    "ranks": _in_code(undriven_dofs, lambda mechanism, q: undriven_dofs(mechanism, q) + 1),
}
"""Fault of each input that a source can share with the reference; of `ranks`, a driven dof counts as undriven."""
