"""Faults of the model, of the motion, of the reading and of the adapter of an engine.

A fault of the model is written as overrides of the MJCF, so that every source builds the wrong robot: MuJoCo compiles
the overrides, and all other sources get the mechanism read from the compiled model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from scipy.spatial.transform import Rotation

import loopcheck.analytic.dynamics.lagrange
import loopcheck.analytic.dynamics.noc
from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import _opening_rate_near
from loopcheck.analytic.dynamics.noc import Noc, noc_model
from loopcheck.analytic.kinematics.redundancy import independent_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.engines.projection import LoopMotions
from loopcheck.robots.arrays import AnyArray, Array, JointAccelerations
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Body, Joint, Mechanism
from loopcheck.robots.mjcf import with_overrides
from loopcheck.robots.motion import Motion, altered
from loopcheck.robots.robot import Case

COARSE = 0.01
"""Relative increase of a mass by a coarse fault [-]."""
PPM = 1e-6
"""Relative increase of a mass by a fine fault [-]."""
SHIFT = 1e-4
"""Displacement of a mass centre [m]."""
TURN = np.deg2rad(1.0)
"""Rotation of gravity [rad]."""
DAMPING = 0.04
"""Damping of every hinge and slide; same number as Bullet's default for links [N s/m or N m s/rad]."""

Compute: TypeAlias = Callable[[Source, Case, Motion], EffortHistory]
"""Efforts of a source with a fault."""


class NotCarriedError(HarnessError):
    """A fault without a place in a source or robot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A fault."""

    key: str
    """Short name."""
    text: str
    """Description of the fault, with its size."""
    compute: Compute
    in_adapter: bool = False
    """Whether the fault is in the adapter of an engine, so that the reference cannot have it."""


def by_key(key: str) -> Mutant:
    """The mutant of that name."""
    return next(mutant for mutant in MUTANTS if mutant.key == key)


def _on_model(wrong: Callable[[Mechanism], Mechanism]) -> Compute:
    def compute(source: Source, case: Case, motion: Motion) -> EffortHistory:
        return source.compute_efforts(replace(case, mechanism=wrong(case.mechanism)), motion)

    return compute


def _on_reading(wrong: Callable[[Array], Array]) -> Compute:
    def compute(source: Source, case: Case, motion: Motion) -> EffortHistory:
        history = source.compute_efforts(case, motion)
        return replace(history, effort=wrong(history.effort))

    return compute


def _in_adapter(kind: str, why_not: str) -> Compute:
    def compute(source: Source, case: Case, motion: Motion) -> EffortHistory:
        fault = None if source.name.startswith("analytic/") else engines.faults(source.name).get(kind)
        if fault is None:
            raise NotCarriedError(why_not)
        peak = float(np.abs(Noc().compute_efforts(case, motion).effort).max())
        return fault(peak).compute_efforts(case, motion)

    return compute


def heaviest(mechanism: Mechanism) -> Body:
    """The body with the largest mass."""
    return max(mechanism.bodies, key=lambda body: body.mass)


def _heavier(part: float) -> Compute:
    def wrong(mechanism: Mechanism) -> Mechanism:
        body = heaviest(mechanism)
        return with_overrides(mechanism, {"body": {body.name: {"mass": body.mass * (1 + part)}}})

    return _on_model(wrong)


def _inertia_about_joint(mechanism: Mechanism) -> Mechanism:
    """Steiner's part is not taken off: tensors about the joints, used as if about the mass centres."""
    joints = {joint.body: joint for joint in mechanism.joints}  # the last of a body
    extra = [(mechanism.bodies[b], _steiner(mechanism.bodies[b], joint)) for b, joint in joints.items()]
    if not any(tensor.any() for _, tensor in extra):
        raise NotCarriedError("every body has its mass centre on its joint")
    wrong = {body.name: inertial(body, inertia=body.inertia + tensor) for body, tensor in extra}
    return with_overrides(mechanism, {"body": wrong})


def _steiner(body: Body, joint: Joint) -> Array:
    arm = body.center - joint.anchor
    return np.asarray(body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm)))


def _center_moved(mechanism: Mechanism) -> Mechanism:
    body = heaviest(mechanism)
    return with_overrides(mechanism, {"body": {body.name: inertial(body, center=body.center + SHIFT / np.sqrt(3))}})


