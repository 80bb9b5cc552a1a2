"""Genesis, from the user's own file through its loader of MJCF; in double precision; on a GPU where there is one."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Batch, Engine, Faults
from loopcheck.engines.tuning import Tuning


class Genesis(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "genesis"
    requires = "genesis"
    extra = ""
    distribution = "genesis-world"
    packages = frozenset({"genesis", "torch"})
    lineage = "MuJoCo"
    shares = ("loads", "gravity")
    simulating = frozenset({"as_is"})
    tells_terms = False
    companions = ("torch>=2.6",)
    without_wheels = ("pygltflib",)
    on_request: ClassVar[Mapping[str, str]] = {
        "as_is": "Genesis needs 8 GB of disk space and compiles for 1 to 2 minutes per robot"
    }

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.genesis import audit

        return audit

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.genesis import faults

        return faults

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from loopcheck.engines.genesis import batch

        return batch

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.genesis import tuning

        return tuning


ENGINE = Genesis()
