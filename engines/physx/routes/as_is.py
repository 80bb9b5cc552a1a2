"""PhysX as its user runs it, by both of its solvers: the drives of its joints, without friction."""

from loopcheck.engines.physx._articulation import Stepping
from loopcheck.engines.physx._as_is import efforts
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

OWN = Stepping(tgs=False)
"""The settings of the route."""


class PhysxAsIs(Source):
    """Efforts by PhysX's joint forces while its drives move the robot, by projected Gauss-Seidel."""

    name = "physx/as_is"

    def __init__(self, stepping: Stepping = OWN) -> None:
        """By projected Gauss-Seidel, with other settings, or by the solver of small steps, TGS."""
        self.stepping = stepping
        self.name = "physx/as_is_tgs" if stepping.tgs else "physx/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return efforts(self.name, case, motion, self.stepping)


TGS = PhysxAsIs(Stepping(tgs=True))
"""The route `as_is_tgs`, as users of Isaac run PhysX."""
