"""Commands of README.md and of each how-to, pasted in the order of the document into one folder.

A folder stands for a clone with the reader's own files. `uv run` starts what is installed here, without its pages; the
main commands of README.md run in processes of their own, the others in this process. Without `--all-commands`, the
commands of `SHORTER` get the options below, which change no folder and no name of a file.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from loopcheck.validation.convert.converting import convert
from loopcheck.validation.execution.invocation import UV_RUN
from tests.pageless import leave_pages_out, pageless_programs
from tests.test_documents import ANSWERS, fill, want_accepted
from tests.validation.conftest import Command, in_this_process
from tests.validation.small_studies import budget_rows

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs/how_to").glob("*.md"))]
SKIPPED = {
    r"(pip|pipx) install|uv build": "installs packages, from the network",
    r"loopcheck engines (add|update|remove)": "makes environments, from the network",
    r"loopcheck check 3prr --source pybullet": "has the environment of the command before",
    r"pytest": "is this test suite",
}
"""Commands that are not run here, with the reason."""
ELSEWHERE = {
    r"serial robots/legs/knee.xml": "test_recovery.py::test_all_commands_behave_alike",
    r"serial robots/legs/ankle.xml robots": "test_serial.py::test_functions_repair_what_the_stand_in_loses",
    r"serial unitree_g1": "test_serial_advice.py::test_armatures_as_printed_and_as_written_are_near_the_best",
    r"serial .*--make": "test_formats.py::test_commands_take_every_format",
    r"judge four_bar": "test_judge.py::test_the_suggested_accuracy_of_an_undecided_log_agrees",
    r"tune my_robot.xml --accuracy 1%$|--verify": "tests/docs/test_tutorial.py::test_the_tutorial_ends_as_shown",
    r"tune my_robot.xml .*--motion": "test_tune.py::test_what_cannot_be_reached_says_what_stands_in_the_way",
    r"tune four_bar": "test_tune.py::test_the_certificate_of_a_catalogue_robot_is_verified_by_the_printed_command",
    r"versions .*mujoco==": "test_versions.py::test_the_releases_themselves_change_what_the_page_says",
}
"""Commands of other tests, by default in `tests/validation`, so that they run here with `--all-commands` alone."""
SHORTER = {
    "check": "--source mujoco/kkt --dt 0.1",
    "serial": "--samples 4",
    "study readings": "--source mujoco/as_is",
}
"""Options that make a command short, instead of its own of the same names, by its first words."""
MAIN = ("check 3prr", "gate")
"""First words of the commands of README.md that are not extended."""
UV = """#!/bin/sh
shift # run
while [ "$1" = --group ]; do shift 2; done
exec "$@"
"""
ANKLE = """import numpy as np
T = np.array([[1.0, 0.5], [-1.0, 0.5]])
def to_motors(x, xd, effort):
    return T @ x, T @ xd, np.linalg.solve(T.T, effort)
"""
LIBRARY = """
int to_motors(const double *x, const double *xd, const double *e, double *y, double *yd, double *motor_effort) {
    for (int k = 0; k < 2; ++k) {
        double sign = k ? -1 : 1;
        y[k] = sign * x[0] + .5 * x[1];
        yd[k] = sign * xd[0] + .5 * xd[1];
        motor_effort[k] = .5 * sign * e[0] + e[1];
    }
    return 0;
}
"""


def commands(path: Path) -> Iterator[str]:
    """Commands of a document in order, in its blocks of a shell and in the steps of its workflows."""
    for kind, block in re.findall(r"^ *```(sh|yaml)\n(.*?)^ *```", path.read_text(encoding="utf-8"), re.S | re.M):
        for line in block.splitlines():
            command = re.sub(r"(^|\s)#.*", "", line).strip()
            if kind == "sh" and command:
                yield from command.split(" && ")
            elif command.startswith("- run: "):
                yield command.removeprefix("- run: ")


def _reason(command: str, reasons: Mapping[str, str]) -> str:
    return next((reason for pattern, reason in reasons.items() if re.search(pattern, command)), "")


def _shorter(command: str) -> str:
    """The command with the options that make it short."""
    for name, options in SHORTER.items():
        if re.search(rf"loopcheck {name}\b", command):
            for option in re.findall(r"--\S+", options):
                command = re.sub(rf" {option} \S+", "", command)
            return f"{command} {options}"
    return command


def _bin(folder: Path) -> Path:
    """A folder for PATH with `uv`, and with `loopcheck` without pages."""
    uv = pageless_programs(folder) / "uv"
    uv.write_text(UV, encoding="utf-8")
    uv.chmod(0o755)
    return folder


def _clone(folder: Path) -> Path:
    """A clone with the files that the documents take for the reader's own."""
    folder.mkdir()
    (folder / "robots").symlink_to(ROOT / "robots")
    fill(folder)
    shutil.copy(ROOT / "robots/legs/ankle.xml", folder / "leg.xml")
    (folder / "ankle.py").write_text(ANKLE, encoding="utf-8")
    (folder / "ankle.c").write_text(LIBRARY, encoding="utf-8")
    if compiler := shutil.which("cc"):
        subprocess.run([compiler, "-shared", "-fPIC", "-o", "libankle.so", "ankle.c"], cwd=folder, check=True)
    for name in ("leg.urdf", "robot.urdf"):
        convert(str(folder / "my_robot.xml"), folder / name, lossless=False, seed=0)
    shutil.copy(folder / "my_robot.xml", folder / "robot.xml")
    return folder


