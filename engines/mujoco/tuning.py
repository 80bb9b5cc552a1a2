"""Other settings of a file in MuJoCo: step, integrator, solver, and how hard its loops are."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.declarations import (
    FINER,
    HARD,
    HARD_LOOPS,
    LEFT_OUT,
    LOOPS,
    SOFTER,
    Family,
    Given,
    Setting,
    Settings,
    Value,
    best_seconds,
    finer_step,
    with_loops,
)
from loopcheck.engines.mujoco.as_is import Plan, compiled, own_bandwidth, plan, simulate, stages, timeconst
from loopcheck.engines.mujoco.model import DISCRETE
from loopcheck.engines.mujoco.stepper import MujocoStepper, Stepper
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]

SOLVED: Mapping[str, str] = {"solver": "Newton", "iterations": "100", "tolerance": "1e-08"}
"""MuJoCo's defaults, for files with a solver that may stop early."""
FEW_ITERATIONS = 20
NAMES = {"noslip_iterations": "without noslip", "iterations": "", "tolerance": ""}
"""Names of settings in that of a method, where their value does not name them; those of the solver go with it."""
WITHOUT_NOSLIP: Mapping[str, str] = {"noslip_iterations": "0"}
"""Without the second solution of friction, which leaves the forces of the loops as they are and so moves them apart."""
SETTINGS = {
    "step": finer_step(f"option timestep / {FINER}"),
    "softness": Setting(
        # stiff loops are more exact, but a suitable compliance compensates part of the delay of a first-order step
        values=LOOPS | {f"softer loops of {k} steps": Value(timeconst=k, fixed={"solimp": SOFTER}) for k in (10, 20)},
        finer=HARD_LOOPS,
        written="equality solref (2 timestep, 1) and solimp (0.9999, 0.9999)",
    ),
    "solver": Setting(
        finer=Value(fixed={"tolerance": "0", "iterations": "200", **WITHOUT_NOSLIP}),
        written="option tolerance 0, iterations 200, noslip_iterations 0",
    ),
    LEFT_OUT: Setting(
        finer=Value(fixed={"disable": "FRICTIONLOSS LIMIT CONTACT"}),
        written='flag frictionloss="disable" limit="disable" contact="disable"',
    ),
    "integrator": Setting(
        values={
            "Runge-Kutta": Value(fixed={"integrator": "RK4"}),
            "implicitfast": Value(fixed={"integrator": "implicitfast"}),
            "Euler": Value(fixed={"integrator": "Euler"}),
            **({"discrete": Value(fixed={"integrator": "discrete"})} if DISCRETE >= 0 else {}),
        },
    ),
}
"""See `Tuning.SETTINGS`; MuJoCo raises a time constant below two steps to two steps."""


