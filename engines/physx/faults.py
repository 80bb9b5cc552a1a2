"""Faults of the routes of PhysX: steps of care left out, and other numbers taken for the effort."""

from collections.abc import Mapping
from dataclasses import replace

from loopcheck.engines.misreadings import Misread, applied_twice, one_step_late, reading_as_effort
from loopcheck.engines.own_drives import APPLIED, REACTION
from loopcheck.engines.physx.routes.as_is import PhysxAsIs
from loopcheck.engines.physx.routes.as_is_tgs import PhysxAsIsTgs
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is": {
        "default friction": lambda peak: PhysxAsIs(replace(PhysxAsIs().stepping, friction=None)),
        "drive twice": lambda peak: Misread(PhysxAsIs(), applied_twice),
        "one step late": lambda peak: Misread(PhysxAsIs(), one_step_late),
        "reaction as effort": lambda peak: Misread(PhysxAsIs(), reading_as_effort(REACTION)),
    },
    "as_is_tgs": {
        "drive twice": lambda peak: Misread(PhysxAsIsTgs(), applied_twice),
        "law as effort": lambda peak: Misread(PhysxAsIsTgs(), reading_as_effort(APPLIED)),
        "one step late": lambda peak: Misread(PhysxAsIsTgs(), one_step_late),
    },
}
"""By route and kind of fault."""
