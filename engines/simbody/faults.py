"""Faults of `simbody/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

from loopcheck.engines.simbody.routes.forward import Settings, SimbodyForward
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {"cubic splines": lambda peak: SimbodyForward(Settings(degree=3))},  # accelerations are polygons
}
"""By route and kind of fault."""
