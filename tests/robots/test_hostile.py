"""Truncated, mutated, huge and hostile models: a clear line or a mechanism, never a traceback or a hang."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.probe import want_readable
from loopcheck.validation.execution.forkserver import worker_context
from loopcheck.validation.frame.preload import PRELOAD
from tests.conftest import MODELS, since_mujoco
from tests.house import ROOT

ENDS = since_mujoco("3.14", "crashes, which commands try in another process")
SEED = 0
MUTANTS = 300
VALUES = (
    "nan",
    "inf",
    "1e308",
    "1e400",
    "-1",
    "0",
    "2147483648",
    "99999999999",
    "",
    "x",
    "1 2 3 4 5 6",
    "∞",
    "&#0;",
    "%s",
)
BODY = '<body name="arm"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
MODEL = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"


def with_asset(asset: str) -> str:
    return MODEL.replace("<worldbody>", f"<asset>{asset}</asset><worldbody>")


def with_entities(text: str) -> str:
    letters = "abcdefghijkl"
    bomb = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(letters))
    return f'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY file SYSTEM "file:///etc/passwd">{bomb}]>{text}'


@pytest.mark.evidence("a process of its own, which may crash", seconds=1)
def test_mutants_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    texts = [path.read_text(encoding="utf-8") for path in sorted(MODELS.glob("*.xml"))]
    paths = []
    for k in range(MUTANTS):
        path = tmp_path / f"{k}.xml"
        path.write_text(_mutant(texts[k % len(texts)], rng), encoding="utf-8")
        paths.append(str(path))
    command = [sys.executable, "-m", "tests.robots.fuzzing", *paths]
    house = Path(__file__).parent.parent.parent
    ended = subprocess.run(command, cwd=house, capture_output=True, text=True, check=False, timeout=120)
    answers = [line.split(": ", 1)[1] for line in ended.stdout.splitlines()]
    assert ended.returncode == 0, f"crashed on {paths[len(answers)]}: {ended.stderr[-300:]}"
    assert set(answers) == {"read", "refused"}, [line for line in ended.stdout.splitlines() if "refused" not in line]
    assert len(answers) == MUTANTS
    assert answers.count("read") > MUTANTS / 20  # else nothing is mutated that is read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("\0" * 100, "XML parse error"),
        (f"\ufeff{MODEL}".encode("utf-16"), "XML parse error"),
        (MODEL.replace('"arm"', '"\xe9"').encode("latin-1"), "names must be encoded in UTF-8"),
        ("<mujoco><worldbody>" + "<body>" * 100_000, "nesting is too deep"),
        (MODEL.replace('mass="1"', 'mass="inf"'), "body 'arm', mass: must be finite, got inf"),
        (MODEL.replace('name="j"', 'name="j" damping="inf"'), "joint 'j', damping: must be finite, got inf"),
        (MODEL.replace('name="j"', 'name="j" damping="1e400"'), "number is too large"),
        pytest.param('<mujoco><include file="model.xml"/></mujoco>', "already included", marks=ENDS),
        ('<mujoco><include file="/dev/zero"/></mujoco>', "Empty file '/dev/zero'"),
        (with_asset('<mesh name="m" file="/dev/zero" content_type="model/stl"/><mesh name="folder" file="."/>'), ""),
        (
            with_asset('<texture name="t" builtin="flat" type="2d" width="2000000000" height="2000000000"/>'),
            "too large",
        ),
        (MODEL.replace("<worldbody>", '<size memory="100000G"/><worldbody>'), "Could not allocate memory"),
        (MODEL.replace("<worldbody>", '<extension><plugin plugin="../../x"/></extension><worldbody>'), "not found"),
        (with_entities(MODEL), ""),
        (with_entities(MODEL.replace('mass="1"', 'mass="&l;"')), "compiler rejected the file"),
        (with_entities(MODEL.replace('name="arm"', 'name="&file;"')), ""),
    ],
)
def test_hostile_text_is_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    """An empty message: the model is sound apart from unused elements, and read."""
    path = tmp_path / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if not message:
        mechanism = read_mechanism(ModelFile(path=path))
        assert [body.mass for body in mechanism.bodies] == [1.0]
        assert mechanism.bodies[0].name in ("arm", "&file;")  # no entity is looked up
        return
    with pytest.raises(MechanismError, match=re.escape(message)) as caught:
        read_mechanism(ModelFile(path=path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            with_asset('<model name="m" file="model.xml"/>'),
            "(SIG",
            marks=pytest.mark.evidence("starts a server of processes", seconds=1),
        ),
        (MODEL.replace('name="j"', 'name="j" class="%s%n%s%n"'), "(SIG|rejected the file"),
        (MODEL.replace("<worldbody>", '<size nuser_body="2000000000"/><worldbody>'), "a size or a count is too large"),
        (
            with_asset('<hfield name="h" nrow="2000000000" ncol="2000000000" size="1 1 1 1"/>'),
            "a size or a count is too large",
        ),
        pytest.param(
            MODEL.replace(BODY, f'<replicate count="1000000000">{BODY}</replicate>'),
            "exceeded the time limit",
            marks=pytest.mark.evidence("the compiler counts until its limit of time", seconds=1.5),
        ),
        (with_asset('<texture name="t" type="2d" file="pipe" content_type="image/png"/>'), "exceeded the time limit"),
    ],
    ids=["model in itself", "format string", "size", "height field", "count", "pipe"],
)
def test_what_would_bring_the_process_down_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(
        "loopcheck.robots.formats.probe.SECONDS", 5.0 if "size or" in message or "SIG" in message else 1.5
    )
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "model.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MechanismError) as caught:
        want_readable(path, context=worker_context(PRELOAD))
    assert str(caught.value).startswith(f"{path}: MuJoCo's compiler")
    assert any(part in str(caught.value) for part in message.split("|"))


def test_a_crash_of_a_process_started_from_nothing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(with_asset('<model name="m" file="model.xml"/>'), encoding="utf-8")
    with pytest.raises(MechanismError, match=r"compiler crashed: .*\(SIG"):
        want_readable(tmp_path / "model.xml")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is copied")
def test_a_crash_of_a_copy_of_this_process_is_one_line(tmp_path: Path) -> None:
    """What the process has not yet written is written once."""
    (tmp_path / "model.xml").write_text(with_asset('<model name="m" file="model.xml"/>'), encoding="utf-8")
    program = (
        "import multiprocessing, sys\n"
        "from pathlib import Path\n"
        "from loopcheck.robots.errors import MechanismError\n"
        "from loopcheck.robots.formats.probe import want_readable\n"
        "print('before')\n"
        "try:\n"
        "    want_readable(Path(sys.argv[1]), context=multiprocessing.get_context('fork'))\n"
        "except MechanismError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.xml")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    before, error = ended.stdout.splitlines()
    assert (before, ended.stderr) == ("before", "")
    assert re.search(r"compiler crashed: .*\(SIG", error)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space and CPU time hold on Linux")
@pytest.mark.evidence("a process with limits of its own", seconds=1)
def test_limits_of_the_user_stay(tmp_path: Path) -> None:
    """As `ulimit -v` and `ulimit -t` of a batch system: a process cannot raise them."""
    (tmp_path / "model.xml").write_text(MODEL, encoding="utf-8")
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from loopcheck.robots.formats.probe import want_readable\n"
        "from loopcheck.robots.processes import within_cpu_time\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (100, 100))\n"
        "want_readable(Path(sys.argv[1]))\n"
        "print(within_cpu_time(1000.0, resource.getrlimit, (resource.RLIMIT_CPU,)))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.xml")]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "(100, 100)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process that is held in C")
@pytest.mark.parametrize("start", ["None", "worker_context(PRELOAD)"], ids=["from nothing", "forked"])
def test_a_reader_that_hangs_ends_with_a_killed_parent(tmp_path: Path, start: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "model.xml"
    path.write_text(with_asset('<texture name="t" type="2d" file="pipe" content_type="image/png"/>'), encoding="utf-8")
    program = (
        "import multiprocessing, threading, time\n"
        "from pathlib import Path\n"
        "from loopcheck.robots.formats.probe import want_readable\n"
        "from loopcheck.validation.execution.forkserver import worker_context\n"
        "from loopcheck.validation.frame.preload import PRELOAD\n"
        "def report():\n"
        "    while not multiprocessing.active_children(): time.sleep(0.05)\n"
        "    time.sleep(3)  # it has begun to read\n"
        "    print(multiprocessing.active_children()[0].pid, flush=True)\n"
        "threading.Thread(target=report, daemon=True).start()\n"
        f"want_readable(Path({str(path)!r}), context={start})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert _is_running(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    survived = _is_running(pid)
    if survived:
        os.kill(pid, signal.SIGKILL)
    assert not survived


def _is_running(pid: int) -> bool:
    status = Path("/proc", str(pid), "status")
    return status.is_file() and "State:\tZ" not in status.read_text()


@pytest.mark.parametrize("start", [lambda: None, lambda: worker_context(PRELOAD)], ids=["from nothing", "forked"])
def test_a_sound_model_passes_the_trial(start: Callable[[], Any]) -> None:
    want_readable(MODELS / "four_bar.xml", context=start())


@pytest.mark.parametrize("name", ["folder", "pipe", "loop", "dangling", "/dev/zero"])
def test_what_is_not_a_file_is_not_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(MechanismError, match="must be an existing model file"):
        read_mechanism(ModelFile(path=tmp_path / name))


def _mutant(text: str, rng: np.random.Generator) -> str:
    """The text after one to three changes: a piece removed, doubled or moved, a value or a name replaced."""
    for _ in range(rng.integers(1, 4)):
        values = list(re.finditer(r'(\w+)="([^"]*)"', text))
        tags = list(re.finditer(r"<[^<>]*>", text))
        if not (values and tags):
            return text
        one, other = (values[i] for i in rng.integers(len(values), size=2))
        start, end = sorted(tags[i].start() for i in rng.integers(len(tags), size=2))
        place = int(rng.integers(len(text)))
        changed = (
            text[: one.start(2)] + str(rng.choice(VALUES)) + text[one.end(2) :],
            text[: one.start(2)] + other[2] + text[one.end(2) :],
            text[: one.start(1)] + other[1] + text[one.end(1) :],
            text[: one.start()] + text[one.end() :],
            text[:start] + text[start:end] * int(rng.integers(3)) + text[end:],
            text[:place] + chr(int(rng.integers(1, 0xD800))) + text[place:],
            text[:place] if rng.random() < 0.3 else text[:place] + text[place + 1 :],
        )
        text = changed[rng.integers(len(changed))]
    return text
