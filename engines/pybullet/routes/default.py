"""PyBullet as it comes: the closed loop in one simulation with the default solver, damping and position control."""

import numpy as np

from engines.pybullet._angles import in_angles
from engines.pybullet._bullet import pybullet
from engines.pybullet._motors import motors
from engines.pybullet._stepping import Driven, Run, simulate
from engines.pybullet._world import World, opened
from robots.arrays import Array
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

STEP = 1 / 240
"""PyBullet's default step [s]; the one taken is the longest that is not longer and divides that of the motion."""

SETTINGS = {
    "start": "the exact state at the first sample, no pre-roll",
    "loops": "createConstraint as it comes",
    "solver": "defaults: sequential impulse, 50 iterations, residual threshold 1e-7, erp 0.2",
    "motors": "POSITION_CONTROL to x(t+dt), default gains (position 0.1, velocity 1) and force; read by getJointState",
    "damping": "defaults: linear and angular 0.04; joint damping as in the model; default motors of passive joints off",
    "loads": "springs, external wrenches and gravity compensation applied before each step",
}


class PybulletDefault(Source):
    """Efforts that a careful user reads from PyBullet with the settings that its guide documents."""

    name = "pybullet/default"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        q, qd, _ = in_angles(mechanism, motion.q, motion.qd, motion.qdd)
        with opened(mechanism) as world:
            driving = motors(world, mechanism, motion, range(len(mechanism.drives)))
        run = Run(
            dt=float(motion.dt / np.ceil(motion.dt / STEP - 1e-9)),
            lead=0,
            q=q[0],
            qd=qd[0],
            motors=driving,
            prepare=_leave_defaults,
            drive=_drive,
        )
        rung = simulate(mechanism, motion, run).rung
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=rung.effort,
            closure_drift=rung.closure_drift,
            tracking_error=rung.tracking_error,
            settings={"steps": f"{1e3 * rung.dt:g} ms", **SETTINGS},
            note="PyBullet's defaults, untuned: shown for information",
        )


def _leave_defaults(world: World, loops: tuple[int, ...]) -> None:
    """Set nothing."""


def _drive(driven: Driven, q: Array, target: Array) -> None:
    where = {"physicsClientId": driven.world.client}
    for link, position in zip(driven.links, (target - driven.reference).tolist(), strict=True):
        pybullet.setJointMotorControl2(
            driven.world.tree, link, pybullet.POSITION_CONTROL, targetPosition=position, **where
        )
