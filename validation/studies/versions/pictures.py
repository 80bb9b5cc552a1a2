"""The figure of the study: the error of each source on each robot, a mark for each version."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, FLOOR, MARKERS, WIDTH, as_svg, literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.3
"""Height of a line of the figure [inch]."""


@as_svg
def errors_figure(table: pd.DataFrame, versions: Sequence[str], engine: str) -> "Figure | None":
    """Largest error over variants, modes and actuators, a panel for each source, a line for each robot.

    Args:
        table: Rows of the study.
        versions: Versions with results, the oldest first.
        engine: Name of the engine.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    rows = table[np.isfinite(table["relative_error"])]
    if rows.empty:
        return None
    worst = rows.groupby(["source", "robot", "configuration", "version"], sort=False)["relative_error"].max()
    sources = list(dict.fromkeys(rows["source"]))
    lines = list(dict.fromkeys(zip(rows["robot"], rows["configuration"], strict=True)))
    figure = Figure(figsize=(WIDTH, 1.6 + ROW * len(lines)), layout="constrained")
    panels = figure.subplots(1, len(sources), sharey=True, squeeze=False)[0]
    spread = np.linspace(-0.22, 0.22, len(versions)) if len(versions) > 1 else np.zeros(1)
    for axes, source in zip(panels, sources, strict=True):
        for k, version in enumerate(versions):
            errors = [worst.get((source, *line, version), np.nan) for line in lines]
            look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
            places = np.arange(len(lines)) + spread[k]
            axes.plot(np.clip(errors, FLOOR, None), places, linestyle="none", label=f"{engine} {version}", **look)
        for tolerance in rows.loc[rows["source"] == source, "tolerance"].dropna().unique()[:1]:
            axes.axvline(tolerance, color="black", linestyle=(0, (2, 1)), linewidth=1, label="tolerance of the source")
        axes.set(xscale="log", xlabel="relative effort error [-]", title=literal(source), ylim=(len(lines) - 0.5, -0.5))
        low, high = axes.get_xlim()
        axes.set_xlim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_yticks(range(len(lines)), [literal(", ".join(line)) for line in lines])
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=5, handlelength=4)
    return figure
