"""Faults of shared inputs: numbers of the model, the velocity term of its loops, a rank.

Such a fault is in the reference, in the motion and in the input of the engines' adapters. All results are computed anew
with it, and judged as usual: agreement shows that the route cannot detect the fault by itself.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

import loopcheck.analytic.kinematics.redundancy
from loopcheck.analytic.kinematics.closures import closure_jacobian_rate
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Joint, Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.judge.independence import FROM_FILES, Shared
from loopcheck.validation.studies.mutants.faults import COARSE, DAMPING, SHIFT, NotCarriedError, heaviest, nothing_of

SPRING = 1.0
"""Stiffness of the additional springs of all hinges and slides [N/m or N m/rad]."""
ROTOR = 0.01
"""Additional armature of the first actuated joint [kg or kg m²]."""

Seed: TypeAlias = Callable[[Case], AbstractContextManager[Case]]
"""Context with a fault in the unmodified case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonFault:
    """A fault of an input that the reference shares with routes."""

    key: str
    """Short name."""
    text: str
    """Description of the fault, with its size."""
    what: Shared
    """Faulty input; a route that shares this input cannot detect the fault."""
    seed: Seed

    @property
    def is_in_files(self) -> bool:
        """Return whether the robot's files contain the correct value."""
        return self.what in FROM_FILES


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


def _heavier(mechanism: Mechanism) -> Mechanism:
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

COMMON_FAULTS = (
    CommonFault(
        key="model: gear",
        text="in the model, the gear of the first actuator is doubled",
        what="gears",
        seed=_in_model(_geared),
    ),
    CommonFault(
        key="model: mass",
        text="in the model, the heaviest body is 1 % heavier",
        what="inertia",
        seed=_in_model(_heavier),
    ),
    CommonFault(
        key="model: closure",
        text="in the model, a point of the last closure is 0.1 mm farther from the origin of its body",
        what="geometry",
        seed=_in_model(_closure_moved),
    ),
    CommonFault(
        key="model: springs",
        text="in the model, every hinge and slide has a spring of 1 N/m or 1 N m/rad more",
        what="springs",
        seed=_on_scalar_joints(lambda joint: replace(joint, stiffness=joint.stiffness + SPRING)),
    ),
    CommonFault(
        key="model: dampers",
        text="in the model, every hinge and slide has a damping of 0.04 N s/m or N m s/rad more",
        what="dampers",
        seed=_on_scalar_joints(lambda joint: replace(joint, damping=joint.damping + DAMPING)),
    ),
    CommonFault(
        key="model: rotor",
        text="in the model, the first actuated joint has a rotor of 0.01 kg or kg m² more",
        what="rotors",
        seed=_in_model(_with_rotor),
    ),
    CommonFault(
        key="model: wrench",
        text="in the model, external wrenches act 10 mm beside their points, along (1, 1, 1)",
        what="loads",
        seed=_in_model(_wrenches_moved),
    ),
    CommonFault(
        key="model: gravity",
        text="in the model, gravity is 1 % stronger",
        what="gravity",
        seed=_in_model(_stronger_gravity),
    ),
    CommonFault(
        key="model: velocity term",
        text="in the reference and in the motion, the loops' acceleration has no J̇v",
        what="velocity term",
        seed=_in_code(closure_jacobian_rate, nothing_of(closure_jacobian_rate)),
    ),
    CommonFault(
        key="model: rank",
        text="in the reference, one driven dof counts as unactuated",
        what="ranks",
        seed=_in_code(_UNDRIVEN_DOFS, _one_undriven_more),
    ),
)
"""All faults of shared inputs, without randomness."""
