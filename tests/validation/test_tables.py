"""Tables that a spreadsheet may open: no text is a formula, numbers stay numbers, and all is read back as it was."""

import csv
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcheck import validation
from loopcheck.validation.execution.tables import read_csv, to_csv

ROOM = Path(validation.__file__).parent
STUDIES = sorted(
    ".".join(path.relative_to(ROOM).parent.parts) for path in ROOM.rglob("study.py") if path.parent.name != "frame"
)
FORMULAS = ("=1+1", "+1", "@SUM(A1)", "-1+cmd|' /C calc'!A0", "\t=1", "=", "'=1", "''-a")
HARMLESS = ("", "-", "3prr", "'quoted'", "a=b", "1e-3", "don't", "'")


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text(tmp_path: Path, text: str) -> None:
    to_csv(pd.DataFrame({"note": [text]}), tmp_path / "t.csv")
    assert cells(tmp_path / "t.csv") == [[f"'{text}"]]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_formula_stays_as_it_is(tmp_path: Path, text: str) -> None:
    to_csv(pd.DataFrame({"note": [text, "x"]}), tmp_path / "t.csv")
    assert cells(tmp_path / "t.csv") == [[text], ["x"]]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"effort": [-1.5, float("nan")], "size": [-3, 4], "note": ["-1.5", None]})
    to_csv(frame, tmp_path / "t.csv")
    assert cells(tmp_path / "t.csv") == [["-1.5", "-3", "'-1.5"], ["", "4", ""]]


@given(st.lists(st.text(st.sampled_from("'=+-@\ta1"), min_size=1), min_size=1))
def test_texts_are_read_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "texts.csv"
    frame = pd.DataFrame({"note": texts, "number": range(len(texts))})
    to_csv(frame, path)
    pd.testing.assert_frame_equal(read_csv(path, dtype={"note": str}, keep_default_na=False), frame)


def test_every_table_is_written_by_it() -> None:
    """Only our own function calls that of pandas."""
    root = Path(__file__).parents[2]
    callers = [path.name for path in (root / "validation").rglob("*.py") if ".to_csv(" in path.read_text("utf-8")]
    assert callers == ["tables.py"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_number_has_a_unit(name: str) -> None:
    """It stands in the record of every study, beside the table."""
    study = import_module(f"loopcheck.validation.{name}.study").STUDY
    for spec in study.tables.values():
        numbers = {name for name, column in spec.columns.items() if column.kind in (float, int)}
        assert numbers <= set(spec.units)
