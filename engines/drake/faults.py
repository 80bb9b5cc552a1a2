"""Faults of `drake/forward`, one step of care left out each: the harness must notice them."""

from collections.abc import Mapping

from engines.drake.routes.forward import DrakeForward, Settings
from robots.efforts import Fault

WEAK = 0.9
"""What a weak motor can do, over the largest effort that is needed [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {"weak motors": lambda peak: DrakeForward(Settings(strongest=WEAK * peak))},
}
"""By route and kind of fault."""
