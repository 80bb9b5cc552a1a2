"""A copy of the house, for commands that run in a process of their own or write into the catalogue."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def copy_house(to: Path) -> Path:
    """Copy the installed package with its compiled files into a folder, without another compilation; returns it."""
    for room in ("robots", "analytic", "engines", "validation"):
        shutil.copytree(ROOT / room, to / "loopcheck" / room)
    for path in (ROOT / "loopcheck").glob("*.py"):
        shutil.copy(path, to / "loopcheck")
    return to


def start(house: Path, *arguments: Any, at: Path | None = None) -> "subprocess.Popen[str]":
    """The command of a copy of the package in the background; by default in the folder around the copy."""
    command = [sys.executable, "-m", "loopcheck", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(house), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=at or house.parent
    )
