"""The picture of the README: the 3-PRR over its motion, and the forces that its motors need and get in MuJoCo."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from loopcheck.validation.report.figures import as_svg, empty_figure
from loopcheck.validation.report.schematic import draw_pose, frame, scene

CASE = {"variant": "default", "mode": "plus", "configuration": "vertical"}
COLORS = {"q1": "#0072b2", "q2": "#d55e00", "q3": "#009e73"}
"""Colours of the motors, distinct for all readers (Okabe and Ito)."""


def front_picture(results: Path) -> str:
    """The picture as SVG.

    Args:
        results: Folder of `loopcheck check 3prr`.
    """
    points, efforts = (pd.read_csv(results / f"{name}.csv") for name in ("points", "efforts"))
    svg = _drawn(_of_case(points), _of_case(efforts))
    return svg or ""


def _of_case(rows: pd.DataFrame) -> pd.DataFrame:
    for column, value in CASE.items():
        if column in rows:
            rows = rows[rows[column] == value]
    return rows


@as_svg
def _drawn(points: pd.DataFrame, efforts: pd.DataFrame) -> Figure | None:
    figure, view = empty_figure((9, 3.6)), scene(points)
    if view is None:
        return None
    robot, forces = figure.add_axes((0.06, 0.13, 0.36, 0.78)), figure.add_axes((0.52, 0.13, 0.36, 0.78))
    for sample, is_ghost in ((0, True), (len(view.t) // 2, False)):
        draw_pose(robot, view, sample, ghost=is_ghost)
    robot.plot(*view.path.T, color="black", linewidth=1, linestyle=":")
    frame(robot, view, f"3-PRR upright, at {view.t[len(view.t) // 2]:g} s (grey: at rest)")
    for actuator, color in COLORS.items():
        rows = efforts[efforts["actuator"] == actuator]
        needed, simulated = (rows[rows["source"] == source] for source in ("analytic/noc", "mujoco/forward"))
        forces.plot(needed["t"], needed["effort"], color=color, linewidth=2)
        forces.plot(simulated["t"][::5], simulated["effort"][::5], color=color, marker="o", markersize=4, linestyle="")
        forces.annotate(
            actuator,
            (1.0, float(needed["effort"].iloc[-1])),
            xytext=(6, -3),
            textcoords="offset points",
            color=color,
        )
    forces.axhline(0, color="0.7", linewidth=0.8)
    forces.set(xlabel="time [s]", ylabel="force of the motor [N]", title="line: equations of motion, dots: MuJoCo")
    forces.margins(x=0.02)
    return figure
