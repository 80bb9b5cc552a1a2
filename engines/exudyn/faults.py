"""Faults of `exudyn/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

from loopcheck.engines.exudyn.routes.forward import ExudynForward, Settings
from loopcheck.robots.efforts import Fault

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {"start at rest": lambda peak: ExudynForward(Settings(exact_start=False))},
}
"""By route and kind of fault."""
