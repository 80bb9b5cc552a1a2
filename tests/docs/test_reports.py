"""Reports for engine developers: each has all parts, and its test fails as long as the fault exists."""

import importlib.util
import re
import unittest
from pathlib import Path
from typing import Any

import pytest

REPORTS = sorted(path for path in (Path(__file__).parents[2] / "docs/reports").glob("*.md") if path.name != "README.md")
PARTS = ("Newest release tried", "First release with it", "Consequence", "Thread")
TEST = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENGINES = re.compile(r"^import (\w+)|^from (\w+)", re.MULTILINE)
COMPILED = ("mjx-implicit-force-limit",)
"""Reports whose test compiles for seconds; their script is measured with the known issues."""


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_has_all_parts(path: Path) -> None:
    _, section = path.read_text(encoding="utf-8").split("\n## For the maintainers\n")
    for part in PARTS:
        assert re.search(rf"^- \*\*{part}:\*\* \S.{{8,}}\.", section, re.MULTILINE), part


@pytest.mark.parametrize(
    "path", [path for path in REPORTS if TEST.search(path.read_text(encoding="utf-8"))], ids=lambda path: path.stem
)
def test_the_test_of_a_report_fails_by_its_assertion(path: Path) -> None:
    (code,) = TEST.findall(path.read_text(encoding="utf-8"))
    modules = {first or second for first, second in ENGINES.findall(code)}
    missing = [name for name in sorted(modules) if importlib.util.find_spec(name) is None]
    if missing or path.stem in COMPILED:
        pytest.skip(f"not run: {', '.join(missing) or 'compiles for seconds'}")
    names: dict[str, Any] = {}
    exec(code, names)  # an engine of the development environment, in this process
    (case,) = [thing for thing in names.values() if isinstance(thing, type) and issubclass(thing, unittest.TestCase)]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert (result.testsRun, len(result.failures), len(result.errors)) == (1, 1, 0), result.errors
