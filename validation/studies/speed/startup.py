"""Time until an answer of the command line, over the time of Python to import its libraries."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case
from loopcheck.validation.judge import sources

RUNS = 5
IMPORTS = "import mujoco, scipy.optimize, pandas, matplotlib.pyplot"
UNIT = f'python -c "{IMPORTS}"'
ANSWER = "Agreement: "
"""Marker of the line at the end of the answer."""


def startup_rows(case: Case) -> list[Mapping[str, Any]]:
    """Time of `loopcheck check` on a robot's file until its answer and its end, over that of the imports, in turns."""
    exact = [
        name
        for name in sources.names(case.robot)
        if not sources.simulates(name) and name.endswith(("/kkt", "/lagrange"))
    ]
    chosen: Mapping[str, Sequence[str]] = {"exact sources": [f"--source={name}" for name in exact], "all sources": []}
    unit, spent = np.zeros(RUNS), {name: np.zeros((RUNS, 2)) for name in chosen}
    for k in range(RUNS):
        unit[k] = waited([sys.executable, "-c", IMPORTS])[1]
        for name, options in chosen.items():
            with TemporaryDirectory() as folder:
                command = ["check", str(case.mechanism.model.path), *options, "--out", folder]
                spent[name][k] = waited([sys.executable, "-m", "loopcheck", *command])
    columns = {"study": "start-up", "subject": case.robot.name, "size": 1}
    rows: list[Mapping[str, Any]] = [{**columns, "quantity": UNIT, "unit": "s", **_spread(unit)}]
    for name, times in spent.items():
        for what, column in (("answer", 0), ("report", 1)):
            rows.append(
                {**columns, "quantity": f"{what}, {name} / imports", "unit": "-", **_spread(times[:, column] / unit)}
            )
    return rows


def waited(command: Sequence[str]) -> tuple[float, float]:
    """Time until the answer of a command and until its end [s]; without an answer, both until its end.

    Args:
        command: The program and its arguments.

    Raises:
        HarnessError: If it fails.
    """
    begin, answered = time.perf_counter(), None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if ANSWER in line and answered is None:
                answered = time.perf_counter() - begin
        errors = process.stderr.read() if process.stderr else ""
    whole = time.perf_counter() - begin
    if process.returncode not in (0, 1, 3):
        raise HarnessError(f"{' '.join(command[1:])}: {' '.join(errors.split())}")
    return answered or whole, whole


def _spread(values: Any) -> dict[str, float]:
    return {"lowest": float(values.min()), "median": float(np.median(values)), "highest": float(values.max())}
