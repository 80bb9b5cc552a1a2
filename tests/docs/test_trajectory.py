"""The how-to guide of the trajectory: its model and its program, with the output that it shows."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "optimize_a_trajectory.md"
TO_DIFFERENCES = r"finite differences (\S+)"


@pytest.mark.evidence("the program of a page", seconds=1.5)
def test_the_program_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    model, program, shown = (
        re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0] for kind in ("xml", "python", "text")
    )
    (tmp_path / "five_bar.xml").write_text(model, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, PAGE, "exec"), {})
    printed = capsys.readouterr().out
    assert re.sub(TO_DIFFERENCES, "", printed) == re.sub(TO_DIFFERENCES, "", shown)
    (difference,) = re.findall(TO_DIFFERENCES, printed)
    assert float(difference) < 1e-8
