"""Draws a robot from the points of its bodies: first and last pose, path of the traced point, turns, forces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.validation.report.figures import COLORS, DASHES, as_svg, empty_figure, literal, make_panels, put_legend
from loopcheck.validation.report.geometry import SAME, TRACE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORLD = "world"
MOST_IN_PANEL = 4
"""Entries of a legend that have room beside the curves."""
MOST_NAMED = 40
"""Largest number of places with joint names."""
BESIDE, ABOVE = np.radians(30), np.radians(25)
"""Viewing direction of spatial robots: from X towards Y, and above the X-Y plane [rad]."""
OBLIQUE = np.array([[-sin(BESIDE), cos(BESIDE), 0], [-cos(BESIDE) * sin(ABOVE), -sin(BESIDE) * sin(ABOVE), cos(ABOVE)]])
"""Directions to the right and up on the paper of that view, in world axes [-]."""
LONGEST = 0.3
"""Length of the longest arrow over the width or height of the robot [-]."""
INVISIBLE = 0.1
"""Size of the head of an arrow that nobody sees [points]."""
MOST_COLOURED = 18
"""Largest number of connections with colours of their own."""
THIN = 0.1
"""Largest thickness of a flat robot, over its length [-]."""
NEAR = 1e-3
"""Points closer than this are named together [m]."""

_GHOST: Mapping[str, Any] = {"color": "#c4c4c4"}
BY_CORNERS: Mapping[int, Mapping[str, Any]] = {
    0: {},
    1: {"color": COLORS[4]},
    2: {"color": COLORS[0]},
    3: {"color": COLORS[2]},
}
_SLIDE: Mapping[str, Any] = {"color": "#888888", "linewidth": 1.2, "linestyle": (0, (4, 2)), "zorder": 1.5}
_NAME: Mapping[str, Any] = {"fontsize": 8, "zorder": 5}
PATH = COLORS[1]
"""Colour of the path of the traced point."""
_PATH: Mapping[str, Any] = {"color": PATH, "linewidth": 1.8, "zorder": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A robot in a mode, projected onto a plane of the world, or seen obliquely from above."""

    t: Array
    """Time [s], shape (nt,)."""
    axes: tuple[str, str]
    """Names of the world axes that span the plane."""
    paper: Array
    """Directions to the right and up on the paper, in world axes [-], shape (2, 3)."""
    planar: bool
    """Whether all points stay in the plane; otherwise the view is oblique, and the axes are those of the paper."""
    bodies: Mapping[str, Array]
    """Characteristic points of the moving bodies [m], each of shape (nt, points, 2)."""
    names: Mapping[str, tuple[str, ...]]
    """Names of the points, including points of the world: joints and closures."""
    fixed: Array
    """Points of the world [m], shape (points, 2)."""
    traced: str
    """Name of the traced point."""
    path: Array
    """Path of the traced point [m], shape (nt, 2); NaN without a traced point."""

    @property
    def view(self) -> str:
        """The direction of view in words."""
        return f"in the plane of {' and '.join(self.axes)}" if self.planar else "seen obliquely from above"


def scene(points: pd.DataFrame) -> Scene | None:
    """The scene of one mode of a robot from its rows of the table of points, or None without rows."""
    points = points.dropna(subset=["t", "x", "y", "z"]).drop_duplicates(["t", "body", "point"])
    if points.empty:
        return None
    extent = points[["x", "y", "z"]].max() - points[["x", "y", "z"]].min()
    across = min(("z", "y", "x"), key=lambda name: extent[name])
    if points["t"].nunique() == 1:
        planar = bool(extent.min() < THIN * extent.max())
    else:
        planar = bool(points.groupby(["body", "point"])[across].agg(np.ptp).max() < SAME)
    plane = [name for name in "xyz" if name != (across if planar else "z")]
    paper = np.array([[name == other for other in "xyz"] for name in plane], dtype=float) if planar else OBLIQUE
    t = np.unique(points["t"].to_numpy(float))
    wide = points.pivot(index="t", columns=["body", "point"], values=["x", "y", "z"])
    by_body = {
        str(body): np.stack([wide[name][body].to_numpy(float) for name in "xyz"], axis=-1) @ paper.T
        for body in points["body"].unique()
    }
    names = {body: tuple(map(str, wide["x"][body].columns)) for body in by_body}
    path, fixed = by_body.pop(TRACE, None), by_body.pop(WORLD, None)
    return Scene(
        t=t,
        axes=(plane[0].upper(), plane[1].upper()),
        paper=paper,
        planar=planar,
        bodies=by_body,
        names=names,
        fixed=np.zeros((0, 2)) if fixed is None else fixed[0],
        traced=str(points.loc[points["body"] == TRACE, "point"].iloc[0]) if path is not None else "",
        path=np.full((len(t), 2), np.nan) if path is None else path[:, 0],
    )


