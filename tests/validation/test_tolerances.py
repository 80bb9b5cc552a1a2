"""The register: every tolerance has a noise, a margin that is neither tight nor loose, and a reason."""

import pytest

from validation import sources
from validation.tolerances import Tolerance, registered


@pytest.mark.parametrize("name", registered())
def test_a_tolerance_is_founded(name: str) -> None:
    tolerance = registered()[name]
    assert tolerance.reason.endswith(".")
    if tolerance.relative_error is not None:
        assert tolerance.noise_from
        assert tolerance.has_fair_margin


@pytest.mark.parametrize(
    ("noise", "margin_reason", "fair"),
    [
        (1e-8, "", True),
        (1e-7, "", False),
        (1e-11, "", False),
        (1e-11, "Stiff robots.", True),
        (None, "", False),
        (None, "No noise can be measured.", True),
    ],
)
def test_a_tight_or_loose_margin_needs_a_reason(noise: float | None, margin_reason: str, fair: bool) -> None:
    tolerance = Tolerance(relative_error=1e-6, noise=noise, reason="A test.", margin_reason=margin_reason)
    assert tolerance.has_fair_margin == fair


@pytest.mark.parametrize("name", registered())
def test_a_tolerance_belongs_to_a_source(name: str) -> None:
    sources.want_known((name,))


def test_a_misspelt_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        Tolerance.model_validate({"relativ_error": 1e-6, "reason": "a slip"})
