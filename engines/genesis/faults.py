"""Faults of Genesis' route as it is: rotors that it fills in, and other numbers taken for the effort."""

from collections.abc import Mapping

from loopcheck.engines.genesis.routes.as_is import GenesisAsIs
from loopcheck.engines.misreadings import misread
from loopcheck.engines.own_drives import COMMANDED
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is": {
        **misread(GenesisAsIs(), {"law at the start": COMMANDED}),
        "rotors filled in": lambda peak: GenesisAsIs(as_loaded=True),
    }
}
"""By route and kind of fault; Genesis reports no joint reactions."""
