"""Keep the tables of our robots for the site: `python -m docs.catalogue_tables DIR`, with DIR the results of a check.

Writes `docs/catalogue`: the tables of the pages, and a table of models like that of the atlas.
"""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from docs.kept_tables import ROOT, keep
from docs.site.entries import ATLAS, CATALOGUE, COUNTS, MODELS
from docs.site.notes import KEPT_APART
from loopcheck.robots.robot import load
from loopcheck.validation.common.results import TABLES
from loopcheck.validation.common.verdicts import JUDGED, shown_errors, summary_verdicts, worst
from loopcheck.validation.execution.tables import read_record, read_tables


def main() -> None:
    """Keep the run in the folder named on the command line."""
    run = Path(sys.argv[1])
    tables, record = read_tables(run, {name: TABLES[name] for name in KEPT_APART}), read_record(run)
    models = [_model(name, about, tables["summary"], record) for name, about in record["robots"].items()]
    keep(ROOT / "docs" / CATALOGUE, {**tables, ATLAS: MODELS.frame(models)}, record)


def _model(name: str, about: Mapping[str, Any], summary: pd.DataFrame, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of a robot of ours."""
    rows = summary[summary["robot"] == name]
    verdicts = summary_verdicts(rows, {name: about})
    findings = [finding for of_case in verdicts.values() for finding in of_case.values() if finding.verdict in JUDGED]
    return {
        **dict.fromkeys(MODELS.columns, ""),
        **dict.fromkeys(("tuned_cost", "tuned_accuracy"), math.nan),
        **{count: about["mechanism"][count] for count in COUNTS},
        "id": name,
        "path": f"robots/{name}/{load(name).mjcf}",
        "licence": "MIT",
        "mesh_licence": "none",
        "sha256": record["models"][name]["sha256"],
        "class": "loops" if about["mechanism"]["loops"] else "none",
        "start": ", ".join(mode for mode in rows["mode"].unique() if not mode.endswith("-random")),
        "verdict": worst(findings).verdict,
        "as_is_error": shown_errors(rows[rows["source"] == "mujoco/as_is"]).max(),
    }


if __name__ == "__main__":
    main()
