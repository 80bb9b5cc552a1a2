"""Newton, from a model built through its API from the `Mechanism`; in single precision; on a GPU where there is one."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Batch, Engine, Faults
from loopcheck.engines.tuning import Tuning


class Newton(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "newton"
    requires = "newton"
    extra = "newton"
    distribution = "newton"
    packages = frozenset({"newton", "warp"})
    lineage = "Newton"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    single_precision = True
    companions = ("mujoco-warp>=3.17",)
    taken_apart = "as_is_mujoco"
    simulating = frozenset({"as_is_kamino", "as_is_mujoco", "as_is_steel"})
    on_request: ClassVar[Mapping[str, str]] = {
        "kkt_single": "single precision resolves less than the default routes, and Newton compiles for half a minute",
        **dict.fromkeys(
            ("as_is_kamino", "as_is_mujoco", "as_is_steel"),
            "Newton has no model format with drives; the model is built by loopcheck",
        ),
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.newton import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.newton import faults

        return faults

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from loopcheck.engines.newton import batch

        return batch

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.newton import tuning

        return tuning


ENGINE = Newton()
