"""The schemas of JSON outputs: stored as declared, and strict.

Outputs of commands are validated where the commands are tested.
"""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from docs.json_schemas import schemas
from loopcheck.validation.check.study import Check
from loopcheck.validation.common.results import TABLES, Results, table
from loopcheck.validation.frame.study import Conclusion, StudyResult
from tests.json_outputs import SCHEMAS, valid_result, validator
from tests.validation.test_report import EMPTY, REFERENCE, summary_row

LLMS = Path(__file__).parents[2] / "llms.txt"


def test_stored_schemas_are_those_of_the_tables() -> None:
    """After a change: `python -m docs.json_schemas`; if an entry went or changed its meaning, a new version."""
    assert {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.iterdir()} == schemas()


@pytest.mark.parametrize("name", [path.name for path in sorted(SCHEMAS.iterdir())])
def test_a_schema_is_a_schema_and_named_for_agents(name: str) -> None:
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert f"docs/schemas/{name}" in LLMS.read_text(encoding="utf-8")
    assert schema["title"] in LLMS.read_text(encoding="utf-8")


def test_exit_statuses_for_agents_are_those_of_the_schemas() -> None:
    page = {int(status) for status in re.findall(r"^- (\d+):", LLMS.read_text(encoding="utf-8"), re.MULTILINE)}
    assert page == {2, *schemas()["check.schema.json"]["properties"]["exit_status"]["enum"]}


@pytest.fixture(scope="module")
def output() -> dict[str, Any]:
    """The object of a check with an error near round-off and missing numbers."""
    rows = [summary_row(REFERENCE, "reference"), summary_row("a/kkt", "agree", 1.234567890123456e-13)]
    required = validator("loopcheck.check/1").schema["properties"]["record"]["required"]
    run: dict[str, Any] = {**{name: [] for name in required}, "duration_s": np.nan}
    results: Results = replace(EMPTY, summary=table("summary", rows), run=run)
    tables = {name: getattr(results, name) for name in TABLES}
    conclusion = Conclusion(title="", sections=(), summary=(), verdicts=["agree"])
    return valid_result(Check(cases=()), StudyResult(folder=Path(), tables=tables, record=run), conclusion)


def test_numbers_keep_their_digits_and_missing_ones_are_null(output: dict[str, Any]) -> None:
    reference, row = output["rows"]["summary"]
    assert row["relative_error"] == 1.234567890123456e-13
    assert reference["relative_error"] is None
    assert output["record"]["duration_s"] is None


def _broken(output: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object without an entry, with a text for an entry, and with one entry more, at each place of the contract."""
    for place in (("rows", "summary", 0), ("rows",), ()):
        for name in [*output["rows"]["summary"][0]] if len(place) == 3 else [*(output[place[0]] if place else output)]:
            for change in ("missing", "list", "other"):
                broken = copy.deepcopy(output)
                at: Any = broken
                for part in place:
                    at = at[part]
                if change == "missing":
                    del at[name]
                else:
                    at[name if change == "list" else "other"] = ["x"]
                yield broken


def test_every_entry_is_required_and_typed(output: dict[str, Any]) -> None:
    check = validator("loopcheck.check/1")
    broken = list(_broken(output))
    assert len(broken) > 80
    assert not [one for one in broken if check.is_valid(one)]
