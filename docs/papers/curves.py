"""Curves of the papers in the layout and units of their figures, for comparison by eye."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docs.papers.cases import prescribed
from docs.papers.values import platform
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.laws import task
from loopcheck.analytic.motion.task import task_efforts
from loopcheck.robots.arrays import Array
from loopcheck.validation.report.figures import COLORS, as_svg, empty_figure
from loopcheck.validation.studies.control.runs import CONTROLLERS, ControlSettings, history

DASHES = ("-", "--", ":", "-.")


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Panels side by side, at most three in a row."""
    columns = min(count, 3)
    rows = -(-count // columns)
    figure = empty_figure((3.6 * columns, 2.9 * rows))
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    figure.subplots_adjust(
        left=0.25 / columns, right=1 - 0.05 / columns, bottom=0.2 / rows, top=1 - 0.12 / rows, wspace=0.4, hspace=0.5
    )
    return figure, axes


def draw(axes: Axes, t: Array, lines: Mapping[str, Array], *, title: str, y: str, x: str = "time [s]") -> None:
    """Lines that differ by colour and dashes."""
    for k, (name, values) in enumerate(lines.items()):
        axes.plot(t, values, color=COLORS[k % len(COLORS)], linestyle=DASHES[k % len(DASHES)], label=name)
    axes.set(title=title, xlabel=x, ylabel=y)
    if len(lines) > 1:
        axes.margins(y=0.1 + 0.07 * len(lines))
        is_many = len(lines) > 3
        axes.legend(fontsize="small", ncols=3 if is_many else 1, loc="upper center" if is_many else "best")


@as_svg
def platform_of_kordjazi() -> Figure:
    """Fig. 6: path of P, and orientation of the platform over time, in both modes."""
    figure, (left, right) = panels(2)
    for k, mode in enumerate(("plus", "minus")):
        path = platform(mode)
        look: dict[str, Any] = {"color": COLORS[k], "linestyle": DASHES[k], "label": f"mode {mode}"}
        left.plot(path["x"], path["y"], **look)
        left.plot(path["x"][:1], path["y"][:1], color=COLORS[k], marker="o", linestyle="")
        right.plot(path["t"], path["angle"], **look)
    left.set(title="Fig. 6 left: path of P", xlabel="x [m]", ylabel="y [m]")
    right.set(title="Fig. 6 right: orientation", xlabel="time [s]", ylabel="angle of the platform [deg]")
    for axes in (left, right):
        axes.legend(fontsize="small")
    return figure


def efforts(robot: str, configurations: Mapping[str, str], mode: str = "") -> Figure:
    """Efforts of all motors over time, a panel for each configuration with its title."""
    figure, axes = panels(len(configurations))
    for panel, (configuration, title) in zip(axes, configurations.items(), strict=True):
        case, motion = prescribed(robot, configuration=configuration, mode=mode)
        effort = Noc().compute_efforts(case, motion).effort
        names = [actuator.name for actuator in case.mechanism.actuators]
        unit = case.mechanism.actuator_units[0]
        draw(panel, motion.t, dict(zip(names, effort.T, strict=True)), title=title, y=f"effort [{unit}]")
    return figure


@as_svg
def forces_of_kordjazi() -> Figure:
    """Figs 12 and 13."""
    return efforts("3prr", {"vertical": "Fig. 12: vertical", "horizontal": "Fig. 13: horizontal"}, mode="plus")


@as_svg
def control_of_zubizarreta() -> Figure:
    """Figs 7 to 9: position error, x and y of P, and six joints over time, at 5 %."""
    runs = {name: history(ControlSettings(), name, "pmp", 0, 5.0) for name in CONTROLLERS}
    figure, (error, place, joints) = panels(3)
    t = next(iter(runs.values()))["t"].to_numpy()
    draw(
        error,
        t,
        {name: 1e3 * run["error"].to_numpy() for name, run in runs.items()},
        title="Fig. 7: 5 %",
        y="error [mm]",
    )
    extended = runs["extended"]
    draw(
        place,
        t,
        {name: extended[name].to_numpy() for name in ("x", "y")},
        title="Fig. 8: extended",
        y="position of P [m]",
    )
    names = [f"{kind}{i}" for kind in ("qa", "qp") for i in (1, 2, 3)]
    draw(joints, t, {name: unwound(extended[name]) for name in names}, title="Fig. 9: extended", y="joints [rad]")
    return figure


def unwound(angles: "pd.Series[float]") -> Array:
    """Angles without jumps by full turns."""
    return np.unwrap(angles.to_numpy(float))


@as_svg
def task_of_wang() -> Figure:
    """Figs 4 to 6: α, β and ζ, and the moments and force on them."""
    case, motion = prescribed("2pur2rpu", configuration="horizontal")
    law = task(case)
    if law is None:
        raise TypeError("2pur2rpu: the law must be given for the platform")
    effort = Noc().compute_efforts(case, motion).effort
    figure, axes = panels(6)
    on_task = task_efforts(law, case.mechanism, motion.t, effort)
    for k, (name, jet) in enumerate(zip(law.coordinates, law.path(motion.t), strict=True)):
        draw(axes[k], motion.t, {name: jet.x}, title=f"Figs 4 to 6: {name}", y=f"{name} [{law.units[k]}]")
        force = f"generalized force [{law.effort_units[k]}]"
        draw(axes[3 + k], motion.t, {name: on_task[:, k]}, title=f"on {name}", y=force)
    return figure


@as_svg
def forces_of_wang() -> Figure:
    """Fig. 10."""
    return efforts("2pur2rpu", {"horizontal": "Fig. 10: forces of least norm"})


@as_svg
def forces_of_staicu() -> Figure:
    """Figs 3 to 5."""
    return efforts("2t1r", {"horizontal": "Figs 3 to 5: forces of A, B, C"})


CURVES: Mapping[str, Sequence[tuple[str, str, Callable[[], str | None]]]] = {
    "kordjazi2011": [
        ("platform", "path of P and orientation of the platform of the 3-PRR in both modes", platform_of_kordjazi),
        ("forces", "motor forces of the 3-PRR over time, vertical and horizontal", forces_of_kordjazi),
    ],
    "zubizarreta2010": [("control", "error, path and joints of the 3-RRR under control", control_of_zubizarreta)],
    "wang2019": [
        ("task", "angles, height and generalized forces of the 2PUR-2RPU over time", task_of_wang),
        ("forces", "slider forces of the 2PUR-2RPU over time", forces_of_wang),
    ],
    "staicu2006": [("forces", "forces of the 2T1R over time", forces_of_staicu)],
}
"""Name, description and picture of the curves of each paper."""
