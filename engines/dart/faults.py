"""Faults of `dart/forward`, each an omitted step of care: the harness must detect them."""

from collections.abc import Mapping

from loopcheck.engines.dart.routes.forward import DartForward, Settings
from loopcheck.robots.efforts import Fault

WEAK = 0.9
"""Force limit of a weak servo, over the largest required effort [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: DartForward(Settings(erp=0.01)),  # drawn together as slowly as by default
        "weak motors": lambda peak: DartForward(Settings(strongest=WEAK * peak)),
    }
}
"""By route and kind of fault."""
