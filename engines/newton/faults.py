"""Faults of Newton's routes as they are: other numbers taken for the effort, which the harness must notice."""

from collections.abc import Mapping

from loopcheck.engines.misreadings import Misread, applied_twice, one_step_late, reading_as_effort
from loopcheck.engines.newton.routes.as_is_kamino import NewtonAsIsKamino
from loopcheck.engines.newton.routes.as_is_mujoco import NewtonAsIsMuJoCo
from loopcheck.engines.newton.routes.as_is_steel import NewtonAsIsSteel
from loopcheck.engines.own_drives import COMMANDED, REPORTED
from loopcheck.robots.efforts import Fault, Source


def _misread(route: type[Source]) -> dict[str, Fault]:
    return {
        "drive twice": lambda peak: Misread(route(), applied_twice),
        "law at the start": lambda peak: Misread(route(), reading_as_effort(COMMANDED)),
        "one step late": lambda peak: Misread(route(), one_step_late),
    }


FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "as_is_kamino": _misread(NewtonAsIsKamino),
    "as_is_mujoco": {
        **_misread(NewtonAsIsMuJoCo),
        "reported as effort": lambda peak: Misread(NewtonAsIsMuJoCo(), reading_as_effort(REPORTED)),
    },
    "as_is_steel": _misread(NewtonAsIsSteel),
}
"""By route and kind of fault; a reaction equals the effort if a joint has neither rotor nor damper."""
