"""The gate where people are: pytest plugin, script of the GitHub Action, pre-commit hook."""

import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from loopcheck.validation.gate.findings import Finding
from loopcheck.validation.gate.formats import GateResult, as_github
from loopcheck.validation.gate.pytest_plugin import CheckedFile, Failure, pytest_addoption, pytest_collect_file
from tests.conftest import MODELS
from tests.validation.conftest import Command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a sound model, a broken model, a fragment and another XML file."""
    folder = tmp_path / "models"
    folder.mkdir()
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    (folder / "sound.xml").write_text(text, encoding="utf-8")
    (folder / "broken.xml").write_text(text.replace('joint="crank" gear', 'joint="krank" gear'), encoding="utf-8")
    (folder / "part.xml").write_text("<mujocoinclude/>", encoding="utf-8")
    (folder / "package.xml").write_text("<package/>", encoding="utf-8")
    return tmp_path


@pytest.mark.extended("test_models_alone_are_collected", "test_the_plugin_fails_for_warnings_on_request")
def test_the_plugin_makes_a_test_of_each_model(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--loopcheck", "models"]
    plugin = ["-p", "loopcheck.validation.gate.pytest_plugin"]  # an older installation lacks the entry point
    listed = subprocess.run(
        [*command[:1], "-c", "from importlib.metadata import entry_points as e; print(*e(group='pytest11').names)"],
        capture_output=True,
        text=True,
        check=True,
    )
    ended = subprocess.run(
        [*command, *([] if "loopcheck" in listed.stdout.split() else plugin)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
    )
    assert ended.returncode == 1, ended.stderr
    assert "1 failed, 1 passed" in ended.stdout
    assert re.search(r"broken\.xml:29: LC101 error: .*krank", ended.stdout)


@pytest.mark.parametrize("strict", [False, True])
def test_the_plugin_fails_for_warnings_on_request(
    strict: bool, project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = CheckedFile.from_parent(request.session, path=project / "models" / "sound.xml")
    (item,) = file.collect()
    options = {"--loopcheck-warnings-as-errors": strict}
    monkeypatch.setattr(item, "config", SimpleNamespace(getoption=options.__getitem__))
    with pytest.raises(Failure, match="LC201 warning: ") if strict else nullcontext():
        item.runtest()


def test_models_alone_are_collected(
    project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    options = parser.parse_known_args(["--loopcheck", "--loopcheck-warnings-as-errors", "models"])
    assert (options.loopcheck, options.loopcheck_warnings_as_errors) == (True, True)
    for is_asked in (True, False):
        monkeypatch.setattr(request.config.option, "loopcheck", is_asked)
        files = [pytest_collect_file(path, request.session) for path in sorted((project / "models").iterdir())]
        found = [file.path.name for file in files if file is not None]
        assert found == (["broken.xml", "sound.xml"] if is_asked else [])


@pytest.mark.parametrize(("code", "kind"), [("LC101", "error"), ("LC206", "warning"), ("LC301", "notice")])
def test_texts_in_commands_of_github_are_those_of_the_finding(code: str, kind: str) -> None:
    """Decoded as the runner of a workflow does, `%` last: its codes are those of addresses."""
    message, file = "50 % of a:b, or 50%25:\r\n::error::", "a,b:c%0A.xml"
    finding = Finding(code=code, message=message, file=file, line=3)
    result = GateResult(target=file, file=Path(file), findings=(finding,), seconds=0.0)
    (command,) = as_github([result], 0).splitlines()
    match = re.fullmatch(rf"::{kind} file=([^:,]*),line=3,title={code}::(.*)", command)
    assert match
    assert (unquote(match[1]), unquote(match[2])) == (file, f"{message}. {finding.remedy}")


@pytest.mark.extended("test_texts_in_commands_of_github_are_those_of_the_finding")
def test_the_action_comments_on_a_pull_request(project: Path) -> None:
    """Its script with an event file and a command `gh` of the test: the table is its body, errors fail the step."""
    step: dict[str, Any] = next(
        step
        for step in yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
        if step.get("name") == "gate"
    )
    event, commands = project / "event.json", project / "bin"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
    commands.mkdir()
    for name, script in {
        "gh": 'echo "$@" > called; while [ "$1" != --body-file ]; do shift; done; cat "$2" > body',
        "loopcheck": f'exec {sys.executable} -m loopcheck "$@"',
        "python": f'exec {sys.executable} "$@"',
    }.items():
        (commands / name).write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        (commands / name).chmod(0o755)
    environment = {
        "FILES": "models/sound.xml models/broken.xml",
        "OPTIONS": "",
        "COMMENT": "true",
        "RUNNER_TEMP": str(project),
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "owner/name",
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=project,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "::error file=models/broken.xml,line=29,title=LC101::" in ended.stdout
    assert (project / "called").read_text(encoding="utf-8").startswith("pr comment 7 --repo owner/name")
    body = (project / "body").read_text(encoding="utf-8")
    assert "| models/broken.xml:29 | LC101 error |" in body
    assert body == (project / "summary.md").read_text(encoding="utf-8")


def test_the_hook_takes_models_and_calls_the_gate() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "loopcheck gate"
    assert re.search(hook["files"], "models/leg.xml")
    assert not re.search(hook["files"], "models/leg.stl")


def test_links_of_the_page_for_agents() -> None:
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert all((ROOT / path).is_file() for path in re.findall(r"\]\(([^)#]+)\)", text))


def test_a_tree_is_called_a_tree(tmp_path: Path, loopcheck: Command) -> None:
    body = '<body name="{0}"><joint name="{0}"/><geom size=".1"/></body>'
    for equality, is_tree in (("", True), ('<equality><joint joint1="a" joint2="b"/></equality>', False)):
        path = tmp_path / "m.xml"
        bodies = body.format("a") + body.format("b").replace("<body", '<body pos="1 0 0"')
        path.write_text(f"<mujoco><worldbody>{bodies}</worldbody>{equality}</mujoco>", encoding="utf-8")
        _, out, _ = loopcheck("gate", path)
        assert ("no loop (tree)" in out) == is_tree
        _, out, _ = loopcheck("gate", path, "--format", "json")
        assert json.loads(out)["targets"][0]["loops"] == (0 if is_tree else 1)
