"""The figure of the study: shares of the parts, a bar for each actuator."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, WIDTH, as_svg, literal, put_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR = 0.28
"""Height of a bar with its gap [inch]."""


@as_svg
def shares_figure(rows: pd.DataFrame) -> "Figure | None":
    """Shares of all parts of the error of each actuator; negative ones go to the left.

    Args:
        rows: Rows of the table that have a share.
    """
    from matplotlib.figure import Figure

    bars = [" ".join(map(str, key)) for key in rows[["robot", "mode", "configuration", "actuator"]].to_numpy()]
    labels, names = list(dict.fromkeys(bars)), list(dict.fromkeys(rows["part"]))
    if not labels:
        return None
    height = BAR * len(labels) + 1.1
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.3, 0.55 / height, 0.67, BAR * len(labels) / height))
    ends = np.zeros((2, len(labels)))  # of the bars drawn so far, to the right and to the left
    for k, name in enumerate(names):
        shares = np.zeros(len(labels))
        for label, part, share in zip(bars, rows["part"], rows["share"], strict=True):
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
