"""The figures of a report, as SVG: efforts and errors of a case over time, and errors over the step size.

Matplotlib is imported only to draw, in workers; the process that arranges the page does not wait for it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.validation.common.sources import has_accuracy
from loopcheck.validation.common.verdicts import WORST_FIRST, CaseVerdict, accuracy_divisor, gravest, reference_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Palette of Okabe and Ito for colour-blind readers, without black and yellow."""
_PATTERNS = ((6, 2), (2, 1.2), (6, 2, 1, 2), (1, 1), (9, 2, 2, 2), (4, 1))
DASHES: tuple[Any, ...] = ("-", *((0, pattern) for pattern in _PATTERNS))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH = 11.0
"""Width of every figure [inch]."""
LETTER = 0.078
"""Width of a letter beside the rows of the overview [inch]."""
FLOOR = 1e-17
"""Errors below this, also exact zeros, are drawn here [-]."""

MUTED = "#8a7a66"
"""What is informational."""
VERDICT_MARKS: Mapping[str, Mapping[str, Any]] = {
    "disagree": {"marker": "X", "color": "#D55E00", "markersize": 8.5},
    "not comparable": {"marker": "D", "color": "#E69F00", "markersize": 6.0},
    "not supported": {"marker": "x", "color": "#999999", "markersize": 5.0},
    "not run": {"marker": "s", "color": "#CC79A7", "markersize": 6.0},
    "agree": {"marker": "o", "color": "#0072B2", "markersize": 6.0},
    "as expected": {"marker": "D", "color": "#6b6b6b", "markersize": 6.0, "markerfacecolor": "white"},
    "informational": {"marker": "o", "color": MUTED, "markersize": 6.0, "markerfacecolor": "white"},
}
"""Mark of each verdict, distinct without colour by shape and filling; hollow marks are not counted."""

_STYLE: Any = {
    "svg.hashsalt": "loopcheck",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titley": 1.0,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.markersize": 5.0,
    "lines.linewidth": 1.2,
}


class Look(NamedTuple):
    """Line style of a source in all figures of a report."""

    line: Mapping[str, Any]
    """Keyword arguments of a line."""
    marked: bool
    """Whether the line has markers, to distinguish lines on top of each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The efforts of a case over time."""

    t: Array
    """Time [s], shape (nt,)."""
    actuators: tuple[str, ...]
    units: tuple[str, ...]
    """Unit of each actuator's effort."""
    reference: str
    """Name of the reference; its efforts may be missing."""
    efforts: Mapping[str, Array]
    """Efforts by source [N or N m], each of shape (nt, na); NaN for missing values."""
    scale: Array
    """Effort scale of each actuator [N or N m], shape (na,); NaN without a comparison."""
    peak: Array
    """Largest required effort of each actuator [N or N m], shape (na,); NaN without a comparison."""
    tolerances: Mapping[str, float]
    """Tolerance or accuracy by judged source [-]."""

    def divisor(self, source: str) -> Array:
        """Effort that errors of a source are divided by [N or N m], shape (na,)."""
        return accuracy_divisor(self.peak, self.scale) if has_accuracy(source) else self.scale

    @property
    def errors(self) -> Mapping[str, Array]:
        """Largest error over all actuators, each relative to its `divisor`, by source [-], each of shape (nt,)."""
        expected = self.efforts.get(self.reference)
        if expected is None or not (self.scale > 0).any():
            return {}
        others = {source: effort for source, effort in self.efforts.items() if source != self.reference}
        acting = self.scale > 0
        with np.errstate(invalid="ignore"):  # an infinite effort less another
            return {
                name: np.fmax.reduce((np.abs(effort - expected) / self.divisor(name))[:, acting], axis=1)
                for name, effort in others.items()
            }

    def limits(self, actuator: int) -> tuple[float, float] | None:
        """Limits of an effort axis [N or N m]: the reference's range and a quarter more; None without reference."""
        expected = self.efforts[self.reference][:, actuator] if self.reference in self.efforts else np.zeros(0)
        expected = expected[np.isfinite(expected)]
        if not expected.size:
            return None
        low, high = float(expected.min()), float(expected.max())
        margin = max((high - low) / 4, 0.02 * max(abs(low), abs(high))) or 1.0
        return low - margin, high + margin

    @property
    def beyond(self) -> Mapping[str, float]:
        """Largest effort of each source that leaves an effort axis [N or N m]."""
        largest: dict[str, float] = {}
        for a in range(len(self.actuators)):
            low, high = self.limits(a) or (-np.inf, np.inf)
            for source, effort in self.efforts.items():
                outside = effort[:, a][(effort[:, a] < low) | (effort[:, a] > high)]
                if outside.size:
                    largest[source] = max(largest.get(source, 0.0), float(np.abs(outside).max()))
        return largest


