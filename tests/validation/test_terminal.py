"""Final screens of commands in a pseudo-terminal, read by a terminal emulator."""

import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte
import pytest
from rich.console import Console

from loopcheck.validation.report.terminal import table
from tests.cpu_time import extended_but
from tests.pageless import PROGRAM

ROBOTS = Path(__file__).parents[2] / "robots"
FAST = ("check", "slider_crank", "--configuration", "vertical", "--dt", "0.05", "--source", "analytic/lagrange")
FAULTY = (
    "from loopcheck.validation import cli; from loopcheck.validation.frame import study; "
    "study._record = None; cli.main()"
)
"""The command line with a fault that a study meets while its bars are shown."""
BAR = re.compile(r"[╸╺]|\d+%|-?:--:--|\d:\d\d:\d\d")
COLOUR = re.compile(rb"\x1b\[[\d;]*\b(?:3[0-8]|4[0-8]|9[0-7])m")
HEIGHT = 24


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that has ended."""

    status: int
    lines: Sequence[str]
    """Lines of the terminal, including those above its screen."""
    bytes_written: bytes
    """Bytes that the terminal has received."""
    piped: bytes
    """Bytes of the stream that is not connected to the terminal."""
    screens: Sequence[str] = field(default_factory=list)
    """Screens meanwhile."""


def on_terminal(
    arguments: Iterable[object],
    *,
    columns: int = 80,
    piped: str = "",
    program: Sequence[str] = ("-m", "loopcheck"),
    **environment: str,
) -> Ended:
    """Run a command in a pseudo-terminal.

    Args:
        arguments: Of the command.
        columns: Width of the terminal.
        piped: `stdout` or `stderr`, if the command writes it into a pipe instead.
        program: Arguments of Python before those of the command.
        **environment: Variables besides those of the tests.
    """
    mine, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, columns, 0, 0))
    screen = pyte.HistoryScreen(columns, HEIGHT, history=10_000)
    stream = pyte.ByteStream(screen)
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdin=its,
        stdout=subprocess.PIPE if piped == "stdout" else its,
        stderr=subprocess.PIPE if piped == "stderr" else its,
        env={**inherited, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(its)
    received, screens = b"", []
    while data := _read(mine):
        received += data
        stream.feed(data)
        screens.append("\n".join(screen.display))
    os.close(mine)
    with process:
        pipe = process.stdout or process.stderr
        rest = pipe.read() if pipe else b""
    above = ["".join(line[k].data for k in range(columns)) for line in screen.history.top]
    lines = [line.rstrip() for line in (*above, *screen.display)]
    while lines and not lines[-1]:
        lines.pop()
    return Ended(status=process.returncode, lines=lines, bytes_written=received, piped=rest, screens=screens)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: all processes that had the terminal open have ended
        return b""


def letters(lines: Iterable[str]) -> str:
    """A text without spaces, which is the same at every width of the terminal."""
    return "".join("".join(lines).split())


def want_intact(lines: Iterable[str]) -> None:
    """Require no bar, and no row of a table that the terminal has broken."""
    for line in lines:
        assert not BAR.search(line)
        if line and line[0] in "┏┃┡│└":
            assert line[-1] in "┓┃┩│┘", line


COMMANDS = {
    "a catalogue robot": (FAST, 0, "report.html"),
    "a log": (
        ("judge", ROBOTS / "four_bar" / "four_bar.xml", ROBOTS / "four_bar" / "logs" / "clean.csv"),
        1,
        "report.html",
    ),
    "a study": (("study", "errata", "2t1r"), 0, "errata.html"),
}


@pytest.mark.evidence("a command in a terminal of two widths", seconds=5)
@pytest.mark.parametrize("name", extended_but(["a study"], COMMANDS, "test_the_last_lines_stay_on_the_screen"))
def test_the_last_lines_stay_on_the_screen(name: str, tmp_path: Path) -> None:
    arguments, status, page = COMMANDS[name]
    program = ("-m", "loopcheck") if name == "a study" else PROGRAM
    narrow = on_terminal([*arguments, "--out", tmp_path], program=program)
    wide = on_terminal([*arguments, "--out", tmp_path], columns=120, program=PROGRAM)
    assert (narrow.status, wide.status) == (status, status)
    for ended in (narrow, wide):
        want_intact(ended.lines)
        assert letters(ended.lines).endswith(f"Report:{tmp_path / page}")
    assert any(BAR.search(screen) for screen in narrow.screens)
    assert COLOUR.search(narrow.bytes_written)
    # the first has had to compute, the second has not; suggested commands begin as each was called
    one, other = (letters(ended.lines).replace("python-mloopcheck", "loopcheck") for ended in (narrow, wide))
    assert one == other


@pytest.mark.extended("test_the_last_lines_stay_on_the_screen")
def test_a_fault_of_our_own_leaves_no_bar(tmp_path: Path) -> None:
    ended = on_terminal([*FAST, "--out", tmp_path], program=("-c", FAULTY), HOME=str(tmp_path))
    assert ended.status == 70
    assert any(BAR.search(screen) for screen in ended.screens)
    want_intact(ended.lines)
    assert ended.lines[0].startswith("loopcheck: ")
    assert "TypeError" in " ".join(ended.lines)


@pytest.mark.parametrize("columns", [80, 120])
def test_bad_input_is_on_the_screen(tmp_path: Path, columns: int) -> None:
    ended = on_terminal(["judge", tmp_path / "missing.xml", tmp_path / "log.csv"], columns=columns)
    assert ended.status == 2
    assert ended.lines[0].startswith("loopcheck: ")
    assert "missing.xml" in "".join(ended.lines)
    want_intact(ended.lines)


@pytest.mark.extended("test_the_last_lines_stay_on_the_screen")
@pytest.mark.parametrize("piped", ["stdout", "stderr"])
def test_bars_are_on_the_stream_that_is_a_terminal(tmp_path: Path, piped: str) -> None:
    ended = on_terminal([*FAST, "--out", tmp_path], piped=piped, program=PROGRAM, NO_COLOR="1")
    text = "\n".join(ended.lines)
    assert any(BAR.search(screen) for screen in ended.screens)
    assert not COLOUR.search(ended.bytes_written)
    want_intact(ended.lines)
    if piped == "stdout":
        assert text == ""
        below = ended.piped.decode().rstrip().rpartition("┘\n")[2].splitlines()
        assert below[-1] == f"Report: {tmp_path / 'report.html'}"
        assert len(below) <= 5
        assert b"\x1b" not in ended.piped
    else:
        assert letters(ended.lines).endswith(f"Report:{tmp_path / 'report.html'}")
        assert ended.piped == b""


@pytest.mark.extended("test_the_last_lines_stay_on_the_screen")
def test_a_terminal_that_cannot_move_its_cursor_gets_text_alone(tmp_path: Path) -> None:
    ended = on_terminal([*FAST, "--out", tmp_path], program=PROGRAM, TERM="dumb")
    assert ended.status == 0
    assert b"\x1b" not in ended.bytes_written
    want_intact(ended.lines)
    assert letters(ended.lines).endswith(f"Report:{tmp_path / 'report.html'}")


@pytest.mark.parametrize(("width", "tables"), [(400, 1), (80, 3)])
def test_a_table_that_is_too_wide_becomes_several(width: int, tables: int) -> None:
    names = [f"engine_{k}/forward" for k in range(8)]
    console = Console(file=io.StringIO(), width=width)
    console.print(table(["source", *names], [["one", *(f"agree 1.0e-{k}" for k in range(8))]], title="a title"))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    want_intact(lines)
    rows = [line for line in lines if "agree" in line]
    assert len(rows) == sum("one" in line for line in rows) == tables
    found = " ".join(lines).split()
    assert [found.count(name) for name in names] == [1] * 8
    assert [found.count(f"1.0e-{k}") for k in range(8)] == [1] * 8