def inertial(body: Body, *, center: Array | None = None, inertia: Array | None = None) -> Mapping[str, Any]:
    """Override of all inertial elements of a body in the MJCF, in the axes of the body.

    Args:
        center: Another mass centre [m], shape (3,).
        inertia: Another inertia about the mass centre [kg m²], shape (3, 3).
    """
    I = body.inertia if inertia is None else inertia
    return {
        "explicitinertial": True,
        "mass": body.mass,
        "ipos": (body.center if center is None else center).tolist(),
        "iquat": [1.0, 0.0, 0.0, 0.0],
        "inertia": [0.0, 0.0, 0.0],
        "fullinertia": [float(I[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))],
    }


def _gravity(angle: float) -> Compute:
    def wrong(mechanism: Mechanism) -> Mechanism:
        gravity = mechanism.gravity
        if not gravity.any():
            raise NotCarriedError("the robot has no gravity")
        axis = np.cross(gravity, np.eye(3)[np.argmin(np.abs(gravity))])
        turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        return mechanism.with_gravity(turn.as_matrix() @ gravity)

    return _on_model(wrong)


def _axis_flipped(mechanism: Mechanism) -> Mechanism:
    joint = mechanism.joints[mechanism.actuated_joints[0]]
    return with_overrides(mechanism, {"joint": {joint.name: {"axis": (-joint.axis).tolist()}}})


def _damped(mechanism: Mechanism) -> Mechanism:
    scalar = [joint for joint in mechanism.joints if joint.kind in ("hinge", "slide")]
    return with_overrides(mechanism, {"joint": {j.name: {"damping": [j.damping + DAMPING, 0.0, 0.0]} for j in scalar}})


def _closure_dropped(mechanism: Mechanism) -> Mechanism:
    if not mechanism.closures:
        raise NotCarriedError("the robot has no loops")
    return with_overrides(mechanism, {"equality": {mechanism.closures[-1].name: {"active": False}}})


def _velocity_term_dropped(source: Source, case: Case, motion: Motion) -> EffortHistory:
    """Passive accelerations from J q̈ = 0, wherever a source finds them: in itself, or in the motion."""
    if not case.mechanism.closures:
        raise NotCarriedError("the robot has no loops")
    route = source.name.split("/")[1]
    if route == "forward":
        why_not = "the engine closes its loops by velocities, without this term"
        return _in_adapter("velocity term dropped", why_not)(source, case, motion)
    if route in VELOCITY_TERMS:
        with patch.object(*VELOCITY_TERMS[route]):
            return source.compute_efforts(case, motion)
    independent = independent_dofs(case.mechanism, motion)
    L = noc_model(State(mechanism=case.mechanism, q=motion.q, qd=motion.qd), independent).L
    return source.compute_efforts(case, replace(motion, qdd=(L @ motion.qdd[:, independent, None])[..., 0]))


def nothing_of(right: Callable[..., Any]) -> Callable[..., Any]:
    """Stands in place of a function, and returns zeros instead of its values."""
    return lambda *arguments: 0 * right(*arguments)


def _no_bias(loop: LoopMotions, qdd: JointAccelerations, closure_bias: Array) -> Array:
    """Accelerations of a loop without J̇ q̇.

    Args:
        loop: How it can move.
        closure_bias: J̇ q̇ [m/s² or rad/s²], shape (nc,).
    """
    return _ACCELERATIONS(loop, qdd, 0 * closure_bias)


def _no_rate(state: State, independent: AnyArray) -> tuple[Array, Array]:
    """Joint orthogonal complement, and zero for its rate: the term Φ̇ is left out.

    Args:
        independent: Mask of the independent dofs [-], shape (nv,).
    """
    L, L_dot = _COMPLEMENT(state, independent)
    return L, 0 * L_dot


_ACCELERATIONS = LoopMotions.accelerations
_COMPLEMENT = loopcheck.analytic.dynamics.noc._joint_orthogonal_complement
VELOCITY_TERMS: Mapping[str, tuple[Any, str, Any]] = {
    "noc": (loopcheck.analytic.dynamics.noc, "_joint_orthogonal_complement", _no_rate),
    "lagrange": (loopcheck.analytic.dynamics.lagrange, "_opening_rate_near", nothing_of(_opening_rate_near)),
    "kkt": (LoopMotions, "accelerations", _no_bias),
}
"""Place of the term in a route, and its replacement without the term."""


