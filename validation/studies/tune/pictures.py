"""The figure of a tuning: error against cost of all settings that were tried."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.analytic.logs.residual import MARGIN
from loopcheck.validation.report.figures import COLORS, MARKERS, WIDTH, as_svg, literal, put_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
