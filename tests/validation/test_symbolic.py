"""CasADi functions of closed loops: the tests of `symbolic_functions`, in a process of their own."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.mark.skipif(find_spec("casadi") is None, reason="casadi is not installed")
def test_functions_of_closed_loops() -> None:
    module = Path(__file__).with_name("symbolic_functions.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cpu-tolerance", "inf", str(module)]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "LD_LIBRARY_PATH": ""}  # OpenSim leads the latter to its CasADi
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^5 passed", ended.stdout, re.MULTILINE)
