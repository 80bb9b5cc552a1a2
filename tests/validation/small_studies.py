"""The command, with small studies and without pages: a program that tests can kill while it computes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import engines.ladder
from engines.ladder import Ladder, ladders
from robots.motion import Motion
from validation import cli
from validation.studies.ctc import study as ctc
from validation.studies.ctc.simulate import Task

ROUTE = "mujoco/forward"
COMPUTED = "computed.txt"
"""In place of the page: how many runs of control were computed last."""
PAGES = (
    "validation.report",
    "validation.studies.ladder.report",
    "validation.studies.ctc.report",
    "validation.studies.sweep.report",
)
whole_study = ctc.run_study


@contextmanager
def small() -> Iterator[None]:
    """Ladders have two rungs and control has coarse steps meanwhile, and no page is written."""
    with ExitStack() as stack:
        for page in PAGES:
            stack.enter_context(patch(f"{page}.write_report", _note))
        stack.enter_context(patch.object(engines.ladder, "ladders", _short))
        stack.enter_context(patch.object(ctc, "run_study", _coarse))
        yield


def _note(found: Any, folder: Path, _: Any = None) -> None:
    text = str(found.record["computed_now"]) if isinstance(found, ctc.Findings) else ""
    (folder / COMPUTED).write_text(text, encoding="utf-8")


def _short(motion: Motion) -> Sequence[Ladder]:
    found = [ladder for ladder in ladders(motion) if ladder.route == ROUTE][:6]
    return [replace(ladder, trials=ladder.trials[:2], extrapolated=()) for ladder in found]


def _coarse(study: ctc.Study, folder: Path, **how: Any) -> ctc.Findings:
    return whole_study(replace(study, levels=(5.0,), task=Task(dt=0.02)), folder, **how)


if __name__ == "__main__":
    with small():
        cli.main()
