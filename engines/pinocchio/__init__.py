"""Pinocchio, from a tree built through its API from the `Mechanism`."""

from loopcheck.engines.contract import Audit, Engine, Faults, FreeMotion, Refinements


class Pinocchio(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "pinocchio"
    requires = "pinocchio"
    extra = "pinocchio"
    distribution = "pin"
    packages = frozenset({"pinocchio"})
    lineage = "Pinocchio"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"forward"})

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.pinocchio import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.pinocchio import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.pinocchio import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.pinocchio import free_motion

        return free_motion


ENGINE = Pinocchio()
