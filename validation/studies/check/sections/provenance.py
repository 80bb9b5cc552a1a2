"""Section of the report: data to reproduce the numbers."""

import pandas as pd

from loopcheck.validation.judge.results import Results
from loopcheck.validation.report.blocks import Section, facts, table


def provenance(results: Results) -> Section:
    """Data to reproduce the numbers."""
    run = results.run
    tolerances = run.get("tolerances") or {}
    files = [{"for": name, **about} for name, about in (run.get("models") or {}).items()]
    if tolerances.get("sha256"):
        files.append({"for": "tolerances", "file": tolerances.get("file"), "sha256": tolerances["sha256"]})
    command = " ".join(map(str, run.get("command") or ("loopcheck", "check")))
    return Section(
        title="How to reproduce this",
        anchor="reproduce",
        blocks=[
            [
                "Install the versions below.",
                f"Run: {command}",
                "Compare the SHA-256 of models and tolerances in the new run.json with the values below.",
                "To rebuild this report from the tables in DIR (17 digits), run: loopcheck report DIR",
            ],
            *([table(pd.DataFrame(files))] if files else []),
            facts({"loopcheck": run.get("loopcheck"), **(run.get("versions") or {}), "seeds": run.get("seeds")}),
        ],
    )
