"""Section of the report: robots, assumptions and motions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopcheck.validation.check.views import part_of, rows_where
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import about_robots
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import charts, figures, schematic
from loopcheck.validation.report.blocks import Block, Movie, OnRequest, Picture, Section, facts, plain, table

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
                blocks=[*blocks, *_pictures(name, about, results)],
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


def _pictures(robot: str, about: Mapping[str, Any], results: Results) -> Iterable[OnRequest]:
    """The task that draws a robot that has moved."""
    part = part_of(results, "points", "motion", "task", robot=robot)
    if len(part.points) or len(part.motion):
        yield OnRequest(Task(_pictures_of, (robot, about, part, _first_mode(results))))


def _pictures_of(robot: str, about: Mapping[str, Any], results: Results, first: tuple[str, str]) -> list[Block]:
    """The robot, and how it moves."""
    return [*_drawings(robot, results.points, first), *_motions(robot, about, results), *_tasks(robot, results)]


def _first_mode(results: Results) -> tuple[str, str]:
    """Robot and mode animated on the first screen; empty texts without an animation."""
    return next(results.points[["robot", "mode"]].itertuples(index=False, name=None), ("", ""))


def first_movie(results: Results) -> list[Block]:
    """The first robot in its first mode, as it moves."""
    robot, mode = _first_mode(results)
    modes = _modes(rows_where(results.points, robot=robot, mode=mode), ["x", "y", "z"])
    scenes = (schematic.scene(rows) for _, rows in modes)
    return [movie for scene in scenes if scene for movie in _movie(robot, mode, scene)]


def _modes(rows: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows of a robot in each mode, in its first variant; modes with equal motions appear once.

    Args:
        columns: Columns with the motion.
    """
    motions: set[bytes] = set()
    for mode, of_mode in rows.groupby("mode", sort=False):
        of_variant = rows_where(of_mode, variant=str(of_mode["variant"].iloc[0]))
        motion = of_variant[columns].to_numpy(float).tobytes()
        if motion not in motions:
            motions.add(motion)
            yield str(mode), of_variant


def _drawings(robot: str, points: pd.DataFrame, first: tuple[str, str]) -> Iterable[Picture | Movie]:
    """The robot in each of its modes; the first mode moves on the first screen."""
    for mode, rows in _modes(points, ["x", "y", "z"]):
        scene = schematic.scene(rows)
        svg = schematic.robot_figure(scene) if scene else None
        if scene and svg:
            path = f"path of {scene.traced}" if scene.traced else ""
            yield Picture(
                svg,
                alt=", ".join(filter(None, (f"{robot}, mode {mode}: first and last pose, {scene.view}", path))),
                caption=f"Mode {mode}, {scene.view}. Grey: initial pose.{_legend(scene)}",
            )
        if scene and (robot, mode) != first:
            yield from _movie(robot, mode, scene)


def _movie(robot: str, mode: str, scene: schematic.Scene) -> Iterable[Movie]:
    alt = f"{robot}, mode {mode}, in motion, {scene.view}"
    if drawn := charts.movie(scene, alt):
        yield Movie(*drawn, alt=alt, caption=f"{alt}.{_legend(scene)}")


def _legend(scene: schematic.Scene) -> str:
    fixed = " Triangles: fixed points." if len(scene.fixed) else ""
    return fixed + (f" Orange: path of {scene.traced}." if scene.traced else "")


def _motions(robot: str, about: Mapping[str, Any], results: Results) -> Iterable[Picture]:
    """Motion of the actuated joints in each mode."""
    units = about.get("actuated") or {}
    driven = results.motion[results.motion["joint"].isin(units)]
    for mode, rows in _modes(driven, ["q", "qd", "qdd"]):
        if svg := figures.motion_figure(rows, units):
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: position, velocity and acceleration of {', '.join(units)} over time",
                caption=f"Prescribed motion of the actuated joints, mode {mode}.",
            )


def _tasks(robot: str, results: Results) -> Iterable[Picture]:
    """Motion of the platform in each mode."""
    for mode, rows in _modes(results.task, ["x", "xd", "xdd"]):
        if svg := figures.task_figure(rows):
            names = ", ".join(rows["coordinate"].unique())
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: {names} with rates and accelerations over time",
                caption=f"Prescribed motion in task coordinates, {names}, mode {mode}.",
            )
