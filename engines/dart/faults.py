"""Faults of `dart/forward`, one step of care left out each: the harness must notice them."""

from collections.abc import Mapping

from engines.dart.routes.forward import DartForward, Settings
from robots.efforts import Fault

WEAK = 0.9
"""What a weak servo can do, over the largest effort that is needed [-]."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "forward": {
        "loose loops": lambda peak: DartForward(Settings(erp=0.01)),  # drawn together as slowly as by default
        "weak motors": lambda peak: DartForward(Settings(strongest=WEAK * peak)),
    }
}
"""By route and kind of fault."""
