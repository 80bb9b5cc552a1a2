"""Other settings of a file in MJX in single precision, its default: MuJoCo's settings as far as MJX has them."""

from typing import Any

from loopcheck.engines.declarations import Family, Settings, best_seconds
from loopcheck.engines.mjx._mjx import jax, mjx, on_device
from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco import tuning
from loopcheck.engines.mujoco.tuning import SETTINGS, files, given, plan, run
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]

SOURCES = {"single": "mjx/as_is_single", "double": "mjx/as_is"}


def families(mechanism: Mechanism) -> list[Family]:
    """See `Tuning.families`."""
    return [one for one in tuning.families(mechanism) if one.fixed.get("integrator", "Euler") in ("Euler", "RK4")]


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "single") -> MjxStepper:
    """See `Tuning.prepared`."""
    return MjxStepper(SOURCES[precision], tuning.model_with(mechanism, settings), double=precision == "double")


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`."""
    stepper = prepared(mechanism, settings)
    with on_device(double=False):
        empty = mjx.make_data(stepper.model, impl="jax")
        start = jax.numpy.asarray(q[: stepper.model.nq], empty.qpos.dtype)  # lengths of tendons follow
        data = jax.device_put(empty.replace(qpos=start), jax.devices()[0])

        def steps(count: int) -> None:
            _advanced(stepper.on_device, data, count).qpos.block_until_ready()

        steps(0)  # compiled before anything is timed
        return best_seconds(lambda: None, steps)


@jax.jit
def _advanced(model: Any, data: Any, steps: Any) -> Any:
    return jax.lax.fori_loop(0, steps, lambda _, now: mjx.step(model, now), data)
