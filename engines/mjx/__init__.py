"""MJX: MuJoCo's port to JAX, which runs on GPUs; here on the CPU, in double and in single precision."""

from collections.abc import Mapping
from typing import ClassVar

from loopcheck.engines.contract import Audit, Batch, Engine, Faults, Refinements
from loopcheck.engines.tuning import Tuning


class Mjx(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "mjx"
    requires = "mujoco.mjx"
    extra = "mjx"
    distribution = "mujoco-mjx"
    packages = frozenset({"jax", "mujoco"})
    lineage = "MuJoCo"
    shares = ("loads", "gravity")
    simulating = frozenset({"as_is", "as_is_single", "forward", "forward_single"})
    on_request: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("as_is", "as_is_single", "forward", "forward_single", "kkt", "kkt_single"),
        "a port of MuJoCo, so not an independent code base; compiling takes 10 to 30 s per robot",
    )

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.mjx import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.mjx import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.mjx import faults

        return faults

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.mjx import tuning

        return tuning

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from loopcheck.engines.mjx import batch

        return batch


ENGINE = Mjx()
