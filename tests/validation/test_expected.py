"""Transcripts of commands: their texts, the order and columns of their tables, their files and exit statuses.

A folder of `tests/expected` has a `console.txt` and the files that its commands read. Lines with `$` are commands. They
run in a copy of the folder, those of `loopcheck` in this process. The indented lines below are what they print, with
`!` before those on stderr, and a number in brackets for an exit status that is not 0. Other lines are comments.

`pytest tests/validation/test_expected.py --regen-all` writes all transcripts anew: read the diff. Decimal numbers may
differ by `TOLERANCE`, as they prove nothing: a number of physics is compared with an independent one in another test.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import zip_longest
from os.path import expandvars
from pathlib import Path

import pytest
from pytest_regressions.common import check_text_files
from pytest_regressions.file_regression import FileRegressionFixture

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.validation.execution.environments import PLACE
from tests.conftest import MODELS, since_mujoco
from tests.cpu_time import extended_but
from tests.validation.conftest import Command, in_this_process

EXPECTED = Path(__file__).parents[1] / "expected"
CONSOLE = "console.txt"
FOLDERS = sorted(path.parent.name for path in EXPECTED.glob(f"*/{CONSOLE}"))
EXTENDED = {"unread_elements_judged"}
"""Folders with commands that take longer than a test without a mark may."""
TOLERANCE = 0.05
"""Relative difference of two numbers that count as equal: they are shown with few digits [-]."""
ROUND_OFF = 1e-9
"""Numbers below it count as equal [their unit]."""
LONG_LIST = re.compile(r"((?:[^ ,]+, ){5})(?:[^ ,]+, )*(?!got\b)[^ ,)\n]+")
"""Names of all robots, sources or codes, which grow."""
TIME = re.compile(r"\([\d.]+ s\)")
NUMBER = re.compile(r"\d*\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+")


@since_mujoco("4.0", "words its errors otherwise")
@pytest.mark.usefixtures("tables_only")
@pytest.mark.parametrize("name", extended_but({*FOLDERS} - EXTENDED, FOLDERS, "test_a_command_prints_what_it_printed"))
def test_a_command_prints_what_it_printed(
    name: str,
    loopcheck: Command,
    file_regression: FileRegressionFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(shutil.copytree(EXPECTED / name, tmp_path / "work"))
    for variable, value in {
        "ROBOTS": CATALOGUE,
        "MODELS": MODELS,
        PLACE: tmp_path / "engines",
        "COLUMNS": "120",
    }.items():
        monkeypatch.setenv(variable, str(value))
    file = EXPECTED / name / CONSOLE
    with in_this_process():
        shown = "\n".join(_transcript(file.read_text(encoding="utf-8").splitlines(), loopcheck))
    for folder, short in ((tmp_path / "work", "."), (CATALOGUE, "$ROBOTS"), (MODELS, "$MODELS")):
        shown = shown.replace(str(folder), short)
    shown = LONG_LIST.sub(r"\1…", TIME.sub("(… s)", shown))
    file_regression.check(f"{shown}\n", encoding="utf-8", fullpath=file, check_fn=_check)


def _transcript(lines: list[str], loopcheck: Command) -> Iterator[str]:
    """Lines of a transcript with what its commands print now."""
    for line in lines:
        if not line.startswith("  "):
            yield line
        if line.startswith("$ "):
            status, out, err = _run(line.removeprefix("$ "), loopcheck)
            yield from (f"  {text}".rstrip() for text in out.splitlines() if text.strip())
            yield from (f"  ! {text}" for text in err.splitlines())
            yield from [f"  [{status}]"] * bool(status)


def _run(command: str, loopcheck: Command) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    if command.startswith("loopcheck "):
        return loopcheck(*shlex.split(expandvars(command))[1:])
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def _check(obtained: Path, expected: Path) -> None:
    wanted = expected.read_text(encoding="utf-8").splitlines()

    def rounded(lines: list[str]) -> list[str]:
        """The lines, those that are equal to the expected but for their last digits as expected."""
        pairs = zip_longest(lines, wanted[: len(lines)], fillvalue="")
        return [other if _alike(line, other) else line for line, other in pairs]

    check_text_files(obtained, expected, rounded, encoding="utf-8")


def _alike(line: str, other: str) -> bool:
    if NUMBER.sub("#", line).split() != NUMBER.sub("#", other).split():
        return False
    pairs = zip(*(map(float, NUMBER.findall(text)) for text in (line, other)), strict=True)
    return all(max(a, b) < ROUND_OFF or a == pytest.approx(b, rel=TOLERANCE) for a, b in pairs)


@pytest.mark.parametrize(
    ("line", "is_alike"),
    [
        ("error 0.0312 of 3 rows", True),
        ("error 0.0330 of 3 rows", False),
        ("error 0.0312 of 4 rows", False),
        ("an error 0.0312 of 3 rows", False),
        ("error -0.0312 of 3 rows", False),
        ("error of 3 rows", False),
    ],
)
def test_a_line_differs_by_words_integers_and_more_than_the_last_digits(line: str, is_alike: bool) -> None:
    assert _alike(line, "error 0.031 of 3  rows") is is_alike
    assert _alike(f"{line} 3e-15", "error 0.031 of 3 rows 2.1e-12") is is_alike
