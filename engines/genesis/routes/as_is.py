"""Genesis as its user runs it: the file through its loader, its own drives; rotors reset to those of the file."""

from loopcheck.engines.genesis._as_is import held_by_drives
from loopcheck.engines.genesis._scene import Stepping
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class GenesisAsIs(Source):
    """Efforts of Genesis' own drives while they held the robot along the motion, in double precision."""

    name = "genesis/as_is"

    def __init__(self, *, as_loaded: bool = False) -> None:
        """With the rotors of the file, or with the defaults of Genesis' loader."""
        self.as_loaded = as_loaded

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return held_by_drives(self.name, case, motion, Stepping(), as_loaded=self.as_loaded)
