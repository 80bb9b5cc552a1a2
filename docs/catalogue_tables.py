"""Keep what the site shows of our own robots: `python -m docs.catalogue_tables DIR`, where DIR holds a run of them.

Writes `docs/catalogue`: the tables of the run from which pages are made, and a table of models like the atlas's.
"""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from docs.site.entries import ATLAS, CATALOGUE, COUNTS, MODELS
from robots.robot import load
from validation.execution.files import RECORD
from validation.execution.tables import read_record, read_tables, to_csv
from validation.judge.results import TABLES
from validation.judge.verdicts import JUDGED, summary_verdicts, worst

ROOT = Path(__file__).parent.parent
KEPT = ("summary", "audit")
"""Tables of the run that pages are made from."""


def main() -> None:
    """Keep the run in the folder named on the command line."""
    run = Path(sys.argv[1])
    tables, record = read_tables(run, {name: TABLES[name] for name in KEPT}), read_record(run)
    tables = {name: _portable(table) for name, table in tables.items()}
    folder = ROOT / "docs" / CATALOGUE
    folder.mkdir(exist_ok=True)
    to_csv(tables["summary"], folder / "summary.csv")
    to_csv(_otherwise(tables["audit"]), folder / "audit.csv")
    models = [_model(name, about, tables["summary"], record) for name, about in record["robots"].items()]
    to_csv(MODELS.frame(models), folder / f"{ATLAS}.csv")
    (folder / RECORD).write_text((run / RECORD).read_text(encoding="utf-8"), encoding="utf-8")


def _portable(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose notes name files from the root of the repository on, wherever that was."""
    return table.assign(note=table["note"].str.replace(f"{ROOT}/", "", regex=False))


def _otherwise(audit: pd.DataFrame) -> pd.DataFrame:
    """The rows of the audit that pages need: where an engine has something else, and one of each robot and tier."""
    before = audit[audit["tier"] != "trajectory"]  # what is in there is in the summary
    return before[(before["verdict"] != "agree") | ~before.duplicated(["robot", "engine", "tier"])]


def _model(name: str, about: Mapping[str, Any], summary: pd.DataFrame, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of a robot of ours."""
    rows = summary[summary["robot"] == name]
    verdicts = summary_verdicts(rows, {name: about})
    findings = [finding for of_case in verdicts.values() for finding in of_case.values() if finding.verdict in JUDGED]
    errors = rows.loc[rows["source"] == "mujoco/as_is", "relative_error"]
    return {
        **dict.fromkeys(MODELS.columns, ""),
        **dict.fromkeys(("tuned_cost", "tuned_accuracy"), math.nan),
        **{count: about["mechanism"][count] for count in COUNTS},
        "id": name,
        "path": f"robots/{name}/{load(name).mjcf}",
        "licence": "MIT",
        "mesh_licence": "none",
        "sha256": record["models"][name]["sha256"],
        "class": "loops",
        "start": ", ".join(mode for mode in rows["mode"].unique() if not mode.endswith("-random")),
        "verdict": worst(findings).verdict,
        "as_is_error": errors.max(),
    }


if __name__ == "__main__":
    main()
