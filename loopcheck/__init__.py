"""`from loopcheck import check, judge, gate, same` for notebooks and tests; the command `loopcheck` is in `__main__`.

The packages are `loopcheck.robots`, `loopcheck.analytic`, `loopcheck.engines` and `loopcheck.validation`. A wheel
contains them here. In a checkout they are at the top of the repository, and links here serve tools that map paths to
module names.
"""

import os.path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopcheck.analytic.dynamics.matrices import Matrices
    from loopcheck.engines.mujoco.acted_effort import ActedEffort, acted_effort
    from loopcheck.validation.check.library import CheckResult, check
    from loopcheck.validation.gate.formats import GateResult
    from loopcheck.validation.gate.gate import gate
    from loopcheck.validation.judge.library import Judgement, judge
    from loopcheck.validation.matrices import matrices
    from loopcheck.validation.same.same import SameResult, same
    from loopcheck.validation.symbolic import Symbolic, symbolic

__all__ = [
    "ActedEffort",
    "CheckResult",
    "GateResult",
    "Judgement",
    "Matrices",
    "SameResult",
    "Symbolic",
    "acted_effort",
    "check",
    "gate",
    "judge",
    "matrices",
    "same",
    "symbolic",
]

_MODULES = {
    "ActedEffort": "engines.mujoco.acted_effort",
    "acted_effort": "engines.mujoco.acted_effort",
    "CheckResult": "validation.check.library",
    "check": "validation.check.library",
    "GateResult": "validation.gate.formats",
    "gate": "validation.gate.gate",
    "Judgement": "validation.judge.library",
    "judge": "validation.judge.library",
    "Matrices": "analytic.dynamics.matrices",
    "matrices": "validation.matrices",
    "SameResult": "validation.same.same",
    "same": "validation.same.same",
    "Symbolic": "validation.symbolic",
    "symbolic": "validation.symbolic",
}

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_PACKAGE = os.path.join(_HERE, "robots")  # noqa: PTH118
if os.path.islink(_PACKAGE) or not os.path.isdir(_PACKAGE):  # noqa: PTH112, PTH114
    __path__.insert(0, os.path.dirname(_HERE))  # noqa: PTH120


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that the command line starts fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'loopcheck' has no attribute '{name}'")
    from importlib import import_module

    from loopcheck.robots.releases import too_old

    message = too_old()
    if message:
        raise ImportError(message)
    found = getattr(import_module(f"loopcheck.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
