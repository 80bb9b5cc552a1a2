"""The figures of a study: how errors are distributed, and how sensitive efforts are to each parameter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, DASHES, as_svg, literal, make_panels, put_legend
from loopcheck.validation.studies.sweep.statistics import BINS, LOWEST, PER_DECADE, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COARSER = 5
"""Bins of the histogram per drawn bar: ten bars in a decade."""
BARS = 16
"""Number of drawn parameters, with the largest effects."""


@as_svg
def distribution_figure(tallies: Mapping[tuple[str, str], Tally], tolerances: Mapping[str, float]) -> "Figure | None":
    """Cases by error, a panel for each kind of motion, a line for each source.

    Args:
        tallies: By kind of motion and source.
        tolerances: By source [-].
    """
    from matplotlib.ticker import LogLocator

    nonempty = {key: tally for key, tally in tallies.items() if tally.count}
    kinds = list(dict.fromkeys(kind for kind, _ in nonempty))
    if not kinds:
        return None
    sources = list(dict.fromkeys(source for _, source in tallies))
    figure, panels = make_panels(len(kinds), legend=2 * len(sources))
    edges = 10.0 ** (LOWEST + np.arange(0, BINS + 1, COARSER) / PER_DECADE)
    counts = {key: tally.histogram.reshape(-1, COARSER).sum(axis=1) for key, tally in nonempty.items()}
    filled = np.flatnonzero(sum(counts.values()))
    limits = [tolerances[source] for source in sources if source in tolerances]
    low, high = (
        edges[max(filled[0] - 2, 0)],
        max([edges[min(filled[-1] + 3, len(edges) - 1)], *(3 * x for x in limits)]),
    )
    for axes, kind in zip(panels, kinds, strict=True):
        for k, source in enumerate(sources):
            look = {"color": COLORS[k % 6], "linestyle": DASHES[k % 7]}
            if (kind, source) in counts:
                axes.stairs(counts[kind, source], edges, label=literal(source), linewidth=1.5, **look)
            if source in tolerances:
                style: Any = {"color": COLORS[k % 6], "linestyle": (0, (2, 1)), "linewidth": 1.0}
                axes.axvline(tolerances[source], label=literal(f"tolerance of {source}"), **style)
        axes.set(title=f"{kind} motion" if kind != "pose" else "single poses", xscale="log", xlim=(low, high))
        axes.set(xlabel="relative effort error [-]", ylabel="cases per tenth of a decade [-]")
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        axes.set_ylim(bottom=0)
    put_legend(figure, panels, columns=4)
    return figure


@as_svg
def sensitivity_figure(sensitivity: pd.DataFrame) -> "Figure | None":
    """Change of each actuator's effort per percent of each parameter, the largest effects on top."""
    from matplotlib.ticker import MaxNLocator

    if sensitivity.empty:
        return None
    sizes = sensitivity.assign(size=sensitivity["elasticity"].abs()).groupby("parameter", sort=False)["size"].max()
    shown = list(sizes.sort_values(ascending=False, kind="stable").index[:BARS])
    actuators = list(sensitivity["actuator"].unique())
    figure, panels = make_panels(len(actuators), legend=0, height=0.22 * len(shown) + 0.3)
    _make_room(panels)
    places = np.arange(len(shown))[::-1]
    for k, (axes, actuator) in enumerate(zip(panels, actuators, strict=True)):
        rows = sensitivity[sensitivity["actuator"] == actuator].set_index("parameter").loc[shown]
        positive = rows["slope"] >= 0
        colors = np.where(positive, COLORS[0], COLORS[1])
        axes.barh(places, rows["slope"], xerr=rows["interval"], color=colors, height=0.7, error_kw={"linewidth": 0.9})
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(places, [literal(name) for name in shown] if k % 3 == 0 else [""] * len(shown))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(literal(f"effort per +1 % [{rows['unit'].iloc[0]}]"))
        axes.set_title(literal(f"{actuator}, {100 * rows['told'].iloc[0]:.3g} % of the variance explained"))
        axes.grid(axis="y", visible=False)
    return figure


def _make_room(panels: "Sequence[Axes]") -> None:
    """Room for the names of the parameters, left of the first panel of each row."""
    left, gap = 0.2, 0.02
    columns = min(len(panels), 3)
    width = (1 - left - gap) / columns
    for k, axes in enumerate(panels):
        box = axes.get_position()
        axes.set_position((left + (k % columns) * width, box.y0, width - gap, box.height))
