"""Faults of Genesis' route as it is: rotors that it fills in, and other numbers taken for the effort."""

from collections.abc import Mapping

from loopcheck.engines.genesis.routes.as_is import GenesisAsIs
from loopcheck.engines.misreadings import Misread, applied_twice, one_step_late, reading_as_effort
from loopcheck.engines.own_drives import COMMANDED
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is": {
        "drive twice": lambda peak: Misread(GenesisAsIs(), applied_twice),
        "law at the start": lambda peak: Misread(GenesisAsIs(), reading_as_effort(COMMANDED)),
        "one step late": lambda peak: Misread(GenesisAsIs(), one_step_late),
        "rotors filled in": lambda peak: GenesisAsIs(as_loaded=True),
    }
}
"""By route and kind of fault; Genesis reports no joint reactions."""
