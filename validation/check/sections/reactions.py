"""Forces in the joints: section of the report, and lines on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.validation.check.views import case_name, rows_where
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import CASE, SEVERITY
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import schematic
from loopcheck.validation.report.blocks import NOTHING, Block, Cell, Picture, Section, Table, cell, digits

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("connection", "body", "force", "force_t", "moment", "moment_t", "determined")
"""Columns of the section, after the case."""
AXES_TEXT = (
    "Wrench on the named body from its parent, or from the other body of a closure, in the axes of the named body: "
    "about the anchor of a hinge or ball, the moving point of a slide, or the first point of a closure. Both analytic "
    "ways (Newton-Euler equations of the bodies beyond a connection; momentum and virtual work of all bodies at once) "
    "must agree on each determined combination of components. A component that depends on how the loops are cut or "
    "on elasticity is not determined and has no value. Largest values are of the determined components. Errors, "
    "at nine times of the motion, are differences of determined combinations over the largest sum of terms of all "
    "connections, forces and moments apart. Engines read their wrenches while they simulate the motion; a connection "
    "without a reading has no entry."
)


def reactions_section(results: Results) -> Iterator[Section]:
    """Largest loads of the connections, and the errors of all readings, if they were asked for."""
    loads = results.connections
    if loads.empty:
        return
    judged = loads[loads["verdict"] != "reference"]
    names = list(dict.fromkeys(judged["source"]))
    verdicts = {key: rows.to_dict("records") for key, rows in judged.groupby([*CASE, "connection", "source"])}
    titles = [
        "case",
        "connection",
        "on body",
        "force [N]",
        "at [s]",
        "moment [N m]",
        "at [s]",
        "determined of 6",
        *names,
    ]
    rows = []
    for row in loads[loads["source"] == sources.REFERENCE].to_dict("records"):
        key = tuple(row[name] for name in (*CASE, "connection"))
        rows.append(
            [
                Cell(case_name(key[:4], results)),
                *(cell(row[name]) for name in SHOWN),
                *(_verdict_cell(verdicts.get((*key, name), [])) for name in names),
            ]
        )
    noted = judged[judged["note"].fillna("") != ""]
    remarks = [f"{source}: {note}." for source, note in dict.fromkeys(zip(noted["source"], noted["note"], strict=True))]
    title = "Largest loads of the connections"
    blocks: list[Block] = [AXES_TEXT, *_pictures(results), Table(titles, rows), *remarks]
    yield Section(title=title, anchor="reactions", blocks=blocks)


def _pictures(results: Results) -> Iterator[Task]:
    """Tasks that draw the forces of each robot in each configuration, in its first variant and mode."""
    forces = results.reactions[results.reactions["source"] == sources.REFERENCE]
    moved = set(zip(results.free_motion["robot"], results.free_motion["configuration"], strict=True))
    for names, rows in forces.groupby(["robot", "configuration"], sort=False):
        first = {name: str(rows[name].iloc[0]) for name in ("robot", "variant", "mode")}
        points, loads = rows_where(results.points, **first), rows_where(results.connections, **first)
        if len(points) and names not in moved:  # points of motions that follow gravity are those of one configuration
            bodies = dict(zip(loads["connection"], loads["body"], strict=True))
            yield Task(_picture, (rows_where(rows, **first), points, bodies))


def _picture(rows: pd.DataFrame, points: pd.DataFrame, bodies: Mapping[str, str]) -> list[Block]:
    """The forces in three poses.

    Args:
        rows: Of a case in the table of reactions.
        points: Of its motion.
        bodies: Body of each connection.
    """
    scene, times = schematic.scene(points), np.unique(rows["t"])
    if scene is None:
        return []
    samples, seen = np.searchsorted(scene.t, times), (scene.paper != 0).any(axis=0)
    wide = rows.pivot(index=["connection", "t"], columns="component", values="in_world")
    forces = {}
    for connection in rows["connection"].unique():
        body, point = bodies[connection], connection.removesuffix(" (closure)")
        vectors = wide.loc[connection][[f"force.{axis}" for axis in "xyz"]].to_numpy(float)
        projected = np.where(seen, vectors, 0.0) @ scene.paper.T
        if point in scene.names.get(body, ()) and np.isfinite(projected).all():
            k = scene.names[body].index(point)
            places = scene.fixed[None] if body == schematic.WORLD else scene.bodies[body][samples]
            forces[connection] = np.broadcast_to(places[:, k], projected.shape), projected
    lengths = np.array([np.linalg.norm(force, axis=1) for _, force in forces.values()])
    if not lengths.any():
        return []
    thirds = [third for third in np.array_split(np.arange(len(times)), 3) if len(third)]
    drawn = [int(third[lengths[:, third].max(axis=0).argmax()]) for third in thirds]
    shown = {name: (at[drawn], force[drawn]) for name, (at, force) in forces.items()}
    svg = schematic.forces_figure(scene, samples[drawn].tolist(), shown)
    robot, mode, configuration = (rows[name].iloc[0] for name in ("robot", "mode", "configuration"))
    longest = f"{digits(lengths.max())} N, at '{[*forces][lengths.max(axis=1).argmax()]}'"
    alt = f"{robot}, mode {mode}, {configuration}: forces on {', '.join(forces)}, at most {longest}"
    caption = (
        f"{robot}, mode {mode}, {configuration}, {scene.view}: force on the body of each connection at some times, "
        f"each that of the largest force in a third of the motion; all to one scale, longest {longest}. Forces that "
        "are not determined are not drawn."
    )
    return [Picture(svg, alt=alt, caption=caption)] if svg else []


def _verdict_cell(rows: Sequence[Mapping[Any, Any]]) -> Cell:
    """The worst verdict of the readings of a source at a connection, with its error."""
    if not rows:
        return Cell(NOTHING)
    worst = min(rows, key=lambda row: (SEVERITY.index(row["verdict"]), -row["error"]))
    return Cell(f"{worst['verdict']}\n{digits(worst['error'])}", worst["verdict"])


def reactions_line(results: Results) -> Iterator[str]:
    """Lines on the terminal: the largest force, and the agreement of each source with the first analytic way."""
    loads = results.connections
    if loads.empty:
        return
    reference = loads[loads["source"] == sources.REFERENCE]
    largest = reference["force"].max()
    if np.isfinite(largest):
        row = reference.loc[[reference["force"].idxmax()]].to_dict("records")[0]
        place = f"'{row['connection']}' ({row['robot']}, {row['configuration']}, t = {row['force_t']:g} s)"
        yield f"Forces in the joints: at most {digits(largest)} N, at {place}"
    for source, rows in loads[loads["verdict"] != "reference"].groupby("source", sort=False):
        error = f", largest error {rows['error'].max():.1e}" if rows["error"].notna().any() else ""
        if {*rows["verdict"]} == {"informational"}:
            remedy = " without --accuracy" if sources.is_as_is(str(source)) else ""
            yield f"{source}: forces on {len(rows)} connections{error}; not judged{remedy}"
            continue
        agree, others = rows[rows["verdict"] == "agree"], rows[rows["verdict"] != "agree"]
        names = list(
            dict.fromkeys(f"{row['connection'] or 'any'} ({row['verdict']})" for row in others.to_dict("records"))
        )
        rest = f"; not on {', '.join(names[:5])}{' and others' * (len(names) > 5)}" if names else ""
        rest += "".join(f"; {note}" for note in dict.fromkeys(others["note"]) if note)
        yield f"{source}: forces agree on {len(agree)} of {len(rows)} connections{error}{rest}"
