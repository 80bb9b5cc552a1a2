"""The tutorial: all its commands and edits, in order, end as shown in it."""

import re
import shutil
from pathlib import Path

import pytest

from docs.walkthrough import FILES, TUTORIAL, Step, steps, take
from tests.pageless import pageless_programs

STEPS = list(steps(TUTORIAL.read_text(encoding="utf-8")))
ANSWER = re.compile(r"\b(?:exit status \d+|disagrees?|agrees?|not comparable|not run)\b")
"""Verdicts and exit statuses: figures depend on the machine in their last digits, computing times more."""


def test_every_command_shows_its_exit_status() -> None:
    """Commands of loopcheck: each such block has an output that ends with it."""
    blocks = [step for step in STEPS if "loopcheck " in step.text and step.kind == "sh"]
    assert len(blocks) > 6
    for step in blocks:
        assert re.search(r"\nexit status \d+\n```\n", step.output), step.text
    shown = "".join(step.text for step in STEPS)
    assert all(words in shown for words in ("check ", "tune ", "judge ", "--verify", "--junit"))


def test_an_edit_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "gripper")
    edit = next(step for step in STEPS if step.kind == "diff")
    take(edit, tmp_path / "gripper")
    with pytest.raises(SystemExit, match="must contain the removed lines once, got 0"):
        take(edit, tmp_path / "gripper")


@pytest.mark.extended(
    "test_every_command_shows_its_exit_status",
    "tests/docs/test_pasted.py::test_the_main_commands_of_the_readme_succeed",
)
def test_the_tutorial_ends_as_shown(tmp_path: Path) -> None:
    """Without the pages, whose paths are shown."""
    folder, programs = tmp_path / "gripper", pageless_programs(tmp_path / "bin")
    shutil.copytree(FILES, folder)
    for step in STEPS:
        output = take(step, folder, str(programs))
        if step.output:
            assert ANSWER.findall(output) == ANSWER.findall(step.output), _context(step, output)
    assert 'errors="0"' in (folder / "loopcheck.xml").read_text(encoding="utf-8")


def _context(step: Step, output: str) -> str:
    return f"{step.text}\n{output}"
