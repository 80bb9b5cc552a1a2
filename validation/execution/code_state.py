"""The state of the code behind a result."""

import importlib.metadata
import subprocess

from loopcheck.validation.execution.folders import ROOT


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
