"""MuJoCo Warp: MuJoCo's port to NVIDIA Warp, in single precision; on the CPU where there is no GPU."""

from collections.abc import Mapping
from typing import ClassVar

from engines.contract import Audit, Batch, Causes, Engine, Faults
from engines.tuning import Tuning


class MujocoWarp(Engine):
    """See `engines.contract.Engine`."""

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
        "as_is": "as a port of MuJoCo it is not an independent lineage, and on a CPU it compiles half a minute at first"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.mujoco_warp import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.mujoco_warp import faults

        return faults

    def causes(self) -> Causes:
        """See `Engine.causes`."""
        from engines.mujoco_warp import causes

        return causes

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from engines.mujoco_warp import tuning

        return tuning

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from engines.mujoco_warp import batch

        return batch


ENGINE = MujocoWarp()
