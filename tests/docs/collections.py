"""Small collections in the form read by the site, with contents of foreign models."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from docs.site.entries import MODELS, SPECS
from docs.site.notes import NOTES, apart
from loopcheck.validation.common.results import TABLES
from loopcheck.validation.execution.tables import to_csv

HOSTILE = "<script>document.title = 'taken'</script>\n~~~\n# {raw} `html` **x** {{ 1 + 1 }}"
"""A note that would be a script, the end of a block, a heading and a template, were it not text."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"
VERSIONS = {"python": "3.11.7", "mujoco": "4.0.1", "pybullet": "3.2.7"}


def model(name: str, **values: Any) -> Mapping[str, Any]:
    """A row of the table of models, by default of a model without a run."""
    empty = {column: math.nan if spec.kind is float else "" for column, spec in MODELS.columns.items()}
    return {**empty, "id": name, "verdict": "not run", **values}


def comparison(robot: str, source: str, error: float, verdict: str, **values: Any) -> Mapping[str, Any]:
    """A row of the summary of a run, of its only actuator."""
    numbers = {name: math.nan for name, spec in TABLES["summary"].columns.items() if spec.kind is float}
    names = {"variant": "default", "mode": "home", "configuration": "given", "reference": "analytic/noc"}
    told = {"actuator": "motor", "unit": "N m", "note": "", "relative_error": error, "scale": 2.0, "verdict": verdict}
    told |= {"peak": 2.0, "max_error": 2.0 * error}
    return {**numbers, **names, **told, "robot": robot, "source": source, **values}


def loss(robot: str, engine: str, note: str, **values: Any) -> Mapping[str, Any]:
    """A row of the audit, of a mass that an engine has otherwise."""
    case = {"variant": "default", "mode": "home", "configuration": "given", "tier": "static", "quantity": "mass"}
    numbers = {"wanted": 2.0, "found": 1.5, "error": 0.25, "tolerance": 1e-9, "unit": "kg", "element": "rod"}
    return {**case, **numbers, "robot": robot, "engine": engine, "note": note, "verdict": "disagree", **values}


def write_collection(folder: Path, **rows: list[Mapping[str, Any]]) -> None:
    """Write a collection of robots without titles.

    Args:
        folder: Output folder.
        rows: Of its tables, by name; a table without rows is written too.
    """
    folder.mkdir(parents=True)
    names = [name for name, spec in SPECS.items() if name != NOTES and (name in rows or not spec.optional)]
    frames = {name: pd.DataFrame(rows.get(name, []), columns=list(SPECS[name].columns)) for name in names}
    for name, frame in apart(frames).items():
        to_csv(SPECS[name].frame(frame), folder / f"{name}.csv")
    record = {"study": "atlas", "start": "2026-11-22T17:00:00+00:00", "versions": VERSIONS, "robots": {}}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


def write_atlas(root: Path) -> None:
    """Write an atlas of a leg with all results, a copy of it, a hand that was not read, and two more, below a root."""
    known = {"repository": "someone/legs", "commit": COMMIT, "path": "a b/leg#1.xml", "licence": "BSD-3-Clause"}
    counts = {"class": "loops", "loops": 1.0, "dof": 1.0, "actuators": 1.0, "bodies": 3.0, "start": "home"}
    tuned = {"tuned_cost": 2.3, "tuned_accuracy": 1e-3}
    square = [("crank", 0.0, 0.0), ("crank", 0.0, 1.0), ("rod", 0.0, 1.0), ("rod", 1.0, 1.0), ("world", 0.0, 0.0)]
    points = {"robot": "leg", "variant": "default", "mode": "home", "t": 0.0, "z": 0.0}
    write_collection(
        root / "docs" / "atlas",
        atlas=[
            model("leg", **known, **counts, verdict="disagree", as_is_error=0.0031, **tuned, mesh_licence="none"),
            model("leg-copy", **known, **counts, verdict="copy", copies_of="leg"),
            model("arm", **{**known, **counts}, verdict="agree", as_is_error=0.12, patches="in a vacuum"),
            model("foot", **{**known, **counts}, verdict="agree", as_is_error=0.025, tuned_accuracy=0.01),
            model("hand", **{**known, "licence": ""}, verdict="not run", note=HOSTILE),
        ],
        summary=[
            comparison("leg", "analytic/noc", math.nan, "reference"),
            comparison("leg", "mujoco/kkt", 1e-12, "agree", tolerance=1e-11),
            comparison("leg", "mujoco/forward", 2e-3, "disagree", tolerance=1e-6, note=HOSTILE),
            comparison("leg", "mujoco/as_is", 0.0031, "informational"),
            comparison(
                "leg", "pybullet/forward", math.nan, "not comparable", note="the mass of rod is not the model's"
            ),
        ],
        audit=[loss("leg", "pybullet", HOSTILE)],
        points=[{**points, "body": body, "point": f"p{k}", "x": x, "y": y} for k, (body, x, y) in enumerate(square)],
    )
