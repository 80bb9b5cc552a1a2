"""The functions of the package: the same verdicts, tables and pages as the commands."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import loopcheck
from loopcheck import CheckResult, check, gate
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.convert.converting import convert
from tests.conftest import MODELS
from tests.lanes import HOUSE

ROBOT = HOUSE / "robots/four_bar"
REFERENCE = HOUSE / "docs/reference/python.md"


@pytest.fixture(scope="module")
def checked() -> CheckResult:
    return check("four_bar", sources=["analytic/lagrange", "mujoco/kkt"], configurations=["vertical"])


def test_a_check_has_the_verdict_and_tables_of_the_command(checked: CheckResult) -> None:
    assert (checked.verdict, checked.exit_status, checked.agrees) == ("agree", 0, True)
    assert set(checked.summary["source"]) == {"analytic/noc", "analytic/lagrange", "mujoco/kkt"}
    by_source = {source: of["effort"].to_numpy() for source, of in checked.efforts.groupby("source")}
    np.testing.assert_allclose(by_source["mujoco/kkt"], by_source["analytic/noc"], atol=1e-10)
    assert "Agreement: 2 of 2 comparisons" in str(checked)
    assert "motion" in checked.tables


def test_a_check_writes_the_folder_of_the_command(checked: CheckResult, tmp_path: Path) -> None:
    page = checked.report(tmp_path / "results")
    assert page == tmp_path / "results" / "report.html"
    assert "four_bar" in page.read_text(encoding="utf-8")
    assert {"summary.csv", "efforts.csv", "run.json"} <= {path.name for path in page.parent.iterdir()}
    assert json.loads((page.parent / "run.json").read_text(encoding="utf-8"))["study"] == "check"


def test_limits_of_the_user_decide(checked: CheckResult) -> None:
    """Round-off is no disagreement, but it is above a limit of nothing."""
    strict = check("four_bar", sources=["mujoco/kkt"], configurations=["vertical"], tolerances={"mujoco/kkt": 1e-30})
    errors = [of["summary"].set_index("source")["max_error"]["mujoco/kkt"] for of in (checked.tables, strict.tables)]
    assert (strict.verdict, errors[0]) == ("not comparable", errors[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acuracy": 0.1}, "unknown option of check: 'acuracy'"),
        ({"sources": ["bullet"]}, "unknown source"),
        ({"modes": ["open"]}, "unknown mode of four_bar: 'open'"),
        ({"motion": "walk.csv"}, "walk.csv"),
        ({"leave_out": ["tendon"]}, "tendon"),
    ],
)
def test_bad_options_are_refused_before_anything_is_computed(options: dict[str, object], message: str) -> None:
    with pytest.raises(HarnessError, match=message) as error:
        check("four_bar", **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_gate_has_a_verdict_a_table_and_files(tmp_path: Path) -> None:
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    (tmp_path / "negative.xml").write_text(text.replace('damping="0.2"', 'damping="-0.2"'))
    found = gate(tmp_path / "negative.xml")
    assert (found.verdict, gate("puma560").verdict) == ("error", "sound")
    assert {"LC109", "error"} <= {*found.table["code"], *found.table["severity"]}
    written = {
        suffix: found.report(tmp_path / f"gate{suffix}").read_text() for suffix in (".json", ".sarif", ".md", "")
    }
    assert json.loads(written[".json"])["exit_status"] == 1
    assert json.loads(written[".sarif"])["version"] == "2.1.0"
    assert written[".md"].startswith("**loopcheck gate**")
    assert written[""] == f"{found}\n"


@pytest.mark.extended("test_a_check_writes_the_folder_of_the_command")
def test_the_examples_of_the_documents_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a single process, beside an upright four-bar, its URDF, and a log of its closed form."""
    monkeypatch.chdir(tmp_path)
    flat = (ROBOT / "four_bar.xml").read_text(encoding="utf-8")
    upright = flat.replace('gravity="0 0 -9.81"', 'gravity="0 -9.81 0"')
    assert upright != flat
    (tmp_path / "my_robot.xml").write_text(upright, encoding="utf-8")
    (tmp_path / "robot.xml").write_text(flat, encoding="utf-8")
    convert("robot.xml", Path("robot.urdf"), lossless=False, seed=0)
    shutil.copy(ROBOT / "logs/clean.csv", "run.csv")
    texts = [
        example
        for page in (REFERENCE, HOUSE / "README.md")
        for example in re.findall(r"^```python\n(.+?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    ]
    assert len(texts) >= 6
    texts = [text for text in texts if "symbolic" not in text or find_spec("casadi")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ""}  # OpenSim leads it to a CasADi of its own
    program = "import sys\nfor text in sys.argv[1:]: exec(compile(text, text, 'exec'), {'__name__': '__main__'})"
    ended = subprocess.run(
        [sys.executable, "-c", program, *texts], capture_output=True, text=True, check=False, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "results/my_robot/report.html").exists()
    assert (tmp_path / "results/run/report.html").exists()


def test_the_page_has_every_public_name() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [name for name in loopcheck.__all__ if f":: loopcheck.{name}\n" not in text] == []
