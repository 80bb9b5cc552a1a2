"""Kinds of tests: their marks in the whole suite, and the plugin that measures and chooses them."""

import importlib
import re
from collections import defaultdict
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.cpu_time import (
    ALL_EVIDENCE,
    COLLECTED,
    TOLERANCE,
    WORK,
    Kinds,
    extended_but,
    fault_of,
    kind_of,
    mark_of,
    slowness,
)

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]


@pytest.fixture
def collected(pytestconfig: pytest.Config) -> Sequence[pytest.Item]:
    """All tests of the suite."""
    if not {(ROOT / arg).resolve() for arg in pytestconfig.args} <= {ROOT, ROOT / "tests"}:
        pytest.skip("only a part of the suite was collected")
    return pytestconfig.stash[COLLECTED]


def test_every_mark_has_its_arguments(collected: Sequence[pytest.Item]) -> None:
    assert [fault for fault in map(fault_of, collected) if fault] == []


def test_all_evidence_fits_into_its_limit(collected: Sequence[pytest.Item]) -> None:
    marks = [mark for mark in map(mark_of, collected) if mark and mark.name == "evidence"]
    assert 0 < sum(mark.kwargs["seconds"] for mark in marks) <= ALL_EVIDENCE


def test_tests_of_the_other_kinds_stand_for_every_extended_test(collected: Sequence[pytest.Item]) -> None:
    in_place: dict[str, set[str]] = defaultdict(set)
    for item in collected:
        if kind_of(item) != "extended":
            file, name = item.nodeid.split("::", 1)
            in_place[file] |= {name, name.split("[")[0]}
    missing = set()
    for item in collected:
        mark = mark_of(item)
        for test in mark.args if mark and mark.name == "extended" else ():
            file, name = test.split("::") if "::" in test else (item.nodeid.split("::")[0], test)
            if file in in_place:
                is_there = name in in_place[file]
            else:  # of an engine that is not installed
                text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
                is_there = re.search(rf"^def {re.escape(name.split('[')[0])}\(", text, re.MULTILINE) is not None
            missing |= set() if is_there else {f"{item.nodeid}: {test}"}
    assert sorted(missing) == []


