"""The figure of the study: what steps per second cost in effort accuracy."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from validation.report.figures import COLORS, MARKERS, WIDTH, as_svg, literal, put_legend

MILLION = 1e6


@as_svg
def pareto(rows: pd.DataFrame) -> Figure | None:
    """Error of each choice of settings over its rate, and the line below which no engine comes.

    Args:
        rows: Rows of the table of rates.
    """
    known = rows[np.isfinite(rows["rms"]) & np.isfinite(rows["rate"])]
    if known.empty:
        return None
    figure = Figure(figsize=(WIDTH, 5.2))
    axes = figure.add_axes((0.08, 0.13, 0.9, 0.74))
    for k, (names, points) in enumerate(known.groupby(["engine", "precision", "device"], sort=False)):
        engine, precision, device = map(str, names)
        look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
        label = f"{engine}, {precision}, {device}"
        axes.plot(points["rate"], points["rms"], linestyle="none", label=literal(label), **look)
        best = envelope(points)
        axes.step(best["rate"], best["rms"], where="pre", color=look["color"])
        for point in best.to_dict("records"):
            place: dict[str, Any] = {"xytext": (5, 5), "textcoords": "offset points", "fontsize": 7}
            axes.annotate(literal(str(point["choice"])), (point["rate"], point["rms"]), **place)
    axes.axvline(MILLION, color="#6b6b6b", linestyle="--", linewidth=1, label="1 million steps a second")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="steps of the file's length in a second, of all worlds together [1/s]",
        ylabel="settled error of effort, rms over scale [-]",
    )
    put_legend(figure, [axes])
    return figure


def envelope(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that no other is both faster and more accurate than, the slowest first.

    Args:
        rows: Rows of the table of rates.
    """
    fastest_first = rows.sort_values(["rate", "rms"], ascending=[False, True])
    best = fastest_first["rms"] < fastest_first["rms"].cummin().shift(fill_value=np.inf)
    return fastest_first[best].iloc[::-1]
