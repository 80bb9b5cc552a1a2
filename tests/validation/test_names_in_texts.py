"""Names of a model in texts: no line break, no command to a runner, no markup and no control character is left."""

import json
import re
from pathlib import Path

import pytest

from loopcheck.robots.errors import one_line
from loopcheck.validation.report.blocks import Cell, Table, line, pipes
from loopcheck.validation.report.terminal import show, table
from tests.conftest import MODELS
from tests.validation.conftest import Command

ATTACKS = {
    "a line": "rod\n::error file=x.xml::no",
    "a line of Windows": "rod\r\n  ::warning::no",
    "another line": "rod\u2028::error::no\x85::error::no\x0b::error::no",
    "an old command": "rod ##[error]no",
    "markup": "rod [/red] [bold]no",
    "a colour": "rod \x1b[31mno\x1b[2J",
    "a turned text": "rod \u202eon",
    "a table": "rod | no | `no` [no](javascript:no) <img src=x> ![no](http://no)",
    "a long word": "rod" * 60 + "::error::no",
    "long words": "rod " * 60 + "::error file=x.xml::no",
    "numbers": "rod %0A::error::no %s {0}",
}
RUN_AS_COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
"""Lines that a runner takes for commands (actions/runner, ActionCommand.cs: `::` after spaces, `##[` anywhere)."""
MOVES = re.compile(r"[^\n\t\x20-\x7e\xa0-\u1fff\u2010-\u2027\u2030-\u205f\u2070-\uffff]")


def _want_harmless(text: str) -> None:
    assert not RUN_AS_COMMAND.search(text)
    assert not MOVES.search(text)


def _model(folder: Path, name: str) -> Path:
    """The four-bar with an open loop between bodies of that name."""
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    coded = "".join(f"&#{ord(each)};" for each in name)
    for known in set(re.findall(r'name="(\w+)"', text)):
        text = text.replace(f'"{known}"', f'"{known} {coded}"')
    path = folder / "model.xml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_is_one_harmless_line(attack: str) -> None:
    for text in (ATTACKS[attack], ATTACKS[attack].removeprefix("rod").lstrip(" ")):
        _want_harmless(one_line(text))
        assert len(one_line(text).splitlines()) == 1


def test_common_names_stay_as_they_are() -> None:
    assert one_line("a\r\nb\u2028c\x85d\x1be\tf") == "a b c d\\x1be\tf"
    for name in ("left_knee", "Gelenk für Öl", "膝", "a::b", "a::b,c::d::e", "a # [b]", "50 % \N{DEGREE SIGN}"):
        assert one_line(name) == name


@pytest.mark.parametrize("attack", ATTACKS)
def test_findings_of_the_gate_are_lines_of_their_own(attack: str, loopcheck: Command, tmp_path: Path) -> None:
    path = _model(tmp_path, ATTACKS[attack])
    plain = [loopcheck("gate", MODELS / "four_bar.xml", "--format", kind)[1] for kind in ("text", "markdown", "github")]
    for kind, known in zip(("text", "markdown", "github"), plain, strict=True):
        _, out, err = loopcheck("gate", path, "--format", kind)
        assert err == ""
        assert out.count("\n") == known.count("\n"), out
        assert "rod" in out
        if kind == "github":
            assert all(
                re.match(r"::(warning|notice) file=[^:]*,line=\d+,title=LC\d+::", each) for each in out.split("\n")[:-1]
            )
            continue
        _want_harmless(out)
        if kind == "markdown":
            rows = [row for row in out.split("\n") if row.startswith("|")]
            assert {row.count("|") for row in rows} == {5}
            assert not re.search(r"\]\(|<", out)


@pytest.mark.parametrize("attack", ATTACKS)
def test_terminals_and_pages_show_names(attack: str, capfd: pytest.CaptureFixture[str]) -> None:
    from rich.markup import escape
    from rich.text import Text

    name = ATTACKS[attack]
    show([name, Text(name), table([name, name], [[escape(name), "1"]], title=name)])
    out = capfd.readouterr().out
    _want_harmless(out)
    assert len(name) > 100 or out.count("\n") == 8
    markdown = pipes(Table([name], [[Cell(name)]]))
    assert markdown.count("\n") == 2
    assert "](" not in line(name)


def test_wrapped_titles_begin_no_command(capfd: pytest.CaptureFixture[str]) -> None:
    show(table(["a", "b"], [["1", "2"]], title=f"{'r' * k} ::error::no") for k in range(12))
    show(table(["a", "b"], [["1", "2"]], title=f"{'r' * k}::error::no") for k in range(12))
    _want_harmless(capfd.readouterr().out)


def test_messages_are_harmless(loopcheck: Command, tmp_path: Path) -> None:
    for attack in ATTACKS.values():
        _, _, err = loopcheck("gate", tmp_path / f"{attack.replace('/', '')}.xml")
        _want_harmless(err)
        assert err.count("\n") == 1


def test_names_are_exact_in_json_and_files_are_addresses_in_sarif(loopcheck: Command, tmp_path: Path) -> None:
    (tmp_path / "50 %25 #1").mkdir()
    path = _model(tmp_path / "50 %25 #1", ATTACKS["a line"])
    found = json.loads(loopcheck("gate", path, "--format", "json")[1])["targets"][0]["findings"]
    assert any(ATTACKS["a line"] in finding["message"] for finding in found)
    (run,) = json.loads(loopcheck("gate", path, "--format", "sarif")[1])["runs"]
    places = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert {place.rpartition("/50%20%25")[2] for place in places} == {"25%20%231/model.xml"}
