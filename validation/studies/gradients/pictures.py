"""Figure of the study: errors of all entries of the derivatives, as matrices."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import as_svg, literal, make_panels
from loopcheck.validation.studies.gradients.measure import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, LARGEST = -16, 1
"""Limits of the colours: powers of ten of the relative error [-]."""
NAMED = 8
"""Largest number of rows or columns with names."""
WRITTEN = 7
"""Largest number of rows or columns with figures in the cells."""


@as_svg
def matrices(entries: pd.DataFrame) -> "Figure | None":
    """Errors relative to the largest entry of their row, a panel for each function and input.

    Args:
        entries: Rows of the table of entries, of one robot.
    """
    if entries.empty:
        return None
    groups = list(entries.groupby(["engine", "function", "input"], sort=False))
    figure, panels = make_panels(len(groups), legend=0, height=1.7)
    for axes, ((engine, function, block), rows) in zip(panels, groups, strict=True):
        exact, found = (
            rows.pivot_table(index="row", columns="column", values=name, sort=False) for name in ("exact", "value")
        )
        sizes = np.abs(exact.to_numpy())
        scale = np.maximum(sizes.max(axis=1, keepdims=True), SMALL * sizes.max())
        relative = np.abs(found.to_numpy() - exact.to_numpy()) / scale
        powers = np.log10(np.clip(relative, 10.0**LEAST, 10.0**LARGEST))
        axes.imshow(powers, vmin=LEAST, vmax=LARGEST, cmap="RdYlBu_r", aspect="auto")
        axes.grid(visible=False)
        axes.set_title(literal(f"{engine}: {block}\n{str(function).split(',')[0]}"), fontsize=7)
        _ticks(axes.set_xticks, list(exact.columns), rotation=30)
        _ticks(axes.set_yticks, list(exact.index))
        if max(relative.shape) <= WRITTEN:
            for (i, j), value in np.ndenumerate(relative):
                axes.text(j, i, f"{value:.0e}", ha="center", va="center", fontsize=6)
    return figure


def _ticks(put: "object", names: list[str], **style: int) -> None:
    shown = [literal(str(name)) for name in names] if len(names) <= NAMED else []
    put(range(len(shown)), shown, fontsize=6, **style)  # type: ignore[operator]
