"""The MuJoCo version that steps Newton's models, and the version that Newton requires, by its warning."""

from importlib.metadata import requires, version

from packaging.requirements import Requirement

SOLVERS = frozenset({"mujoco", "mujoco_warp"})
"""Packages of MuJoCo."""
LIBRARIES = ("mujoco", "mujoco-warp")


def companions(solver: str) -> dict[str, str]:
    """The packages behind a solver of Newton, as a setting of a run; empty for its own solvers."""
    if solver not in SOLVERS:
        return {}
    installed = {name: version(name) for name in LIBRARIES}
    demands = [Requirement(text) for text in requires("newton") or ()]
    others = [
        f"{demand.name}{demand.specifier}"
        for demand in {demand.name: demand for demand in demands}.values()
        if demand.name in installed and not demand.specifier.contains(installed[demand.name])
    ]
    beside = ", ".join(f"{name} {number}" for name, number in installed.items())
    return {"beside": f"{beside}; the extra 'sim' of Newton requires {' and '.join(others)}" if others else beside}
