"""Plugin of pytest: `pytest --loopcheck models/` makes a test of each MJCF file, stored agreement and pin.

A model file fails for an error of the gate. A folder of a robot (`robot.toml`) with `agreement.json`, a baseline of
`loopcheck check`, fails if a row is worse than stored. A pin of `loopcheck versions` (`*.pin.json`) fails if the
installed engine behaves otherwise. pytest imports this module in every project of an environment with loopcheck, so
that it imports nothing heavy.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SUFFIXES = (".xml", ".mjcf")
AGREEMENT = "agreement.json"
"""Baseline of a check beside `robot.toml`."""
PIN = ".pin.json"
"""End of the names of pins of `loopcheck versions`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("loopcheck")
    group.addoption(
        "--loopcheck",
        action="store_true",
        help=f"Check MJCF files (<mujoco>) with `loopcheck gate`, robots beside an {AGREEMENT} with `check`, and pins "
        f"(*{PIN}) with `versions`.",
    )
    group.addoption("--loopcheck-warnings-as-errors", action="store_true", help="Fail for warnings of the gate too.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "CheckedFile | None":
    """Collect an MJCF file, a stored agreement or a pin. Fragments (<mujocoinclude>) and other files are left out."""
    if parent.config.getoption("--loopcheck") and _kind(file_path):
        file: CheckedFile = CheckedFile.from_parent(parent, path=file_path)
        return file
    return None


def _kind(path: Path) -> str:
    """Kind of a file, which is the name of its test; empty for other files."""
    if path.name == AGREEMENT and (path.parent / "robot.toml").is_file():
        return "agreement"
    if path.name.endswith(PIN):
        return "pin"
    is_model = path.suffix.lower() in SUFFIXES and b"<mujoco" in path.read_bytes().replace(b"<mujocoinclude", b"")
    return "gate" if is_model else ""


class CheckedFile(pytest.File):
    """A model file, a stored agreement or a pin."""

    def collect(self) -> Iterator["CheckedItem"]:
        """The test of the file."""
        yield CheckedItem.from_parent(self, name=_kind(self.path))


class Failure(Exception):
    """What fails the test, a line each."""


class CheckedItem(pytest.Item):
    """A command as a test."""

    def runtest(self) -> None:
        """Fail for errors of the gate, and for warnings on request; for rows worse than stored; for other behaviour."""
        ways = {"gate": self._findings, "agreement": self._worse, "pin": self._changed}
        find: Callable[[], Iterator[str]] = ways[self.name]
        if lines := list(find()):
            errors: Any = import_module("loopcheck.robots.errors")
            raise Failure("\n".join(map(errors.one_line, lines)))

    def _findings(self) -> Iterator[str]:
        gate: Any = import_module("loopcheck.validation.gate.gate")
        strict = self.config.getoption("--loopcheck-warnings-as-errors")
        for found in gate.gate(self.path).findings:
            if found.severity in (("error", "warning") if strict else ("error",)):
                yield f"{found.file}:{found.line}: {found.code} {found.severity}: {found.message}. {found.remedy}"

    def _worse(self) -> Iterator[str]:
        library: Any = import_module("loopcheck.validation.check.library")
        baseline: Any = import_module("loopcheck.validation.check.baseline")
        before = baseline.stored(self.path)
        found = baseline.compare(library.check(self.path.parent).results, before, str(self.path))
        yield from map(str, found.worse)

    def _changed(self) -> Iterator[str]:
        versions: Any = import_module("loopcheck.validation.versions.versions")
        progress: Any = import_module("loopcheck.validation.execution.progress")
        result, _ = versions.versions(versions.Request(against=self.path), progress.NoDisplay())
        for model in result.models:
            yield from (f"{model.target}: {line}" for line in model.failures)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The lines, without a traceback; bad input is one line too."""
        errors: Any = import_module("loopcheck.robots.errors")
        if isinstance(excinfo.value, Failure | errors.HarnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Place and name in reports."""
        return self.path, 0, f"loopcheck {self.name} {self.path.name}"
