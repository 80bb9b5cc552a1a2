"""PhysX on the CPU through SAPIEN, from an articulation built from the `Mechanism`; single precision only."""

from collections.abc import Mapping
from typing import ClassVar

from engines.contract import Audit, Causes, Engine, Faults
from engines.tuning import Tuning


class Physx(Engine):
    """See `engines.contract.Engine`."""

    name = "physx"
    requires = "sapien"
    extra = "physx"
    distribution = "sapien"
    packages = frozenset({"sapien"})
    lineage = "PhysX"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "gravity")
    simulating = frozenset({"as_is", "as_is_tgs"})
    single_precision = True
    tells_terms = False
    on_request: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("as_is", "as_is_tgs"), "it computes in single precision, and there are no files of its own to take as they are"
    )

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.physx import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.physx import faults

        return faults

    def causes(self) -> Causes:
        """See `Engine.causes`."""
        from engines.physx import causes

        return causes

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from engines.physx import tuning

        return tuning


ENGINE = Physx()
