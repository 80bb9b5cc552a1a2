"""Faults of `mujoco_warp/as_is`: other numbers taken for the effort."""

from collections.abc import Mapping

from engines.misreadings import misread
from engines.mujoco_warp.routes.as_is import MujocoWarpAsIs
from robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {"as_is": misread(MujocoWarpAsIs)}
"""By route and kind of fault."""
