"""A copy of the house, for commands that run in a process of their own or write into the catalogue."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def copy_house(to: Path) -> Path:
    """Copy what is installed into a folder, with what is compiled, so that it is not compiled again; returns it."""
    for room in ("robots", "analytic", "engines", "validation"):
        shutil.copytree(ROOT / room, to / "loopcheck" / room)
    for path in (ROOT / "loopcheck").glob("*.py"):
        shutil.copy(path, to / "loopcheck")
    return to


def start(house: Path, *arguments: Any, at: Path | None = None) -> "subprocess.Popen[str]":
    """The command of a house in the background; where it stands is by default the folder around the house."""
    command = [sys.executable, "-m", "loopcheck", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(house), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=at or house.parent
    )