def curves(efforts: pd.DataFrame, summary: pd.DataFrame) -> Curves | None:
    """The curves of a case from its rows of both tables, or None if there are no efforts."""
    if efforts.empty:
        return None
    units = efforts.drop_duplicates("actuator").set_index("actuator")["unit"]
    keys = ["source", "actuator"]
    wide = efforts.drop_duplicates(["t", *keys]).pivot(index="t", columns=keys, values="effort")
    tolerances = summary.groupby("source", sort=False)["tolerance"].min().dropna()
    return Curves(
        t=wide.index.to_numpy(float),
        actuators=tuple(str(name) for name in units.index),
        units=tuple(str(unit) for unit in units),
        reference=reference_of(summary),
        efforts={
            str(name): wide[name].reindex(columns=units.index).to_numpy(float) for name in efforts["source"].unique()
        },
        **{
            name: summary.groupby("actuator")[name].max().reindex(units.index).to_numpy(float)
            for name in ("scale", "peak")
        },
        tolerances={str(source): float(value) for source, value in tolerances.items()},
    )


def looks(sources: Sequence[str], *, reference: str, informational: Iterable[str]) -> Mapping[str, Look]:
    """A look for each source: the reference thick, judged sources in colour, informational sources muted."""
    thick = {"color": "#a3a3a3", "linewidth": 5.0, "zorder": 1.5, "solid_capstyle": "round"}
    styles = {reference: Look(thick, marked=False)}
    muted = set(informational) - {reference}
    for k, source in enumerate(source for source in sources if source != reference and source not in muted):
        line = {"color": COLORS[k % 6], "linestyle": DASHES[k % 7], "marker": MARKERS[k % 7], "zorder": 3 + k / 100}
        styles[source] = Look({**line, "markeredgecolor": "white", "markeredgewidth": 0.5}, marked=True)
    for k, source in enumerate(source for source in sources if source in muted):
        line = {"color": MUTED, "linestyle": DASHES[1 + k % 6], "marker": ("x", "+", "1", "2")[k % 4]}
        styles[source] = Look({**line, "linewidth": 0.9, "zorder": 1.2}, marked=True)
    return styles


