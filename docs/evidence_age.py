"""Print the age of the stored figures: `python -m docs.evidence_age [--release]`.

Exit status 1 if the code has changed since figures were computed, for a release or after 30 days.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from loopcheck.validation.execution.files import RECORD
from loopcheck.validation.execution.folders import COMPUTING, ROOT
from loopcheck.validation.execution.journal import DATA, code_files

CATALOGUE, ATLAS = "catalogue", "atlas"
BEHIND_ROWS = (
    "loopcheck.validation.check.efforts.evaluate",
    "loopcheck.validation.check.efforts.compare",
    "loopcheck.validation.check.audit.audit",
    "loopcheck.validation.check.efforts.resolution",
    "loopcheck.validation.judge.logs",
    "loopcheck.validation.studies.atlas.reading",
    "loopcheck.validation.tune.runs.judged_run",
)
"""Modules of `validation` on which the rows depend."""
LIMIT = timedelta(days=30)
"""Longest time that figures of an earlier code may stay."""


class Age(NamedTuple):
    """State of stored figures."""

    text: str
    is_stale: bool
    """Whether the code has changed since."""
    is_too_old: bool
    """Whether they are stale for longer than `LIMIT`."""


def age_of(name: str, record: Mapping[str, Any], code: str, now: datetime) -> Age:
    """Age of a collection of the documents.

    Args:
        name: Name of the collection.
        code: Digest of the present code.
    """
    begin = datetime.fromisoformat(record["start"])
    origin = f"{name}: computed {begin:%Y-%m-%d} from {record.get('commit', 'an unknown commit')}"
    if record.get("code") == code:
        return Age(f"{origin}; the code behind it is the same", False, False)
    return Age(f"{origin}; the code behind it has changed: python -m docs.evidence {name}", True, now - begin > LIMIT)


def code_digest(modules: Iterable[str] = BEHIND_ROWS) -> str:
    """Digest of the code and data behind some modules, without comments, docstrings and layout.

    Args:
        modules: Names of modules of `loopcheck.validation`; all files of `robots`, `analytic` and `engines` count.
    """
    files = {path for package in COMPUTING for path in (ROOT / package).rglob("*") if path.suffix in DATA}
    files |= {path for module in modules for path in code_files(module)}
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(behaviour(content) if path.suffix == ".py" else content)
    return digest.hexdigest()


def behaviour(source: bytes) -> bytes:
    """Syntax tree of a Python file without docstrings.

    Args:
        source: Content of the file.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is a bare string: a docstring, or the description of a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def main() -> int:
    """Exit status."""
    code, now = code_digest(), datetime.now(UTC)
    records = {name: json.loads((ROOT / "docs" / name / RECORD).read_text("utf-8")) for name in (CATALOGUE, ATLAS)}
    ages = [age_of(name, record, code, now) for name, record in records.items()]
    for age in ages:
        print(age.text)  # noqa: T201
    is_release = "--release" in sys.argv
    return int(any(age.is_too_old or (is_release and age.is_stale) for age in ages))


if __name__ == "__main__":
    sys.exit(main())
