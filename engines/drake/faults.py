"""Faults of `drake/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

from loopcheck.engines.drake.routes.forward import DrakeForward, Settings
from loopcheck.robots.efforts import Fault

WEAK = 0.9
"""Force limit of a weak motor, over the largest required effort [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {"weak motors": lambda peak: DrakeForward(Settings(strongest=WEAK * peak))},
}
"""By route and kind of fault."""
