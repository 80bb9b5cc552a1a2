"""The register: every tolerance has a noise, a margin that is neither tight nor loose, and a reason."""

import pytest

from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import Tolerance, audits, registered

EXACT, PROJECTED, FOURTH_ORDER, EXTRAPOLATED, UNFINISHED, SINGLE = 1e-11, 1e-7, 1e-6, 5e-6, 5e-5, 1e-4
CONTRACT = {
    **dict.fromkeys(("analytic/lagrange", "analytic/paper"), EXACT),
    **dict.fromkeys(
        ("dart/kkt", "drake/kkt", "mjx/kkt", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt", "simbody/kkt"), EXACT
    ),
    **dict.fromkeys(("mujoco/forward", "pinocchio/forward"), FOURTH_ORDER),
    **dict.fromkeys(("dart/forward", "exudyn/forward", "mjx/forward", "pybullet/forward"), EXTRAPOLATED),
    "simbody/forward": PROJECTED,
    "pinocchio/lcaba": 1e-8,
    "drake/forward": UNFINISHED,
    **dict.fromkeys(("mjx/kkt_single", "newton/kkt_single"), SINGLE),
}
"""Limits of the effort error by the kind of route [-]; no result has ever been a reason to loosen a limit."""


def test_no_limit_is_loosened() -> None:
    limits = {name: tolerance.relative_error for name, tolerance in registered().items() if tolerance.relative_error}
    assert limits == CONTRACT
    assert {tier: tolerance.relative_error for tier, tolerance in audits().items()} == {
        "static": EXACT,
        "instantaneous": EXACT,
        "static_single": SINGLE,
        "instantaneous_single": SINGLE,
    }
    for name, tolerance in registered().items():
        if name.endswith("/forward"):
            most = 1e-4 if name in ("drake/forward", "exudyn/forward") else 1e-5
            assert (tolerance.closure_drift, tolerance.tracking_error) == (most, most), name
        if name.startswith("analytic/"):
            assert tolerance.power_imbalance == 1e-13, name
    assert registered()["analytic/noc"].term_sum == EXACT


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