BURN = """
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
SUITE = f"""
import subprocess
import sys
import time
import pytest
{BURN}
CHILD = [sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.12: pass"]
children = []

@pytest.fixture
def prepared():
    burn(0.12)

def test_quick():
    pass

def test_above():
    burn(0.06)

def test_slow():
    burn(0.12)

def test_child():
    subprocess.run(CHILD, check=True)

def test_running_child():
    program = CHILD[-1] + "\\nprint(flush=True)\\ninput()"
    child = subprocess.Popen([*CHILD[:-1], program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    children.append(child)

def test_import():
    import slow_module

def test_prepared(prepared):
    pass

@pytest.mark.evidence("needs its time", seconds=0.08)
def test_evidence():
    burn(0.12)

@pytest.mark.evidence("needs more", seconds=0.02)
def test_long_evidence():
    burn(0.12)

@pytest.mark.extended("test_quick")
def test_extended():
    burn(0.12)

def test_after_all():
    for child in children:
        child.communicate(b"\\n")
"""
TESTS = re.findall(r"def (test_\w+)", SUITE)
TABLE = re.compile(r"^(\w+) +(\d+) tests +(\S+) s, fixtures +(\S+) s$", re.MULTILINE)


class Runner(Protocol):
    """Runs a small suite, with a tenth of the limits."""

    def __call__(self, *args: str, extended: bool = False, tolerance: float = TOLERANCE) -> tuple[dict[str, str], str]:
        """Outcomes by test, and the output."""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    bootstrap: Any = importlib._bootstrap
    monkeypatch.setattr(bootstrap, "_find_and_load", bootstrap._find_and_load)  # to be put back
    monkeypatch.setattr("tests.cpu_time.slowness", lambda: 1.0)  # other processes may run now
    pytester.makeini("[pytest]\nmarkers =\n  evidence\n  extended\npythonpath = .\n")
    pytester.makepyfile(slow_module=f"import time\n{BURN}\nburn(0.12)", test_small=SUITE)

    def running(*args: str, extended: bool = False, tolerance: float = TOLERANCE) -> tuple[dict[str, str], str]:
        kinds = Kinds(extended=extended, tolerance=tolerance, unmarked=0.04)
        text = pytester.runpytest_inprocess("-v", "-p", "no:cacheprovider", *args, plugins=[kinds]).stdout.str()
        return dict(re.findall(r"^test_small\.py::(\w+) ([A-Z]+)", text, re.MULTILINE)), text

    return running


@pytest.mark.evidence("a small suite with tests of all kinds, some with processes", seconds=1)
def test_times_are_those_of_a_test_and_its_processes_without_imports_and_fixtures(run: Runner) -> None:
    outcomes, text = run(extended=True)
    failed = {"test_slow", "test_child", "test_running_child", "test_long_evidence"}
    assert outcomes == {test: "FAILED" if test in failed else "PASSED" for test in TESTS}
    found = re.findall(r"^must take at most (\S+) s of CPU time, took (\S+) s: make it faster, or", text, re.MULTILINE)
    assert sorted(limit for limit, _ in found) == ["0.02", "0.04", "0.04", "0.04"]
    assert all(0.1 <= float(taken) < 0.3 for _, taken in found)
    table = {kind: (int(n), float(taken), float(fixtures)) for kind, n, taken, fixtures in TABLE.findall(text)}
    for kind, tests, taken, fixtures in (
        ("unmarked", 8, 0.42, 0.12),
        ("evidence", 2, 0.24, 0),
        ("extended", 1, 0.12, 0),
    ):
        assert table[kind][0] == tests
        assert table[kind][1] == pytest.approx(taken, abs=0.15)
        assert fixtures - 0.02 <= table[kind][2] < fixtures + 0.1
    above = re.findall(r"^above (\S+) s: \S+ s test_small\.py::(\w+)$", text, re.MULTILINE)
    assert {limit for limit, _ in above} == {"0.02", "0.04", "0.08"}
    assert {test for _, test in above} - {"test_after_all"} == failed | {"test_above", "test_evidence"}


def test_extended_tests_are_left_out_unless_they_are_asked_for_or_named(run: Runner) -> None:
    assert run("-k", "quick or extended")[0] == {"test_quick": "PASSED"}
    assert run("-k", "quick or extended", extended=True)[0] == {"test_quick": "PASSED", "test_extended": "PASSED"}
    assert run("test_small.py::test_extended")[0] == {"test_extended": "PASSED"}


def test_limits_grow_with_the_time_of_a_fixed_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slowness() >= 1
    monkeypatch.setattr("tests.cpu_time.WORK", WORK / 100)
    assert 50 < slowness() < 500


def test_the_fixed_work_is_done_for_tests_above_their_limit_alone(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[str] = []

    def work() -> float:
        works.append("done")
        return 1.0

    monkeypatch.setattr("tests.cpu_time.slowness", work)
    run("-k", "quick or above or extended", extended=True)
    assert works == []
    run("-k", "quick or test_slow")
    assert works == ["done"]


@pytest.mark.parametrize(("tolerance", "outcome"), [(0.5, "FAILED"), (inf, "PASSED")])
def test_a_tolerance_moves_the_time_at_which_a_test_fails(run: Runner, tolerance: float, outcome: str) -> None:
    assert run("-k", "above", tolerance=tolerance)[0] == {"test_above": outcome}


@pytest.mark.parametrize(
    ("mark", "signature"),
    [
        ('evidence("reason")', "evidence(reason, seconds=...)"),
        ("evidence(seconds=1)", "evidence(reason, seconds=...)"),
        ('evidence("reason", seconds="1")', "evidence(reason, seconds=...)"),
        ("extended", "extended(test, ...)"),
        ('extended(instead="test_quick")', "extended(test, ...)"),
        ('extended("test_quick", instead="it")', "extended(test, ...)"),
    ],
)
def test_a_mark_without_the_arguments_of_its_kind_is_an_error(
    run: Runner, pytester: pytest.Pytester, mark: str, signature: str
) -> None:
    pytester.makepyfile(test_small=f"import pytest\n@pytest.mark.{mark}\ndef test_marked(): ...")
    outcomes, text = run(extended=True)
    assert outcomes == {"test_marked": "ERROR"}
    got = mark.replace('"', "'") + ("" if "(" in mark else "()")
    assert f"test_small.py::test_marked: mark must be {signature}, got {got}" in text.splitlines()


def test_all_but_some_parameters_are_extended() -> None:
    sets = extended_but([1, ("a", 2)], [1, 2, ("a", 2), ("b", 3)], "test_it")
    assert sets[::2] == [1, ("a", 2)]
    for found, values in zip(sets[1::2], [(2,), ("b", 3)], strict=True):
        assert found.values == values
        assert [(mark.name, mark.args) for mark in found.marks] == [("extended", ("test_it",))]
