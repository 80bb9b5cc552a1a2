"""Several findings as one, as the headline matrix shows them: the worst verdict, the largest error."""

from itertools import permutations

import numpy as np
import pytest

from validation.findings import WORST_FIRST, Finding, worst


def finding(verdict: str, error: float = float("nan")) -> Finding:
    return Finding(verdict=verdict, error=error, tolerance=1e-6, note=verdict)


@pytest.mark.parametrize(("one", "other"), list(permutations(WORST_FIRST, 2)))
def test_the_worst_verdict_is_shown_whatever_the_order(one: str, other: str) -> None:
    order = ["disagree", "not run", "not comparable", "agree", "as expected", "informational", "reference"]
    shown = worst([finding(one, 1e-9), finding(other, 1e-3)])
    assert shown.verdict == shown.note == min(one, other, key=order.index)
    assert shown.error == 1e-3


def test_the_largest_error_is_shown_where_some_have_none() -> None:
    assert worst([finding("agree", 1e-9), finding("not run"), finding("agree", 1e-7)]).error == 1e-7
    assert np.isnan(worst([finding("not run"), finding("not comparable")]).error)
