"""Commands to paste: each way of calling loopcheck, in a shell of its own, and what it suggests."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from loopcheck.validation.execution.invocation import UV, UV_RUN, as_called, called, pasted
from tests.cpu_time import extended_but

BIN = Path(sys.executable).parent
HERE = os.pathsep.join((str(BIN), os.environ["PATH"]))
ELSEWHERE = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(BIN))


def _suggested(command: str, path: str, **environment: str) -> str:
    """The command for the list of robots that `loopcheck` without arguments suggests."""
    ended = subprocess.run(
        ["/bin/sh", "-c", command],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
        cwd=BIN.parent,
    )
    last = ended.stdout.splitlines()[-1]
    return last.removeprefix("Robots: ").partition(" list.")[0]


@pytest.mark.evidence("a shell starts the command", seconds=1.5)
@pytest.mark.parametrize(
    ("typed", "path"),
    extended_but(
        [("loopcheck", HERE)],
        [
            ("loopcheck", HERE),
            ("python -m loopcheck", HERE),
            (f"{shlex.quote(sys.executable)} -m loopcheck", ELSEWHERE),
            (f"{BIN.name}/loopcheck", ELSEWHERE),
        ],
        "test_a_suggested_command_begins_as_typed",
    ),
)
def test_a_suggested_command_begins_as_typed(typed: str, path: str) -> None:
    assert _suggested(typed, path) == typed
    assert _suggested(f"{_suggested(typed, path)} list >{os.devnull} && {typed}", path) == typed  # and it can be pasted


def test_below_uv_run_a_command_begins_with_it() -> None:
    """uv sets the variable for the process of `uv run`, whose script it puts in front of PATH."""
    assert _suggested("loopcheck", HERE, **{UV: "uv", UV_RUN: "1"}) == "uv run loopcheck"


def test_a_command_of_uvx_is_named_by_its_path() -> None:
    """Its folder is in PATH for the command alone, not for the shell of the user."""
    assert _suggested("loopcheck", HERE, **{UV: "uv"}) == str(BIN / "loopcheck")


def test_uv_sets_the_variable() -> None:
    code = f"import os; print(os.environ[{UV_RUN!r}], {UV!r} in os.environ)"
    command = ["uv", "run", "--no-project", "--offline", "--python", sys.executable, "python", "-c", code]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("uv is not installed")
    assert ended.stdout.split() == ["1", "True"], ended.stderr


def test_a_module_of_another_package_is_not_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python -m pytest`, whose tests call functions of loopcheck."""
    monkeypatch.setattr(sys, "argv", ["/x/pytest/__main__.py"])
    monkeypatch.setenv("PATH", HERE)
    assert called() == ("loopcheck",)


def test_a_script_without_the_command_names_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["mine.py"])
    monkeypatch.setenv("PATH", os.devnull)
    assert called() == (sys.executable, "-m", "loopcheck")


def test_arguments_are_quoted() -> None:
    assert pasted("judge", ["bar.xml", "a log.csv"], "--fit", "mass:rod") == (
        "loopcheck judge bar.xml 'a log.csv' --fit mass:rod"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no loop. Run: loopcheck gate", "no loop. Run: uv run loopcheck gate"),
        ("Run: pip install x, or loopcheck engines add x", "Run: pip install x, or uv run loopcheck engines add x"),
        ("names for loopcheck alone", "names for loopcheck alone"),
        ("a loopcheck study", "a loopcheck study"),
    ],
)
def test_the_command_of_a_message(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UV_RUN, "1")
    assert as_called(text) == shown
