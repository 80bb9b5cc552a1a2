"""The figures of the study: work-precision diagrams, and the error against each setting of the solvers."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.engines.declarations import STEP
from loopcheck.validation.report.figures import COLORS, DASHES, FLOOR, MARKERS, as_svg, literal, make_panels, put_legend
from loopcheck.validation.studies.refinement.analysis import RICHARDSON

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST = 10.0
"""Errors above this are drawn at this value [-]."""
OWN: Mapping[str, Any] = {
    "marker": "o",
    "markersize": 13,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
    "linestyle": "none",
}


@as_svg
def work_figure(levels: pd.DataFrame, target: float | None) -> "Figure | None":
    """Error of a route against its cost, a line for each ladder of steps.

    Args:
        levels: Result of `analysis.worst` for one robot, or for all robots.
        target: Tolerance of the route [-].
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    steps = _drawable(levels[levels["refined"] == STEP], "cost")
    if steps.empty:
        return None
    figure, (axes,) = make_panels(1, legend=steps["ladder"].nunique() + 2, height=4.2, entries=3)
    looks = _looks(dict.fromkeys(steps["ladder"]))
    for ladder, rows in steps.groupby("ladder", sort=False):
        axes.plot(rows["cost"], rows["relative_error"], label=literal(str(ladder)), **looks[str(ladder)])
    own = steps[steps["own"]]
    axes.plot(own["cost"], own["relative_error"], label="the route's own setting", **OWN)
    _target(axes, target)
    axes.set(xlabel="wall time per simulated second [-]", ylabel="relative effort error [-]")
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    put_legend(figure, [axes], columns=3)
    return figure


@as_svg
def settings_figure(levels: pd.DataFrame, targets: Mapping[str, float]) -> "Figure | None":
    """Error against the value of each setting of a solver, a panel for each, a line for each case."""
    others = _drawable(levels[levels["refined"] != STEP], "value")
    if others.empty:
        return None
    ladders = list(dict.fromkeys(zip(others["route"], others["ladder"], strict=True)))
    cases = list(dict.fromkeys(zip(others["mode"], others["configuration"], strict=True)))
    figure, panels = make_panels(len(ladders), legend=len(cases) + 1, height=2.1)
    for axes, (route, ladder) in zip(panels, ladders, strict=True):
        of_ladder = others[(others["route"] == route) & (others["ladder"] == ladder)]
        for k, case in enumerate(cases):
            rows = of_ladder[(of_ladder[["mode", "configuration"]] == list(case)).all(axis=1)]
            axes.plot(rows["value"], rows["relative_error"], label=literal(" · ".join(case)), **_look(k))
        _target(axes, targets.get(route))
        title, refined = (
            f"{route.split('/')[0]}: {ladder}".replace(", own", ",\nown"),
            str(of_ladder["refined"].iloc[0]),
        )
        axes.set(title=literal(title), xlabel=literal(refined), ylabel="relative effort error [-]")
        axes.set(xscale="log", yscale="log")
        values = of_ladder["value"].unique()
        shown = values[:: 1 if len(values) < 6 else 2]
        axes.set_xticks(shown, [f"{value:g}" for value in shown])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        if values[0] > values[-1]:
            axes.invert_xaxis()  # finer to the right
    put_legend(figure, panels)
    return figure


def _drawable(levels: pd.DataFrame, x: str) -> pd.DataFrame:
    """Levels that have a place on logarithmic axes."""
    rows = levels[np.isfinite(levels["relative_error"]) & (levels[x] > 0)]
    return rows.assign(relative_error=rows["relative_error"].clip(FLOOR, LARGEST))


def _target(axes: "Axes", target: float | None) -> None:
    if target is not None:
        axes.axhline(target, color="black", linestyle=(0, (2, 1)), linewidth=1, label="tolerance of the route")


def _looks(ladders: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """Colour and marker by the simulated ladder, dashes by the number of extrapolated steps."""
    bases = list(dict.fromkeys(ladder.split(RICHARDSON)[0] for ladder in ladders))
    looks = {}
    for ladder in ladders:
        base, _, rest = ladder.partition(RICHARDSON)
        look = _look(bases.index(base))
        count = int(rest or 1)
        hollow = {"markerfacecolor": "white", "markeredgecolor": look["color"]} if rest else {}
        looks[ladder] = {**look, **hollow, "linestyle": DASHES[(count - 1) % len(DASHES)]}
    return looks


def _look(k: int) -> dict[str, Any]:
    look = {"color": COLORS[k % 6], "marker": MARKERS[k % 7], "markeredgecolor": "white", "markeredgewidth": 0.7}
    return {**look, "linestyle": "-" if k < 6 else DASHES[1 + k % 6]}
