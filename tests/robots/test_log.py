"""The type of a log: its valid contents, and the place of a fault in messages."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loopcheck.robots.errors import ShapeError
from loopcheck.robots.log import Held, Log

T = np.arange(20) * 0.01


def log(**changes: Any) -> Log:
    fields: dict[str, Any] = {
        "name": "run",
        "t": T,
        "joints": ("hip", "ball"),
        "kinds": ("hinge", "ball"),
        "q": np.ones((20, 5)),
        "qd": np.ones((20, 4)),
        "actuators": ("motor",),
        "effort": np.ones((20, 1)),
    }
    return Log(**{**fields, **changes})


def test_a_log_copies_its_arrays_and_places_joints_by_their_kinds() -> None:
    q = np.ones((20, 5))
    kept = log(q=q)
    q[:] = 7
    assert (kept.q == 1).all()
    assert not kept.q.flags.writeable
    assert kept.columns_of("ball") == (slice(1, 5), slice(1, 4))
    assert kept.dt == pytest.approx(0.01)


def test_readings_may_have_gaps_but_no_other_shape() -> None:
    gaps = np.full((20, 1), np.nan)
    assert np.isnan(log(readings={"sensor": gaps}).readings["sensor"]).all()
    with pytest.raises(ShapeError, match=r"run, sensor: shape must be \(20, 1\)"):
        log(readings={"sensor": gaps[:, 0]})
    with pytest.raises(ShapeError, match="run, sensor: numbers must be finite, got inf"):
        log(readings={"sensor": np.full((20, 1), np.inf)})


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"t": np.r_[T[:5], T[4], T[5:-1]]}, "a time that repeats: 0.04 s in row 5, then 0.04 s"),
        ({"t": T[::-1]}, "a time that goes back: 0.19 s in row 1, then 0.18 s"),
        ({"errors": {"q": np.ones(4)}}, r"errors of q: shape must be \(5\), got \(4,\)"),
        ({"joints": ("hip", "hip")}, "joints: names must be unique, got 'hip' 2 times"),
        ({"actuators": ()}, "actuators: must have at least 1 name, got 0"),
        ({"qd": np.ones((20, 5))}, r"qd: shape must be \(20, 4\), got \(20, 5\)"),
        ({"effort": np.full((20, 1), np.nan)}, "effort: numbers must be finite, got nan"),
        ({"kinds": ("hinge",)}, "must have 1 kind per joint .2 joints., got 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_wrong_with_a_log_is_said_in_one_line(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ShapeError, match=line) as caught:
        log(**changes)
    assert "\n" not in str(caught.value)


def test_velocities_are_dropped_with_their_errors() -> None:
    with_errors = log(errors={"q": np.ones(5), "qd": np.ones(4)})
    assert list(replace(with_errors, qd=None).errors) == ["q"]


def test_times_rounded_by_an_exporter_are_equal_steps() -> None:
    rounded = log(t=np.round(np.arange(20) / 60, 5))
    assert rounded.dt == pytest.approx(1 / 60, rel=1e-4)
    assert rounded.has_equal_steps
    assert not log(t=T + 1e-4 * (np.arange(20) == 9)).has_equal_steps
    assert not log(t=np.delete(np.arange(21) * 0.01, 7)).has_equal_steps


@pytest.mark.parametrize("seconds", [0.0, -1e-3, np.inf, np.nan])
def test_a_hold_lasts(seconds: float) -> None:
    with pytest.raises(ShapeError, match="hold time of the efforts: must be above 0 s"):
        Held(seconds)
