"""Simbody, as OpenSim brings it: a multibody tree in joint coordinates with hard constraints on accelerations."""

from engines.contract import Audit, Engine, FreeMotion, Refinements


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

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.simbody import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from engines.simbody import refinements

        return refinements

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from engines.simbody import free_motion

        return free_motion


ENGINE = Simbody()
