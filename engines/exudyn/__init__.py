"""Exudyn, as rigid bodies in redundant coordinates with joints between them, built from the `Mechanism`."""

from loopcheck.engines.contract import Audit, Engine, Faults, Refinements


class Exudyn(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "exudyn"
    requires = "exudyn"
    extra = "exudyn"
    distribution = "exudyn"
    packages = frozenset({"exudyn"})
    lineage = "Exudyn"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"forward"})

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.exudyn import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.exudyn import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.exudyn import faults

        return faults


ENGINE = Exudyn()
