"""What a transmission by cranks and rods means for the joints: reach, reflected inertia, limits, error of constants."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Context
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from loopcheck.analytic.transmission.bounds import POINTS, Domain
from loopcheck.analytic.transmission.constants import nearest_diagonal, usual_poses
from loopcheck.analytic.transmission.crank_rod import solved
from loopcheck.analytic.transmission.limits import Box, effort_facets, effort_ranges, largest_box
from loopcheck.analytic.transmission.motions import STATED, Course, random_course
from loopcheck.analytic.transmission.twin import Twin
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.validation.execution.tables import number, table_of, text
from loopcheck.validation.serial.rows.rows import REACH, Row

COLUMNS = table_of(
    {
        **{name: text() for name in ("quantity", "part", "unit")},
        **{name: number("that of the row") for name in ("at_zero", "low", "median", "high", "bound")},
        "note": text(),
    }
)
SHARE, FACTOR, COUPLING = "share of the joint ranges", "armature factor", "coupling factor"
EFFORT, SPEED = "effort", "speed"
ALL, ONE = "limit, all together", "limit, alone"
UNITS = (("N m", "N"), ("rad/s", "m/s"))
"""Of efforts and of rates, at hinges and at slides."""
BEST, BEST_ERROR, GIVEN_ERROR = "best constant factor", "error of the best constants", "error of the public constants"
NO_ERROR = "error without armature"
DIGITS = 3
"""Of limits."""
ROUND_OFF = 1e-12
"""Errors below this part of the peak count as zero [-]."""


def found_rows(twin: Twin, domain: Domain, speeds: Box, usual: Sequence[float]) -> list[Row] | str:
    """Rows of the table of a transmission, or the reason for their absence.

    Args:
        twin: Its motors; for those without limits on both sides of zero, all limits are 1 [N m or N].
        domain: See `transmission_rows`.
        speeds: See `transmission_rows`.
        usual: See `transmission_rows`.
    """
    efforts = effort_ranges(twin.closed, twin.motors)
    most = np.minimum(-efforts.low, efforts.high)
    has_limits = bool((np.isfinite(most) & (most > 0)).all())
    most = most if has_limits else np.ones_like(most)
    try:
        return list(transmission_rows(domain, Box(low=-most, high=most), speeds, usual, has_limits))
    except MechanismError as error:
        return str(error)


def proven(figures: Sequence[Row], quantity: str) -> Box | None:
    """Limits at the joints that no pose exceeds; None for other mechanisms than cranks and rods.

    Args:
        figures: Rows of the transmission; empty for other mechanisms.
        quantity: Of the rows with the bounds.
    """
    most = np.array([row["bound"] for row in figures if row["quantity"] == quantity])
    return Box(low=-most, high=most) if len(most) else None


def rounded_down(box: Box) -> Box:
    """Limits with three digits, rounded towards zero."""
    context = Context(prec=DIGITS, rounding=ROUND_DOWN)

    def shortened(values: Array) -> Array:
        return np.array([float(context.create_decimal(repr(value))) for value in values.tolist()])

    return Box(low=shortened(box.low), high=shortened(box.high))


def transmission_rows(
    domain: Domain, efforts: Box, speeds: Box, usual: Sequence[float], motors_have_limits: bool
) -> Iterator[Row]:
    """Rows of the table of a transmission.

    Args:
        domain: The transmission and the poses that count.
        efforts: Limits of the motors, symmetric; 1 if their source has none [N m or N].
        speeds: Limits of the motors; infinite without [rad/s or m/s].
        usual: Armature factors of public configurations, if any [-].
        motors_have_limits: Whether `efforts` are absolute.

    Raises:
        MechanismError: If no pose counts.
    """
    joints = domain.transmission.joints
    x = domain.grid(POINTS[len(joints)])
    if not len(x):
        raise MechanismError("a transmission must reach a pose within the joint ranges, found none")
    T = domain.transmission.motor_state(x).transmission
    zero = domain.transmission.motor_state(np.zeros((1, len(joints)))).transmission[0]
    yield from _reach(domain, x)
    yield from _factors(domain, x, T, zero)
    efforts_at, rates_at = ([slide if joint.slides else hinge for joint in joints] for hinge, slide in UNITS)
    limits = {EFFORT: (efforts.high, efforts_at if motors_have_limits else [f"{unit} per unit" for unit in efforts_at])}
    if np.isfinite(speeds.high).all():
        limits[SPEED] = speeds.high, rates_at
    yield from _limits(domain, x, T, limits)
    yield from _constants(domain, usual)


def _reach(domain: Domain, x: Array) -> Iterator[Row]:
    total = POINTS[x.shape[1]] ** x.shape[1]
    yield _row(SHARE, "", "-", high=len(x) / total, note=f"{total} poses; crank and rod at least 18° from one line")
    for k, joint in enumerate(domain.transmission.joints):
        low, high = (domain.largest(partial(_position, k, sign), x).found for sign in (-1.0, 1.0))
        yield _row(REACH, joint.name, "m" if joint.slides else "rad", low=-low, high=high)


def _position(k: int, sign: float, x: Sequence[Any], *_: Any) -> list[Any]:
    return [x[k] * sign]


def _factors(domain: Domain, x: Array, T: Array, zero: Array) -> Iterator[Row]:
    """Inertia at the joints per inertia of a rotor, with equal motors."""
    names = [joint.name for joint in domain.transmission.joints]
    for k, name in enumerate(names):
        bound = domain.largest(partial(_factor, k), x)
        values, at_zero = (T[:, :, k] ** 2).sum(axis=1), float((zero[:, k] ** 2).sum())
        yield {**_spread(FACTOR, name, "-", at_zero, values), "high": bound.found, "bound": bound.certified}
    for i, j in combinations(range(len(names)), 2):
        values = (T[:, :, i] * T[:, :, j]).sum(axis=1)
        yield _spread(COUPLING, f"{names[i]} × {names[j]}", "-", float(zero[:, i] @ zero[:, j]), values)


def _factor(k: int, *pose: Any) -> list[Any]:
    ratios = _rates_asked(k, *pose)
    return [sum(ratio * ratio for ratio in ratios)]


def _limits(domain: Domain, x: Array, T: Array, limits: Mapping[str, tuple[Array, Sequence[str]]]) -> Iterator[Row]:
    """Joint efforts and rates that ask no motor for more than its limit, at any pose.

    Args:
        limits: Limits of the motors and units at the joints, by quantity.
    """
    joints = domain.transmission.joints
    for quantity, (most, units) in limits.items():
        asked = _efforts_asked if quantity == EFFORT else _rates_asked
        for k, (joint, unit) in enumerate(zip(joints, units, strict=True)):
            demand = partial(_demand, asked, np.eye(len(joints))[k], most)
            bound, values = domain.largest(demand, x), 1 / domain.values(demand, x)
            at_zero = float(1 / domain.values(demand, np.zeros((1, len(joints))))[0])
            row = _spread(f"{quantity} {ONE}", joint.name, unit, at_zero, values)
            proven_alone = rounded_down(Box(low=np.zeros(1), high=np.array([1 / bound.certified]))).high[0]
            yield {**row, "low": 1 / bound.found, "bound": float(proven_alone)}
        facets = effort_facets(T, Box(low=-most, high=most)) if quantity == EFFORT else None
        rows = facets.rows if facets else T
        high = np.broadcast_to(most, rows.shape[:2]).ravel()
        sizes = largest_box(rows.reshape(-1, len(joints)), -high, high).high
        bound = domain.largest(partial(_demand, asked, sizes, most), x)
        most_safe = rounded_down(Box(low=-sizes / bound.certified, high=sizes / bound.certified))
        for joint, size, unit in zip(joints, most_safe.high, units, strict=True):
            yield _row(f"{quantity} {ALL}", joint.name, unit, bound=float(size))


def _efforts_asked(k: int, _: Any, levers: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Efforts of the motors per effort at a joint."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    shares = solved(columns, [float(j == k) for j in range(len(columns))])
    return [lever * share for lever, share in zip(levers, shares, strict=True)]


def _rates_asked(k: int, _: Any, levers: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Rates of the motors per rate of a joint."""
    return [row[k] / lever for lever, row in zip(levers, rows, strict=True)]


