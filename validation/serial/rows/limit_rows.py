"""Rows of limits: limits of motors at the joints, and joint limits of the serial model at the motors."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from loopcheck.analytic.transmission.limits import (
    Box,
    Facets,
    effort_facets,
    effort_ranges,
    joint_ranges,
    largest_alone,
    largest_box,
    most,
)
from loopcheck.analytic.transmission.twin import Twin, Workspace
from loopcheck.robots.arrays import Array
from loopcheck.validation.serial.rows.rows import Row, Series, units_of
from loopcheck.validation.serial.rows.transmission_rows import ALL, EFFORT, ONE, SPEED, proven, rounded_down

SAFE, ALONE, GIVEN, BROKEN = "safe box", "alone", "serial file", "motor at the serial file's limits"
LINE = "safe box, torque–speed line"
BOUNDS = {SAFE: ALL, ALONE: ONE}
"""Rows of a transmission with bounds of these limits."""
TOGETHER = "all motors together"


def limit_rows(
    twin: Twin, samples: Workspace, speeds: Mapping[str, float], figures: Sequence[Row] = ()
) -> Iterator[Row]:
    """Limits of motors transformed to the joints, and joint limits of the serial model transformed to the motors.

    Args:
        speeds: Largest speed of motors by name [m/s or rad/s].
        figures: Rows of the transmission, whose bounds no pose exceeds; empty for other mechanisms.
    """
    units, efforts, _ = units_of(twin)
    T = _transmission(twin, samples)
    if T.shape[1] < T.shape[2]:
        return
    fastest = np.array([speeds.get(name, np.inf) for name in twin.motor_names])
    per_joint = {EFFORT: efforts, SPEED: [f"{unit}/s" for unit in units]}
    for quantity, kind, box in _boxes(T, effort_ranges(twin.closed, twin.motors), Box(low=-fastest, high=fastest)):
        known = proven(figures, f"{quantity} {BOUNDS[kind]}") if kind in BOUNDS else None
        note = "proven by intervals" if known else f"at {len(T)} poses, not proven"
        for k, name in enumerate(twin.names):
            yield {**_limit(quantity, kind, name, per_joint[quantity][k], known or rounded_down(box), k), "note": note}
    given = joint_ranges(twin.serial)
    for k, name in enumerate(twin.names):
        if np.isfinite([given.low[k], given.high[k]]).all():
            yield _limit(EFFORT, GIVEN, name, efforts[k], given, k)
    yield from _broken(twin, T, samples.x[samples.common], given)


def safe_box(twin: Twin, samples: Workspace, figures: Sequence[Row] = ()) -> Box | None:
    """Limits of efforts at the joints that break no motor; None without limits of all motors.

    Args:
        figures: See `limit_rows`.
    """
    T, limits = _transmission(twin, samples), effort_ranges(twin.closed, twin.motors)
    if T.shape[1] < T.shape[2] or not _are_limits(limits):
        return None
    return proven(figures, f"{EFFORT} {ALL}") or rounded_down(_box_of_all(effort_facets(T, limits)))


def safe_series(twin: Twin, samples: Workspace) -> Iterator[Series]:
    """The largest box of efforts at each sample, beside the limits of the stand-in."""
    T, limits = _transmission(twin, samples), effort_ranges(twin.closed, twin.motors)
    if T.shape[1] < T.shape[2] or not _are_limits(limits):
        return
    given, efforts, facets = joint_ranges(twin.serial), units_of(twin)[1], effort_facets(T, limits)
    each = zip(facets.rows, facets.low, facets.high, strict=True)
    boxes = [largest_box(rows, low, high) for rows, low, high in each]
    nothing = np.full(len(T), np.nan)
    for k, name in enumerate(twin.names):
        limit = given.high[k] if np.isfinite(given.high[k]) else np.nan
        yield "safe effort", name, efforts[k], np.array([box.high[k] for box in boxes]), nothing + limit, nothing


def _transmission(twin: Twin, samples: Workspace) -> Array:
    return np.asarray(samples.closed.transmission[:, list(twin.motors)])


def _are_limits(limits: Box) -> bool:
    """Return whether all limits exist, on both sides of zero."""
    return bool((np.isfinite(limits.low) & np.isfinite(limits.high) & (limits.low < 0) & (limits.high > 0)).all())


def _flat(facets: Facets) -> tuple[Array, Array, Array]:
    """Rows and limits of all poses."""
    return facets.rows.reshape(-1, facets.rows.shape[2]), facets.low.ravel(), facets.high.ravel()


def _box_of_all(facets: Facets) -> Box:
    """The largest box that is safe at all poses."""
    return largest_box(*_flat(facets))


def _boxes(T: Array, efforts: Box, speeds: Box) -> Iterator[tuple[str, str, Box]]:
    """Boxes of efforts and of speeds by quantity and kind, as far as the motors have limits."""
    facets = {}
    if _are_limits(efforts):
        facets[EFFORT] = effort_facets(T, efforts)
    if _are_limits(speeds):
        low, high = (np.broadcast_to(side, T.shape[:2]) for side in (speeds.low, speeds.high))
        facets[SPEED] = Facets(rows=T, low=low, high=high)
    for quantity, each in facets.items():
        yield quantity, SAFE, _box_of_all(each)
        yield quantity, ALONE, largest_alone(*_flat(each))
    if len(facets) == 2 and T.shape[1] == T.shape[2]:
        yield from _on_line(facets)


def _on_line(facets: Mapping[str, Facets]) -> Iterator[tuple[str, str, Box]]:
    """Combined limits of effort and speed, of motors with an effort that falls with speed, |τ| / τ₀ + |ẏ| / ẏ₀ ≤ 1."""
    n = facets[EFFORT].rows.shape[2]
    ends = {quantity: np.minimum(-each.low, each.high) for quantity, each in facets.items()}
    rows = np.concatenate([each.rows / ends[quantity][..., None] for quantity, each in facets.items()], axis=2)
    ones = np.ones(rows.shape[0] * rows.shape[1])
    box = largest_box(rows.reshape(-1, 2 * n), -ones, ones)
    for quantity, place in zip(facets, (slice(n), slice(n, None)), strict=True):
        yield quantity, LINE, Box(low=box.low[place], high=box.high[place])


def _broken(twin: Twin, T: Array, x: Array, given: Box) -> Iterator[Row]:
    """Worst demand of the serial model's joint limits on each motor; redundant motors share it optimally."""
    limits = effort_ranges(twin.closed, twin.motors)
    is_redundant = T.shape[1] > T.shape[2]
    if not np.isfinite([given.low, given.high]).all() or (is_redundant and not _are_limits(limits)):
        return
    facets = effort_facets(T, limits)
    asked = [most(rows, given) for rows in facets.rows]
    low, high = np.array([one.low for one in asked]), np.array([one.high for one in asked])
    with np.errstate(invalid="ignore"):
        ratio = np.maximum(high / facets.high, low / facets.low)
    if is_redundant:
        row = {"quantity": EFFORT, "kind": BROKEN, "part": TOGETHER, "unit": "", "low": np.nan, "high": np.nan}
        yield row | _worst(twin, x, ratio.max(axis=1))
        return
    for a, (name, unit) in enumerate(zip(twin.motor_names, units_of(twin)[2], strict=True)):
        if np.isfinite([limits.low[a], limits.high[a]]).all():
            worst = int(ratio[:, a].argmax())
            row = {"quantity": EFFORT, "kind": BROKEN, "part": name, "unit": unit}
            row |= {"low": float(low[worst, a]), "high": float(high[worst, a])}
            yield row | _worst(twin, x, ratio[:, a])


def _worst(twin: Twin, x: Array, ratio: Array) -> dict[str, Any]:
    """The largest ratio over the poses, its pose, and the number of poses with a ratio beyond 1."""
    worst = int(ratio.argmax())
    pose = ", ".join(f"{joint} {value:.4g}" for joint, value in zip(twin.names, x[worst], strict=True))
    return {"ratio": float(ratio[worst]), "share": float((ratio > 1).mean()), "note": f"worst at {pose}"}


def _limit(quantity: str, kind: str, name: str, unit: str, box: Box, k: int) -> Row:
    row = {"quantity": quantity, "kind": kind, "part": name, "unit": unit, "low": float(box.low[k])}
    return {**row, "high": float(box.high[k]), "ratio": np.nan, "share": np.nan, "note": ""}
