"""The command, with small studies and without pages: a program that tests can kill while it computes.

The studies are imported inside functions: workers import this file for its rows alone.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loopcheck.engines.declarations import Ladder, ladders
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ROUTE = "mujoco/forward"


def run(arguments: Sequence[str]) -> None:
    """Run a command with small studies in this process, without output, by default with two workers.

    Args:
        arguments: Of the command.
    """
    from loopcheck.validation import cli

    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.environ["LOKY_MAX_CPU_COUNT"] = "2"
    sys.argv = ["loopcheck", *arguments]
    with small(arguments[0]):
        cli.main()


@contextmanager
def small(command: str = "") -> Iterator[pytest.MonkeyPatch]:
    """Studies have few and short tasks meanwhile, and no page is written except that of `check`."""
    import loopcheck.engines.declarations
    from loopcheck.validation.studies.control import study as ctc
    from loopcheck.validation.studies.control.runs import ControlSettings
    from loopcheck.validation.studies.control.simulate import Circle
    from loopcheck.validation.studies.errata import costs
    from loopcheck.validation.studies.errata.costs import cases_of
    from loopcheck.validation.studies.free_motion import study as benchmarks
    from loopcheck.validation.studies.readings import study as readings
    from loopcheck.validation.studies.readings.slide import slides
    from loopcheck.validation.tune import study as tune
    from tests.pageless import leave_pages_out, shorten_proofs

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])  # where workers find this file
        if command != "check":
            leave_pages_out(patch)
        patch.setattr(loopcheck.engines.declarations, "ladders", _short)
        patch.setattr(
            ctc, "Control", partial(ctc.Control, levels=(5.0,), settings=ControlSettings(task=Circle(dt=0.02)))
        )
        patch.setattr(costs, "cases_of", lambda robots: cases_of(robots)[:3])
        patch.setattr(benchmarks, "ways", lambda: ["mujoco/default", "mujoco/tight"])
        patch.setattr(tune, "budget", budget_rows)
        shorten_proofs(patch)
        patch.setattr(readings, "slides", lambda source: slides(source)[:2])
        yield patch


def budget_rows(case: Case, source: str) -> list[dict[str, Any]]:
    """A budget that takes no time to compute."""
    from loopcheck.validation.tune.budget import missing

    return [{**row, "part": "all", "rms": 1.0, "scale": 2.0, "note": ""} for row in missing(case, source, "")]


def _short(motion: Motion) -> Sequence[Ladder]:
    few = [ladder for ladder in ladders(motion) if ladder.route == ROUTE][:4]
    return [replace(ladder, levels=ladder.levels[:2], extrapolated=()) for ladder in few]
