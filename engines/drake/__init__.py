"""Drake's `MultibodyPlant`, built through its API from the `Mechanism`."""

from collections.abc import Mapping
from typing import ClassVar

from engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Drake(Engine):
    """See `engines.contract.Engine`."""

    name = "drake"
    requires = "pydrake"
    extra = "drake"
    distribution = "drake"
    packages = frozenset({"pydrake"})
    lineage = "Drake"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "there are no files of Drake's with actuators to take as they are: it steps what we build"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.drake import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from engines.drake import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.drake import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from engines.drake import free_motion

        return free_motion


ENGINE = Drake()
