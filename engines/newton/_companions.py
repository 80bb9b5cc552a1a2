"""Which MuJoCo steps Newton's models, and whether Newton asks for that one: it warns once, where nobody looks."""

from importlib.metadata import requires, version

from packaging.requirements import Requirement

SOLVERS = frozenset({"mujoco", "mujoco_warp"})
"""Packages of MuJoCo."""
LIBRARIES = ("mujoco", "mujoco-warp")


def companions(solver: str) -> dict[str, str]:
    """The packages that a solver of Newton's computes by, as a setting of a run; none for its own."""
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
