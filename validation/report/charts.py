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
from markupsafe import escape

from loopcheck.robots.arrays import Array
from loopcheck.validation.report.figures import FLOOR, Curves, Look
from loopcheck.validation.report.geometry import SAME, steps_shown
from loopcheck.validation.report.schematic import BY_CORNERS, PATH, Scene, corners, slides

Json: TypeAlias = Mapping[str, Any]
PIXELS, PAD = 300, 18
"""Larger side of the moving robot, and the room around it [pixels]."""
SLIDE = 'fill="none" stroke="#888888" stroke-dasharray="5 3"'
"""Look of the line between the bodies of a slide."""
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


def movie(view: Scene, label: str) -> tuple[str, Json] | None:
    """The robot at the start as SVG, and the places of its shapes over time; None without a motion.

    Shapes of class `moving` are the lines of the slides, then the bodies; `traced` is the traced point.

    Args:
        label: The drawing in words.
    """
    chosen = steps_shown(len(view.t))
    lines = [list(points[chosen]) for points in slides(view).values()]
    hulls = [[corners(points[k]) for k in chosen] for points in view.bodies.values()]
    everything = np.concatenate([view.fixed, view.path, *(hull for of_body in hulls for hull in of_body)])
    everything = everything[np.isfinite(everything).all(axis=1)]
    if len(view.t) < 2 or not len(everything):
        return None
    low, high = everything.min(axis=0), everything.max(axis=0)
    size = max(float((high - low).max()), SAME)

    def places(points: Array) -> str:
        """Places in a picture of `PIXELS`, from the left and from above."""
        pixels = (points - [low[0], high[1]]) * [1, -1] * PIXELS / size
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels[np.isfinite(pixels).all(axis=1)])

    moving = [[places(pose) for pose in shape] for shape in [*lines, *hulls]]
    looks = [*([SLIDE] * len(lines)), *(_look(len(of_body[0])) for of_body in hulls)]
    traced = [places(point[None]).split(",") for point in view.path[chosen]] if np.isfinite(view.path).all() else []
    shapes = [
        *(f'<polygon class="moving" points="{poses[0]}" {look}/>' for poses, look in zip(moving, looks, strict=True)),
        *(f'<path d="M{place} l-5,9 h10 z" fill="#1c2024"/>' for place in places(view.fixed).split()),
        f'<polyline points="{places(view.path)}" fill="none" stroke="{PATH}" stroke-width="2"/>',
        *(f'<circle class="traced" cx="{x}" cy="{y}" r="5" fill="{PATH}"/>' for x, y in traced[:1]),
    ]
    width, height = (high - low) * PIXELS / size + 2 * PAD
    frame = f'viewBox="{-PAD} {-PAD} {width:.1f} {height:.1f}" role="img" aria-label="{escape(label)}"'
    return f"<svg {frame}>{''.join(shapes)}</svg>", {
        "t": [_short(t) for t in view.t[chosen]],
        "moving": moving,
        "traced": traced,
    }


def _look(count: int) -> str:
    """Look of a body as a point, a line or an area, by the number of its corners."""
    colour = BY_CORNERS[min(count, 3)].get("color", "none")
    fill = f'fill="{colour}" fill-opacity="0.25"' if count > 2 else 'fill="none"'
    ends = 'stroke-linecap="round" stroke-linejoin="round"'
    return f'{fill} stroke="{colour}" stroke-width="{9 if count == 1 else 3}" {ends}'


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
