"""Other settings of a simulation in PyBullet, as a script of calls that its user makes after building the robot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.declarations import (
    FINER,
    Family,
    Given,
    Setting,
    Settings,
    Value,
    best_seconds,
    combined,
    finer_step,
    functions_of,
)
from loopcheck.engines.equations import Demands
from loopcheck.engines.pybullet._as_is import Stepping, demands, simulate
from loopcheck.engines.pybullet._world import World, opened
from loopcheck.engines.pybullet.simulation import STEP, PybulletRobot
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

SCRIPT = "tuned_pybullet.py"
SOLVED = Value(fixed={"numSolverIterations": "500", "solverResidualThreshold": "1e-30"})
UNDAMPED = Value(fixed={"linearDamping": "0", "angularDamping": "0"})
CORRECTED = Value(fixed={"erp": "0.8"})
GIVEN = {
    "numSolverIterations": "50",
    "solverResidualThreshold": "1e-07",
    "linearDamping": "0.04",
    "angularDamping": "0.04",
    "erp": "0.2",
}
"""PyBullet's defaults."""
SETTINGS = {
    "step": finer_step(f"setTimeStep(1 / {240 * FINER})"),
    "softness": Setting(finer=CORRECTED, written="changeConstraint(erp=0.8), setPhysicsEngineParameter(erp=0.8)"),
    "damping": Setting(finer=UNDAMPED, written="changeDynamics(linearDamping=0, angularDamping=0) on every link"),
    "solver": Setting(
        finer=SOLVED, written="setPhysicsEngineParameter(numSolverIterations=500, solverResidualThreshold=1e-30)"
    ),
}
"""See `Tuning.SETTINGS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Demands of driving a robot along a motion."""

    mechanism: Mechanism
    motion: Motion
    known: Demands


def given(mechanism: Mechanism) -> Given:
    """See `Tuning.given`."""
    return Given(
        step=STEP,
        stages=1,
        bandwidth=bandwidth(STEP),
        settings={"timestep": f"{STEP:.6g}", **GIVEN},
    )


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`: no damping, more solver iterations, and both."""
    late = [(UNDAMPED, SOLVED), (UNDAMPED, SOLVED, CORRECTED), (SOLVED,)]
    return [
        Family(method=method, stages=1, fixed=combined(values, STEP))
        for method, families in (("solved to the end", late), ("sequential impulse", [(UNDAMPED,), ()]))
        for values in families
    ]


def plan(mechanism: Mechanism, motion: Motion) -> Plan:
    """See `Tuning.plan`."""
    return Plan(mechanism=mechanism, motion=motion, known=demands(mechanism, motion))


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> Stepping:
    """See `Tuning.prepared`; the script itself is run."""
    return Stepping(step=float(settings.get("timestep", STEP)), prepare=_calls(settings))


def run(plan: Plan, prepared: Stepping, bandwidth: float, start: int | Array = 0) -> Record:
    """See `Tuning.run`."""
    stepping = replace(prepared, bandwidth=bandwidth)
    return simulate(plan.mechanism, plan.motion, plan.known, start=start, stepping=stepping)


def files(mechanism: Mechanism, settings: Settings) -> dict[Path, bytes]:
    """See `Tuning.files`: a script of calls."""
    return {mechanism.model.path.with_name(SCRIPT): script(settings).encode()}


def script(settings: Settings) -> str:
    """The calls, as a function of a module that needs PyBullet alone."""
    physics = [f"{name}={settings[name]}" for name in (*SOLVED.fixed, *CORRECTED.fixed) if name in settings]
    dynamics = [f"{name}={settings[name]}" for name in UNDAMPED.fixed if name in settings]
    lines = [
        '"""PyBullet settings found by `loopcheck tune`: call `apply` after loadURDF and createConstraint."""',
        "",
        "import pybullet",
        "",
        "",
        "def apply(body, constraints, physicsClientId=0):",
        '    """Set them for a body, and for the constraints that close its loops."""',
    ]
    if "timestep" in settings:
        lines.append(f"    pybullet.setTimeStep({settings['timestep']}, physicsClientId=physicsClientId)")
    if physics:
        lines.append(f"    pybullet.setPhysicsEngineParameter({', '.join(physics)}, physicsClientId=physicsClientId)")
    if dynamics:
        lines += [
            "    for link in range(-1, pybullet.getNumJoints(body, physicsClientId=physicsClientId)):",
            f"        pybullet.changeDynamics(body, link, {', '.join(dynamics)}, physicsClientId=physicsClientId)",
        ]
    if "erp" in settings:
        lines += [
            "    for constraint in constraints:",
            f"        pybullet.changeConstraint(constraint, erp={settings['erp']}, physicsClientId=physicsClientId)",
        ]
    return "\n".join([*lines, ""])


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    with opened(mechanism) as world:
        robot = PybulletRobot(world)
        robot.timestep = STEP
        _calls(settings)(world, robot.loops)
        force, still = mechanism.effort_scales @ world.mechanism.selection, np.zeros(len(world.moving))

        def steps(count: int) -> None:
            for _ in range(count):
                robot.push(force)  # a solver that has nothing to hold ends at once

        return best_seconds(lambda: robot.put(q[: len(world.moving)], still), steps)


def _calls(settings: Settings) -> Callable[[World, tuple[int, ...]], None]:
    """Runs the script of settings as its user does."""
    apply = functions_of(script(settings))["apply"]
    return lambda world, loops: apply(world.tree, loops, physicsClientId=world.client)
