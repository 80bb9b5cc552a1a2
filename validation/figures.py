"""The figures of a report, as SVG: efforts and errors of a case over time, and how errors fall with the step."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from robots.arrays import Array

P = ParamSpec("P")

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that the colour-blind can tell apart; black and yellow are left out."""
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.2)), (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (9, 2, 2, 2)), (0, (4, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH = 11.0
"""Width of every figure [inch]."""
FLOOR = 1e-17
"""Errors below this, also exact zeros, are drawn here [-]."""

_STYLE = {
    "svg.hashsalt": "loopcheck",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.2,
}


class Look(NamedTuple):
    """How a source is drawn, in all figures of a report."""

    line: Mapping[str, Any]
    """Keyword arguments of a line."""
    markers: bool
    """Whether markers tell it apart where it lies on others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The efforts of a case over time."""

    t: Array
    """Time [s], shape (nt,)."""
    actuators: tuple[str, ...]
    units: tuple[str, ...]
    """Unit of each actuator's effort."""
    reference: str
    """The source the others are held against; it need not be there."""
    efforts: Mapping[str, Array]
    """Efforts by source [N or N m], each of shape (nt, na); NaN where a source says nothing."""
    peak: float
    """What errors are relative to [N or N m]."""
    tolerances: Mapping[str, float]
    """Tolerance by judged source [-]."""

    @property
    def errors(self) -> Mapping[str, Array]:
        """Largest error over all actuators relative to the peak, by source [-], each of shape (nt,)."""
        wanted = self.efforts.get(self.reference)
        if wanted is None or not self.peak > 0:
            return {}
        others = {source: effort for source, effort in self.efforts.items() if source != self.reference}
        return {source: np.fmax.reduce(np.abs(effort - wanted), axis=1) / self.peak for source, effort in others.items()}


def looks(sources: Sequence[str], *, reference: str, informational: Iterable[str]) -> Mapping[str, Look]:
    """A look for each source: the reference thick, the judged ones in colour, the informational ones muted."""
    muted = set(informational)
    styles = {reference: Look({"color": "#a3a3a3", "linewidth": 5.0, "zorder": 1.5, "solid_capstyle": "round"}, False)}
    judged = [source for source in sources if source != reference and source not in muted]
    for k, source in enumerate(judged):
        line = {"color": OKABE_ITO[k % 6], "linestyle": DASHES[k % 7], "marker": MARKERS[k % 7], "zorder": 3 + k / 100}
        styles[source] = Look({**line, "markeredgecolor": "white", "markeredgewidth": 0.5}, True)
    for k, source in enumerate(source for source in sources if source in muted and source != reference):
        line = {"color": "#8a7a66", "linestyle": DASHES[1 + k % 6], "linewidth": 0.9, "zorder": 1.2}
        styles[source] = Look({**line, "marker": ("x", "+", "1", "2")[k % 4]}, True)
    return styles


def curves(efforts: pd.DataFrame, summary: pd.DataFrame) -> Curves | None:
    """The curves of a case from its rows of both tables, or None if there are no efforts."""
    if efforts.empty:
        return None
    units = efforts.drop_duplicates("actuator").set_index("actuator")["unit"]
    actuators = tuple(str(name) for name in units.index)
    wide = efforts.drop_duplicates(["t", "source", "actuator"]).pivot(index="t", columns=["source", "actuator"], values="effort")
    by_source = {str(s): wide[s].reindex(columns=list(actuators)).to_numpy(float) for s in efforts["source"].unique()}
    judged = summary.groupby("source", sort=False)["tolerance"].min().dropna()
    return Curves(
        t=wide.index.to_numpy(float),
        actuators=actuators,
        units=tuple(str(unit) for unit in units),
        reference=reference_of(summary),
        efforts=by_source,
        peak=float(summary["peak"].max()),
        tolerances={str(source): float(value) for source, value in judged.items()},
    )


def reference_of(summary: pd.DataFrame) -> str:
    """The source that rows of the summary are held against."""
    return str(summary["reference"].iloc[0]) if len(summary) else "analytic/noc"


def _as_svg(draw: Callable[P, Figure | None]) -> Callable[P, str | None]:
    """Make a function that draws a figure return it as SVG, the same bytes every time."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> str | None:
        with mpl.rc_context(_STYLE):
            figure = draw(*args, **kwargs)
            if figure is None:
                return None
            file = io.StringIO()
            figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg = file.getvalue()
        svg = svg[svg.index("<svg") :]  # without the prologue, which names a DTD
        return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)

    return drawn


as_svg = _as_svg


@_as_svg
def efforts_figure(of: Curves, styles: Mapping[str, Look]) -> Figure | None:
    """Efforts over time, a panel for each actuator."""
    figure, panels = _panels(len(of.actuators), legend=len(of.efforts))
    for a, (axes, actuator, unit) in enumerate(zip(panels, of.actuators, of.units, strict=True)):
        for source, line in _lines(of, styles).items():
            axes.plot(of.t, of.efforts[source][:, a], **line)
        axes.set(title=actuator, ylabel=f"effort [{unit}]", xlabel="time [s]", xlim=(of.t[0], of.t[-1]) if len(of.t) > 1 else None)
        limits = effort_limits(of, a)
        if limits:
            axes.set_ylim(limits)
    _legend(figure, panels[0])
    return figure


def effort_limits(of: Curves, actuator: int) -> tuple[float, float] | None:
    """Limits of an effort axis [N or N m]: the range of the reference and a quarter more; None without reference."""
    if of.reference not in of.efforts:
        return None
    wanted = of.efforts[of.reference][:, actuator]
    wanted = wanted[np.isfinite(wanted)]
    if not wanted.size:
        return None
    low, high = float(wanted.min()), float(wanted.max())
    margin = max((high - low) / 4, 0.02 * of.peak if of.peak > 0 else 0.0) or 1.0
    return low - margin, high + margin


@_as_svg
def errors_figure(of: Curves, styles: Mapping[str, Look]) -> Figure | None:
    """Error of each source over time, relative to the peak, with the tolerances."""
    errors = {source: error for source, error in of.errors.items() if np.isfinite(error).any()}
    if not errors:
        return None
    figure, (axes,) = _panels(1, legend=len(errors))
    for source, line in _lines(of, styles).items():
        if source in errors:
            axes.plot(of.t, np.maximum(errors[source], FLOOR), **line)
    judged = [source for source in errors if source in of.tolerances]
    for source in judged:
        same = [other for other in judged if of.tolerances[other] == of.tolerances[source]]
        dashes = (8 * same.index(source), (6, 8 * len(same) - 6))
        axes.axhline(of.tolerances[source], color=styles[source].line["color"], linestyle=dashes, linewidth=1.6, zorder=2)
    axes.set(xlabel="time [s]", ylabel="error / peak [-]", yscale="log", xlim=(of.t[0], of.t[-1]) if len(of.t) > 1 else None)
    axes.set_ylim(bottom=FLOOR / 2)
    _legend(figure, axes)
    return figure


@_as_svg
def ladder_figure(panels: Mapping[str, pd.DataFrame], styles: Mapping[str, Look]) -> Figure | None:
    """Relative error and change against the step, a panel for each case, with the slope of the order observed."""
    usable = {name: rows[(rows["dt"] > 0) & ((rows["relative_error"] > 0) | (rows["change"] > 0))] for name, rows in panels.items()}
    usable = {name: rows for name, rows in usable.items() if len(rows)}
    if not usable:
        return None
    sources = {str(source) for rows in usable.values() for source in rows["source"]}
    figure, axes = _panels(len(usable), legend=len(sources), height=3.0)
    labelled: set[str] = set()
    for panel, (name, rows) in zip(axes, usable.items(), strict=True):
        for key, rungs in rows.groupby("source", sort=False):
            source = str(key)
            _ladder(panel, rungs.sort_values("dt"), styles[source].line, label=None if source in labelled else source)
            labelled.add(source)
        panel.set(title=name, xlabel="step [s]", ylabel="relative to the peak [-]", xscale="log", yscale="log")
        steps = np.unique(rows["dt"].to_numpy(float))
        panel.set_xticks(steps, [f"{step:g}" for step in steps])
        panel.minorticks_off()
        panel.margins(x=0.12)
    _legend(figure, *axes)
    return figure


def _ladder(axes: Axes, rungs: pd.DataFrame, line: Mapping[str, Any], *, label: str | None) -> None:
    """Draw one ladder; zeros and NaN cannot stand on a logarithmic axis."""
    dt = rungs["dt"].to_numpy(float)
    for column, change in (("relative_error", {"label": label}), ("change", {"linestyle": ":", "markerfacecolor": "white"})):
        values = rungs[column].to_numpy(float)
        there = np.isfinite(values) & (values > 0)
        if column == "change":
            change = {**change, "markeredgecolor": line["color"], "markeredgewidth": 0.9}
        axes.plot(dt[there], values[there], **{**line, "linewidth": 1.2, **change})
    orders, errors = rungs["order"].dropna(), rungs["relative_error"].to_numpy(float)
    if len(orders) and np.isfinite(errors[-1]) and errors[-1] > 0:
        slope = round(float(orders.iloc[0]))
        axes.plot(dt, errors[-1] * (dt / dt[-1]) ** slope, color="#777777", linewidth=0.8, zorder=1)
        axes.annotate(
            f"order {slope}", (dt[0], errors[-1] * (dt[0] / dt[-1]) ** slope), xytext=(2, -3), textcoords="offset points", va="top", color="#555555", fontsize=8
        )


def _lines(of: Curves, styles: Mapping[str, Look]) -> Mapping[str, Mapping[str, Any]]:
    """Keyword arguments of the line of each source, the reference first; markers stand side by side."""
    order = [source for source in styles if source in of.efforts]
    stride = max(1, len(of.t) // 7)
    lines = {}
    for k, source in enumerate(order):
        every = {"markevery": (k * stride // len(order), stride)} if styles[source].markers else {}
        lines[source] = {**styles[source].line, **every, "label": f"{source} (reference)" if source == of.reference else source}
    return lines


def _panels(count: int, *, legend: int, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure of panels in rows of up to three, with room above for a legend of so many entries."""
    columns = 2 if count == 4 else min(count, 3)
    rows, top = -(-count // columns), 0.35 + 0.2 * -(-legend // 5)
    total = rows * (height + 0.75) + top
    figure = Figure(figsize=(WIDTH, total))
    figure.subplots_adjust(
        left=0.75 / WIDTH, right=1 - 0.12 / WIDTH, bottom=0.5 / total, top=1 - (top + 0.2) / total, wspace=0.75 * columns / (WIDTH - 0.87 - 0.75 * (columns - 1)), hspace=0.75 / height
    )
    grid = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    return figure, grid


def _legend(figure: Figure, *axes: Axes) -> None:
    entries: dict[str, Any] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    handles = [Line2D([], [], **_handle(handle)) for handle in entries.values()]
    figure.legend(handles, list(entries), loc="upper center", ncols=5, handlelength=4, borderaxespad=0.2)


def _handle(line: Line2D) -> Mapping[str, Any]:
    return {"color": line.get_color(), "linestyle": line.get_linestyle(), "linewidth": line.get_linewidth(), "marker": line.get_marker()}
