"""Section of the report: robots, assumptions and motions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loopcheck.validation.comparison.results import Results
from loopcheck.validation.comparison.verdicts import about_robots
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import charts, figures, schematic
from loopcheck.validation.report.blocks import Block, Movie, Picture, Section, facts, plain, svg_uri, table
from loopcheck.validation.studies.check.views import part_of, rows_where

if TYPE_CHECKING:
    import pandas as pd


def robots(results: Results) -> Section:
    """Robots, assumptions and motions."""
    import pandas as pd

    parts: list[Section] = []
    for name, about in about_robots(results).items():
        blocks: list[Block] = [facts({"name": name, "source": about.get("source")})]
        blocks += [table(pd.DataFrame([about["mechanism"]]))] if about.get("mechanism") else []
        blocks += [f"{about['in_words']!s}."] if about.get("in_words") else []
        lists = {
            "Check the model:": about.get("oddities"),
            "Unactuated dofs (they follow from the dynamics):": about.get("undriven"),
            "Motion:": about.get("motion"),
            "Assumptions:": about.get("assumptions"),
            "Limits of the model that the motion exceeds:": about.get("beyond_limits"),
            "Not in the equations:": about.get("left_out"),
        }
        for heading, items in lists.items():
            blocks += [heading, list(map(plain, items))] if items else []
        blocks += _closed_twin(about.get("closed_twin") or {})
        if about.get("errata"):
            blocks += ["Corrected errata of the paper:", table(pd.DataFrame(about["errata"]))]
        parts.append(
            Section(
                title=str(about.get("title") or name),
                anchor=f"robot-{len(parts) + 1}",
                blocks=[
                    *blocks,
                    Task(
                        _pictures_of,
                        (
                            name,
                            about,
                            part_of(results, "points", "motion", "task", robot=name),
                            first_mode(results),
                        ),
                    ),
                ],
            )
        )
    return Section(title="Robots", anchor="robots", blocks=parts)


def _closed_twin(twin: Mapping[str, Any]) -> list[Block]:
    """Errors of a robot without loops against its closed twin."""
    import pandas as pd

    if not twin:
        return []
    heading = (
        f"This model has no loops. Its closed-loop version is {twin['file']}. Errors of the motor efforts along a "
        f"random motion, unmodified and with the best constants. Details: loopcheck serial {twin['file']} "
        f"{twin['model']}"
    )
    return [heading, table(pd.DataFrame(twin["motors"])) if twin["motors"] else f"Not compared: {twin['reason']}."]


def _pictures_of(robot: str, about: Mapping[str, Any], results: Results, first: tuple[str, str]) -> list[Block]:
    """The robot, and how it moves."""
    return [*_drawings(robot, results, first), *_motions(robot, about, results.motion), *_tasks(robot, results.task)]


def first_mode(results: Results) -> tuple[str, str]:
    """Robot and mode animated on the first screen; empty texts without an animation."""
    return next(results.points[["robot", "mode"]].itertuples(index=False, name=None), ("", ""))


def first_movie(results: Results) -> list[Block]:
    """The first robot in its first mode, as it moves."""
    robot, mode = first_mode(results)
    rows = rows_where(results.points, robot=robot, mode=mode)
    scene = schematic.scene(rows[rows["variant"] == rows["variant"].iloc[0]]) if len(rows) else None
    return list(_movie(robot, mode, scene)) if scene else []


def _drawings(robot: str, results: Results, first: tuple[str, str]) -> Iterable[Picture | Movie]:
    """The robot in each of its modes, in the first variant that has it; the first mode moves on the first screen."""
    for mode, rows in rows_where(results.points, robot=robot).groupby("mode", sort=False):
        scene = schematic.scene(rows_where(rows, variant=str(rows["variant"].iloc[0])))
        svg = schematic.robot_figure(scene) if scene else None
        if scene and svg:
            plane = " and ".join(scene.axes)
            path = f"path of {scene.traced}" if scene.traced else ""
            yield Picture(
                svg,
                alt=", ".join(filter(None, (f"{robot}, mode {mode}: first and last pose in {plane}", path))),
                caption=f"Mode {mode}, in the plane of {plane}. Triangles: fixed points. Grey: initial pose."
                + f" Orange: {path}." * bool(path),
            )
        if scene and (robot, mode) != first:
            yield from _movie(robot, str(mode), scene)


def _movie(robot: str, mode: str, scene: schematic.Scene) -> Iterable[Movie]:
    """The moving robot in the plane of the scene."""
    if moving := charts.movie(scene):
        yield Movie(
            moving,
            alt=f"{robot}, mode {mode}, in motion, in the plane of {' and '.join(scene.axes)}",
            caption=f"{robot}, mode {mode}, in motion.",
            still=svg_uri(schematic.pose_figure(scene) or ""),
        )


def _motions(robot: str, about: Mapping[str, Any], motion: pd.DataFrame) -> Iterable[Picture]:
    """Motion of the actuated joints in each mode, in its first variant; equal motions appear once."""
    drawn: set[bytes] = set()
    for mode, rows in rows_where(motion, robot=robot).groupby("mode", sort=False):
        of_mode = rows_where(rows, variant=str(rows["variant"].iloc[0]))
        units = about.get("actuated") or {}
        moved = of_mode[of_mode["joint"].isin(units)][["q", "qd", "qdd"]].to_numpy(float).tobytes()
        svg = None if moved in drawn else figures.motion_figure(of_mode, units)
        drawn.add(moved)
        if svg:
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: position, velocity and acceleration of {', '.join(units)} over time",
                caption=f"Prescribed motion of the actuated joints, mode {mode}.",
            )


def _tasks(robot: str, task: pd.DataFrame) -> Iterable[Picture]:
    """Motion of the platform in each mode, in its first variant; equal motions appear once."""
    drawn: set[bytes] = set()
    for mode, rows in rows_where(task, robot=robot).groupby("mode", sort=False):
        of_mode = rows_where(rows, variant=str(rows["variant"].iloc[0]))
        moved = of_mode[["x", "xd", "xdd"]].to_numpy(float).tobytes()
        svg = None if moved in drawn else figures.task_figure(of_mode)
        drawn.add(moved)
        if svg:
            names = ", ".join(of_mode["coordinate"].unique())
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: {names} with rates and accelerations over time",
                caption=f"Prescribed motion in task coordinates, {names}, mode {mode}.",
            )
