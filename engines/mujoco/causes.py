"""What makes up the error of a file in MuJoCo: settings that remove one part each."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import mujoco

from loopcheck.engines.as_is import log_of
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.contract import LEFT_OUT
from loopcheck.engines.mujoco.as_is import compiled, plan, simulate, timeconst
from loopcheck.engines.mujoco.stepper import MujocoStepper, Stepper
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINER = 16
"""Number of steps that replace a single step."""
CAUSES = {
    "step": f"option timestep / {FINER}",
    "softness": "equality solref (2 timestep, 1) and solimp (0.9999, 0.9999)",
    "solver": "option tolerance 0, iterations 200",
    LEFT_OUT: 'flag frictionloss="disable" limit="disable" contact="disable"',
}
"""See `loopcheck.engines.contract.Causes`; a time constant below two steps would be taken for two steps."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`.

    Args:
        removed: Names of the causes that are removed.
    """
    return log_with(MujocoStepper, case, motion, removed)


def log_with(stepper: Callable[[Any], Stepper], case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """The run of a file with some causes removed.

    Args:
        stepper: What steps a model of MuJoCo's.
        removed: Names of the causes that are removed.
    """
    model = compiled(case.mechanism)
    width = bandwidth(model.opt.timestep, timeconst(model))
    for name, change in _CHANGES.items():
        if name in removed:
            change(model)
    stepped = stepper(model)
    return log_of(stepped.source, case, simulate(plan(case.mechanism, motion), stepped, width, reads_joints=False))


def _finer(model: Any) -> None:
    model.opt.timestep /= FINER


def _hard(model: Any) -> None:
    model.eq_solref[:] = 2 * model.opt.timestep, 1
    model.eq_solimp[:, :2] = 0.9999


def _solved(model: Any) -> None:
    model.opt.tolerance, model.opt.iterations = 0, 200


def _without_others(model: Any) -> None:
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_FRICTIONLOSS | flags.mjDSBL_LIMIT | flags.mjDSBL_CONTACT


_CHANGES: Mapping[str, Callable[[Any], None]] = {
    "step": _finer,
    "softness": _hard,
    "solver": _solved,
    LEFT_OUT: _without_others,
}
"""In this order: how hard loops can be depends on the step."""