def _in_single_precision(source: Source, case: Case, motion: Motion) -> EffortHistory:
    return source.compute_efforts(case, rounded(motion))


def rounded(motion: Motion) -> Motion:
    """The motion in single precision, also at requested times."""
    return altered(motion, _single)


def _single(values: Array) -> Array:
    return values.astype(np.float32).astype(np.float64)


def _late(effort: Array) -> Array:
    return np.concatenate([effort[:1], effort[:-1]])


def _swapped(effort: Array) -> Array:
    if effort.shape[1] < 2:
        raise NotCarriedError("the robot has only 1 actuator")
    return np.concatenate([effort[:, 1::-1], effort[:, 2:]], axis=1)


def _one_sign(effort: Array) -> Array:
    if not effort[:, -1].any():
        raise NotCarriedError("the route omits the last actuator, so its effort has no sign")
    return effort * np.append(np.ones(effort.shape[1] - 1), -1.0)


NO_SOLVER = "the route has exact loops, without soft constraint forces"
NO_MOTOR = "the route has no motor with a limit: its efforts are solved for, or are forces of an equality"
NO_DEFAULT = "the route has no default damping"
NO_START = "the route does not start from accelerations"

MUTANTS = (
    Mutant(key="mass 1 %", text="the heaviest body is 1 % heavier", compute=_heavier(COARSE)),
    Mutant(key="mass 1 ppm", text="the heaviest body is a millionth heavier", compute=_heavier(PPM)),
    Mutant(
        key="inertia point",
        text="the inertia of every body is about its joint instead of its mass centre",
        compute=_on_model(_inertia_about_joint),
    ),
    Mutant(
        key="mass centre",
        text="the mass centre of the heaviest body is moved by 0.1 mm along (1, 1, 1)",
        compute=_on_model(_center_moved),
    ),
    Mutant(key="gravity turned", text="gravity is turned by 1°", compute=_gravity(TURN)),
    Mutant(key="gravity flipped", text="gravity points in the opposite direction", compute=_gravity(np.pi)),
    Mutant(
        key="axis flipped",
        text="the axis of the first actuated joint is reversed",
        compute=_on_model(_axis_flipped),
    ),
    Mutant(
        key="joint damping",
        text="every hinge and slide has a damping of 0.04 N s/m or N m s/rad",
        compute=_on_model(_damped),
    ),
    Mutant(key="loop dropped", text="the last closure is missing", compute=_on_model(_closure_dropped)),
    Mutant(
        key="velocity term",
        text="the loops' acceleration has no J̇v: passive accelerations follow from J q̈ = 0",
        compute=_velocity_term_dropped,
    ),
    Mutant(
        key="single precision",
        text="states, targets and accelerations are rounded to single precision",
        compute=_in_single_precision,
    ),
    Mutant(key="one step late", text="efforts belong to the previous sample", compute=_on_reading(_late)),
    Mutant(key="actuators swapped", text="the first two actuators are exchanged", compute=_on_reading(_swapped)),
    Mutant(key="one sign", text="the last actuator is read with the opposite sign", compute=_on_reading(_one_sign)),
    Mutant(
        key="loose loops",
        text="loops with default softness: MuJoCo's impedance 0.95 at the compliance of the file, Bullet's erp 0.2, "
        "DART's 0.01; Pinocchio's single proximal iteration with a mu of 0.001",
        compute=_in_adapter("loose loops", NO_SOLVER),
        in_adapter=True,
    ),
    Mutant(
        key="weak motor",
        text="motors saturate at 90 % of the largest effort",
        compute=_in_adapter("weak motors", NO_MOTOR),
        in_adapter=True,
    ),
    Mutant(
        key="default damping",
        text="Bullet's default damping of links, linear and angular 0.04, is active",
        compute=_in_adapter("default damping", NO_DEFAULT),
        in_adapter=True,
    ),
    Mutant(
        key="start at rest",
        text="Exudyn starts without the accelerations of the motion, with a permanent effect on its integration",
        compute=_in_adapter("start at rest", NO_START),
        in_adapter=True,
    ),
)
"""All faults, without randomness."""
