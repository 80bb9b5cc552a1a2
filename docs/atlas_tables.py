"""Keep the tables of an atlas for the site: `python -m docs.atlas_tables DIR [REMOTE]`, with its results in DIR.

Writes `docs/atlas`: its tables, and `points.csv`, the points of the drawings of all models that are not copies.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docs.kept_tables import ROOT, keep
from docs.site.entries import ATLAS, MODELS, SPECS, records
from docs.site.notes import KEPT_APART
from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.motion.automatic import SPAN, swing
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case
from loopcheck.validation.common.results import TABLES
from loopcheck.validation.execution.tables import read_record, read_tables
from loopcheck.validation.public_models.fetching import PUBLIC, fetched
from loopcheck.validation.public_models.manifest import Entry, entries
from loopcheck.validation.report.geometry import pose_rows
from loopcheck.validation.studies.atlas.reading import read_model

DIGITS = 6
"""Decimals of a coordinate in a drawing [-]."""


def main() -> None:
    """Keep the results in the folder named on the command line; the models come from a remote, by default GitHub."""
    results, remote = Path(sys.argv[1]), sys.argv[2] if sys.argv[2:] else PUBLIC
    tables = read_tables(results, {ATLAS: MODELS, **{name: TABLES[name] for name in KEPT_APART}})
    names = {model["id"] for model in records(tables[ATLAS]) if not model["copies_of"]}
    rows = [row for entry in entries() if entry.model.id in names for row in _rows(entry, remote)]
    keep(ROOT / "docs" / ATLAS, {**tables, "points": SPECS["points"].frame(rows).round(DIGITS)}, read_record(results))


def _rows(entry: Entry, remote: str) -> Iterator[Mapping[str, Any]]:
    """Points of a model; empty if it cannot be fetched or read."""
    try:
        case = read_model(entry.model, fetched(entry, remote)).case
    except HarnessError as error:
        print(f"{entry.model.id}: {error}", file=sys.stderr)  # noqa: T201
        return
    if case is not None:
        for row in pose_rows(case.mechanism, _start(case)):
            yield {"robot": entry.model.id, "variant": case.variant, "mode": case.mode, **row}


def _start(case: Case) -> Array:
    """The pose of a robot's file with its loops closed [m or rad], shape (nq,); as it is if they cannot be."""
    still = swing(case.mechanism, case.guess, (), np.zeros(0), span=SPAN)
    free = Tracer(mechanism=case.mechanism, law=still, drives=(), where=case.robot.name)
    try:
        return free.start(case.guess, 0.0).q[0]
    except HarnessError:
        return case.guess


if __name__ == "__main__":
    main()
