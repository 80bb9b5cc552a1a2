"""Other settings of a file in MJX in single precision, its default: MuJoCo's settings as far as MJX has them."""

from dataclasses import replace
from functools import partial

from loopcheck.engines.declarations import Family, Settings
from loopcheck.engines.mjx.batch import SOURCES, worlds
from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco import batch, tuning
from loopcheck.engines.mujoco.tuning import files, given, plan, run
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]

SETTINGS = {
    name: replace(setting, batches=[choice for choice in setting.batches if "Runge-Kutta" not in choice])
    if name in ("step", "softness")
    else replace(setting, batches=())
    for name, setting in tuning.SETTINGS.items()
}
"""MuJoCo's; a batch has no choices with a new compilation, which is slow."""


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`."""
    return [one for one in tuning.families(mechanism) if one.fixed.get("integrator", "Euler") in ("Euler", "RK4")]


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "single") -> MjxStepper:
    """See `Tuning.prepared`."""
    return MjxStepper(SOURCES[precision], tuning.model_with(mechanism, settings), double=precision == "double")


seconds_per_step = partial(batch.seconds_per_step, worlds)
"""See `Tuning.seconds_per_step`."""
