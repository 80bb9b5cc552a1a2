"""Faults of `pybullet/forward`, one step of care left out each: the harness must notice them."""

from collections.abc import Mapping

from engines.pybullet.routes.forward import PybulletForward, Settings
from robots.efforts import Fault

WEAK = 0.9
"""What a weak motor can do, over the largest effort that is needed [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: PybulletForward(Settings(erp=0.2)),  # drawn together as slowly as by default
        "default damping": lambda peak: PybulletForward(Settings(damping=0.04)),
        "weak motors": lambda peak: PybulletForward(Settings(strongest=WEAK * peak)),
    }
}
"""By route and kind of fault."""
