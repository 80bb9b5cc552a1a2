"""Figure of the study: effort error over steps per second."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, MARKERS, WIDTH, as_svg, literal, put_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

MILLION = 1e6
GREY = "#6b6b6b"
DARKER = 0.7
"""Darkness of the colour of a line, for readable names."""
MARGINS = {"rate": (0.6, 4.0), "rms": (0.5, 2.5)}
"""Margins of the axes beyond the points, as room for names [-]."""
SIDES = (("left", 1), ("right", -1))
LIFTS = (5, -11, 15, -21, 25, -31, 35)
"""Positions of a name beside its point: side, and height above the point, the nearest first [points]."""
APART = 2.0
"""Extra distance between names [pixels]."""
CLEAR = 6.0
"""Half the size of the area of a point [pixels]."""


@as_svg
def pareto(rows: pd.DataFrame) -> "Figure | None":
    """Error of each choice of settings over its rate, and the lower bound of all engines.

    The figure shows the largest batch of each engine. Pareto-optimal choices are filled, named, and joined by a line;
    the engine's own settings are named too.

    Args:
        rows: Rows of the table of rates.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    known = rows[np.isfinite(rows["rms"]) & np.isfinite(rows["rate"])]
    if known.empty:
        return None
    figure = Figure(figsize=(WIDTH, 6.0))
    axes = figure.add_axes((0.075, 0.1, 0.905, 0.78))
    axes.set(
        xscale="log",
        yscale="log",
        xlim=_beyond(known, "rate", MILLION),
        ylim=_beyond(known, "rms"),
        xlabel="steps of the length in the file per second, all worlds together [1/s]",
        ylabel="settled error of effort, rms over scale [-]",
    )
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.axvline(MILLION, color=GREY, linestyle="--", linewidth=1)
    curves = list(_curves(known, axes))
    _put_names(axes, curves)
    words: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "color": GREY, "fontsize": 8}
    top, bottom = ((MILLION, end) for end in axes.get_ylim()[::-1])
    axes.annotate("1 million steps per second", top, (-6, -12), **words)
    axes.annotate("faster and more accurate ↘", bottom, (-6, 7), fontstyle="italic", **words)
    put_legend(figure, [axes], columns=3)
    return figure


def _curves(known: pd.DataFrame, axes: "Axes") -> Iterator[tuple[str, pd.DataFrame]]:
    """Draw each engine, and return the choices to name with their colour: Pareto-optimal choices and own settings."""
    for k, (names, points) in enumerate(known.groupby(["engine", "precision", "device"], sort=False)):
        engine, precision, device = map(str, names)
        color, count = COLORS[k % len(COLORS)], points["worlds"].max()
        largest = points[points["worlds"] == count]
        look: dict[str, Any] = {"marker": MARKERS[k % len(MARKERS)], "markersize": 7.0, "linestyle": "none"}
        best = envelope(largest)
        axes.plot(largest["rate"], largest["rms"], **look, color=color, markerfacecolor="white", alpha=0.55)
        label = f"{engine}, {precision} precision, {device}"
        axes.plot(best["rate"], best["rms"], **look, color=color, label=literal(label))
        axes.step(best["rate"], best["rms"], where="pre", color=color, linewidth=1.4, alpha=0.8)
        as_it_is = largest["settings"].fillna("") == ""
        yield color, pd.concat([best, largest[as_it_is & ~largest.index.isin(best.index)]])


def _put_names(axes: "Axes", curves: list[tuple[str, pd.DataFrame]]) -> None:
    """Name the best choices at places that cover least of points, lines and other names."""
    from matplotlib.colors import to_rgb

    covered = [*_marks(axes), *(box for _, named in curves for box in _stairs(axes, named))]
    inside = axes.get_window_extent()
    for color, named in curves:
        for point in named.to_dict("records"):
            tried: list[tuple[float, int, Any, Bbox]] = []
            for lift in LIFTS:
                for side, away in SIDES:
                    place: dict[str, Any] = {"xytext": (7 * away, lift), "textcoords": "offset points", "ha": side}
                    name = axes.annotate(
                        literal(str(point["choice"])),
                        (point["rate"], point["rms"]),
                        fontsize=7.5,
                        color=DARKER * np.array(to_rgb(color)),
                        **place,
                    )
                    box = name.get_window_extent().padded(APART, 0)
                    outside = 10.0 * (not inside.containsx(box.x0) or not inside.containsx(box.x1))
                    tried.append((outside + sum(box.overlaps(other) for other in covered), len(tried), name, box))
            _, best_place, _, box = min(tried, key=lambda one: one[:2])
            for _, place_tried, name, _ in tried:
                if place_tried != best_place:
                    name.remove()
            covered.append(box)


def _marks(axes: "Axes") -> "Iterator[Bbox]":
    """Areas of the marks of all choices [pixels]."""
    from matplotlib.transforms import Bbox

    for line in axes.lines:
        if line.get_marker() != "None":
            for x, y in axes.transData.transform(line.get_xydata()):
                yield Bbox.from_extents(x - CLEAR, y - CLEAR, x + CLEAR, y + CLEAR)


def _stairs(axes: "Axes", named: pd.DataFrame) -> "Iterator[Bbox]":
    """Areas of the stairs through the best choices [pixels]."""
    from matplotlib.transforms import Bbox

    corners = axes.transData.transform(envelope(named)[["rate", "rms"]].to_numpy(float))
    for (x0, y0), (x1, y1) in pairwise(corners):
        yield Bbox.from_extents(x0, y1 - 1, x1, y1 + 1)
        yield Bbox.from_extents(x0 - 1, min(y0, y1), x0 + 1, max(y0, y1))


def _beyond(known: pd.DataFrame, name: str, least: float = 0.0) -> tuple[float, float]:
    """Limits of an axis, a little beyond the points."""
    below, above = MARGINS[name]
    largest = max(float(known[name].max()), least)
    low = float(known.loc[known["worlds"] == known["worlds"].max(), name].min())
    return low * below, largest * (above if largest != least else 1.6)


def envelope(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that no other is both faster and more accurate than, the slowest first.

    Args:
        rows: Rows of the table of rates.
    """
    fastest_first = rows.sort_values(["rate", "rms"], ascending=[False, True])
    best = fastest_first["rms"] < fastest_first["rms"].cummin().shift(fill_value=np.inf)
    return fastest_first[best].iloc[::-1]
