"""PhysX on the CPU through SAPIEN, from an articulation built from the `Mechanism`; single precision only."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Engine, Faults
from loopcheck.engines.tuning import Tuning


class Physx(Engine):
    """See `loopcheck.engines.contract.Engine`."""

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
        ("as_is", "as_is_tgs"),
        ("single precision, and PhysX has no model format with drives; the model is built by loopcheck"),
    )

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.physx import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.physx import faults

        return faults

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.physx import tuning

        return tuning


ENGINE = Physx()