@as_svg
def robot_figure(view: Scene) -> Figure | None:
    """The robot at the start and at the end, the path of the traced point, and how far each body has turned."""
    traced, turning = bool(np.isfinite(view.path).any()), turns(view)
    many = len(turning) > MOST_IN_PANEL
    figure, panels = make_panels(2 + traced + bool(turning), legend=len(turning) * many, height=3.5)
    for axes, sample, name in zip(panels, (0, -1), ("initial", "final"), strict=False):
        if sample == -1:
            draw_pose(axes, view, 0, ghost=True)
        draw_pose(axes, view, sample)
        axes.plot(*view.path.T, **_PATH)
        axes.plot(*view.path[[sample]].T, **_PATH, marker="o", markeredgecolor="white", markersize=7)
        frame(axes, view, f"{name} pose, t = {view.t[sample]:g} s")
    panels[0].set(xlim=panels[1].get_xlim(), ylim=panels[1].get_ylim())  # which shows both poses
    if traced:
        _draw_path(panels[2], view)
    if turning:
        _draw_turns(panels[-1], view.t, turning)
    if many:
        put_legend(figure, panels[-1:])
    elif turning:
        panels[-1].legend(loc="best", handlelength=4)
    return figure


@as_svg
def forces_figure(view: Scene, samples: Sequence[int], forces: Mapping[str, tuple[Array, Array]]) -> Figure | None:
    """The robot in some poses in grey, with the forces on its connections, all to one scale.

    Args:
        view: Robot.
        samples: Numbers of the poses.
        forces: Places [m] and forces [N] by connection, each of shape (poses, 2); nothing is drawn for NaN.
    """
    bodies = [points[list(samples)].reshape(-1, 2) for points in view.bodies.values()]
    robot = np.concatenate([view.fixed, *bodies, *(at for at, _ in forces.values())])
    largest = max((float(np.linalg.norm(force, axis=1).max()) for _, force in forces.values()), default=0.0)
    if not largest:
        return None
    extent = float(np.max(np.nanmax(robot, axis=0) - np.nanmin(robot, axis=0)))
    scale = LONGEST * extent / largest  # m per N
    arrows = {name: (at, at + scale * force) for name, (at, force) in forces.items()}
    drawn = np.concatenate([robot, *(tip for _, tip in arrows.values())])
    low, high = np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0)
    low[1] -= 0.12 * extent  # room for the scale
    few = len(forces) <= MOST_COLOURED
    figure, panels = make_panels(len(samples), legend=few * len(forces), height=3.5)
    for k, (axes, sample) in enumerate(zip(panels, samples, strict=True)):
        draw_pose(axes, view, sample, ghost=True)
        axes.plot(*view.fixed.T, linestyle="none", marker="^", color="#777777", markersize=7, zorder=2.5)
        for n, (name, (at, tip)) in enumerate(arrows.items()):
            look = {"color": COLORS[n % 6 if few else 0], "linestyle": DASHES[n // 6 if few else 0]}
            below = sum(np.linalg.norm(other[k] - at[k]) < NEAR for other, _ in [*arrows.values()][:n])
            head = min(10.0, 60 * float(np.linalg.norm(tip[k] - at[k])) / (LONGEST * extent))  # half of a short arrow
            if head > INVISIBLE:
                _draw_arrow(axes, at[k], tip[k], head, linewidth=1.2 if below else 2.2, **look)
            axes.plot([], [], **look, linewidth=2.2, label=literal(name))
        axes.update_datalim([low, high])
        frame(axes, view, f"t = {view.t[sample]:g} s")
        panels[0].set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    step = 10.0 ** np.floor(np.log10(largest / 2))
    newtons = step * max(factor for factor in (1, 2, 5) if factor * step <= largest / 2)
    end = low + np.array([scale * newtons, 0])
    _draw_arrow(panels[0], low, end, 10, color="black", linewidth=1.8)
    place: Any = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    panels[0].annotate(f"{newtons:g} N", tuple(end), **place, **_NAME)
    if few:
        put_legend(figure, panels)
    return figure


def _draw_arrow(axes: Axes, start: Array, end: Array, head: float, **look: Any) -> None:
    shape = {"arrowstyle": "-|>", "mutation_scale": head, "shrinkA": 0, "shrinkB": 0, "joinstyle": "miter"}
    axes.annotate("", tuple(end), tuple(start), arrowprops={**shape, **look}, zorder=4)


@as_svg
def linkage_figure(points: pd.DataFrame, most_named: int = MOST_NAMED) -> Figure | None:
    """A robot at its start, with the names of its joints and closures and the path of the traced point.

    Args:
        points: Its rows of the table of points, of one mode.
        most_named: Largest number of places with names of joints [-].
    """
    view = scene(points)
    if view is None:
        return None
    figure = empty_figure((5.5, 4.5))
    axes = figure.add_axes((0.13, 0.11, 0.84, 0.84))
    draw_pose(axes, view, 0)
    axes.plot(*view.path.T, **_PATH)
    _name_joints(axes, view, most_named)
    frame(axes, view, "")
    return figure


def slides(view: Scene) -> Mapping[str, Array]:
    """Points of each slide on its bodies, by its name [m], each of shape (nt, points, 2)."""
    places: dict[str, list[Array]] = {}
    for body, points in {**view.bodies, WORLD: np.broadcast_to(view.fixed, (len(view.t), *view.fixed.shape))}.items():
        for k, name in enumerate(view.names.get(body, ())):
            places.setdefault(name, []).append(points[:, k])
    stacked = {name: np.stack(of_joint, axis=1) for name, of_joint in places.items()}
    return {name: points for name, points in stacked.items() if np.ptp(points, axis=1).max() > SAME}


def _name_joints(axes: Axes, view: Scene, most_named: int) -> None:
    """Write the names of joints and closures at their initial places, the names of one place on one line."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    names: dict[tuple[int, int], dict[str, Array]] = {}
    for body, points in view.bodies.items():
        for name, place in zip(view.names[body], points[0], strict=True):
            x, y = np.round(place / NEAR)
            names.setdefault((int(x), int(y)), {})[name] = place
    for places in names.values() if len(names) <= most_named else ():
        x, y = next(iter(places.values()))
        axes.annotate(
            literal(", ".join(places)), (x, y), (5, 5), textcoords="offset points", path_effects=halo, **_NAME
        )


def turns(view: Scene) -> Mapping[str, Array]:
    """Rotation of each rotating body since the start, planar robots only [deg], each of shape (nt,)."""
    angles = {}
    for name, edge in _longest_edges(view):
        angle = np.unwrap(np.arctan2(edge[:, 1], edge[:, 0]))
        if np.ptp(angle) > SAME:
            angles[name] = np.degrees(angle - angle[0])
    return angles


def _longest_edges(view: Scene) -> Iterator[tuple[str, Array]]:
    """The vector [m] from the first point of each body to its farthest point, shape (nt, 2)."""
    for name, points in view.bodies.items() if view.planar else ():
        edges = points - points[:, :1]
        lengths = np.linalg.norm(edges[0], axis=-1)
        if np.isfinite(edges).all() and lengths.max() > SAME:
            yield name, edges[:, int(np.argmax(lengths))]


def draw_pose(axes: Axes, view: Scene, sample: int, *, ghost: bool = False) -> None:
    """Draw every body as a marker, a line or a polygon, by the number of its points."""
    if not ghost:
        axes.plot(*view.fixed.T, linestyle="none", marker="^", color="black", markersize=7, zorder=3.5)
        for of_slide in slides(view).values():
            axes.plot(*of_slide[sample].T, **_SLIDE)
    for points in view.bodies.values():
        hull = corners(points[sample])
        look = _GHOST if ghost else BY_CORNERS[min(len(hull), 3)]
        if len(hull) == 1:
            axes.plot(*hull.T, **look, marker="s", markersize=9, zorder=2.5)
        elif len(hull) == 2:
            axes.plot(*hull.T, **look, marker="o", linewidth=3, zorder=3)
        elif len(hull) > 2:
            axes.fill(*hull.T, **look, alpha=0.25, zorder=2)
            axes.plot(*np.vstack([hull, hull[:1]]).T, **look, marker="o", linewidth=2, zorder=3)


def corners(points: Array) -> Array:
    """Corners of the convex hull of a body's points, counterclockwise (Andrew's monotone chain).

    Args:
        points: Points of a body in the plane [m], shape (points, 2); NaN for missing points.

    Returns:
        The corners [m], shape (corners, 2).
    """
    kept: list[Array] = []
    for point in points[np.isfinite(points).all(axis=1)]:
        if all(np.linalg.norm(point - other) > SAME for other in kept):
            kept.append(point)
    kept.sort(key=tuple)
    hull = kept if len(kept) < 3 else [*_chain(kept), *_chain(kept[::-1])]
    return np.array(hull).reshape(-1, 2)


def _chain(points: list[Array]) -> list[Array]:
    """The points of one side of a hull, without the last, the first of the other side."""
    chain: list[Array] = []
    for point in points:
        while len(chain) > 1 and _area(chain[-2], chain[-1], point) <= SAME**2:
            chain.pop()
        chain.append(point)
    return chain[:-1]


def _area(a: Array, b: Array, c: Array) -> float:
    """Twice the area of a triangle [m²], positive if it turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _draw_path(axes: Axes, view: Scene) -> None:
    axes.plot(*view.path.T, **_PATH)
    for sample, fill, name in ((0, "white", "start"), (-1, _PATH["color"], "end")):
        axes.plot(
            *view.path[[sample]].T, **{**_PATH, "linestyle": "none"}, marker="o", markerfacecolor=fill, label=name
        )
    axes.legend(loc="best")
    frame(axes, view, f"path of {literal(view.traced)}")


def _draw_turns(axes: Axes, t: Array, turning: Mapping[str, Array]) -> None:
    for k, (name, angle) in enumerate(turning.items()):
        axes.plot(t, angle, color=COLORS[k % 6], linestyle=DASHES[k % 7], linewidth=1.6, label=literal(name))
    axes.set(title="turn of the bodies since the start", xlabel="time [s]", ylabel="angle [deg]")


def frame(axes: Axes, view: Scene, title: str) -> None:
    """Limits that hold all that is drawn, at equal scale in both directions."""
    axes.locator_params(axis="x", nbins=5)
    low, high = np.array(axes.dataLim.min), np.array(axes.dataLim.max)
    axes.set(title=title, xlabel=f"{view.axes[0]} [m]", ylabel=f"{view.axes[1]} [m]", aspect="equal")
    if not np.isfinite([low, high]).all():
        return
    place = np.array(axes.get_window_extent().size)
    half = 0.575 * place * max(float(((high - low) / place).max()), SAME)
    (x0, y0), (x1, y1) = (low + high) / 2 - half, (low + high) / 2 + half
    axes.set(xlim=(x0, x1), ylim=(y0, y1))
    if not view.planar:
        axes.set_axis_off()  # of the paper, not of the world
