"""Every reading of every engine, against the effort that acted on a slide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd

from loopcheck.robots.errors import MechanismError
from loopcheck.validation.common import sources
from loopcheck.validation.execution.environments import is_there
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Section, percent, table
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.studies.readings.slide import (
    EFFORT,
    LIMIT,
    MASS,
    OWN,
    measured,
    not_measured,
    slides,
    unreadable,
)

TABLE = "readings"
METHOD = (
    f"A body of {MASS:g} kg moves to and fro on a slide without gravity or friction, so the effort that acted in a "
    "step is its change of momentum over the duration of the step. A difference is the largest distance of a reading "
    f"from this effort, over the largest effort. Limited drives have a force limit of {LIMIT:g} N."
)
TITLE = "Largest difference from the effort that acted, over all drives"
KINDS = {
    EFFORT: "judged by loopcheck in the rows as_is",
    "commanded": "command to the drive",
    "applied": "effort of the law of the drive at the end of the step",
    "reported": "the engine's own reading of the effort of an actuator",
    "joint": "the engine's force on the joint",
    "reaction": "the engine's joint reaction along the axis",
    "sensor": "a force sensor at the joint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings(Study):
    """Differences of readings from the effort that acted, by engine, integrator and drive."""

    name: ClassVar[str] = "readings"
    page: ClassVar[str] = "readings"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("source", "integrator", "drive", "reading")},
                **{name: number("N") for name in ("acted", "reported")},
                "difference": number("-"),
                **{name: text() for name in ("verdict", "note")},
            }
        )
    }

    sources: Sequence[str]
    """Routes `as_is` of the engines."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; the model files remain in the folder `models`."""
        models = folder.absolute() / "models"  # workers have another working directory
        models.mkdir(exist_ok=True)
        tasks, rows = [], []
        for source in self.sources:
            cases = []
            for slide in slides(source):
                try:
                    cases.append((slide, slide.case(models)))
                except MechanismError as error:  # older versions of MuJoCo lack an integrator
                    rows.append(unreadable(source, slide, str(error)))
            tasks.append(
                Task(measured, (source, cases), partial(not_measured, source, cases), engine=sources.engine_of(source))
            )
        rows += [row for of_source in pool.results(tasks, "readings") for row in of_source]
        columns = self.tables[TABLE].columns
        blank = {name: "" if column.kind is str else None for name, column in columns.items()}
        return Computed({TABLE: self.tables[TABLE].frame([{**blank, **row} for row in rows])})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        wide = matrix(rows)
        worst = largest(rows)
        with_units = wide.rename(columns="{} [-]".format)
        failed = rows[rows["reading"] == ""]
        notes = [f"{row['source']}, {row['drive']}: {row['note']}" for row in failed.to_dict("records")]
        kinds = [f"{name}: {meaning}" for name, meaning in KINDS.items() if name in wide]
        return Conclusion(
            title="loopcheck: which reading is the effort?",
            sections=[
                Section(
                    title="Readings",
                    anchor="readings",
                    blocks=[METHOD, table(with_units.reset_index()), kinds, notes],
                )
            ],
            summary=[shown_table(list(worst.columns), worst.to_numpy().tolist(), title=TITLE), *notes],
            verdicts=list(rows["verdict"]),
        )


STUDY = Readings


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each engine, integrator and drive, and a column for each reading."""
    known = rows[rows["reading"] != ""]
    own = known["drive"] == OWN
    name = known["source"].where(own, known["source"] + ", " + known["integrator"] + ", " + known["drive"])
    wide = known.assign(simulation=name).set_index(["simulation", "reading"])["difference"].unstack(sort=False)
    return wide[[kind for kind in KINDS if kind in wide]]


def largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Largest difference of each reading over all drives, for each engine and integrator, in percent."""
    known = rows[rows["reading"] != ""]
    engine = known["source"].str.replace("/as_is_", " ").str.removesuffix("/as_is")
    name = engine.where(known["integrator"] == OWN, engine + ", " + known["integrator"])
    wide = known.assign(simulation=name).groupby(["simulation", "reading"], sort=False)["difference"].max()
    percents = wide.map(percent).unstack("reading", sort=False).fillna("").reset_index()
    return percents[["simulation", *(kind for kind in KINDS if kind in percents)]]


def routes(patterns: Sequence[str]) -> tuple[str, ...]:
    """Routes `as_is` of installed engines, or those that match the patterns.

    Raises:
        NotFoundError: If a pattern matches no source.
        MechanismError: If no route `as_is` is left.
    """
    sources.groups(patterns)  # refuses unknown names
    known = [
        name
        for name in filter(sources.is_as_is, sources.every_name())
        if any(fnmatchcase(name, pattern) or sources.engine_of(name) == pattern for pattern in patterns)
        or (not patterns and is_there(sources.engine_of(name)))
    ]
    if not known:
        raise MechanismError(f"--source must name a route as_is of an engine, got {', '.join(patterns) or 'no engine'}")
    return tuple(known)
