"""Every command of the documents: the command line takes it as it is written; what is quick is run."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MODELS
from validation.cli import cli

HOUSE = Path(__file__).parent.parent
DOCUMENTS = [HOUSE / "README.md", HOUSE / "CONTRIBUTING.md", *sorted((HOUSE / "robots").glob("*/README.md"))]


def documented() -> Iterator[str]:
    """Commands of loopcheck in the documents' blocks of code, and in the examples of --help."""
    for path in DOCUMENTS:
        for _, block in re.findall(
            r"^```(sh|yaml)\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            yield from re.findall(r"(?:uv run |- run: |python -m )((?:loopcheck|validation) [^#\n]*)", block)
    for command in (cli, *cli.commands.values()):
        yield from re.findall(r"^ *(loopcheck .*)$", command.help or "", re.MULTILINE)


COMMANDS = sorted({re.sub(r" [>|2].*", "", command).strip() for command in documented()})


def test_commands_were_found() -> None:
    assert len(COMMANDS) > 15
    assert {command.split()[1] for command in COMMANDS} >= {name for name in cli.commands if name != "list"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_is_accepted(command: str) -> None:
    arguments = [argument for argument in shlex.split(command)[1:] if argument != "--help"]  # which ends the parsing
    name, *rest = arguments or ["list"]
    cli.commands[name].make_context(name, rest).close()


@pytest.mark.parametrize("command", [command for command in COMMANDS if " list" in command])
def test_a_quick_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "my_robots" / "linkage"
    own.mkdir(parents=True)
    shutil.copy(MODELS / "four_bar.xml", own)
    (own / "robot.toml").write_text('title = "t"\nmjcf = "four_bar.xml"\nsource = "s"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    cli(shlex.split(command)[1:], standalone_mode=False)


def test_links_of_the_documents_lead_to_files() -> None:
    for path in DOCUMENTS:
        links = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8"))
        assert [link for link in links if not (path.parent / link).exists()] == []
