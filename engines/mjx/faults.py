"""Faults of MJX as its user runs it: other numbers taken for the effort."""

from collections.abc import Mapping

from loopcheck.engines.misreadings import misread
from loopcheck.engines.mjx.routes.as_is import SINGLE, MjxAsIs
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {"as_is": misread(MjxAsIs()), "as_is_single": misread(SINGLE)}
"""By route and kind of fault."""
