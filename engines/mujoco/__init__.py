"""MuJoCo, from the MJCF itself."""

from loopcheck.engines.contract import Audit, Batch, Engine, Faults, FreeMotion, Plant, Refinements, Renderer
from loopcheck.engines.tuning import Tuning


class Mujoco(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "mujoco"
    requires = "mujoco"
    extra = "mujoco"
    distribution = "mujoco"
    packages = frozenset({"mujoco"})
    lineage = "MuJoCo"
    shares = ("loads", "gravity")
    simulating = frozenset({"as_is", "forward"})

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.mujoco import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.mujoco import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.mujoco import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.mujoco import free_motion

        return free_motion

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.mujoco import tuning

        return tuning

    def plant(self) -> Plant:
        """See `Engine.plant`."""
        from loopcheck.engines.mujoco import plant

        return plant

    def renderer(self) -> Renderer:
        """See `Engine.renderer`."""
        from loopcheck.engines.mujoco import renderer

        return renderer

    def batch(self) -> Batch:
        """See `Engine.batch`."""
        from loopcheck.engines.mujoco import batch

        return batch


ENGINE = Mujoco()
