"""Logs as people write them: no false verdict on right and faulty logs whose errors are measured without loopcheck."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.logs.log_files import read_log
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.verdicts import SEVERITY
from loopcheck.validation.judge.logs import judge_log, verdicts
from tests.people import CLOCKS, FAULTS, HABITS, written

ACCURACIES = (0.01, 0.05)
USUAL = 40
"""Number of seeds of a usual run [-]."""
PARTS = 4
"""Parts of the generated logs, each of which is a test [-]."""
LEAST_FOUND = 0.95
"""Least part of the faults above the limit and three floors that disagree."""
LEAST_AGREEING = 0.8
"""Least part of a lot of right logs that agree; of all it is .97, the others are not comparable."""
RIGHT, FAULTY = (3, 5, 7), (0, 2, 6)
"""Seeds of a few logs that stand for all."""


def judged(seed: int, fault: str, folder: Path) -> tuple[str, tuple[float, float], float, str]:
    """Verdict of a log, its measured errors over the accuracy, its floor over the same, and its description.

    The errors are those by the true reading and by the best reading.
    """
    log, accuracy = written(seed, fault, folder), ACCURACIES[seed % len(ACCURACIES)]
    case = case_of(log.model)
    found = judge_log(case, read_log(log.file, case.mechanism), accuracy=accuracy)
    verdict = min((one.verdict for one in verdicts(found, accuracy)), key=SEVERITY.index)
    residual = found.residuals[0]
    start = float(residual.motion.t[0] - found.log.t[0]) if found.unsettled else 0.0
    floor = float((residual.floor.largest / found.required[0].divisor).max())
    true, least = log.sizes(start)
    return verdict, (true / accuracy, least / accuracy), floor / accuracy, log.words


def want_no_false_verdict(verdict: str, sizes: tuple[float, float], floor: float, words: str) -> None:
    true, least = sizes
    if true <= 1 - floor:
        assert verdict != "disagree", words
    if least > 1 + floor:
        assert verdict != "agree", words


@pytest.mark.parametrize(
    ("seed", "is_faulty"), [*((seed, False) for seed in RIGHT), *((seed, True) for seed in FAULTY)]
)
def test_a_log_is_judged_as_its_measured_error_says(seed: int, is_faulty: bool, tmp_path: Path) -> None:
    verdict, (true, least), floor, words = judged(seed, FAULTS[seed % len(FAULTS)] if is_faulty else "", tmp_path)
    assert least > 1 + 3 * floor if is_faulty else true < 1, words
    assert verdict == ("disagree" if is_faulty else "agree"), words


@pytest.mark.extended("test_a_log_is_judged_as_its_measured_error_says")
@pytest.mark.parametrize("part", range(PARTS))
def test_many_logs_are_judged_as_their_measured_errors_say(
    part: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A part of the seeds, a faulty log of each: 40 have each fault with each habit of writing rows.

    Of the seeds with another habit or clock a right log too, and of all seeds with more than usual.
    """
    number = pytestconfig.getoption("--logs")
    right_logs = number if number > USUAL else len(HABITS) * len(CLOCKS)
    counts: Counter[bool] = Counter()
    agreeing: Counter[bool] = Counter()
    for seed in np.arange(part, number, PARTS):
        if seed < right_logs:
            want_no_false_verdict(*(right := judged(int(seed), "", tmp_path)))
            if right[1][0] <= 1 - 3 * right[2]:
                agreeing[right[0] == "agree"] += 1
        verdict, sizes, floor, words = judged(int(seed), FAULTS[seed % len(FAULTS)], tmp_path)
        want_no_false_verdict(verdict, sizes, floor, words)
        if sizes[1] > 1 + 3 * floor:
            counts[verdict == "disagree"] += 1
    assert counts[True] >= LEAST_FOUND * counts.total() > 0
    assert agreeing[True] >= LEAST_AGREEING * agreeing.total() > 0
