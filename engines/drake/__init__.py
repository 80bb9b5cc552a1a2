"""Drake's `MultibodyPlant`, built through its API from the `Mechanism`."""

from engines.contract import Audit, Engine, Faults, Refinements


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


ENGINE = Drake()