def _demand(asked: Callable[..., list[Any]], sizes: Array, most: Array, *pose: Any) -> list[Any]:
    """Demand on each motor over its limit at all corners of a box of joint efforts or rates with these half widths."""
    shares = [[share * float(size) for share in asked(k, *pose)] for k, size in enumerate(sizes) if size]
    return [
        sum(sign * share[motor] for sign, share in zip(signs, shares, strict=True)) * (1 / float(limit))
        for motor, limit in enumerate(most)
        for signs in product((-1.0, 1.0), repeat=len(shares))
    ]


def _constants(domain: Domain, usual: Sequence[float]) -> Iterator[Row]:
    """Errors of the rotors' efforts with constant armatures: root mean square over the peak, of equal rotors alone."""
    transmission, box = domain.transmission, domain.inner_box()
    middle, half = box.mean(axis=1), np.ptp(box, axis=1) / 2
    u, weights = usual_poses(len(box))
    T = transmission.motor_state(middle + u * half).transmission
    inertia = T.swapaxes(1, 2) @ T
    best = nearest_diagonal(np.linalg.inv(T).swapaxes(1, 2), inertia, inertia, half, weights)
    for joint, factor in zip(transmission.joints, best, strict=True):
        yield _row(BEST, joint.name, "-", median=float(factor))
    given = {BEST_ERROR: best, NO_ERROR: np.zeros_like(best)}
    if usual:
        given[GIVEN_ERROR] = np.array(usual)
    for kind, factors in given.items():
        errors = np.array([_error(domain, random_course(box, seed), factors) for seed in range(STATED)])
        errors = np.where(errors > ROUND_OFF, errors, 0.0)
        yield _row(kind, "motors", "-", median=float(errors.mean()), high=float(errors.max()))


def _error(domain: Domain, course: Course, factors: Array) -> Array:
    """Errors of the rotors' efforts with constant armatures along a motion, over the peak of each motor [-], (na,)."""
    x, xd, xdd = course
    state = domain.transmission.motor_state(x, xd, xdd)
    held = np.einsum("tna,tn->ta", np.linalg.inv(state.transmission), factors * xdd)
    return np.asarray(np.sqrt(np.mean((held - state.ydd) ** 2, axis=0)) / np.abs(state.ydd).max(axis=0))


def _spread(quantity: str, part: str, unit: str, at_zero: float, values: Array) -> Row:
    """A row with the spread of some values."""
    low, median, high = (float(np.quantile(values, share)) for share in (0, 0.5, 1))
    return _row(quantity, part, unit, at_zero=at_zero, low=low, median=median, high=high)


def _row(quantity: str, part: str, unit: str, *, note: str = "", **figures: float) -> Row:
    empty = dict.fromkeys(("at_zero", "low", "median", "high", "bound"), np.nan)
    return {"quantity": quantity, "part": part, "unit": unit, **empty, **figures, "note": note}
