"""Faults of the routes of engines: precautions left out, and other numbers of a log taken for the effort."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from loopcheck import engines
from loopcheck.engines.own_drives import APPLIED, COMMANDED, REPORTED
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.faults.seeds import late

WEAK = 0.9
"""Force limit of a weak motor, over the largest required effort [-]."""

Fault: TypeAlias = Callable[[float], Source]
"""A route with a fault, from the largest effort that the case needs [N or N m]."""


def set_to(route: str, **settings: Any) -> Source:
    """A route with the defaults of its settings, except for some."""
    sound: Any = engines.load(route)
    other: Source = type(sound)(type(sound.settings)(**settings))
    return other


def patched(route: str, place: str, **numbers: Any) -> Source:
    """A route with other numbers in a module."""
    sound: Any = engines.load(route)
    module = import_module(f"loopcheck.engines.{place}")

    class Other(type(sound)):  # type: ignore[misc]
        def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
            with patch.multiple(module, **numbers):
                history: EffortHistory = super().compute_efforts(case, motion)
                return history

    other: Source = Other()
    return other


def _soft_mujoco(_: float) -> Source:
    """Loops and drives as compliant as the file has them, at MuJoCo's default impedance."""
    return set_to("mujoco/forward", compliances=(1.0, 2.0), solimp=(0.95, 0.95, 0.001, 0.5, 1.0))


def _regularised_pinocchio(_: float) -> Source:
    """A single proximal iteration, Pinocchio's default, with a regularization that remains in the answer."""
    from loopcheck.engines.pinocchio._simulation import Solver

    return set_to("pinocchio/forward", solver=Solver(mu=1e-3, iterations=1))


def forward_without_velocity_term(model: Any, data: Any) -> None:
    """The stages of `mj_forward`, with a_ref = -B v - K·imp·r set anew before the constraints are solved."""
    mujoco = import_module("mujoco")
    from loopcheck.engines.mujoco.model import equality_rows

    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    rows = equality_rows(data)
    K, B, impedance, _ = data.efc_KBIP.reshape(-1, 4)[rows].T
    data.efc_aref[rows] = -B * data.efc_vel[rows] - K * impedance * data.efc_pos[rows]
    mujoco.mj_fwdConstraint(model, data)


def mujoco_without_velocity_term(_: float = 0.0) -> Source:
    """Reference accelerations of the constraints without J̇v, as MuJoCo had them before 3.7."""
    mujoco = import_module("mujoco")
    from loopcheck.engines.mujoco._stepping import Stepping
    from loopcheck.engines.mujoco.routes import forward

    class Without(forward.MujocoForward):
        def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
            with (
                patch.object(mujoco, "mj_forward", forward_without_velocity_term),
                patch.object(forward, "stepping", Stepping),
            ):
                return super().compute_efforts(case, motion)

    return Without()


def _pinocchio_without_velocity_term(_: float) -> Source:
    """Constraints without J̇v: Pinocchio's value of it at the same state is subtracted."""
    pin = import_module("pinocchio")
    from loopcheck.engines.pinocchio._simulation import Simulation
    from loopcheck.engines.pinocchio.routes.forward import PinocchioForward

    class Without(Simulation):
        def solve(self, force: Array) -> Array:
            every = zip(self.constraints.models, self.constraints.datas, strict=True)
            targets = [np.array(data.contact_acceleration_desired.vector) for data in self.constraints.datas]
            super().solve(force)
            for (model, data), motion in zip(every, targets, strict=True):
                drift = data.contact1_acceleration_drift.vector - data.contact2_acceleration_drift.vector
                if model.type == pin.ContactType.CONTACT_3D:
                    drift[3:] = 0
                data.contact_acceleration_desired = pin.Motion(motion + drift)
            a = np.array(super().solve(force))
            for data, motion in zip(self.constraints.datas, targets, strict=True):
                data.contact_acceleration_desired = pin.Motion(motion)
            return a

    class Route(PinocchioForward):
        simulation = Without

    return Route()


def _genesis_rotors(_: float) -> Source:
    from loopcheck.engines.genesis.routes.as_is import GenesisAsIs

    return GenesisAsIs(as_loaded=True)


def physx_friction(_: float = 0.0) -> Source:
    """PhysX with its default friction of joints."""
    from loopcheck.engines.physx.routes.as_is import PhysxAsIs

    return PhysxAsIs(replace(PhysxAsIs().stepping, friction=None))


OMITTED: Mapping[str, Mapping[str, Fault]] = {
    "dart/forward": {
        "loose loops": lambda _: set_to("dart/forward", erp=0.01),  # drawn together as slowly as by default
        "weak motors": lambda peak: patched("dart/forward", "dart.routes.forward", UNLIMITED=WEAK * peak),
    },
    "drake/forward": {"weak motors": lambda peak: patched("drake/forward", "drake._plant", STRONGEST=WEAK * peak)},
    "exudyn/forward": {"start at rest": lambda _: set_to("exudyn/forward", exact_start=False)},
    "mujoco/forward": {"loose loops": _soft_mujoco, "velocity term dropped": mujoco_without_velocity_term},
    "pinocchio/forward": {
        "loose loops": _regularised_pinocchio,
        "velocity term dropped": _pinocchio_without_velocity_term,
    },
    "pybullet/forward": {
        "loose loops": lambda _: set_to("pybullet/forward", erp=0.2),  # drawn together as slowly as by default
        "default damping": lambda _: set_to("pybullet/forward", damping=0.04),
        "weak motors": lambda peak: patched("pybullet/forward", "pybullet.routes.forward", STRONGEST=WEAK * peak),
    },
    "simbody/forward": {
        "cubic splines": lambda _: patched("simbody/forward", "simbody.routes.forward", DEGREE=3)
    },  # accelerations are polygons
    "genesis/as_is": {"rotors filled in": _genesis_rotors},
    "physx/as_is": {"default friction": physx_friction},
}
"""Routes without a step of care, by route and kind of fault."""


def misread_history(history: EffortHistory, wrong: Callable[[Log], Log]) -> EffortHistory:
    """History of a route with a misread log."""
    assert history.as_is is not None
    as_is = history.as_is
    return replace(history, as_is=replace(as_is, log=wrong(as_is.log), restarted=wrong(as_is.restarted)))


def applied_twice(log: Log) -> Log:
    """The log of a drive that was submitted twice and logged once."""
    return replace(log, effort=log.effort / 2)


def one_step_late(log: Log) -> Log:
    """The log with the effort of the step before in each row."""
    return replace(log, effort=late(log.effort))


def reading_as_effort(kind: str) -> Callable[[Log], Log]:
    """The log with another reading, as `reaction`, in place of the effort."""
    return lambda log: replace(log, effort=log.readings.get(kind, log.effort))


MISREADINGS: Mapping[str, Callable[[Log], Log]] = {
    "drive twice": applied_twice,
    "one step late": one_step_late,
    "reaction as effort": reading_as_effort("reaction"),
    "law at the start": reading_as_effort(COMMANDED),
    "law as effort": reading_as_effort(APPLIED),
    "reported as effort": reading_as_effort(REPORTED),
    "loops open": lambda log: replace(log, q=log.q + 0.3 * np.eye(log.q.shape[1])[0]),
}
"""Numbers mistaken by users for the effort of a drive, and poses that are none of the robot."""
