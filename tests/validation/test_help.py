"""`--help` of every command on a terminal with 80 columns, read by a terminal emulator."""

import re
from collections.abc import Mapping, Sequence

import click
import pytest

from loopcheck.validation.cli import cli
from loopcheck.validation.frame.options import Accuracy
from tests.validation.test_terminal import Ended, on_terminal

COLUMNS = 80
MARK = "==="
ALL = f"""
import click
from loopcheck.validation.cli import cli
def names(command, words=()):
    yield words
    for name in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        yield from names(command.get_command(click.Context(command), name), (*words, name))
for words in names(cli):
    print("{MARK}", *words)
    cli.main([*words, "--help"], prog_name="loopcheck", standalone_mode=False)
"""
UNITS = re.compile(r"second|\bin %|\bin µs")
"""Words that state the unit of a number."""
GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Space between columns; two in a line are paragraphs that have run together."""


def _commands(command: click.Command, *words: str) -> Sequence[tuple[str, click.Command]]:
    """All commands by name, groups before their commands."""
    found = [(" ".join(words), command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found += _commands(inner, *words, name)
    return found


COMMANDS = dict(_commands(cli))


def _by_command(lines: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Lines below the mark of each command."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(MARK):
            found[line.removeprefix(MARK).strip()] = []
        else:
            found[[*found][-1]].append(line)
    return found


@pytest.fixture(scope="module")
def ended() -> Ended:
    """The process that shows the help of all commands, in two seconds."""
    ended = on_terminal([], columns=COLUMNS, program=("-c", ALL))
    assert ended.status == 0
    return ended


@pytest.fixture(scope="module")
def screens(ended: Ended) -> Mapping[str, Sequence[str]]:
    """Lines of the terminal by command."""
    return _by_command(ended.lines)


def _description(lines: Sequence[str]) -> list[str]:
    """Lines above the options and commands."""
    end = next(k for k, line in enumerate(lines) if re.fullmatch(r"(\w+ )?(options|Options|Commands):", line))
    return list(lines[:end])


def test_every_command_has_a_help(screens: Mapping[str, Sequence[str]]) -> None:
    assert set(screens) == set(COMMANDS)
    assert len(screens) >= 25


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_fits_80_columns(name: str, ended: Ended, screens: Mapping[str, Sequence[str]]) -> None:
    """The lines on the screen are those that the command has written: the terminal has broken none."""
    written = _by_command(ended.bytes_written.decode().replace("\r", "").rstrip().split("\n"))
    assert screens[name] == written[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_paragraphs_do_not_run_together(name: str, screens: Mapping[str, Sequence[str]]) -> None:
    assert not re.search("\b[^\n]", COMMANDS[name].help or "")  # click keeps the lines of a paragraph below a lone \b
    for line in _description(screens[name]):
        gaps = list(GAP.finditer(line.strip()))
        assert len(gaps) <= 1, line
        assert all(line.strip()[gap.start() - 1] != ":" for gap in gaps), line


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_has_an_example_of_its_command(name: str, screens: Mapping[str, Sequence[str]]) -> None:
    text = "\n".join(_description(screens[name]))
    found = re.search(r"^  Examples?:\n((?:    loopcheck .*(?:\n|$))+)", text, re.MULTILINE)
    assert found is not None
    examples = found[1].splitlines()
    assert all(line.split()[1:][: len(name.split())] == name.split() for line in examples), examples
    assert ("Examples:" in text) == (len(examples) > 1)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_states_its_unit_and_value(name: str) -> None:
    for option in COMMANDS[name].params:
        if not isinstance(option, click.Option):
            continue
        assert (option.help or "").endswith((".", "]")), option.name
        if isinstance(option.type, click.FloatRange) or option.type is click.FLOAT:
            assert UNITS.search(option.help or ""), option.name
        assert "relative to" in (option.help or "") or not isinstance(option.type, Accuracy), option.name
        assert option.metavar or not isinstance(option.type, click.IntRange | click.FloatRange), option.name
