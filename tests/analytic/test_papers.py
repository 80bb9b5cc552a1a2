"""Errata as data: each key of a file is a switch of the model beside it, and a bad entry is named."""

import re
from pathlib import Path

import pytest

from loopcheck.analytic import papers
from loopcheck.analytic.papers import paper_model, read_errata
from loopcheck.robots.errors import MechanismError

FOLDER = Path(papers.__file__).parent
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")
ENTRY = '[[errata]]\nkey = "sign"\nequation = "(1)"\nprinted = "+"\ncorrected = "-"\n'


def test_every_paper_has_its_errata() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == {path.stem for path in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_model_switches_what_its_errata_say(module: Path) -> None:
    lines = [line for line in module.read_text(encoding="utf-8").splitlines() if " in printed" in line]
    switches = {key for line in lines for key in re.findall(r'"(\w+)"', line)}
    assert switches == {erratum.key for erratum in paper_model(module.stem).ERRATA if erratum.computes}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ENTRY.replace("printed", "print"), "errata.0.printed: required key is missing"),
        (ENTRY.replace('"(1)"', '""'), "errata.0.equation: String should have at least 1 character"),
        (ENTRY + 'page = "7"\n', "errata.0.page: unknown key"),
        (ENTRY + ENTRY, "sign more than once"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "paper.toml").write_text(text, encoding="utf-8")
    with pytest.raises(MechanismError, match=re.escape(reason)) as error:
        read_errata(str(tmp_path / "paper.py"))
    assert str(tmp_path / "paper.toml") in str(error.value)
    assert "\n" not in str(error.value)
