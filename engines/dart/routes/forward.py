"""DART's own solver and servos, stepped at several step sizes and extrapolated to step zero.

Loops are `BallJointConstraint` and `WeldJointConstraint`, drives are servos that meet the motion at the end of a step.
Positions are right to second order then; efforts are of first order, as a step evaluates the velocity terms half a step
early. If the finest step still changes the extrapolated efforts, finer steps are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Self

import dartpy
import numpy as np

from loopcheck.engines.boundary import silenced, want_representable
from loopcheck.engines.dart._equations import DartEquations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.dart.simulation import UNLIMITED, DartRobot
from loopcheck.engines.dart.wrenches import wrenches
from loopcheck.engines.equations import held_drives
from loopcheck.engines.forward import Readings, Steps, over_time, settled, steps_to_targets
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, ReadsWrenches, Refinable, Rung
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Steps):
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    lead: int = 10
    """Steps before the span; with `erp` 1 the start is forgotten after two."""
    erp: float = 1.0
    """Fraction of the opening of a loop that a step takes back [-]; DART's default is 0.01."""


OWN = Settings(settled=2e-7)
"""Settings of the route."""


class DartForward(Refinable, ReadsWrenches):
    """Efforts read from DART's servos while its own solver keeps the loops closed."""

    name = "dart/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        with guarded(self.name):
            drives, undriven = held_drives(DartEquations(mechanism), motion)
        idle = [mechanism.drives[k].joints[0] for k in set(range(len(mechanism.drives))) - {*drives}]
        rotors = [mechanism.joints[j].name for j in idle if mechanism.joints[j].armature]
        reason = "a drive without effort (joints have no rotors)"
        want_representable("dart", (f"armature of joint '{name}', {reason}" for name in rotors))
        lead = 0 if undriven else settings.lead  # what nothing drives cannot be led to the start
        rung = partial(_simulated, mechanism, motion, drives, replace(settings, lead=lead))
        return settings.history(self.name, case, motion, (drives, undriven), rung, _in_words(settings, lead))

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True))

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; its solver is direct and has no tolerance."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its own steps, and a finer step."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))


def _simulated(mechanism: Mechanism, motion: Motion, drives: tuple[int, ...], settings: Settings, dt: float) -> Rung:
    """A simulation with a step [s], a divisor of the step of the motion.

    DART moves positions with the velocities at the end of a step, so that its velocities at some time are those of half
    a step earlier.
    """
    clock, begin = perf_counter(), motion.t[0] - settings.lead * dt
    traced = motion.assemble(np.array([begin - dt / 2, begin]))
    with guarded(f"dart: steps of {dt:g} s"), silenced():
        robot = DartRobot(mechanism, settings.erp)
        robot.timestep = dt
        robot.put(traced.q[1], traced.qd[0])
        positions, forces, drift, read = _march(robot, motion, drives, settings)
    targets, driven = motion.law(motion.t), [mechanism.joints[mechanism.drives[k].joints[0]] for k in drives]
    readings = Readings(
        dt=dt,
        drives=drives,
        forces=forces + np.array([joint.armature for joint in driven]) * targets.qdd[:, drives],
        tracked=[mechanism.drives[k] for k in drives],
        miss=positions + np.array([joint.rest_position[0] for joint in driven]) - targets.q[:, drives],
        drift=drift,
        wrenches=settled(over_time(read), settings.lead),
    )
    return readings.rung(mechanism, "dart", clock)


def _march(
    robot: DartRobot, motion: Motion, drives: tuple[int, ...], settings: Settings
) -> tuple[Array, Array, Deviation, list[Mapping[str, Array]]]:
    """Positions of the driven joints, as DART counts them, forces of servos and wrenches at the samples, and drift."""
    mechanism, tree, dt = robot.mechanism, robot.tree, robot.timestep
    driven = [mechanism.drives[k].joints[0] for k in drives]
    servos = [tree.joints[j][0] for j in driven]
    for servo in servos:
        servo.setActuatorType(dartpy.dynamics.ActuatorType.SERVO)
        servo.setForceUpperLimit(0, UNLIMITED)
        servo.setForceLowerLimit(0, -UNLIMITED)
    places = [servo.getIndexInSkeleton(0) for servo in servos]
    rest = np.array([mechanism.joints[j].rest_position[0] for j in driven])
    positions, forces, drift, read = [], [], Deviation(), []
    for _, reported, target in steps_to_targets(motion, dt, settings.lead, drives):
        x = np.array(tree.skeleton.getPositions())[places]
        if reported:
            drift = drift.or_worse(robot.opening())
            positions.append(x)
        for servo, rate in zip(servos, ((target - rest - x) / dt).tolist(), strict=True):
            servo.setCommand(0, rate)
        robot.advance()
        if reported:
            forces.append([servo.getConstraintImpulse(0) / dt for servo in servos])
            if settings.wrenches:
                read.append(wrenches(tree))
    return np.array(positions), np.array(forces), drift, read


def _in_words(settings: Settings, lead: int) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "pre-roll": f"{lead} steps before the span, with initial velocities of half a step earlier",
        "loops": f"BallJointConstraint and WeldJointConstraint, error reduction {settings.erp:g}, force mixing 1e-9",
        "solver": "direct, Dantzig's for boxed constraints, DART's default",
        "drives": "SERVO with command (x(t+dt) - x)/dt and forces of at most "
        f"{UNLIMITED:g}; read by getConstraintImpulse over the step",
        "springs and dampers": "of joints by DART, implicit in the step",
        "loads": "springs of balls and between points, external wrenches and gravity compensation before each step; "
        "rotors of drives by their prescribed acceleration",
    }
