"""Faults of `mujoco_warp/as_is`: other numbers taken for the effort."""

from collections.abc import Mapping

from loopcheck.engines.misreadings import misread
from loopcheck.engines.mujoco_warp.routes.as_is import MujocoWarpAsIs
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {"as_is": misread(MujocoWarpAsIs())}
"""By route and kind of fault."""
