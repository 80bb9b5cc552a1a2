"""The command line without pages, and with short proofs: `python -P tests/pageless.py ARGUMENT …`; both in a test."""

import sys
from pathlib import Path

import pytest

from loopcheck.validation import cli
from loopcheck.validation.report import pages
from loopcheck.validation.tune import bandwidths
from loopcheck.validation.tune.runs import tuning_runs

PROGRAM = ("-P", __file__)
"""Arguments of Python that start it."""


def leave_pages_out(patch: pytest.MonkeyPatch) -> None:
    """Draw no figure and write no page; the terminal shows the path of the page as usual."""
    patch.setattr(pages, "selected", lambda *_: [])
    patch.setattr(pages, "write_pages", lambda *_, **__: None)


def shorten_proofs(patch: pytest.MonkeyPatch) -> None:
    """Prove settings with fewer samples and controllers."""
    patch.setattr(tuning_runs, "PROVEN", 60)
    patch.setattr(bandwidths, "PER_DECADE", 1)


def pageless_programs(folder: Path) -> Path:
    """Make a folder for PATH with a program `loopcheck` that leaves its pages out."""
    folder.mkdir()
    program = folder / "loopcheck"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {" ".join(PROGRAM)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


if __name__ == "__main__":
    leave_pages_out(patch := pytest.MonkeyPatch())
    shorten_proofs(patch)
    sys.argv[0] = "loopcheck"
    cli.main()
