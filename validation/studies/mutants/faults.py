"""Faults of the model, the motion, the reading and the adapter of an engine, and faults of shared inputs.

A fault of the model is written as overrides of the MJCF, so that every source builds the wrong robot: MuJoCo compiles
the overrides, and all other sources get the mechanism read from the compiled model. A fault of a shared input is in the
reference, in the motion and in the input of the engines' adapters: agreement shows that a route cannot detect it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from scipy.spatial.transform import Rotation

import loopcheck.analytic.dynamics.lagrange
import loopcheck.analytic.dynamics.noc
import loopcheck.analytic.kinematics.redundancy
from loopcheck import engines
from loopcheck.analytic.dynamics.lagrange import _opening_rate_near
from loopcheck.analytic.dynamics.noc import Noc, noc_model
from loopcheck.analytic.kinematics.closures import closure_jacobian_rate
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
from loopcheck.validation.comparison.independence import FROM_FILES, Shared

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

SPRING = 1.0
"""Stiffness of the additional springs of all hinges and slides [N/m or N m/rad]."""
ROTOR = 0.01
"""Additional armature of the first actuated joint [kg or kg m²]."""

Compute: TypeAlias = Callable[[Source, Case, Motion], EffortHistory]
"""Efforts of a source with a fault."""
Seed: TypeAlias = Callable[[Case], AbstractContextManager[Case]]
"""Context with a fault in the unmodified case."""


class NotCarriedError(HarnessError):
    """A fault without a place in a source or robot."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault of the wrong robot, motion or reading that a source gets; the reference is right."""

    key: str
    """Short name."""
    text: str
    """Description of the fault, with its size."""
    compute: Compute
    in_adapter: bool = False
    """Whether the fault is in the adapter of an engine, so that the reference cannot have it."""

    def __reduce__(self) -> Any:
        return by_key, (self.key,)  # functions made in functions cannot be pickled


@dataclass(frozen=True, slots=True)
class CommonFault:
    """A fault of an input that the reference shares with routes."""

    key: str
    """Short name."""
    text: str
    """Description of the fault, with its size."""
    what: Shared
    """Faulty input; a route that shares this input cannot detect the fault."""
    seed: Seed

    def __reduce__(self) -> Any:
        return by_key, (self.key,)

    @property
    def is_in_files(self) -> bool:
        """Return whether the robot's files contain the correct value."""
        return self.what in FROM_FILES


Fault: TypeAlias = Mutant | CommonFault


def by_key(key: str) -> Any:
    """The fault of that name."""
    return next(fault for fault in FAULTS if fault.key == key)


