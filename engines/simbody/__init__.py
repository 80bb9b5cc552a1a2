"""Simbody, as OpenSim brings it: a multibody tree in joint coordinates with hard constraints on accelerations."""

from collections.abc import Mapping
from typing import ClassVar

from engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Simbody(Engine):
    """See `engines.contract.Engine`."""

    name = "simbody"
    requires = "opensim"
    extra = "simbody"
    distribution = "opensim"
    packages = frozenset({"opensim"})
    lineage = "Simbody"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "there are no files of Simbody's with actuators to take as they are: it steps what we build"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.simbody import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from engines.simbody import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.simbody import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from engines.simbody import free_motion

        return free_motion


ENGINE = Simbody()
