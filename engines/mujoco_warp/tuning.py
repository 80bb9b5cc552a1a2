"""Other settings of a file in MuJoCo Warp, in single precision: those of MuJoCo."""

import mujoco

from loopcheck.engines.declarations import Settings, best_seconds
from loopcheck.engines.mujoco.tuning import SETTINGS, families, files, given, model_with, plan, run
from loopcheck.engines.mujoco_warp._model import placed, put
from loopcheck.engines.mujoco_warp._warp import guarded, mujoco_warp, warp
from loopcheck.engines.mujoco_warp.stepper import WarpStepper
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> WarpStepper:
    """See `Tuning.prepared`."""
    return WarpStepper(model_with(mechanism, settings))


def seconds_per_step(mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
    """See `Tuning.seconds_per_step`; on a GPU the step is captured, as for training."""
    model = model_with(mechanism, settings)
    on_device, start = put(model), mujoco.MjData(model)
    start.qpos[:] = q[: model.nq]  # lengths of tendons follow
    with guarded(WarpStepper.source):
        data = placed(model, start)
        mujoco_warp.step(on_device, data)  # compiled before anything is timed
        graph = None
        if warp.get_device().is_cuda:
            with warp.ScopedCapture() as capture:
                mujoco_warp.step(on_device, data)
            graph = capture.graph

        def steps(count: int) -> None:
            for _ in range(count):
                if graph is None:
                    mujoco_warp.step(on_device, data)
                else:
                    warp.capture_launch(graph)
            warp.synchronize()

        return best_seconds(lambda: None, steps)
