"""Fixtures of the tests of the judge."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from validation.cli import main

Command: TypeAlias = Callable[..., tuple[int, str, str]]
"""Takes command-line arguments; returns exit status, stdout and stderr."""


@pytest.fixture
def loopcheck(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["loopcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call
