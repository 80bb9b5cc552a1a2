"""Without the extras `parquet` and `interactive`: every table is CSV, every figure is SVG, and no data is lost."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from loopcheck.robots.errors import MechanismError, OutputError
from loopcheck.robots.logs.log_files import read_log
from loopcheck.robots.robot import load, make_case
from loopcheck.validation.check.study import run
from loopcheck.validation.common.results import TABLES, read, write
from loopcheck.validation.execution import tables
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.report.charts import plotly_script
from loopcheck.validation.studies.sweep.cases import Variation
from loopcheck.validation.studies.sweep.dataset import PARTS
from loopcheck.validation.studies.sweep.study import Sweep
from tests.validation.conftest import in_this_process, write_report

EXTRAS = ("plotly", "pyarrow")
LIGHT = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))  # no import finds them
from pathlib import Path
from loopcheck.robots.robot import load, make_case
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.common.results import read, write
from loopcheck.validation.check.study import run
from tests.validation.conftest import write_report
if __name__ == "__main__":
    made, full = map(Path, sys.argv[1:])
    case = make_case(load("3prr"), variant="default", mode="plus", configuration="vertical")
    results = run([case], source_names=("mujoco/kkt",), workers=Workers(jobs=1))
    write(results, made)
    write_report(results, made)
    (made / "report.html").rename(made / "first.html")
    write_report(read(made), made)
    write_report(read(full), full)
"""


@pytest.mark.extended("test_charts_are_left_out")
def test_a_report_is_made_and_made_again(tmp_path: Path) -> None:
    """Also from the tables of an installation with the extras."""
    made, full = tmp_path / "made", tmp_path / "full"
    case = make_case(load("3prr"), variant="default", mode="plus", configuration="vertical")
    results = run([case], source_names=("mujoco/kkt",), workers=Workers(jobs=1))
    write(results, full)
    write_report(results, full)
    interactive = (full / "report.html").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, made, full],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in made.iterdir() if path.suffix == ".csv"} == {
        f"{name}.csv" for name, spec in TABLES.items() if not spec.optional
    }
    assert not list(made.glob("*.parquet"))
    page = (made / "report.html").read_text(encoding="utf-8")
    assert page == (made / "first.html").read_text(encoding="utf-8")
    assert (full / "report.html").read_text(encoding="utf-8").count("<img") == interactive.count("<img") > 1
    for text in (page, (full / "report.html").read_text(encoding="utf-8")):
        assert "data:image/svg+xml" in text
        assert 'class="chart"' not in text
        assert 'id="plotly"' not in text
    pd.testing.assert_frame_equal(read(made).efforts, results.efforts, check_exact=True)


@pytest.mark.extended("test_a_parquet_file_is_refused_with_the_remedy")
def test_a_data_set_is_csv_with_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Sweep(variation=Variation(target="3prr", sources=("mujoco/kkt",)), cases=12)
    found = {}
    with in_this_process():
        for name in ("full", "light"):
            _, conclusion = run_study(study, tmp_path / name)
            found[name] = conclusion.tables
            monkeypatch.setattr(tables, "parquet_is_installed", lambda: False)
    assert {path.suffix for path in (tmp_path / "light" / PARTS).iterdir()} == {".csv"}
    for name, frame in found["full"].items():
        times = [column for column in frame.columns if "time" in column]
        pd.testing.assert_frame_equal(found["light"][name].drop(columns=times), frame.drop(columns=times))


def test_a_parquet_file_is_refused_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "run.parquet"
    path.touch()
    mechanism = load("four_bar").mechanism()
    with pytest.raises(
        MechanismError, match=r"run\.parquet: Parquet requires pyarrow: pip install 'loopcheck\[parquet\]'"
    ):
        read_log(path, mechanism)
    with pytest.raises(OutputError, match=r"run\.parquet: reading Parquet requires pyarrow: pip install"):
        tables.read_table(path, tables.table_of({}))


def test_charts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("plotly")
    plotly_script.cache_clear()
    try:
        assert len(plotly_script()) > 1_000_000
        plotly_script.cache_clear()
        monkeypatch.setitem(sys.modules, "plotly", None)
        assert plotly_script() == ""
    finally:
        plotly_script.cache_clear()
