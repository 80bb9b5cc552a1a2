"""PyBullet (Bullet's multibody), from a URDF generated from the `Mechanism`."""

from types import MappingProxyType

from loopcheck.engines.contract import Audit, Engine, Faults, FreeMotion, Plant, Refinements
from loopcheck.engines.tuning import Tuning


class Pybullet(Engine):
    """See `loopcheck.engines.contract.Engine`."""

    name = "pybullet"
    requires = "pybullet"
    extra = "pybullet"
    distribution = "pybullet"
    packages = frozenset({"pybullet"})
    lineage = "Bullet"
    shares = ("geometry", "inertia", "gears", "springs", "dampers", "rotors", "loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    unstated = MappingProxyType({"<3.2.7": ("numpy<2", "pyarrow<20")})  # later ones of pyarrow refuse that numpy

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from loopcheck.engines.pybullet import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from loopcheck.engines.pybullet import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from loopcheck.engines.pybullet import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from loopcheck.engines.pybullet import free_motion

        return free_motion

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from loopcheck.engines.pybullet import tuning

        return tuning

    def plant(self) -> Plant:
        """See `Engine.plant`."""
        from loopcheck.engines.pybullet import plant

        return plant


ENGINE = Pybullet()
