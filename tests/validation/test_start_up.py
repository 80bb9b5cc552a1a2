"""Bad input is refused before anything heavy is imported: seconds of computing time are measured by `study speed`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import MODELS

HEAVY = ("matplotlib", "pandas", "pandera", "plotly", "pyarrow", "scipy.interpolate", "scipy.optimize")
PROGRAM = """
import sys
sys.argv = ["loopcheck", *sys.argv[1:]]
from loopcheck.validation import cli
try:
    cli.main()
except SystemExit as end:
    print(end.code, *[name for name in HEAVY if name in sys.modules])
""".replace("HEAVY", repr(HEAVY))


USUAL = [("check", "3ppr"), ("check", "3prr", "--source", "mojoco"), ("judge", "3prr", "nowhere.csv")]
BAD = [
    ("check", "nowhere.xml"),
    ("check", str(MODELS)),
    ("check", "3prr", "--accuracy", "many"),
    ("check", "3prr", "--mode", "upside"),
    ("check", "3prr", "--tolerance", "a=b"),
    ("check", "3prr", "--motion", "nowhere.csv"),
    ("tune", "3prr"),
    ("tune", "nowhere.xml", "--accuracy", "1%"),
    ("serial", "3prr"),
    ("study", "mutants", "3ppr"),
]
OF_ALL = pytest.mark.extended("test_bad_input_is_refused_before_heavy_imports")


@pytest.mark.parametrize("arguments", [*USUAL, *(pytest.param(bad, marks=OF_ALL) for bad in BAD)])
def test_bad_input_is_refused_before_heavy_imports(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["2"], ended.stderr
    assert ended.stderr.count("\n") == 1


def test_help_imports_no_numpy() -> None:
    program = PROGRAM.replace(repr(HEAVY), repr(("numpy", "mujoco")))
    for arguments in ((), ("--help",), ("check", "--help"), ("study", "sweep", "--help")):
        ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        assert ended.stdout.splitlines()[-1] == "0"
