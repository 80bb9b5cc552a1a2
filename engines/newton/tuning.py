"""Other settings of a simulation in Newton, as a script: its solvers, and how hard the loops of MuJoCo are."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.boundary import silenced
from loopcheck.engines.declarations import (
    FINER,
    HARD,
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
from loopcheck.engines.newton._as_is import BANDWIDTHS, NewtonDriven, drive_gains, reading_of
from loopcheck.engines.newton._model import guarded
from loopcheck.engines.newton._stepping import STEP, Stepping
from loopcheck.engines.own_drives import DrivesPlan, Gains
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

SCRIPT = "tuned_newton.py"
"""Name of the script."""
GIVEN = {"solver": "mujoco", "solref": "0.02 1", "solimp": "0.9 0.95"}
"""Settings of common training tools: Isaac Lab's Newton steps by MuJoCo."""
ITERATIONS_OF_KAMINO = 7
"""The fewest that were seen, on the Stewart platform [-]."""
SETTINGS = {
    "step": finer_step(f"solver.step(..., dt / {FINER})"),
    "softness": Setting(
        values=LOOPS,
        finer=HARD_LOOPS,
        written="mj_model.eq_solref (2 dt, 1) and eq_solimp (0.9999, 0.9999) of the solver",
    ),
    "solver": Setting(
        values={
            "Steel": Value(fixed={"solver": "steel"}),
            "48 iterations": Value(fixed={"iterations": "48"}),
            "Kamino": Value(fixed={"solver": "kamino"}),
            # with which Kamino converges on planar loops, in a tenth of the time
            "penalty 0.01": Value(fixed={"rho_0": "0.01", "alpha": "0.1"}),
        },
    ),
}
"""See `Tuning.SETTINGS`."""


def given(mechanism: Mechanism) -> Given:
    """See `Tuning.given`."""
    return Given(
        step=STEP,
        stages=1,
        bandwidth=BANDWIDTHS[GIVEN["solver"]],
        settings={"timestep": f"{STEP:.6g}", **GIVEN},
    )


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`: MuJoCo with hard loops, as it is and softer, Steel, and Kamino.

    Kamino as it comes takes a hundred iterations and more in a step: only that which ends sooner is searched.
    """
    mujoco = partial(Family, method="SolverMuJoCo", stages=1)
    kept = [mujoco(fixed={}, longest=0.01), mujoco(fixed={"solimp": HARD}, longest=0.01)]
    steel, more, kamino, quick = (
        SETTINGS["solver"].values[name].fixed for name in ("Steel", "48 iterations", "Kamino", "penalty 0.01")
    )
    return [
        *(with_loops(kept, LOOPS.values()) if mechanism.rigid_closures else kept[:1]),
        *(Family(method="SolverSteel", stages=1, fixed=fixed) for fixed in (steel, {**steel, **more})),
        Family(method="SolverKamino", stages=ITERATIONS_OF_KAMINO, fixed={**kamino, **quick}),
    ]


def plan(mechanism: Mechanism, motion: Motion) -> DrivesPlan:
    """See `Tuning.plan`."""
    with guarded("newton"), silenced():
        gains = drive_gains(mechanism, motion, given(mechanism).bandwidth)
    return DrivesPlan(mechanism=mechanism, motion=motion, gains=gains, bandwidth=given(mechanism).bandwidth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Stepping):
    """A solver as the script of settings makes it."""

    functions: Mapping[str, Any]
    """Names that the file defines."""

    def made(self, model: Any) -> Any:
        """See `Stepping.made`."""
        options = {"use_mujoco_cpu": self.is_library} if self.solver == "mujoco" else {}
        return self.functions["solver"](model, **options)


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> Scripted:
    """See `Tuning.prepared`; the script itself is run."""
    return Scripted(
        solver=settings.get("solver", GIVEN["solver"]),
        step=float(settings.get("timestep", STEP)),
        iterations=int(settings.get("iterations", 0)),
        functions=functions_of(script(settings)),
    )


def run(plan: DrivesPlan, prepared: Scripted, bandwidth: float, start: int | Array = 0) -> Record:
    """See `Tuning.run`."""
    mechanism, reading = plan.mechanism, reading_of(plan.mechanism, prepared.solver)

    def put(gains: Gains, state: tuple[Array, Array]) -> NewtonDriven:
        return NewtonDriven.from_state(mechanism, gains, prepared, state)

    with guarded("newton/as_is"), silenced():
        return plan.run("newton/as_is", put, reading, bandwidth, start)


def files(mechanism: Mechanism, settings: Settings) -> dict[Path, bytes]:
    """See `Tuning.files`: a script of calls."""
    return {mechanism.model.path.with_name(SCRIPT): script(settings).encode()}


def script(settings: Settings) -> str:
    """The calls, as a function of a module that needs Newton alone."""
    lines = [
        '"""Newton settings found by `loopcheck tune`: let `solver` make the solver, and step it by `DT`."""',
        "",
        "import newton",
        "",
        f"DT = {settings.get('timestep', f'{STEP:.6g}')}  # seconds",
        "",
        "",
        "def solver(model, **options):",
        '    """The solver of a model; `options` are options of its class."""',
    ]
    match settings.get("solver", GIVEN["solver"]):
        case "kamino":
            places = {"rho_0": "padmm.rho_0", "alpha": "constraints.alpha"}
            lines.append("    config = newton.solvers.SolverKamino.Config.from_model(model)")
            lines += [f"    config.{place} = {settings[name]}" for name, place in places.items() if name in settings]
            lines.append("    return newton.solvers.SolverKamino(model, config=config, **options)")
        case "steel":
            iterations = f"iterations={settings['iterations']}, " if "iterations" in settings else ""
            lines.append(f"    return newton.solvers.SolverSteel(model, {iterations}**options)")
        case _:
            lines.append("    made = newton.solvers.SolverMuJoCo(model, **options)")
            lines += [line for name in ("solref", "solimp") if name in settings for line in _of_loops(name, settings)]
            lines.append("    return made")
    return "\n".join([*lines, ""])


def _of_loops(name: str, settings: Settings) -> list[str]:
    """Lines that set how hard loops are, in MuJoCo's model and in that of MuJoCo Warp."""
    values = settings[name].split()
    whole = values if name == "solref" else [*values, "0.001", "0.5", "2"]
    numbers = ", ".join(whole)
    return [
        f"    made.mj_model.eq_{name}[:] = ({numbers})",
        "    if made.mjw_model is not None:",
        f"        made.mjw_model.eq_{name}.fill_(({numbers}))",
    ]


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    none = np.zeros(len(mechanism.drives))
    gains, stepping = Gains(stiffness=none, damping=none), prepared(mechanism, settings)
    with guarded("newton"), silenced():
        robot = NewtonDriven.from_state(mechanism, gains, stepping, (q, np.zeros(mechanism.nv)))

        def steps(count: int) -> None:
            for _ in range(count):
                robot.advance()

        return best_seconds(lambda: None, steps)
