"""The figures of the study: error against the step by engine, and against each setting of the solvers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.engines.declarations import STEP
from loopcheck.robots.arrays import Array
from loopcheck.validation.report.figures import COLORS, DASHES, FLOOR, MARKERS, as_svg, literal, make_panels, put_legend
from loopcheck.validation.studies.refinement.analysis import RICHARDSON

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST = 10.0
"""Errors above this are drawn at this value [-]."""
SLOPES = (1, 2, 4)
"""Orders of the guiding lines."""


@as_svg
def steps_figure(levels: pd.DataFrame, targets: Mapping[str, float]) -> "Figure | None":
    """Error against the step, a panel for each engine, a line for each of its methods, without extrapolations.

    Args:
        levels: Levels of one robot; of several cases, the largest error is drawn.
        targets: Tolerance by route [-].
    """
    steps = _drawable(levels[(levels["refined"] == STEP) & ~levels["ladder"].str.contains(RICHARDSON, regex=False)])
    if steps.empty:
        return None
    steps = steps.groupby(["route", "ladder", "value"], sort=False)["relative_error"].max().reset_index()
    routes = list(steps["route"].unique())
    most = int(steps.groupby("route")["ladder"].nunique().max())
    figure, panels = make_panels(len(routes), legend=1, height=2.6 + 0.19 * most)
    for axes, route in zip(panels, routes, strict=True):
        of_route = steps[steps["route"] == route]
        for k, (ladder, rows) in enumerate(of_route.groupby("ladder", sort=False)):
            axes.plot(1e3 * rows["value"], rows["relative_error"], label=literal(str(ladder)), **_look(k))
        _guide(axes, 1e3 * of_route["value"], of_route["relative_error"])
        _target(axes, targets.get(str(route)))
        axes.set(title=str(route).split("/")[0], xlabel="step [ms]", ylabel="relative effort error [-]")
        _logarithmic(axes, 1e3 * np.sort(of_route["value"].unique())[::-1])
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (0.1 + 0.075 * of_route["ladder"].nunique()))  # room for the legend
        axes.legend(loc="upper center", fontsize=7, handlelength=2.5, frameon=False)
    return figure


@as_svg
def settings_figure(levels: pd.DataFrame, targets: Mapping[str, float]) -> "Figure | None":
    """Error against the value of each setting of a solver, a panel for each, a line for each case."""
    others = _drawable(levels[levels["refined"] != STEP])
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
        _target(axes, targets.get(route), label="tolerance of the route")
        title, refined = (
            f"{route.split('/')[0]}: {ladder}".replace(", own", ",\nown"),
            str(of_ladder["refined"].iloc[0]),
        )
        axes.set(title=literal(title), xlabel=literal(refined), ylabel="relative effort error [-]")
        _logarithmic(axes, of_ladder["value"].unique())
    put_legend(figure, panels)
    return figure


def _drawable(levels: pd.DataFrame) -> pd.DataFrame:
    """Levels that have a place on logarithmic axes."""
    rows = levels[np.isfinite(levels["relative_error"]) & (levels["value"] > 0)]
    return rows.assign(relative_error=rows["relative_error"].clip(FLOOR, LARGEST))


def _logarithmic(axes: "Axes", values: Array) -> None:
    """Logarithmic axes with the values as ticks, finer to the right."""
    axes.set(xscale="log", yscale="log")
    shown = values[:: 1 if len(values) < 6 else 2]
    axes.set_xticks(shown, [f"{value:.3g}" for value in shown])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    if values[0] > values[-1] and not axes.xaxis_inverted():
        axes.invert_xaxis()


def _guide(axes: "Axes", steps: "pd.Series[float]", errors: "pd.Series[float]") -> None:
    """Slopes of the orders, from the middle of the errors at the longest step."""
    longest, shortest = float(steps.max()), float(steps.min())
    start = float(np.exp(np.log(errors[steps == longest]).mean()))
    lowest = float(errors.min())
    for order in SLOPES:
        end = max(shortest, longest * (lowest / start) ** (1 / order)) if start > lowest else shortest
        ends = [longest, end]
        axes.plot(ends, [start * (x / longest) ** order for x in ends], color="#8a8a8a", linewidth=0.8, linestyle=":")
        axes.annotate(f"{order}", (ends[1], start * (end / longest) ** order), fontsize=7, color="#555555")


def _target(axes: "Axes", target: float | None, label: str = "") -> None:
    if target is not None:
        axes.axhline(target, color="black", linestyle=(0, (2, 1)), linewidth=1, label=label)


def _look(k: int) -> dict[str, Any]:
    look = {"color": COLORS[k % 6], "marker": MARKERS[k % 7], "markeredgecolor": "white", "markeredgewidth": 0.7}
    return {**look, "linestyle": "-" if k < 6 else DASHES[1 + k % 6]}
