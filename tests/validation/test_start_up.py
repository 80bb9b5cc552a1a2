"""Bad input is refused before anything heavy is imported."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.validation.frame.options import Execution
from tests.conftest import MODELS
from tests.validation.conftest import Command

HEAVY = ("matplotlib", "pandas", "pandera", "plotly", "pyarrow", "scipy.interpolate", "scipy.optimize")
PROGRAM = """
import json
import sys
from loopcheck.validation import cli
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["loopcheck", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        print(end.code, *[name for name in HEAVY if name in sys.modules])
""".replace("HEAVY", repr(HEAVY))
BAD = [
    ("check", "3ppr"),
    ("check", "3prr", "--source", "mojoco"),
    ("judge", "3prr", "nowhere.csv"),
    ("check", "nowhere.xml"),
    ("check", str(MODELS)),
    ("check", "3prr", "--accuracy", "many"),
    ("check", "3prr", "--mode", "upside"),
    ("check", "3prr", "--tolerance", "a=b"),
    ("check", "3prr", "--motion", "nowhere.csv"),
    ("tune", "3prr"),
    ("tune", "nowhere.xml", "--accuracy", "1%"),
    ("serial", "3prr"),
    ("study", "sweep", "3ppr"),
]


@pytest.mark.evidence("a process of its own", seconds=1.5)
def test_bad_input_is_refused_before_heavy_imports(tmp_path: Path) -> None:
    """In one process, where an import would be seen after all later commands too."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(BAD)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines() == ["2"] * len(BAD), ended.stderr
    assert ended.stderr.count("\n") == len(BAD)


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with bad motions, logs and models beside a sound four-bar."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copy(CATALOGUE / "four_bar/four_bar.xml", folder / "sound.xml")
    shutil.copy(CATALOGUE / "four_bar/logs/friction.csv", folder / "sound.csv")
    *head, names, first, second = (folder / "sound.csv").read_text(encoding="utf-8").splitlines()[:5]
    for name, rows in {
        "few.csv": [*head, names, first, second],
        "other.csv": [*head, names.replace("crank", "hip"), first, second],
        "motion.csv": ["t,crank.q,crank.qd,crank.qdd", "0,0,0,0", "0.1,nan,0,0"],
    }.items():
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "text.txt").write_text("no model", encoding="utf-8")
    (folder / "other.xml").write_text(
        '<mujoco><worldbody><body><joint name="arm" axis="1 0 0"/><geom size=".1"/></body></worldbody></mujoco>',
        encoding="utf-8",
    )
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check sound.xml --motion motion.csv", "must be finite"),
        ("check sound.xml --motion few.csv", "must have a column 'crank.qd'"),
        ("check sound.xml --mode upside", "unknown mode"),
        ("check sound.xml --leave-out gear", "unknown element of --leave-out"),
        ("check sound.xml --tolerance none/kkt=1", "unknown source"),
        ("check sound.xml --dt -1", "not in the range"),
        ("check sound.xml --out text.txt", "must be a writable folder"),
        ("judge sound.xml few.csv", "must have at least 15 samples"),
        ("judge sound.xml other.csv", "must have the columns"),
        ("judge sound.xml sound.csv --fit gear", "unknown parameter to fit"),
        ("judge sound.xml sound.csv --from 9", "must be before the end of sound.csv at 2 s, got 9"),
        ("tune sound.xml --accuracy 5% --motion motion.csv", "must be finite"),
        ("tune sound.xml --accuracy 5% --keep-setting gear", "unknown setting"),
        ("serial sound.xml text.txt", "the suffix of a model"),
        ("serial sound.xml other.xml", "must share a joint"),
        ("serial sound.xml --make --keep-joint gear", "unknown joint"),
        ("serial sound.xml --audit text.txt", "must name a function"),
        ("tune sound.xml --verify text.txt", "must be a certificate"),
    ],
)
def test_bad_input_starts_no_workers(
    arguments: str, message: str, bad_files: Path, loopcheck: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("workers")

    monkeypatch.chdir(bad_files)
    monkeypatch.setattr(Execution, "prepare", fail)
    monkeypatch.setattr(Execution, "compute", fail)
    status, _, err = loopcheck(*arguments.split())
    assert (status, message in err) == (2, True), err


def test_a_process_with_threads_is_not_copied() -> None:
    """Locks of its other threads stay locked in a copy."""
    program = (
        "import threading\n"
        "from loopcheck.validation.execution.forkserver import quick_context\n"
        "alone, end = quick_context(), threading.Event()\n"
        "threading.Thread(target=end.wait).start()\n"
        "print(alone.get_start_method(), quick_context())\n"
        "end.set()\n"
    )
    command = [sys.executable, "-c", program]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == ("fork None\n" if sys.platform == "linux" else "None None\n")


def test_help_imports_no_numpy() -> None:
    program = PROGRAM.replace(repr(HEAVY), repr(("numpy", "mujoco")))
    asked = [(), ("--help",), ("check", "--help"), ("study", "sweep", "--help")]
    ended = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asked)], capture_output=True, text=True, check=True
    )
    assert re.findall(r"^\d+(?: numpy| mujoco)*$", ended.stdout, re.MULTILINE) == ["0"] * len(asked)
