"""The state of the code behind a result: its commit, and a digest that only changes of behaviour change."""

import ast
import hashlib
import importlib.metadata
import subprocess
from collections.abc import Iterable

from loopcheck.validation.execution.folders import COMPUTING, ROOT
from loopcheck.validation.execution.journal import DATA, code_files


def commit() -> str:
    """Commit of the checkout, with "+" if files differ from it; the version of loopcheck outside of a checkout."""
    if (ROOT / ".git").exists():
        try:
            revision, changes = (_git(*arguments) for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain")))
            return f"{revision}{'+' if changes else ''}"
        except (OSError, subprocess.CalledProcessError):
            pass
    return f"loopcheck {importlib.metadata.version('loopcheck')}"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def code_digest(modules: Iterable[str]) -> str:
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