def as_svg(draw: Callable[P, Figure | None]) -> Callable[P, str | None]:
    """Decorate a function that draws a figure, so that it returns SVG, the same bytes every time."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> str | None:
        import matplotlib as mpl

        with mpl.rc_context(_STYLE):
            figure = draw(*args, **kwargs)
            if figure is None:
                return None
            file = io.StringIO()
            figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg = file.getvalue()
        svg = svg[svg.index("<svg") :]  # without the prologue, which names a DTD
        return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)  # half as long

    return drawn


@as_svg
def efforts_figure(case_curves: Curves, styles: Mapping[str, Look]) -> Figure | None:
    """Efforts over time, a panel for each actuator."""
    figure, panels = make_panels(len(case_curves.actuators), legend=len(case_curves.efforts))
    for a, (axes, actuator, unit) in enumerate(zip(panels, case_curves.actuators, case_curves.units, strict=True)):
        for source, line in _lines(case_curves, styles).items():
            axes.plot(case_curves.t, case_curves.efforts[source][:, a], **line)
        axes.set(title=literal(actuator), ylabel=literal(f"effort [{unit}]"))
        _limit_time(axes, case_curves.t)
        axes.set_ylim(case_curves.limits(a))
    put_legend(figure, panels)
    return figure


@as_svg
def motion_figure(motion: pd.DataFrame, units: Mapping[str, str]) -> Figure | None:
    """Positions, velocities and accelerations of joints over time, from rows of the table of motions.

    Args:
        motion: Rows of one motion.
        units: Unit of the position of each drawn joint, m or rad.
    """
    shown = {joint: motion[motion["joint"] == joint] for joint in units}
    shown = {joint: rows for joint, rows in shown.items() if len(rows)}
    if not shown:
        return None
    figure, panels = make_panels(3, legend=len(shown))
    unit = " or ".join(dict.fromkeys(units[joint] for joint in shown))
    quantities = {"q": ("position", ""), "qd": ("velocity", "/s"), "qdd": ("acceleration", "/s²")}
    for axes, (column, (name, per)) in zip(panels, quantities.items(), strict=True):
        for k, (joint, rows) in enumerate(shown.items()):
            style = {"color": COLORS[k % 6], "linestyle": DASHES[k % 7]}
            axes.plot(rows["t"], rows[column], **style, label=literal(joint))
        axes.set(title=name, ylabel=f"{name} [{unit if len(unit) < 5 or not per else f'({unit})'}{per}]")
        _limit_time(axes, rows["t"].to_numpy(float))
    put_legend(figure, panels)
    return figure


@as_svg
def task_figure(task: pd.DataFrame) -> Figure | None:
    """Each task coordinate with its rate and acceleration over time, a row of panels each.

    Args:
        task: Rows of one motion, from the table of task coordinates.
    """
    names = list(task["coordinate"].unique())
    if not names:
        return None
    figure, panels = make_panels(3 * len(names), legend=0, height=1.5)
    drawn = [(name, column) for name in names for column in ("x", "xd", "xdd")]
    for axes, (name, column) in zip(panels, drawn, strict=True):
        rows = task[task["coordinate"] == name]
        per = {"x": "", "xd": "/s", "xdd": "/s²"}[column]
        axes.plot(rows["t"], rows[column], color=COLORS[0], linewidth=1.6)
        quantity = {"x": "{}", "xd": "rate of {}", "xdd": "acceleration of {}"}[column]
        axes.set(title=literal(quantity.format(name)), ylabel=literal(f"[{rows['unit'].iloc[0]}{per}]"))
        _limit_time(axes, rows["t"].to_numpy(float))
    return figure


@as_svg
def errors_figure(case_curves: Curves, styles: Mapping[str, Look]) -> Figure | None:
    """Error of each source over time, relative to its scale, with the tolerances."""
    errors = {source: error for source, error in case_curves.errors.items() if np.isfinite(error).any()}
    if not errors:
        return None
    figure, (axes,) = make_panels(1, legend=len(errors) + 1)
    for source, line in _lines(case_curves, styles).items():
        if source in errors:
            axes.plot(case_curves.t, np.maximum(errors[source], FLOOR), **line)
    judged = [source for source in errors if source in case_curves.tolerances]
    for source in judged:
        same = [other for other in judged if case_curves.tolerances[other] == case_curves.tolerances[source]]
        dashes = (8 * same.index(source), (6, 8 * len(same) - 6))  # the dashes of equal tolerances stand side by side
        axes.axhline(
            case_curves.tolerances[source], color=styles[source].line["color"], linestyle=dashes, linewidth=2, zorder=2
        )
    if judged:
        axes.plot([], [], color="black", linestyle=(0, (2, 1)), linewidth=2, label="tolerance (colour: source)")
    axes.set(ylabel="error / scale [-]", yscale="log")
    typical = [float(np.nanmedian(np.maximum(error, FLOOR))) for error in errors.values()]
    axes.set_ylim(bottom=max(FLOOR / 2, min(typical) / 100))  # zero crossings need no room
    _limit_time(axes, case_curves.t)
    put_legend(figure, [axes])
    return figure


@as_svg
def log_figure(case_curves: Curves, source: str, actuator: str, tolerance: float) -> Figure | None:
    """Required and logged effort of one actuator over time, and the residual below.

    Args:
        case_curves: Curves of the log.
        source: Name of the log.
        tolerance: Accuracy of the user [-]; NaN without a limit.
    """
    required, effort = (case_curves.efforts.get(key) for key in (case_curves.reference, source))
    if required is None or effort is None or actuator not in case_curves.actuators:
        return None
    k = case_curves.actuators.index(actuator)
    unit, limit = literal(case_curves.units[k]), tolerance * float(case_curves.divisor(source)[k])
    size = np.array([4.0, 4.1])
    figure = empty_figure((size[0], size[1]))
    boxes = ((0.78, 2.25, 3.05, 1.45), (0.78, 0.5, 3.05, 1.25))  # inch
    top, bottom = (figure.add_axes((x / size[0], y / size[1], w / size[0], h / size[1])) for x, y, w, h in boxes)
    top.plot(case_curves.t, required[:, k], color="#a3a3a3", linewidth=4.0, label="required")
    top.plot(case_curves.t, effort[:, k], color=COLORS[1], linewidth=1.4, label="logged")
    top.set(ylabel=f"effort [{unit}]")
    top.set_ylim(case_curves.limits(k))
    bottom.axhline(0, color="#a3a3a3", linewidth=1.0)
    bottom.plot(case_curves.t, effort[:, k] - required[:, k], color=COLORS[1], linewidth=1.2)
    if limit > 0:
        for side in (-limit, limit):
            bottom.axhline(side, color=COLORS[0], linestyle=(0, (5, 2)), linewidth=1.4)
        bottom.plot([], [], color=COLORS[0], linestyle=(0, (5, 2)), linewidth=1.4, label="accuracy")
    bottom.set(ylabel=f"residual [{unit}]")
    for axes in (top, bottom):
        _limit_time(axes, case_curves.t)
        axes.locator_params(nbins=5)
    top.set_xlabel("")
    put_legend(figure, [top, bottom], columns=3, handlelength=2)
    return figure


@as_svg
def overview_figure(of_source: Mapping[str, Sequence[CaseVerdict]], *, low: float = FLOOR) -> Figure | None:
    """Errors of all sources on one logarithmic axis, a row for each source and a mark for each case, with tolerances.

    Args:
        of_source: Verdicts of the cases by source or actuator, from the topmost row down.
        low: Smallest error that must be visible [-].
    """
    if not of_source:
        return None
    wholes = list(map(gravest, of_source.values()))
    numbers = list(map(_in_short, wholes))
    left, right = (0.15 + LETTER * max(map(len, texts)) for texts in (of_source, numbers))
    entries = len({finding.verdict for findings in of_source.values() for finding in findings}) + 1
    above = 0.12 + 0.18 * -(-entries // 2)
    width, height, below = 1.75, 0.23 * len(of_source), 0.5  # inch; narrow, for telephones
    size = np.array([left + width + right, above + height + below])
    figure = empty_figure((size[0], size[1]))
    axes = figure.add_axes((left / size[0], below / size[1], width / size[0], height / size[1]))
    axes.set_yticks(range(len(of_source)), list(map(literal, of_source)))
    for y, (label, findings) in enumerate(zip(axes.get_yticklabels(), of_source.values(), strict=True)):
        look: Any = {"color": MUTED if wholes[y].verdict == "informational" else "black"}
        label.set(**look)
        look["weight"] = "bold" if wholes[y].verdict in ("disagree", "not comparable", "not run") else "normal"
        place: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        axes.annotate(numbers[y], (1, y), (6, 0), **place, **look)
        _draw_findings(axes, y, findings)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    errors = [finding.error for findings in of_source.values() for finding in findings if np.isfinite(finding.error)]
    quantity = "largest relative error" if low == FLOOR else "largest error / peak effort"
    axes.set(xlim=(low / 3, 10 * max([1.0 if low == FLOOR else 10 * low, *errors])), ylim=(len(of_source) - 0.5, -0.5))
    axes.set(xscale="log", xlabel=f"{quantity} [-]")  # after the limits: equal errors have no range
    if low == FLOOR:
        axes.set_xticks([10.0**power for power in range(-16, 1 + int(np.log10(axes.get_xlim()[1])), 4)])
    axes.minorticks_off()
    put_legend(figure, [axes], columns=2, handlelength=2)
    return figure


def _draw_findings(axes: Axes, y: int, findings: Sequence[CaseVerdict]) -> None:
    """A row of the overview: the range within the tolerance, and a mark for each error, the worst verdict on top."""
    limits = [finding.tolerance for finding in findings if finding.tolerance > 0]
    if limits:
        axes.barh(y, min(limits), height=0.62, color="#dbe9f3", zorder=1, label="within tolerance")
        axes.plot([min(limits)] * 2, [y - 0.36, y + 0.36], color="black", linewidth=1.6, zorder=2)
    if any(finding.verdict == "reference" for finding in findings):
        axes.axhline(y, color="#a3a3a3", linewidth=5, zorder=1, label="reference")
    for rank, verdict in enumerate(reversed(WORST_FIRST)):
        errors = np.array([finding.error for finding in findings if finding.verdict == verdict])
        errors = np.maximum(errors[np.isfinite(errors)], FLOOR)
        if len(errors):
            look = {"linestyle": "none", "markeredgewidth": 1.1, **VERDICT_MARKS[verdict]}
            axes.plot(errors, [y] * len(errors), **look, zorder=3 + rank, label=verdict)


def _in_short(finding: CaseVerdict) -> str:
    """The largest error of a source, or its verdict if there is no error; the mark shows the verdict."""
    return f"{finding.error:.1e}" if np.isfinite(finding.error) else finding.verdict


@as_svg
def ladder_figure(panels: Mapping[str, pd.DataFrame], styles: Mapping[str, Look]) -> Figure | None:
    """Error and change against the step, a panel for each case, with slopes of the orders observed."""
    usable = {
        name: rows[rows[["dt", "relative_error"]].gt(0).all(axis=1) & np.isfinite(rows["relative_error"])]
        for name, rows in panels.items()
    }
    usable = {name: rows for name, rows in usable.items() if len(rows)}
    if not usable:
        return None
    sources = {source for rows in usable.values() for source in rows["source"]}
    figure, grid = make_panels(len(usable), legend=len(sources), height=2.3)
    for axes, (name, rows) in zip(grid, usable.items(), strict=True):
        for source, rungs in rows.groupby("source", sort=False):
            _draw_ladder(axes, rungs.sort_values("dt"), {**styles[str(source)].line, "label": literal(str(source))})
        axes.set(title=literal(name), xlabel="step [s]", ylabel="relative to the scale [-]", xscale="log", yscale="log")
        steps = np.unique(rows["dt"].to_numpy(float))
        axes.set_xticks(steps, [f"{step:g}" for step in steps])
        axes.minorticks_off()
        axes.margins(x=0.15, y=0.15)
    put_legend(figure, grid)
    return figure


def _draw_ladder(axes: Axes, rungs: pd.DataFrame, line: Mapping[str, Any]) -> None:
    """Draw one refinement curve, finest step first; a logarithmic axis cannot show zero and NaN."""
    dt, error, change = (rungs[column].to_numpy(float) for column in ("dt", "relative_error", "change"))
    axes.plot(dt, error, **{**line, "linewidth": 1.2})
    hollow = {"linestyle": ":", "markerfacecolor": "white", "markeredgecolor": line["color"], "label": None}
    axes.plot(dt[change > 0], change[change > 0], **{**line, "linewidth": 0.9, **hollow, "markeredgewidth": 0.9})
    orders = rungs["order"][np.isfinite(rungs["order"])]
    if len(orders):
        order = round(float(orders.iloc[0]))
        slope = error[-1] * (dt / dt[-1]) ** order
        axes.plot(dt, slope, color="#777777", linewidth=0.8, zorder=1)
        place: Any = {
            "xytext": (-4, 3),
            "textcoords": "offset points",
            "ha": "right",
            "fontsize": 8,
            "color": "#444444",
        }
        axes.annotate(f"order {order}", (dt[-1], slope[-1]), **place)


def literal(text: str) -> str:
    """A text without formulas for matplotlib."""
    return text.replace("$", r"\$")


def empty_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of a width and a height [inch]."""
    from matplotlib.figure import Figure

    return Figure(figsize=size)


