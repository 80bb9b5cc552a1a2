"""Plugin of pytest: `pytest --loopcheck models/` collects each MJCF file as a test that fails for an error of the gate.

pytest imports this module in every project of an environment with loopcheck, so that it imports nothing heavy.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopcheck.validation.gate.findings import Finding

SUFFIXES = (".xml", ".mjcf")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("loopcheck")
    group.addoption("--loopcheck", action="store_true", help="Check MJCF files (<mujoco>) with `loopcheck gate`.")
    group.addoption("--loopcheck-warnings-as-errors", action="store_true", help="Fail for warnings of the gate too.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "GateFile | None":
    """Collect an MJCF file. Fragments (<mujocoinclude>) and other XML files are left out."""
    if not parent.config.getoption("--loopcheck") or file_path.suffix.lower() not in SUFFIXES:
        return None
    if b"<mujoco" not in file_path.read_bytes().replace(b"<mujocoinclude", b""):
        return None
    file: GateFile = GateFile.from_parent(parent, path=file_path)
    return file


class GateFile(pytest.File):
    """A model file."""

    def collect(self) -> Iterator["GateItem"]:
        """The test of the file."""
        yield GateItem.from_parent(self, name="gate")


class GateFailure(Exception):
    """Findings that fail the test."""


class GateItem(pytest.Item):
    """The gate as a test."""

    def runtest(self) -> None:
        """Fail for errors, and for warnings on request."""
        from importlib import import_module

        gate: Any = import_module("loopcheck.validation.gate.gate")
        strict = self.config.getoption("--loopcheck-warnings-as-errors")
        failing = ("error", "warning") if strict else ("error",)
        found = [finding for finding in gate.gate(str(self.path)).findings if finding.severity in failing]
        if found:
            errors: Any = import_module("loopcheck.robots.errors")
            raise GateFailure("\n".join(errors.one_line(_line(finding)) for finding in found))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings, without a traceback."""
        if isinstance(excinfo.value, GateFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Place and name in reports."""
        return self.path, 0, f"loopcheck gate {self.path.name}"


def _line(finding: "Finding") -> str:
    return f"{finding.file}:{finding.line}: {finding.code} {finding.severity}: {finding.message}. {finding.remedy}"
