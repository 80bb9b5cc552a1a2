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
        assert tolerance.margin is not None
        assert 50 <= tolerance.margin <= 10_000


@pytest.mark.parametrize("name", registered())
def test_a_tolerance_belongs_to_a_source(name: str) -> None:
    sources.want_known((name,))


def test_a_misspelt_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        Tolerance.model_validate({"relativ_error": 1e-6, "reason": "a slip"})
