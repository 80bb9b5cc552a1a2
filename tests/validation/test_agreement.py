"""A robot whose agreement is tested in its owner's repository: the commands of the guide in an empty folder."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopcheck import engines
from loopcheck.validation.gate.pytest_plugin import CheckedFile, Failure
from tests.conftest import MODELS
from tests.lanes import HOUSE
from tests.validation.conftest import Command

GUIDE = HOUSE / "docs/how_to/add_a_robot.md"
SOURCES = {"mujoco/kkt", "pinocchio/kkt"}


@pytest.mark.extended("tests/validation/test_gate_tools.py::test_models_alone_are_collected")
@pytest.mark.usefixtures("tables_only")
def test_the_commands_of_the_guide_make_a_tested_robot(
    tmp_path: Path, loopcheck: Command, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two sources, as the owner leaves the others out in `robot.toml`."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(MODELS / "walking" / "my_robot.xml", "my_gripper.xml")
    commands = re.findall(r"^ *```sh\n *uv run (.+)\n", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert 3 <= len(commands) <= 5
    for command in commands[:-1]:
        program, name, *arguments = shlex.split(command)
        status, out, err = loopcheck(name, *arguments)
        assert (program, status, err) == ("loopcheck", 0, ""), out
        if name == "new":
            left_out = "".join(f'"{source}" = "takes long"\n' for source in {*engines.names()} - SOURCES)
            with Path("my_robots/gripper/robot.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n[without]\n{left_out}")
    ended = subprocess.run(
        [sys.executable, "-m", *shlex.split(commands[-1]), "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "2 passed" in ended.stdout
    agreement = tmp_path / "my_robots/gripper/agreement.json"
    stored = json.loads(agreement.read_text(encoding="utf-8"))
    lost = next(row for row in stored["rows"] if row["source"] == "mujoco/kkt")
    stored["rows"].append({**lost, "source": "newton/kkt"})
    agreement.write_text(json.dumps(stored), encoding="utf-8")
    (item,) = CheckedFile.from_parent(request.session, path=agreement).collect()
    with pytest.raises(Failure) as caught:
        item.runtest()
    assert re.fullmatch(r".*newton/kkt.*the row is missing; it was 'agree'.*", item.repr_failure(caught))