def given(mechanism: Mechanism) -> Given:
    """See `Tuning.given`."""
    model = compiled(mechanism)
    closing = np.flatnonzero(model.eq_active0)
    loops = {}
    if len(closing):
        loops = {
            "solref": " ".join(f"{value:.6g}" for value in model.eq_solref[closing[0]]),
            "solimp": " ".join(f"{value:.6g}" for value in model.eq_solimp[closing[0]]),
        }
    return Given(
        step=float(model.opt.timestep),
        stages=stages(model),
        bandwidth=own_bandwidth(model),
        settings={
            "timestep": f"{model.opt.timestep:.6g}",
            "integrator": _integrator(model),
            "solver": _solver(model),
            "iterations": str(model.opt.iterations),
            "tolerance": f"{model.opt.tolerance:.6g}",
            "noslip_iterations": str(model.opt.noslip_iterations),
            **loops,
        },
    )


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`: unchanged loops, harder impedance, and both, by method."""
    model = compiled(mechanism)
    own, softest = _integrator(model), timeconst(model)
    as_they_are = softest / 2 if np.isfinite(softest) else softest  # below two steps MuJoCo takes two
    of_all = []
    for fixed in _methods(model):
        others = (NAMES.get(name, value) for name, value in fixed.items() if name != "integrator")
        method = " ".join([fixed.get("integrator", own), *filter(None, others)])
        evaluations = stages(configured(copy.copy(model), fixed))
        kept = [
            Family(method=method, stages=evaluations, fixed={**fixed, **loops}, longest=as_they_are)
            for loops in ({}, {"solimp": HARD})
        ]
        loops = [one for one in SETTINGS["softness"].values.values() if evaluations == 1 or one.fixed["solimp"] == HARD]
        of_all += with_loops(kept, loops) if model.eq_active0.any() else kept[:1]
    return of_all


def model_with(mechanism: Mechanism, settings: Settings) -> Any:
    """The user's model with other settings."""
    return configured(compiled(mechanism), settings)


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> Stepper:
    """See `Tuning.prepared`."""
    return MujocoStepper(model_with(mechanism, settings))


def run(plan: Plan, prepared: Stepper, bandwidth: float, start: int | Array = 0) -> Record:
    """See `Tuning.run`."""
    return simulate(plan, prepared, bandwidth, start=start, reads_joints=False)


def configured(model: Any, settings: Settings) -> Any:
    """A model with other settings, changed in place.

    Args:
        model: The user's.
        settings: Options, `solref` and `solimp` of all active equalities, and flags to `disable`.
    """
    closing = np.flatnonzero(model.eq_active0)
    for name, value in settings.items():
        match name:
            case "integrator":
                model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{value.upper()}")
            case "solver":
                model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{value.upper()}")
            case "solref" | "solimp":
                numbers = [float(number) for number in value.split()]
                getattr(model, f"eq_{name}")[closing, : len(numbers)] = numbers
            case "iterations" | "noslip_iterations":
                setattr(model.opt, name, int(value))
            case "disable":
                for flag in value.split():
                    model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
            case _:
                setattr(model.opt, name, float(value))
    return model


def files(mechanism: Mechanism, settings: Settings) -> dict[Path, bytes]:
    """See `Tuning.files`: the MJCF and its includes; only these attributes change."""
    model = compiled(mechanism)
    of_loops = {name: value for name, value in settings.items() if name in ("solref", "solimp")}
    closing = np.flatnonzero(model.eq_active0)
    option = {name: value for name, value in settings.items() if name not in of_loops}
    patch = Patch(option=option, equalities={int(k): of_loops for k in closing if of_loops})
    return patched(mechanism.model, patch, model.neq)


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    model = model_with(mechanism, settings)
    data = mujoco.MjData(model)

    def begin() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = q[: model.nq]  # lengths of tendons follow

    return best_seconds(begin, lambda count: mujoco.mj_step(model, data, nstep=count))


def _methods(model: Any) -> Iterator[dict[str, str]]:
    """Ways of stepping: as in the file, with Runge-Kutta, and for velocity-dependent forces, with implicit ones.

    Under `discrete` stiff servos do not open the loops.
    """
    own = _integrator(model)
    runge_kutta, *implicit = (value.fixed["integrator"] for value in SETTINGS["integrator"].values.values())
    integrators = [own, runge_kutta]
    if _has_other_rate_forces(model):
        integrators += implicit
    elif model.dof_damping.any() and own not in implicit:
        integrators += implicit[:1]  # both take the damping of joints alike
    ends_early = _solver(model) != "Newton" or model.opt.iterations < FEW_ITERATIONS or model.opt.tolerance > 1e-8
    for integrator in dict.fromkeys(integrators):
        first = {} if integrator == own else {"integrator": integrator}
        for post in (WITHOUT_NOSLIP, {}) if model.opt.noslip_iterations else ({},):
            yield {**first, **post}
            if ends_early:
                yield {**first, **SOLVED, **post}


def _has_other_rate_forces(model: Any) -> bool:
    """Whether a velocity-dependent force is treated differently by the integrators Euler and implicitfast."""
    rates = [model.tendon_damping, model.actuator_biasprm[:, 2], model.actuator_gainprm[:, 2]]
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_EULERDAMP:
        rates.append(model.dof_damping)
    return bool(model.opt.density or model.opt.viscosity) or any(np.any(values) for values in rates)


def _integrator(model: Any) -> str:
    """The integrator as an MJCF writes it."""
    known = {"EULER": "Euler", "RK4": "RK4", "IMPLICIT": "implicit", "IMPLICITFAST": "implicitfast"}
    name = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_")
    return known.get(name, name.lower())


def _solver(model: Any) -> str:
    """The solver as an MJCF writes it."""
    name: str = mujoco.mjtSolver(model.opt.solver).name.removeprefix("mjSOL_")
    return name.capitalize() if name == "NEWTON" else name
