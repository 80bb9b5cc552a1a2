"""Drake's `MultibodyPlant`, built through its API from the `Mechanism`."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Drake(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "drake"
    requires = "pydrake"
    extra = "drake"
    distribution = "drake"
    packages = frozenset({"pydrake"})
    lineage = "Drake"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "loopcheck reads no model files of Drake; the model is built by loopcheck"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.drake import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.drake import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.drake import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.drake import free_motion

        return free_motion


ENGINE = Drake()
