"""MJX: MuJoCo's port to JAX, which runs on GPUs; here on the CPU, in double and in single precision."""

from collections.abc import Mapping
from typing import ClassVar

from engines.contract import Audit, Batch, Causes, Engine, Faults, Refinements
from engines.tuning import Tuning


class Mjx(Engine):
    """See `engines.contract.Engine`."""

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
        "as a port of MuJoCo it is not an independent lineage, and to compile it takes some 10 to 30 s a robot",
    )

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.mjx import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from engines.mjx import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.mjx import faults

        return faults

    def causes(self) -> Causes:
        """See `Engine.causes`."""
        from engines.mjx import causes

        return causes

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from engines.mjx import tuning

        return tuning

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from engines.mjx import batch

        return batch


ENGINE = Mjx()
