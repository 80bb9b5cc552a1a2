"""CPU time of the tests: what each kind of test may take, and what it took.

*Unmarked* tests take at most half a second. *Evidence* takes longer, for a reason that its mark states with its time;
all of it together has a limit too. *Extended* tests are the rest: they run with `--extended`, or if a test is named
with `::`. Their mark names the tests of the other kinds that stand for them. Times are those of a test and of its
processes, without fixtures. Imports of the test process are left out too, as the first test with a module pays for all.
"""

import importlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

UNMARKED = 0.5
"""Limit of a test without a mark [s]."""
TOLERANCE = 2.0
"""So many times its limit a test may take before it fails: processes that share caches and cores differ by less [-]."""
WORK = 0.040
"""CPU time of the fixed work of `slowness` on the machine for which limits are stated [s]."""
ALL_EVIDENCE = 200.0
"""Limit of all evidence together [s]."""
KINDS = ("unmarked", "evidence", "extended")
MARKS: Mapping[str, Callable[[pytest.Mark], bool]] = {
    "evidence(reason, seconds=...)": lambda mark: (
        [*map(type, mark.args)] == [str]
        and {*mark.kwargs} == {"seconds"}
        and isinstance(mark.kwargs["seconds"], int | float)
    ),
    "extended(test, ...)": lambda mark: {*map(type, mark.args)} == {str} and not mark.kwargs,
}
"""Signatures of the marks, and whether a mark has the signature of its kind."""
COLLECTED = pytest.StashKey[Sequence[pytest.Item]]()
"""All tests that were collected, whether they run or not."""
_TAKEN = pytest.StashKey[float]()


class Row(NamedTuple):
    """A test that has run."""

    name: str
    kind: str
    limit: float
    """CPU time that it may take [s]."""
    taken: float
    """CPU time of its call [s]."""


def mark_of(item: pytest.Item) -> pytest.Mark | None:
    """Mark with the kind of a test: of its parameters, before that of the function, before that of the module."""
    marks = [*reversed(item.own_markers), *item.iter_markers()]
    return next((mark for mark in marks if mark.name in KINDS), None)


def kind_of(item: pytest.Item) -> str:
    """Kind of a test."""
    mark = mark_of(item)
    return mark.name if mark else "unmarked"


def fault_of(item: pytest.Item) -> str:
    """Message about a mark with other arguments than its signature, or an empty string."""
    mark = mark_of(item)
    for signature, has in MARKS.items() if mark else ():
        if mark and signature.startswith(mark.name) and not has(mark):
            got = ", ".join([*map(repr, mark.args), *(f"{key}={value!r}" for key, value in mark.kwargs.items())])
            return f"{item.nodeid}: mark must be {signature}, got {mark.name}({got})"
    return ""


def extended_but(kept: Iterable[Any], values: Iterable[Any], test: str) -> list[Any]:
    """Parameters of a test, of which all but some are extended.

    Args:
        kept: Values of the other kinds.
        values: All values, or sets of values.
        test: Test that stands for the extended ones: usually itself, with the other values.
    """
    kept = [*kept]
    mark = pytest.mark.extended(test)
    return [
        value if value in kept else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=mark)
        for value in values
    ]


