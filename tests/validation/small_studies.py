"""The command, with ladders of three rungs and coarse steps of control: a program that tests can kill."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import engines.ladder
from engines.ladder import Ladder, ladders
from robots.motion import Motion
from validation import cli
from validation.ctc import study as ctc
from validation.ctc.simulate import Task

ROUTE = "mujoco/forward"
whole_study = ctc.run_study


@contextmanager
def small() -> Iterator[None]:
    """What `loopcheck ladder` and `loopcheck ctc` study meanwhile is small."""
    with patch.object(engines.ladder, "ladders", _short), patch.object(ctc, "run_study", _coarse):
        yield


def _short(motion: Motion) -> Sequence[Ladder]:
    found = [ladder for ladder in ladders(motion) if ladder.route == ROUTE]
    return [replace(ladder, trials=ladder.trials[:3], extrapolated=()) for ladder in found]


def _coarse(study: ctc.Study, folder: Path, **how: Any) -> ctc.Findings:
    return whole_study(replace(study, levels=(5.0,), task=Task(dt=0.02)), folder, **how)


if __name__ == "__main__":
    with small():
        cli.main()
