"""Figures of a tuning: error against cost of all tried settings, and shares of the parts of the error."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.analytic.logs.residual import MARGIN
from loopcheck.validation.report.figures import COLORS, MARKERS, WIDTH, as_svg, literal, put_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR = 0.28
"""Height of a bar with its gap [inch]."""


@as_svg
def work_precision(rows: pd.DataFrame, accuracy: float) -> "Figure | None":
    """Worst error of each setting over the cost of a simulated second, with the file's own and the chosen settings.

    Args:
        accuracy: Accuracy of the user [-].
    """
    from matplotlib.figure import Figure

    finite = rows[np.isfinite(rows["error"]) & np.isfinite(rows["cost"])]
    if finite.empty:
        return None
    figure = Figure(figsize=(WIDTH, 5.2))
    axes = figure.add_axes((0.08, 0.13, 0.9, 0.74))
    finite = finite.assign(error=np.maximum(finite["error"], finite["floor"] / MARGIN))
    searched = finite[finite["phase"] == "search"]
    of_settings = searched.groupby(["method", "settings"], sort=False).agg({"error": "max", "cost": "max"})
    for k, (method, points) in enumerate(of_settings.groupby("method", sort=False)):
        look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
        axes.plot(points["cost"], points["error"], linestyle="none", label=literal(str(method)), markersize=6, **look)
    base = finite[finite["phase"] == "as it is"]
    axes.plot(base["cost"], base["error"], "P", color="black", markersize=10, label="unmodified file")
    proof = finite[finite["phase"] == "proof"]
    chosen = proof[proof["chosen"]]
    if len(chosen):
        point = ([chosen["cost"].max()], [chosen["error"].max()])
        axes.plot(*point, "o", color="black", markersize=15, markerfacecolor="none", label="chosen, worst of its proof")
    axes.axhline(accuracy, color="#6b6b6b", linestyle="--", linewidth=1, label="requested accuracy")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="cost: solver iterations at all stages of all steps of a simulated second [1/s]",
        ylabel="largest settled error, or noise floor of its log [-]",
    )
    put_legend(figure, [axes])
    return figure


@as_svg
def shares_figure(rows: pd.DataFrame) -> "Figure | None":
    """Shares of all parts of the error of each actuator; negative ones go to the left.

    Args:
        rows: Rows of the table that have a share.
    """
    from matplotlib.figure import Figure

    labels, names = list(dict.fromkeys(rows["actuator"])), list(dict.fromkeys(rows["part"]))
    if not labels:
        return None
    height = BAR * len(labels) + 1.1
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.3, 0.55 / height, 0.67, BAR * len(labels) / height))
    ends = np.zeros((2, len(labels)))  # of the bars drawn so far, to the right and to the left
    for k, name in enumerate(names):
        shares = np.zeros(len(labels))
        for label, part, share in zip(rows["actuator"], rows["part"], rows["share"], strict=True):
            if part == name:
                shares[labels.index(label)] += share
        side = (shares < 0).astype(int)
        left = ends[side, np.arange(len(labels))]
        axes.barh(range(len(labels)), shares, left=left, color=COLORS[k % len(COLORS)], height=0.7, label=literal(name))
        ends[side, np.arange(len(labels))] += shares
    axes.set_yticks(range(len(labels)), [literal(label) for label in labels])
    axes.invert_yaxis()
    axes.set_axisbelow(True)
    axes.axvline(1, color="#a3a3a3", linewidth=0.8)
    axes.set(xlabel="share of the settled error [-]")
    put_legend(figure, [axes])
    return figure