class Kinds:
    """The plugin: chooses tests by kind, measures them, and says what they took."""

    def __init__(self, *, extended: bool, tolerance: float = TOLERANCE, unmarked: float = UNMARKED) -> None:
        self._extended, self._tolerance, self._unmarked = extended, tolerance, unmarked
        self._clock = Clock()
        self._rows: list[Row] = []
        self._fixtures: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out extended tests, unless they are asked for or named."""
        config.stash[COLLECTED] = tuple(items)
        if self._extended or any("::" in arg for arg in config.args):
            return
        left_out = [item for item in items if kind_of(item) == "extended"]
        items[:] = [item for item in items if kind_of(item) != "extended"]
        config.hook.pytest_deselected(items=left_out)

    def pytest_collection_finish(self) -> None:
        """Begin to measure."""
        self._clock.lap()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Measure the fixtures of a test, and those that have ended since the last test; fail a wrong mark."""
        if fault := fault_of(item):
            pytest.fail(fault, pytrace=False)
        yield from self._measured(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test."""
        yield from self._measured(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Put the time into the report, and fail a test that takes much more than it may."""
        report = yield
        if call.when in ("setup", "call"):
            taken, limit = item.stash.get(_TAKEN, 0.0), self._limit(item)
            report.cpu_time = (kind_of(item), limit, taken)
            most = self._tolerance * limit
            # the fixed work takes as long as a tenth of a test's limit, so it is only done for tests that may fail
            if call.when == "call" and report.passed and taken > most and taken > most * slowness():
                report.outcome = "failed"
                report.longrepr = (
                    f"must take at most {limit:g} s of CPU time, took {taken:.2f} s: make it faster, or mark it as "
                    "evidence or extended (CONTRIBUTING.md)"
                )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the times of a test, also from another process."""
        kind, limit, taken = getattr(report, "cpu_time", ("", 0.0, 0.0))
        if report.when == "call":
            self._rows.append(Row(report.nodeid, kind, limit, taken))
        elif kind:
            self._fixtures[kind] += taken

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the tests by kind, and those that took more than they may."""
        if not self._rows:
            return
        write = terminalreporter.write_line
        terminalreporter.section("CPU time")
        for kind in KINDS:
            taken = [row.taken for row in self._rows if row.kind == kind]
            write(f"{kind:10} {len(taken):5} tests {sum(taken):7.1f} s, fixtures {self._fixtures[kind]:6.1f} s")
        for row in sorted(self._rows, key=lambda row: row.limit - row.taken):
            if row.taken > row.limit:
                write(f"above {row.limit:g} s: {row.taken:.2f} s {row.name}")

    def _limit(self, item: pytest.Item) -> float:
        """CPU time that a test may take [s]."""
        mark = mark_of(item)
        if mark is None:
            return self._unmarked
        return float(mark.kwargs.get("seconds", 0)) if mark.name == "evidence" else float("inf")

    def _measured(self, item: pytest.Item) -> Iterator[None]:
        try:
            return (yield)
        finally:
            item.stash[_TAKEN] = self._clock.lap()


def slowness() -> float:
    """CPU time that this machine takes now for a fixed work, in that of the machine of the limits; at least 1 [-]."""
    begin = time.process_time()
    sum(i * i for i in range(1_000_000))
    return max(1.0, (time.process_time() - begin) / WORK)


class Clock:
    """CPU time of this process and of all processes that it has started, without the time of imports [s]."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._is_importing = False
        self._imports = self._last = 0.0
        bootstrap: Any = importlib._bootstrap
        bootstrap._find_and_load = self._counted(bootstrap._find_and_load)  # also that of import statements

    def lap(self) -> float:
        """Time since the last call of this method."""
        total = sum(self._process.cpu_times()[:4]) - self._imports
        for process in _descendants(self._process) if _has_children() else ():
            with suppress(psutil.NoSuchProcess):  # its parent has its time now
                total += sum(process.cpu_times()[:4])
        lap, self._last = total - self._last, total
        return lap

    def _counted(self, load: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(load)
        def counting(*args: Any, **options: Any) -> Any:
            if self._is_importing:
                return load(*args, **options)
            self._is_importing, begin = True, time.process_time()
            try:
                return load(*args, **options)
            finally:
                self._is_importing = False
                self._imports += time.process_time() - begin

        return counting


def _descendants(process: psutil.Process) -> Iterator[psutil.Process]:
    """All processes below a process, from lists of Linux if it has them: psutil reads those of the whole machine."""
    if not Path(f"/proc/{process.pid}/task/{process.pid}/children").exists():
        yield from process.children(recursive=True)
        return
    for file in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with suppress(OSError, psutil.NoSuchProcess):  # it has ended
            for child in map(int, file.read_text(encoding="ascii").split()):
                yield psutil.Process(child)
                yield from _descendants(psutil.Process(child))


def _has_children() -> bool:
    """Whether this process has any; takes microseconds, where a search through all processes takes milliseconds."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
