"""MuJoCo Warp: MuJoCo's port to NVIDIA Warp, in single precision; on the CPU where there is no GPU."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Batch, Engine, Faults
from loopcheck.engines.tuning import Tuning


class MujocoWarp(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "mujoco_warp"
    requires = "mujoco_warp"
    extra = "mujoco-warp"
    distribution = "mujoco-warp"
    packages = frozenset({"mujoco", "mujoco_warp", "warp"})
    lineage = "MuJoCo"
    shares = ("loads", "gravity")
    simulating = frozenset({"as_is"})
    single_precision = True
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "a port of MuJoCo, so not an independent code base; the first run on a CPU compiles for half a minute"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.mujoco_warp import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.mujoco_warp import faults

        return faults

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.mujoco_warp import tuning

        return tuning

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from loopcheck.engines.mujoco_warp import batch

        return batch


ENGINE = MujocoWarp()
