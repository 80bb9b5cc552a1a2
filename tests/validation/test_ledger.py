"""Known issues: well formed, and reported exactly to the affected users."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from loopcheck import engines
from loopcheck.robots.catalogue import names
from loopcheck.validation.common import sources
from loopcheck.validation.common.known_issues import REPRODUCED_BY, Issue, concerning, known_issues
from tests.validation.conftest import Command


@pytest.mark.parametrize("issue", known_issues(), ids=lambda issue: issue.key)
def test_an_entry_is_founded(issue: Issue) -> None:
    for text in (issue.cause, issue.remedy):
        assert text.endswith(".")
    sources.want_known(issue.sources)
    assert set(issue.robots) <= set(names())
    assert issue.engine in {name.split("/")[0] for name in engines.names()}
    assert all(source.startswith(issue.engine) for source in issue.sources)
    assert issue.key.startswith(issue.engine.replace("_", "-"))


def test_keys_are_unique() -> None:
    keys = [issue.key for issue in known_issues()]
    assert len(set(keys)) == len(keys)


def test_the_command_that_reproduces_an_entry_names_a_test() -> None:
    assert (Path(__file__).parents[2] / REPRODUCED_BY).is_file()
    for issue in known_issues():
        assert issue.reproduce == f'uv run --group dev pytest {REPRODUCED_BY} -k "{issue.key}"'


def test_entries_concern_the_engines_sources_and_robots_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "4.0.0")
    keys = {issue.key for issue in concerning(["3prr"], ["analytic/noc", "mujoco/kkt"])}
    assert "mujoco-connect-anchor" in keys
    assert "mujoco-soft-loops" not in keys  # no route of the run shows it
    assert not any(key.startswith("pybullet") for key in keys)
    assert concerning(["3prr"], ["analytic/noc"]) == []


def test_an_entry_of_another_version_concerns_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.4.0")
    assert concerning(["3prr"], ["mujoco/as_is"]) == []


def test_an_entry_of_an_older_version_concerns_those_who_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "mujoco-velocity-term"
    for version, concerns in (("3.6.0", True), ("3.7.0", False), ("4.0.0", False)):
        monkeypatch.setattr("importlib.metadata.version", lambda name, version=version: version)
        assert (key in {issue.key for issue in concerning(["3prr"], ["mujoco/forward"])}) is concerns


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"size": (2.0, 1.0)}, "size must be"),
        ({"versions": "newer"}, "Invalid specifier"),
        ({"link": "somewhere"}, "URL"),
        ({"key": "Not a name"}, "pattern"),
        ({"because": "a slip"}, "Extra inputs"),
    ],
)
def test_a_bad_entry_is_refused(change: dict[str, object], complaint: str) -> None:
    entry = {**known_issues()[0].model_dump(), **change}
    with pytest.raises(ValidationError, match=re.escape(complaint)):
        Issue.model_validate(entry)


@pytest.mark.extended("test_entries_concern_the_engines_sources_and_robots_of_a_run")
@pytest.mark.usefixtures("no_figures")
def test_the_report_prints_what_concerns_the_run(loopcheck: Command, tmp_path: Path) -> None:
    one_case = ("--mode", "plus", "--variant", "default", "--configuration", "vertical", "--jobs", "1")
    loopcheck("check", "3prr", *one_case, "--source", "mujoco/inverse", "--out", tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    section = text.split("## Known differences")[1].split("\n## ")[0]
    assert "mj_inverse does not give the efforts of closed loops" in section
    assert '-k "mujoco-inverse-of-soft-loops"' in section
    assert "Loops and drives are soft by default" not in section
    assert "PyBullet" not in section
