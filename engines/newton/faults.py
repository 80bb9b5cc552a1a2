"""Faults of Newton's routes as they are: other numbers taken for the effort, which the harness must notice."""

from collections.abc import Mapping

from loopcheck.engines.misreadings import misread
from loopcheck.engines.newton.routes.as_is_mujoco import KAMINO, STEEL, NewtonAsIs
from loopcheck.engines.own_drives import COMMANDED, REPORTED
from loopcheck.robots.efforts import Fault

LAW = {"law at the start": COMMANDED}
FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is_kamino": misread(KAMINO, LAW),
    "as_is_mujoco": misread(NewtonAsIs(), {**LAW, "reported as effort": REPORTED}),
    "as_is_steel": misread(STEEL, LAW),
}
"""By route and kind of fault; a reaction equals the effort if a joint has neither rotor nor damper."""
