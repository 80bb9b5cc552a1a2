"""Faults of the routes of PhysX: steps of care left out, and other numbers taken for the effort."""

from collections.abc import Mapping
from dataclasses import replace

from loopcheck.engines.misreadings import misread
from loopcheck.engines.own_drives import APPLIED
from loopcheck.engines.physx.routes.as_is import TGS, PhysxAsIs
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is": {
        "default friction": lambda peak: PhysxAsIs(replace(PhysxAsIs().stepping, friction=None)),
        **misread(PhysxAsIs()),
    },
    "as_is_tgs": misread(TGS, {"law as effort": APPLIED}),
}
"""By route and kind of fault."""
