"""Every command of the documents: the command line takes it as it is written.

`tests/docs/test_pasted.py` runs those of README.md and of the how-to.
"""

import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.logs.log_files import write_log
from loopcheck.validation.cli import cli
from loopcheck.validation.common.targets import cases_of
from tests.conftest import MODELS
from tests.logs import exact_log

HOUSE = Path(__file__).parent.parent
CONTEXT = click.Context(cli)
ROOMS = [HOUSE / room for room in ("robots", "analytic", "engines", "validation")]
DOCUMENTS = [
    HOUSE / "README.md",
    HOUSE / "CONTRIBUTING.md",
    *sorted((HOUSE / "docs/how_to").glob("*.md")),
    *sorted((HOUSE / "docs/reference").glob("*.md")),
    *(path for room in ROOMS for path in sorted(room.rglob("README.md"))),
]


def _commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands by name, as `check` and `study sweep`."""
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        assert command is not None
        if isinstance(command, click.Group) and name == "study":
            yield from _commands(command, f"{name} ")
        else:
            yield f"{prefix}{name}", command


BY_NAME = dict(_commands(cli))


def documented() -> Iterator[str]:
    """Commands of loopcheck in the documents' blocks of code, and in the examples of --help."""
    for path in DOCUMENTS:
        for _, block in re.findall(
            r"^```(sh|yaml)\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            yield from re.findall(r"(?:uv run |- run: |python -m )(loopcheck [^#\n]*)", block)
    for command in (cli, *BY_NAME.values()):
        yield from re.findall(r"^ *(loopcheck .*)$", command.help or "", re.MULTILINE)


COMMANDS = sorted({re.sub(r" [>|2].*", "", command).strip() for command in documented()})
ANSWERS = (0, 1, 3)
"""Exit statuses of a command that has an answer, be it that engines disagree; 2 is bad input."""


def test_commands_were_found() -> None:
    assert len(COMMANDS) > 15
    assert {_name(command.split()[1:]) for command in COMMANDS} >= {name for name in BY_NAME if name != "list"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_is_accepted(command: str) -> None:
    want_accepted(command)


def want_accepted(command: str) -> None:
    """Fail if the command line does not take a command as it is written."""
    arguments = [argument for argument in shlex.split(command)[1:] if argument != "--help"]  # which ends the parsing
    name = _name(arguments or ["list"])
    BY_NAME[name].make_context(name, arguments[len(name.split()) :]).close()


def _name(arguments: Sequence[str]) -> str:
    """Name of the command, with its group."""
    return " ".join(arguments[:2] if arguments[0] == "study" else arguments[:1])


def fill(desk: Path) -> None:
    """Write the models, the motion and the logs that the documents take for the reader's own."""
    for name in ("my_robot.xml", "my_gripper.xml", "leg.xml"):
        shutil.copy(MODELS / "walking" / "my_robot.xml", desk / name)
    t = np.linspace(0, 1, 101)
    walk = {"t": t}
    for joint, q0, swing in (("hip", 2.2, 0.1), ("knee", 0.9, -0.1)):
        law = np.polynomial.Polynomial([q0, 0, 0, 10 * swing, -15 * swing, 6 * swing])
        walk |= {f"{joint}.q": law(t), f"{joint}.qd": law.deriv()(t), f"{joint}.qdd": law.deriv(2)(t)}
    pd.DataFrame(walk).to_csv(desk / "walk.csv", index=False)
    case = cases_of([desk / "my_robot.xml"], motion=desk / "walk.csv")[0]
    log = exact_log(case, t)
    for name in ("run", "mine", "bench", "simscape"):
        write_log(log, desk / f"{name}.csv")


def test_links_of_the_documents_lead_to_files() -> None:
    for path in [*DOCUMENTS, *(HOUSE / "docs").glob("*.md"), *(HOUSE / "docs/reference").glob("*.md")]:
        links = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8"))
        assert [link for link in links if not (path.parent / link).exists()] == []
