"""Faults of `pybullet/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

from loopcheck.engines.pybullet.routes.forward import PybulletForward, Settings
from loopcheck.robots.efforts import Fault

WEAK = 0.9
"""Force limit of a weak motor, over the largest required effort [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: PybulletForward(Settings(erp=0.2)),  # drawn together as slowly as by default
        "default damping": lambda peak: PybulletForward(Settings(damping=0.04)),
        "weak motors": lambda peak: PybulletForward(Settings(strongest=WEAK * peak)),
    }
}
"""By route and kind of fault."""
