"""What it takes to get the same numbers again."""

import pandas as pd

from validation.judge.results import Results
from validation.report.blocks import Section, facts, table


def provenance(results: Results) -> Section:
    """What it takes to get the same numbers again."""
    run = results.run
    tolerances = run.get("tolerances") or {}
    files = [{"of": name, **about} for name, about in (run.get("models") or {}).items()]
    if tolerances.get("sha256"):
        files.append({"of": "tolerances", "file": tolerances.get("file"), "sha256": tolerances["sha256"]})
    command = " ".join(map(str, run.get("command") or ("loopcheck", "run")))
    return Section(
        title="How to reproduce this",
        anchor="reproduce",
        blocks=[
            [
                "Install the versions below.",
                f"Run: {command}",
                "Hold the SHA-256 of models and tolerances in the new run.json against those below.",
                "loopcheck report DIR makes this report again from the tables in DIR, which hold 17 digits.",
            ],
            *([table(pd.DataFrame(files))] if files else []),
            facts({"loopcheck": run.get("loopcheck"), **(run.get("versions") or {}), "seeds": run.get("seeds")}),
        ],
    )
