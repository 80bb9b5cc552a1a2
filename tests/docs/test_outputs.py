"""Outputs and pictures in documents are those of kept results, all of the same commit."""

import json
import re

import pandas as pd
import pytest

from docs import conversion_page, limits
from docs.outputs import DOCUMENTS, KEPT, README, marked, output_block, written
from loopcheck.validation.common.verdicts import SEVERITY

COMMANDS = {command.name: command for command in marked()}


def test_documents_show_the_kept_outputs() -> None:
    assert set(COMMANDS) == {"judge", "tune", "serial", "check"}
    assert COMMANDS["check"].document == README
    for document in DOCUMENTS:
        assert written(document) == document.read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        assert command.output == output_block(KEPT / name, command.document)
        record = json.loads((KEPT / name / "run.json").read_text(encoding="utf-8"))
        assert command.command.removeprefix("uv run ").split() == record["command"]


def test_all_outputs_are_of_one_commit_and_machine() -> None:
    records = [json.loads((KEPT / name / "run.json").read_text(encoding="utf-8")) for name in COMMANDS]
    assert len({record["commit"] for record in records}) == 1
    assert len({record["cpu"]["model"] for record in records}) == 1


def test_outputs_fit_80_columns() -> None:
    for name in COMMANDS:
        lines = (KEPT / name / "output.txt").read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.startswith(("┏", "│", "└")) and len(line) > 80] == []


@pytest.mark.parametrize("configuration", ["horizontal", "vertical"])
def test_the_table_of_a_check_has_the_figures_of_its_tables(configuration: str) -> None:
    """Each cell: the worst verdict over modes, variants and actuators, and the largest error over its scale."""
    text = (KEPT / "check" / "output.txt").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in text.splitlines() if "│" in line]
    (header,) = re.findall(r"^┃ source .*┃$", text, re.MULTILINE)
    column = [cell.strip() for cell in header.strip("┃").split("┃")].index(configuration)
    summary = pd.read_csv(KEPT / "check" / "summary.csv")
    of_configuration = summary[summary["configuration"] == configuration]
    cells = {row[0]: row[column] for row in rows if "/" in row[0]}
    assert len(cells) > 5
    for source, cell in cells.items():
        of_source = of_configuration[of_configuration["source"] == source]
        verdict = min(of_source["verdict"], key=SEVERITY.index)
        shown = "unusable" if verdict == "informational" and of_source["relative_error"].max() > 1 else verdict
        assert cell.startswith(shown), (source, cell)
        if verdict == "agree":
            assert float(cell.split()[-1]) == pytest.approx(of_source["relative_error"].max(), rel=0.06)


def test_the_reference_has_every_rule_and_every_limit() -> None:
    text = limits.PAGE.read_text(encoding="utf-8")
    assert limits.page() == text
    assert limits.rules() in text
    assert limits.table() in text


def test_the_page_of_conversions_is_of_its_tables() -> None:
    assert conversion_page.PAGE.read_text(encoding="utf-8") == conversion_page.text()
    run = json.loads((conversion_page.PAGE.parent / "run.json").read_text(encoding="utf-8"))
    assert run["commit"], "the tables must be of one run"