def test_every_document_is_read() -> None:
    found = {path.name: list(commands(path)) for path in DOCUMENTS}
    assert sum(map(len, found.values())) > 35
    assert {name for name, of_one in found.items() if not of_one} <= {"optimize_a_trajectory.md"}
    every = " ".join(command for of_one in found.values() for command in of_one)
    assert all(re.search(pattern, every) for pattern in (*SKIPPED, *ELSEWHERE))
    assert all(re.search(f"loopcheck {name}", every) for name in SHORTER)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            marks=pytest.mark.extended(
                "test_the_main_commands_of_the_readme_succeed",
                "tests/test_documents.py::test_a_documented_command_is_accepted",
            ),
            id=path.stem,
        )
        for path in DOCUMENTS
    ],
)
@pytest.mark.usefixtures("short_proofs")
def test_the_commands_of_a_document_succeed_in_order(
    path: Path,
    tmp_path: Path,
    loopcheck: Command,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_full, wanted = pytestconfig.getoption("--all-commands"), []
    for command in commands(path):
        if reason := _reason(command, SKIPPED if is_full else SKIPPED | ELSEWHERE):
            record_property(command, f"skipped: {reason}")
        else:
            wanted.append(command if is_full else _shorter(command))
    monkeypatch.setenv(UV_RUN, "1")

    def run(shown: str) -> tuple[int, str, str]:
        words = shlex.split(shown.removeprefix("uv run "))
        assert words[0] == "loopcheck", shown
        return loopcheck(*words[1:])

    with in_this_process() as patch:
        leave_pages_out(patch)
        patch.setattr("loopcheck.validation.tune.study.budget", budget_rows)  # that of test_budget.py takes seconds
        monkeypatch.chdir(_clone(tmp_path / "clone"))
        _want_success(wanted, run, record_property)


@pytest.mark.evidence("the main commands of README.md, each in a process of its own", seconds=8)
def test_the_main_commands_of_the_readme_succeed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    of_readme = [*commands(ROOT / "README.md")]
    wanted = [next(command for command in of_readme if f"loopcheck {name}" in command) for name in MAIN]
    clone, programs = _clone(tmp_path / "clone"), _bin(tmp_path / "bin")
    search = os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"])))
    environment = {**os.environ, "PATH": search, UV_RUN: "1"}

    def run(shown: str) -> tuple[int, str, str]:
        ended = subprocess.run(
            ["bash", "-c", shown], cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
        return ended.returncode, ended.stdout, ended.stderr

    _want_success(map(_shorter, wanted), run, record_property)


def _want_success(
    wanted: Iterable[str],
    run: Callable[[str], tuple[int, str, str]],
    record_property: Callable[[str, object], None],
) -> None:
    """Run commands in a clone; each has an answer, no text on stderr, and suggests commands that exist."""
    for shown in wanted:
        status, out, err = run(shown)
        record_property(shown, f"exit status {status}")
        assert (status in ANSWERS, err) == (True, ""), f"{shown}\n{out}"
        for suggested in re.findall(r"^Next: (.*)$", out, re.MULTILINE):
            assert suggested.startswith("uv run loopcheck "), suggested
            want_accepted(suggested.removeprefix("uv run "))
