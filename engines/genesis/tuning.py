"""Other settings of a simulation in Genesis, as a script: step, integrator, and how hard its loops are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.boundary import silenced
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.declarations import (
    FINER,
    HARD_LOOPS,
    LOOPS,
    Family,
    Given,
    Setting,
    Settings,
    Value,
    best_seconds,
    finer_step,
    functions_of,
    with_loops,
)
from loopcheck.engines.genesis._as_is import READING, GenesisDriven
from loopcheck.engines.genesis._scene import STEP, Built, Stepping, build, guarded, numbers
from loopcheck.engines.own_drives import DrivesPlan, Gains
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

SCRIPT = "tuned_genesis.py"
"""Name of the script."""
OWN = "approximate_implicitfast"
"""Genesis' default integrator."""
REST = ("0.001", "0.5", "2")
"""Genesis' values for the remaining numbers of `solimp`."""
BANDWIDTH = bandwidth(STEP)
SETTINGS = {
    "step": finer_step(f"SimOptions(dt=step / {FINER})"),
    "softness": Setting(
        values=LOOPS, finer=HARD_LOOPS, written="equality.set_sol_params((2 * dt, 1, 0.9999, 0.9999, ...))"
    ),
    # not Euler: its drives act by the velocity at the beginning of a step
    "integrator": Setting(values={"implicitfast": Value(fixed={"integrator": "implicitfast"})}),
}
"""See `Tuning.SETTINGS`."""


def given(mechanism: Mechanism) -> Given:
    """See `Tuning.given`."""
    loops = {}
    if mechanism.closures:
        with guarded("genesis"), silenced():
            values = [f"{value:.6g}" for value in numbers(build(mechanism).entity.equalities[0].get_sol_params())]
        loops = {"solref": " ".join(values[:2]), "solimp": " ".join(values[2:4])}
    return Given(
        step=STEP,
        stages=1,
        bandwidth=BANDWIDTH,
        settings={"timestep": f"{STEP:.6g}", "integrator": OWN, **loops},
    )


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`: hard, unchanged and softer loops, by each integrator."""
    of_all = []
    for value in (Value(), *SETTINGS["integrator"].values.values()):
        kept = [Family(method=value.fixed.get("integrator", OWN), stages=1, fixed=value.fixed)]
        of_all += with_loops(kept, LOOPS.values()) if mechanism.closures else kept
    return of_all


def plan(mechanism: Mechanism, motion: Motion) -> DrivesPlan:
    """See `Tuning.plan`."""
    return DrivesPlan(
        mechanism=mechanism, motion=motion, gains=Gains.of_velocity(mechanism, motion, STEP), bandwidth=BANDWIDTH
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Stepping):
    """Stepping of a scene by the script of settings."""

    functions: Mapping[str, Any]
    """Names that the file defines."""

    def rigid_options(self, **others: Any) -> Any:
        """See `Stepping.rigid_options`."""
        return self.functions["rigid_options"](**others)

    def apply(self, entity: Any) -> None:
        """See `Stepping.apply`."""
        self.functions["apply"](entity)


Prepared: TypeAlias = tuple[Built, float]
"""A robot in a scene, and its step [s]."""


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> Prepared:
    """See `Tuning.prepared`: the robot in a scene; the script itself is run."""
    step = float(settings.get("timestep", STEP))
    stepping = Scripted(step=step, functions=functions_of(script(mechanism, settings)))
    with guarded("genesis"), silenced():
        return build(mechanism, stepping), step


def run(plan: DrivesPlan, prepared: Prepared, bandwidth: float, start: int | Array = 0) -> Record:
    """See `Tuning.run`; the drive gains scale with the bandwidth."""
    built, step = prepared

    def put(gains: Gains, state: tuple[Array, Array]) -> GenesisDriven:
        return GenesisDriven.from_state(built, gains, state, step)

    with guarded("genesis/as_is"), silenced():
        return plan.run("genesis/as_is", put, READING, bandwidth, start)


def files(mechanism: Mechanism, settings: Settings) -> dict[Path, bytes]:
    """See `Tuning.files`: a script of calls."""
    return {mechanism.model.path.with_name(SCRIPT): script(mechanism, settings).encode()}


def script(mechanism: Mechanism, settings: Settings) -> str:
    """The calls, as functions of a module that needs Genesis alone.

    Args:
        mechanism: Robot; its rotors are set, as Genesis fills in others.
    """
    rotors = ", ".join(f"{value:.17g}" for joint in mechanism.joints for value in np.atleast_1d(joint.armature))
    integrator = f"integrator=genesis.integrator.{settings['integrator']}, " if "integrator" in settings else ""
    lines = [
        '"""Genesis settings of `loopcheck tune`: `rigid_options` and `DT` for a scene, `apply` once it is built."""',
        "",
        "import genesis",
        "",
        f"DT = {settings.get('timestep', f'{STEP:.6g}')}  # seconds, for the scene's `SimOptions`",
        "",
        "",
        "def rigid_options(**options):",
        '    """Options of the scene\'s solver; `options` are further options."""',
        f"    return genesis.options.RigidOptions({integrator}**options)",
        "",
        "",
        "def apply(entity):",
        '    """Set the stiffness of the loops and the rotors of the file (Genesis replaces zero rotors by 0.1)."""',
        f"    entity.set_dofs_armature([{rotors}])",
    ]
    if "solref" in settings:
        loops = ", ".join([*settings["solref"].split(), *settings["solimp"].split(), *REST])
        lines += ["    for equality in entity.equalities:", f"        equality.set_sol_params(({loops}))"]
    return "\n".join([*lines, ""])


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    built, _ = prepared(mechanism, settings)

    def begin() -> None:
        built.scene.reset()
        built.put(q, np.zeros(mechanism.nv))

    def steps(count: int) -> None:
        for _ in range(count):
            built.scene.step()

    with guarded("genesis"), silenced():
        return best_seconds(begin, steps)
