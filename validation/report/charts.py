"""Data of the interactive figures of a page, ready for JSON: charts for plotly.js, and the moving robot.

Every chart replaces a figure of the page; a page without JavaScript, or on paper, shows the figure.
"""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.validation.report.figures import FLOOR, Curves, Look
from loopcheck.validation.report.geometry import steps_shown
from loopcheck.validation.report.schematic import Scene, corners

Json: TypeAlias = Mapping[str, Any]
GAP = 0.07
"""Room between the panels of a chart, and below them, over its width and height [-]."""


@cache
def plotly_script() -> str:
    """The library plotly.js, gzipped and in base64, unpacked by a page when a chart is opened.

    Empty without the extra `interactive`: pages then contain the figures only.
    """
    try:
        script = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    except ModuleNotFoundError:
        return ""
    return base64.b64encode(gzip.compress(script, mtime=0)).decode()


def efforts_chart(case_curves: Curves, styles: Mapping[str, Look]) -> Json:
    """Efforts over time, a panel for each actuator, all with one time axis."""
    traces: list[Json] = []
    layout: dict[str, Any] = {"annotations": []}
    for k, (actuator, unit, (x, y)) in enumerate(
        zip(case_curves.actuators, case_curves.units, _places(len(case_curves.actuators)), strict=True)
    ):
        n = str(k + 1) if k else ""
        layout[f"xaxis{n}"] = {
            "domain": x,
            "anchor": f"y{n}",
            "title": {"text": "time [s]"},
            **({"matches": "x"} if k else {}),
        }
        layout[f"yaxis{n}"] = {"domain": y, "anchor": f"x{n}", "title": {"text": f"effort [{unit}]"}}
        layout[f"yaxis{n}"] |= (
            {"range": [_short(limit) for limit in case_curves.limits(k) or ()]} if case_curves.limits(k) else {}
        )
        title = {"text": actuator, "x": sum(x) / 2, "y": y[1], "xref": "paper", "yref": "paper", "yanchor": "bottom"}
        layout["annotations"].append({**title, "showarrow": False})
        for source, effort in case_curves.efforts.items():
            values = {"y": [_short(value) for value in effort[:, k]], "xaxis": f"x{n}", "yaxis": f"y{n}"}
            traces.append({**_trace(source, case_curves.t, styles), **values})
    return {
        "data": traces,
        "layout": layout,
        "rows": -(-len(case_curves.actuators) // _columns(len(case_curves.actuators))),
    }


def errors_chart(case_curves: Curves, styles: Mapping[str, Look]) -> Json:
    """Error of each source over time relative to its scale, and its tolerance."""
    traces: list[Json] = []
    for source, error in case_curves.errors.items():
        traces.append(
            {**_trace(source, case_curves.t, styles), "y": [_short(value) for value in np.maximum(error, FLOOR)]}
        )
        if source in case_curves.tolerances:
            line = {"color": styles[source].line["color"], "dash": "2px,3px", "width": 2}
            ends = {"x": [float(case_curves.t[0]), float(case_curves.t[-1])], "y": [case_curves.tolerances[source]] * 2}
            traces.append(
                {"name": f"tolerance of {source}", "legendgroup": source, "mode": "lines", "line": line, **ends}
            )
    axis = {"type": "log", "exponentformat": "power", "title": {"text": "error / scale [-]"}}
    return {"data": traces, "layout": {"xaxis": {"title": {"text": "time [s]"}}, "yaxis": axis}, "rows": 1}


def movie(view: Scene) -> Json | None:
    """The moving robot: corners of each body in a few poses, in the plane of the scene [m]; None without a motion."""
    chosen = steps_shown(len(view.t))
    hulls = {name: [corners(points[k]) for k in chosen] for name, points in view.bodies.items()}
    drawn = [view.fixed, view.path, *(hull for frames in hulls.values() for hull in frames)]
    everything = np.concatenate([points[np.isfinite(points).all(axis=1)] for points in drawn])
    if len(view.t) < 2 or not len(everything):
        return None
    low, high = everything.min(axis=0), everything.max(axis=0)
    decimals = max(0, 4 - math.floor(math.log10(max(float((high - low).max()), 1e-9))))

    def rounded(points: Array) -> list[list[float]]:
        return [[round(float(x), decimals) for x in point] for point in points]

    return {
        "t": [_short(t) for t in view.t[chosen]],
        "box": rounded(np.stack([low, high])),
        "fixed": rounded(view.fixed),
        "path": rounded(view.path[np.isfinite(view.path).all(axis=1)]),
        "bodies": {name: [rounded(hull) for hull in frames] for name, frames in hulls.items()},
        "traced": rounded(view.path[chosen]) if np.isfinite(view.path).all() else [],
    }


def _columns(count: int) -> int:
    return 2 if count == 4 else min(count, 3)


def _places(count: int) -> Iterator[tuple[Sequence[float], Sequence[float]]]:
    """Intervals of the panels in the width and in the height of a chart."""
    columns = _columns(count)
    rows = -(-count // columns)
    width, height = (1 + GAP) / columns, (1 + 2 * GAP) / rows
    for k in range(count):
        x, y = k % columns * width, 1 - (k // columns + 1) * height + 2 * GAP
        yield [x, x + width - GAP], [max(y, 0.0), y + height - 2 * GAP]


def _trace(source: str, t: Array, styles: Mapping[str, Look]) -> Json:
    line = styles[source].line
    dash = line.get("linestyle", "-")
    shown = {
        "color": line["color"],
        "width": 1.5 * float(line.get("linewidth", 1.2)),
        "dash": "solid" if isinstance(dash, str) else ",".join(f"{2 * length:g}px" for length in dash[1]),
    }
    named = {"name": source, "legendgroup": source, "mode": "lines", "line": shown}
    steps = np.diff(t)
    even = len(t) > 1 and np.ptp(steps) < 1e-9 * float(t[-1] - t[0])
    return {**named, **({"x0": float(t[0]), "dx": float(steps.mean())} if even else {"x": [_short(x) for x in t]})}


def _short(value: float) -> float | None:
    """A number with seven digits; None if JSON cannot represent it."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
