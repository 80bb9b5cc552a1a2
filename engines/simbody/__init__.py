"""Simbody, as OpenSim brings it: a multibody tree in joint coordinates with hard constraints on accelerations."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Simbody(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "simbody"
    requires = "opensim"
    extra = "simbody"
    distribution = "opensim"
    packages = frozenset({"opensim"})
    lineage = "Simbody"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "loopcheck reads no model files of Simbody; the model is built by loopcheck"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.simbody import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.simbody import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.simbody import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.simbody import free_motion

        return free_motion


ENGINE = Simbody()