def make_panels(
    count: int, *, legend: int, height: float = 2.7, width: float = WIDTH, entries: int = 5
) -> tuple[Figure, list[Axes]]:
    """Panels of a height [inch] in rows of up to three, and room above for a legend with `entries` in a row."""
    columns = 2 if count == 4 else min(count, 3)
    rows, pitch, each = -(-count // columns), height + 0.8, width / columns
    total = rows * pitch + 0.1 + 0.18 * -(-legend // entries)
    figure = empty_figure((width, total))
    places = [(k % columns, rows - 1 - k // columns) for k in range(count)]
    boxes = [(x * each + 0.75, y * pitch + 0.5, each - 0.9, height) for x, y in places]
    return figure, [figure.add_axes((x / width, y / total, w / width, h / total)) for x, y, w, h in boxes]


def _lines(case_curves: Curves, styles: Mapping[str, Look]) -> Mapping[str, Mapping[str, Any]]:
    """Keyword arguments of the line of each source; their markers stand side by side."""
    order = [source for source in styles if source in case_curves.efforts]
    stride = max(1, len(case_curves.t) // 7)
    lines = {}
    for k, source in enumerate(order):
        every = {"markevery": (k * stride // len(order), stride)} if styles[source].marked else {}
        label = f"{source} (reference)" if source == case_curves.reference else source
        lines[source] = {**styles[source].line, **every, "label": literal(label)}
    return lines


def _limit_time(axes: Axes, t: Array) -> None:
    axes.set(xlabel="time [s]")
    if len(t) > 1:
        axes.set_xlim(t[0], t[-1])


def put_legend(figure: Figure, panels: Iterable[Axes], *, columns: int = 5, handlelength: float = 4) -> None:
    """Put one legend above all panels, with a number of columns."""
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper center",
        ncols=columns,
        handlelength=handlelength,
        borderaxespad=0.3,
    )
