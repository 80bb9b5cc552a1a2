"""Forces in the joints: rows of the tables `reactions` and `connections`, in worker processes, and their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.reactions import ROUND_OFF, Reactions, reactions
from loopcheck.analytic.motion.configurations import normal
from loopcheck.robots.connections import COMPONENTS, Connection
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import WORLD, ConnectClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.views import case_name
from loopcheck.validation.common.results import Results, table
from loopcheck.validation.common.verdicts import CASE, within
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report.blocks import Cell, Section, Table, cell, digits

if TYPE_CHECKING:
    import pandas as pd

    from loopcheck.validation.check.plan import Motions
    from loopcheck.validation.execution.workers import WorkerPool

OF_GAP = 1.0
"""Allowed relative difference of both ways per accuracy of the loops [-]: a force has that moment at a gap."""
AXES_TEXT = (
    "Wrench on the named body from its parent, or from the other body of a closure, in the axes of the named body: "
    "about the anchor of a hinge or ball, the moving point of a slide, or the first point of a closure. Both analytic "
    "ways (Newton-Euler equations from the leaves; energies of free bodies with the equations of all bodies at once) "
    "must agree on each determined combination of components. A component that depends on how the loops are cut or "
    "on elasticity is not determined and has no value. Largest values are of the determined components at nine "
    "times of the motion."
)


SHOWN = ("connection", "body", "force", "force_t", "moment", "moment_t", "determined")
"""Columns of the section, after the case."""


class Rows(NamedTuple):
    """Rows of a case."""

    reactions: Sequence[Mapping[str, Any]]
    connections: Sequence[Mapping[str, Any]]


def reaction_tables(cases: Sequence[Case], motions: Motions, pool: WorkerPool) -> Mapping[str, pd.DataFrame]:
    """Both tables of all cases with a motion."""
    moving = [(case, motion) for case in cases if isinstance(motion := motions.get(case.key), Motion)]
    tasks = [Task(reaction_rows, (case, motion), partial(_not_run, case)) for case, motion in moving]
    rows: list[Rows] = pool.results(tasks, "forces in the joints")
    return {
        name: table(name, [row for of_case in rows for row in getattr(of_case, name)])
        for name in ("reactions", "connections")
    }


def reaction_rows(case: Case, motion: Motion) -> Rows:
    """Wrenches of all connections at some samples, their largest values and verdicts."""
    try:
        found = reactions(case, motion, normal(case.mechanism))
    except HarnessError as error:
        return _not_run(case, str(error))
    except Exception as error:  # a bug of ours is a result too: the other rows must not be lost
        return _not_run(case, internal_error(error))
    values = np.where(np.abs(found.recursive.wrench) < _zero(found), 0.0, found.recursive.wrench)
    values = np.where(found.of_robot.components.all(axis=0), values, np.nan)
    of_case, times = dict(zip(CASE, case.key, strict=True)), found.motion.t
    balls = [closure.name for closure in case.mechanism.closures if isinstance(closure, ConnectClosure)]
    rows = [
        {
            **of_case,
            "connection": connection.name,
            "component": component,
            "unit": "N m" if i < 3 else "N",
            "t": t,
            "value": values[k, j, i],
            "unique": _unique(found, j, i, balls),
        }
        for j, connection in enumerate(found.connections)
        for i, component in enumerate(COMPONENTS)
        for k, t in enumerate(times)
    ]
    limit = ROUND_OFF + OF_GAP * case.mechanism.closing.accuracy
    loads = [
        {
            **of_case,
            "connection": connection.name,
            "body": _body(case, connection),
            **_largest("force", values[:, j, 3:], times),
            **_largest("moment", values[:, j, :3], times),
            "determined": int(found.of_robot.functionals[:, j].min()),
            "error": found.error[j],
            "tolerance": limit,
            "verdict": "agree" if within(float(found.error[j]), limit) else "disagree",
            "note": "",
        }
        for j, connection in enumerate(found.connections)
    ]
    return Rows(rows, loads)


def _zero(found: Reactions) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Values below which a component is round-off [N m, N], shape (6,)."""
    return ROUND_OFF * np.repeat(found.recursive.terms, 3)


def _unique(found: Reactions, connection: int, component: int, balls: Sequence[str]) -> str:
    """Whether a component is unique in all samples, in words."""
    if found.of_robot.components[:, connection, component].all():
        return "yes"
    by_file = found.of_file.components[:, connection, component].all()
    return f"no: the file closes {', '.join(balls)} as a ball" if by_file else "no"


def _body(case: Case, connection: Connection) -> str:
    return "world" if connection.body == WORLD else case.mechanism.bodies[connection.body].name


def _largest(name: str, values: Any, times: Any) -> Mapping[str, float]:
    """Largest length of the determined part of a vector (nt, 3), and its time; NaN if no component is determined."""
    if np.isnan(values).all():
        return {name: np.nan, f"{name}_t": np.nan}
    lengths = np.sqrt(np.nansum(values**2, axis=1))
    return {name: float(lengths.max()), f"{name}_t": float(times[lengths.argmax()])}


def _not_run(case: Case, reason: str) -> Rows:
    of_case = dict(zip(CASE, case.key, strict=True))
    numbers = dict.fromkeys(("force", "force_t", "moment", "moment_t", "error", "tolerance"), np.nan)
    row = {**of_case, "connection": "", "body": "", **numbers, "determined": 0, "verdict": "not run", "note": reason}
    return Rows([], [row])


def reactions_section(results: Results) -> Iterator[Section]:
    """Largest loads of the connections, if they were asked for."""
    loads = results.connections
    if loads.empty:
        return
    columns = ["case", "connection", "on body", "force [N]", "at [s]", "moment [N m]", "at [s]", "determined of 6", ""]
    rows = [
        [
            Cell(case_name((row["robot"], row["variant"], row["mode"], row["configuration"]), results)),
            *(cell(row[name]) for name in SHOWN),
            Cell(f"{row['verdict']}\n{digits(row['error'])}", row["verdict"]),
        ]
        for row in loads.to_dict("records")
    ]
    title = "Largest loads of the connections"
    yield Section(title=title, anchor="reactions", blocks=[AXES_TEXT, Table(columns, rows)])


def reactions_line(results: Results) -> Iterator[str]:
    """Line on the terminal: agreement of both ways, and the largest force."""
    loads = results.connections
    if loads.empty:
        return
    agree, force = int((loads["verdict"] == "agree").sum()), loads["force"]
    largest = "" if force.isna().all() else _largest_in_words(loads.loc[[force.idxmax()]].to_dict("records")[0])
    others = loads[loads["verdict"] != "agree"]
    names = ", ".join(f"{row['connection']} ({row['verdict']})" for row in others.to_dict("records")[:5])
    yield (
        f"Forces in the joints: both analytic ways agree on {agree} of {len(loads)} connections"
        f"{f', not on {names}' if names else ''}{largest}"
    )


def _largest_in_words(row: Mapping[Any, Any]) -> str:
    place = f"'{row['connection']}' ({row['robot']}, {row['configuration']}, t = {row['force_t']:g} s)"
    return f"; largest force {digits(row['force'])} N at {place}"