def row_of_fault(case: Case, source: str, fault: tuple[str, str], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Row of the table of the study.

    Args:
        fault: Name and description.
        fields: Columns with a value.
    """
    return {
        "robot": case.robot.name,
        "mode": case.mode,
        "configuration": case.configuration,
        "source": source,
        "mutant": fault[0],
        "fault": fault[1],
        "verdict": "",
        **dict.fromkeys(("relative_error", "effect", "tolerance", "noise"), np.nan),
        "note": "",
        **fields,
    }


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


def _in_model(wrong: Callable[[Mechanism], Mechanism]) -> Seed:
    def seed(case: Case) -> AbstractContextManager[Case]:
        return nullcontext(replace(case, mechanism=wrong(case.mechanism)))

    return seed


def _in_code(right: Callable[..., Any], wrong: Callable[..., Any]) -> Seed:
    """A function is wrong wherever analytic uses it."""

    @contextmanager
    def seed(case: Case) -> Iterator[Case]:
        name = right.__name__
        users = [
            module
            for name_of_module, module in sys.modules.items()
            if name_of_module.startswith("loopcheck.analytic.") and getattr(module, name, None) is right
        ]
        with ExitStack() as stack:
            for module in users:
                stack.enter_context(patch.object(module, name, wrong))
            yield case

    return seed


def _geared(mechanism: Mechanism) -> Mechanism:
    first, *others = mechanism.actuators
    return replace(mechanism, actuators=(replace(first, gear=2 * first.gear), *others))


def _heavier_in_model(mechanism: Mechanism) -> Mechanism:
    body = heaviest(mechanism)
    heavier = replace(body, mass=(1 + COARSE) * body.mass)
    return replace(mechanism, bodies=tuple(heavier if b is body else b for b in mechanism.bodies))


def _on_scalar_joints(change: Callable[[Joint], Joint]) -> Seed:
    def wrong(mechanism: Mechanism) -> Mechanism:
        joints = (change(joint) if joint.kind in ("hinge", "slide") else joint for joint in mechanism.joints)
        return replace(mechanism, joints=tuple(joints))

    return _in_model(wrong)


def _with_rotor(mechanism: Mechanism) -> Mechanism:
    joints, first = list(mechanism.joints), mechanism.actuated_joints[0]
    joints[first] = replace(joints[first], armature=joints[first].armature + ROTOR)
    return replace(mechanism, joints=tuple(joints))


def _wrenches_moved(mechanism: Mechanism) -> Mechanism:
    if not mechanism.wrenches:
        raise NotCarriedError("the robot has no external wrench")
    moved = tuple(replace(load, point=load.point + 100 * SHIFT / np.sqrt(3)) for load in mechanism.wrenches)
    return replace(mechanism, wrenches=moved)


def _stronger_gravity(mechanism: Mechanism) -> Mechanism:
    if not mechanism.gravity.any():
        raise NotCarriedError("the robot has no gravity")
    return mechanism.with_gravity((1 + COARSE) * mechanism.gravity)


def _closure_moved(mechanism: Mechanism) -> Mechanism:
    """Within the plane of a planar robot: the point moves along its arm."""
    for closure in reversed(mechanism.rigid_closures):
        for end in ("point1", "point2"):
            point = getattr(closure, end)
            if point.any():
                moved = replace(closure, **{end: point * (1 + SHIFT / np.linalg.norm(point))})
                return replace(mechanism, closures=tuple(moved if c is closure else c for c in mechanism.closures))
    raise NotCarriedError("every closing point is at the origin of its body")


def _one_undriven_more(mechanism: Mechanism, q: Array) -> int:
    return _UNDRIVEN_DOFS(mechanism, q) + 1


_UNDRIVEN_DOFS = loopcheck.analytic.kinematics.redundancy.undriven_dofs

MUTANTS = (
    Mutant("mass 1 %", "the heaviest body is 1 % heavier", _heavier(COARSE)),
    Mutant("mass 1 ppm", "the heaviest body is a millionth heavier", _heavier(PPM)),
    Mutant(
        "inertia point",
        "the inertia of every body is about its joint instead of its mass centre",
        _on_model(_inertia_about_joint),
    ),
    Mutant(
        "mass centre",
        "the mass centre of the heaviest body is moved by 0.1 mm along (1, 1, 1)",
        _on_model(_center_moved),
    ),
    Mutant("gravity turned", "gravity is turned by 1°", _gravity(TURN)),
    Mutant("gravity flipped", "gravity points in the opposite direction", _gravity(np.pi)),
    Mutant("axis flipped", "the axis of the first actuated joint is reversed", _on_model(_axis_flipped)),
    Mutant("joint damping", "every hinge and slide has a damping of 0.04 N s/m or N m s/rad", _on_model(_damped)),
    Mutant("loop dropped", "the last closure is missing", _on_model(_closure_dropped)),
    Mutant(
        "velocity term",
        "the loops' acceleration has no J̇v: passive accelerations follow from J q̈ = 0",
        _velocity_term_dropped,
    ),
    Mutant(
        "single precision",
        "states, targets and accelerations are rounded to single precision",
        lambda source, case, motion: source.compute_efforts(case, rounded(motion)),
    ),
    Mutant("one step late", "efforts belong to the previous sample", _on_reading(_late)),
    Mutant("actuators swapped", "the first two actuators are exchanged", _on_reading(_swapped)),
    Mutant("one sign", "the last actuator is read with the opposite sign", _on_reading(_one_sign)),
    Mutant(
        "loose loops",
        "loops with default softness: MuJoCo's impedance 0.95 at the compliance of the file, Bullet's erp 0.2, "
        "DART's 0.01; Pinocchio's single proximal iteration with a mu of 0.001",
        _in_adapter("loose loops", "the route has exact loops, without soft constraint forces"),
        in_adapter=True,
    ),
    Mutant(
        "weak motor",
        "motors saturate at 90 % of the largest effort",
        _in_adapter(
            "weak motors",
            "the route has no motor with a limit: it solves for the efforts, or they are forces of an equality",
        ),
        in_adapter=True,
    ),
    Mutant(
        "default damping",
        "Bullet's default damping of links, linear and angular 0.04, is active",
        _in_adapter("default damping", "the route has no default damping"),
        in_adapter=True,
    ),
    Mutant(
        "start at rest",
        "Exudyn starts without the accelerations of the motion, with a permanent effect on its integration",
        _in_adapter("start at rest", "the route does not start from accelerations"),
        in_adapter=True,
    ),
)
"""Faults that the reference does not have, without randomness."""
COMMON_FAULTS = (
    CommonFault("model: gear", "in the model, the gear of the first actuator is doubled", "gears", _in_model(_geared)),
    CommonFault(
        "model: mass", "in the model, the heaviest body is 1 % heavier", "inertia", _in_model(_heavier_in_model)
    ),
    CommonFault(
        "model: closure",
        "in the model, a point of the last closure is 0.1 mm farther from the origin of its body",
        "geometry",
        _in_model(_closure_moved),
    ),
    CommonFault(
        "model: springs",
        "in the model, every hinge and slide has a spring of 1 N/m or 1 N m/rad more",
        "springs",
        _on_scalar_joints(lambda joint: replace(joint, stiffness=joint.stiffness + SPRING)),
    ),
    CommonFault(
        "model: dampers",
        "in the model, every hinge and slide has a damping of 0.04 N s/m or N m s/rad more",
        "dampers",
        _on_scalar_joints(lambda joint: replace(joint, damping=joint.damping + DAMPING)),
    ),
    CommonFault(
        "model: rotor",
        "in the model, the first actuated joint has a rotor of 0.01 kg or kg m² more",
        "rotors",
        _in_model(_with_rotor),
    ),
    CommonFault(
        "model: wrench",
        "in the model, external wrenches act 10 mm beside their points, along (1, 1, 1)",
        "loads",
        _in_model(_wrenches_moved),
    ),
    CommonFault("model: gravity", "in the model, gravity is 1 % stronger", "gravity", _in_model(_stronger_gravity)),
    CommonFault(
        "model: velocity term",
        "in the reference and in the motion, the loops' acceleration has no J̇v",
        "velocity term",
        _in_code(closure_jacobian_rate, nothing_of(closure_jacobian_rate)),
    ),
    CommonFault(
        "model: rank",
        "in the reference, one driven dof counts as unactuated",
        "ranks",
        _in_code(_UNDRIVEN_DOFS, _one_undriven_more),
    ),
)
"""Faults of shared inputs, without randomness."""
FAULTS: tuple[Fault, ...] = (*MUTANTS, *COMMON_FAULTS)
