"""A robot whose agreement is tested in its owner's repository: the commands of the guide in an empty folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import MODELS
from tests.lanes import HOUSE

GUIDE = HOUSE / "docs/how_to/add_a_robot.md"
PLUGIN = ("-p", "no:cacheprovider")


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the guide, without `uv run`."""
    program, *arguments = command.removeprefix("uv run ").split()
    more = {"pytest": PLUGIN, "loopcheck": ()}[program]
    return subprocess.run(
        [sys.executable, "-m", program, *arguments, *more],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )


@pytest.mark.extended("tests/validation/test_gate_tools.py::test_models_alone_are_collected")
def test_the_commands_of_the_guide_make_a_tested_robot(tmp_path: Path) -> None:
    shutil.copy(MODELS / "walking" / "my_robot.xml", tmp_path / "my_gripper.xml")
    commands = re.findall(r"^ *```sh\n *(.+)\n", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert 3 <= len(commands) <= 5
    ended = [run(tmp_path, command) for command in commands]
    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * len(commands), ended
    assert "2 passed" in ended[-1].stdout
    agreement = tmp_path / "my_robots/gripper/agreement.json"
    stored = json.loads(agreement.read_text(encoding="utf-8"))
    lost = next(row for row in stored["rows"] if row["source"] == "mujoco/kkt")
    stored["rows"].append({**lost, "source": "newton/kkt"})
    agreement.write_text(json.dumps(stored), encoding="utf-8")
    failed = run(tmp_path, commands[-1])
    assert failed.returncode == 1
    assert "newton/kkt" in failed.stdout
    assert "the row is missing; it was 'agree'" in failed.stdout
    assert "Traceback" not in failed.stdout
