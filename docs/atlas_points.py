"""Keep where the joints of the atlas's robots are where they start: `python -m docs.atlas_points [REMOTE]`.

Writes `docs/atlas/points.csv`, from which the site draws all robots of `docs/atlas/atlas.csv` that no other stands for.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from analytic.motion.automatic import SPAN, swing
from analytic.motion.continuation import Tracer
from analytic.motion.start import regular_start
from docs.catalogue_tables import ROOT
from docs.site.entries import ATLAS, SPECS, records
from robots.arrays import Array
from robots.errors import HarnessError
from robots.robot import Case
from validation.execution.tables import read_tables, to_csv
from validation.report.geometry import pose_rows
from validation.studies.atlas.fetching import PUBLIC, fetched
from validation.studies.atlas.manifest import Entry, entries
from validation.studies.atlas.reading import read_model


def main() -> None:
    """Write the table, with models from the remote that the command line names, by default GitHub."""
    remote = sys.argv[1] if sys.argv[1:] else PUBLIC
    folder = ROOT / "docs" / ATLAS
    models = records(read_tables(folder, {ATLAS: SPECS[ATLAS]})[ATLAS])
    names = {model["id"] for model in models if not model["copies_of"]}
    rows = [row for entry in entries() if entry.model.id in names for row in _rows(entry, remote)]
    to_csv(SPECS["points"].frame(rows), folder / "points.csv")


def _rows(entry: Entry, remote: str) -> Iterator[Mapping[str, Any]]:
    """Of a model; none if it cannot be had or read."""
    try:
        case = read_model(entry.model, fetched(entry, remote)).case
    except HarnessError as error:
        print(f"{entry.model.id}: {error}", file=sys.stderr)  # noqa: T201
        return
    if case is not None:
        for row in pose_rows(case.mechanism, _start(case)):
            yield {"robot": entry.model.id, "variant": case.variant, "mode": case.mode, **row}


def _start(case: Case) -> Array:
    """Where a robot starts, its loops closed [m or rad], shape (nq,); as its file has it if it cannot move."""
    still = swing(case.mechanism, case.guess, (), np.zeros(0), span=SPAN)
    free = Tracer(mechanism=case.mechanism, law=still, drives=(), where=case.robot.name)
    try:
        return regular_start(free, case.guess).q
    except HarnessError:
        return case.guess


if __name__ == "__main__":
    main()
