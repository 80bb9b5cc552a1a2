"""DART, from a skeleton built through its API from the `Mechanism`."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Dart(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "dart"
    requires = "dartpy"
    extra = "dart"
    distribution = "dartpy"
    packages = frozenset({"dartpy"})
    lineage = "DART"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "DART has no model format with actuators; the model is built by loopcheck"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.dart import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.dart import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.dart import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.dart import free_motion

        return free_motion


ENGINE = Dart()
