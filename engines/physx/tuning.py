"""Other settings of a simulation in PhysX, as a script of calls that its user makes."""

from functools import partial
from pathlib import Path

import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.boundary import silenced
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.declarations import (
    FINER,
    Family,
    Given,
    Setting,
    Settings,
    Value,
    best_seconds,
    finer_step,
)
from loopcheck.engines.own_drives import DrivesPlan, Gains
from loopcheck.engines.physx._articulation import Stepping, build, guarded
from loopcheck.engines.physx._readings import reading_of
from loopcheck.engines.physx._stepping import PhysxDriven
from loopcheck.engines.physx.routes.as_is import OWN
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

SCRIPT = "tuned_physx.py"
"""Name of the script."""
GIVEN = {"enable_tgs": "False", "position_iterations": "10", "velocity_iterations": "1", "friction": "0"}
"""Current values of the route's settings."""
SOLVED = Value(fixed={"position_iterations": "100", "velocity_iterations": "4"})
SETTINGS = {
    "step": finer_step(f"scene.set_timestep(step / {FINER})"),
    "solver": Setting(
        values={
            "many iterations": SOLVED,
            "small steps": Value(fixed={"enable_tgs": "True"}),
            "projected Gauss-Seidel": Value(),
        },
        finer=SOLVED,
        written="articulation.set_solver_position_iterations(100), set_solver_velocity_iterations(4)",
    ),
}
"""See `Tuning.SETTINGS`; the route itself sets the friction to zero."""


def given(mechanism: Mechanism) -> Given:
    """See `Tuning.given`."""
    step = OWN.step
    settings = {"timestep": f"{step:.6g}", **GIVEN}
    return Given(step=step, stages=1, bandwidth=bandwidth(step), settings=settings)


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`: many iterations, as many as come, and small steps."""
    return [
        Family(
            method=method, stages=sum(int({**GIVEN, **value.fixed}[name]) for name in SOLVED.fixed), fixed=value.fixed
        )
        for method, value in SETTINGS["solver"].values.items()
    ]


def plan(mechanism: Mechanism, motion: Motion) -> DrivesPlan:
    """See `Tuning.plan`."""
    gains = Gains.of_velocity(mechanism, motion, OWN.step)
    return DrivesPlan(mechanism=mechanism, motion=motion, gains=gains, bandwidth=given(mechanism).bandwidth)


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> Stepping:
    """See `Tuning.prepared`."""
    everything = {"timestep": f"{OWN.step!r}", **GIVEN, **settings}
    return Stepping(
        step=float(everything["timestep"]),
        tgs=everything["enable_tgs"] == "True",
        position_iterations=int(everything["position_iterations"]),
        velocity_iterations=int(everything["velocity_iterations"]),
        friction=float(everything["friction"]),
    )


def run(plan: DrivesPlan, prepared: Stepping, bandwidth: float, start: int | Array = 0) -> Record:
    """See `Tuning.run`."""
    put = partial(PhysxDriven.from_state, plan.mechanism, prepared)
    reading = reading_of(plan.mechanism, tgs=prepared.tgs)
    with guarded("physx/as_is"), silenced():
        return plan.run("physx/as_is", put, reading, bandwidth, start)


def files(mechanism: Mechanism, settings: Settings) -> dict[Path, bytes]:
    """See `Tuning.files`: a script of calls."""
    return {mechanism.model.path.with_name(SCRIPT): script(settings).encode()}


def script(settings: Settings) -> str:
    """The calls, as functions of a module that needs SAPIEN alone."""
    everything = {**GIVEN, **settings}
    lines = [
        '"""SAPIEN settings found by `loopcheck tune`: `configure` before a scene is made, `apply` after building."""',
        "",
        "from sapien import physx",
        "",
        "",
        "def configure():",
        '    """Choose the solver of scenes created afterwards."""',
        "    config = physx.get_scene_config()",
        f"    config.enable_tgs = {everything['enable_tgs']}",
        "    physx.set_scene_config(config)",
        "",
        "",
        "def apply(scene, articulation):",
        '    """Set the step, and the iterations and friction of an articulation."""',
        f"    articulation.set_solver_position_iterations({everything['position_iterations']})",
        f"    articulation.set_solver_velocity_iterations({everything['velocity_iterations']})",
        "    for joint in articulation.active_joints:",
        f"        joint.set_friction({everything['friction']})  # the builder ignores its friction argument",
    ]
    if "timestep" in settings:
        lines.append(f"    scene.set_timestep({settings['timestep']})")
    return "\n".join([*lines, ""])


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    with guarded("physx"), silenced():
        built = build(mechanism, prepared(mechanism, settings))

        def steps(count: int) -> None:
            for _ in range(count):
                built.scene.step()

        return best_seconds(lambda: built.put(q, np.zeros(mechanism.nv)), steps)
