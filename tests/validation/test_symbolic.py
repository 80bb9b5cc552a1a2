"""CasADi functions of closed loops: the tests of `symbolic_functions`, in a process of their own."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from loopcheck import symbolic
from loopcheck.robots.errors import NotRepresentableError


def test_without_casadi_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(NotRepresentableError, match=r"pip install 'loopcheck\[symbolic\]'"):
        symbolic("four_bar")


@pytest.mark.extended("test_without_casadi_a_line_says_what_to_install")
@pytest.mark.skipif(find_spec("casadi") is None, reason="casadi is not installed")
def test_functions_of_closed_loops() -> None:
    module = Path(__file__).with_name("symbolic_functions.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cpu-tolerance", "inf", str(module)]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "LD_LIBRARY_PATH": ""}  # OpenSim leads the latter to its CasADi
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^4 passed", ended.stdout, re.MULTILINE)
