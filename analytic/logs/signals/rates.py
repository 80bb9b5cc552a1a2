"""Checks that the velocities of a log are the rates of its positions; names the fault before any verdict."""

from collections.abc import Iterator, Mapping

import numpy as np

from loopcheck.analytic.logs.signals.filters import smoothing_filter
from loopcheck.robots.arrays import Array, root_mean_square
from loopcheck.robots.log import Held, Log
from loopcheck.robots.mechanism import DOFS

HALF = 3
"""Half window of the filter that differentiates [samples]."""
WRONG_GAIN, WRONG_SHAPE = 0.02, 0.05
"""Largest error of the gain, and largest part not explained by a gain and a shift, over the velocities [-]."""
LATE = 1.5
"""Largest shift, over the step of the log or the hold [-]: semi-implicit steps put positions half a step late."""
NOISY = 4.0
"""Least ratio of a difference to its noise [-]."""
KNOWN_GAINS = {
    180 / np.pi: "degrees for radians",
    np.pi / 180: "radians for degrees",
    -1: "opposite sign",
}
"""Probable cause of a gain."""
OF_TIME = {1e3: "times in ms, not s", 1e6: "times in µs, not s", 1e9: "times in ns, not s"}
"""The same of a hinge, whose rates no length changes."""
OF_LENGTH = {1e3: "millimetres for metres", 1e-3: "metres for millimetres"}
"""The same of a slide."""


def wrong_rates(log: Log) -> Iterator[str]:
    """Faults of the velocities and accelerations of a log, a phrase each."""
    yield from _wrong(log, "qd", "velocities", "positions", log.q, log.qd)
    if log.qd is not None:
        yield from _wrong(log, "qdd", "accelerations", "velocities", log.qd, log.qdd)


def _wrong(log: Log, attribute: str, rates: str, values: str, x: Array, v: Array | None) -> Iterator[str]:
    """Faults of rates (nt, dofs) of values (nt, positions or dofs), joint by joint, except quaternions."""
    if v is None:
        return
    derivative = smoothing_filter(log.dt, HALF, 0.0, uses_velocities=False)
    bases = np.arange(HALF, len(log.t) - HALF, 1.0)
    for joint, kind in zip(log.joints, log.kinds, strict=True):
        if DOFS[kind] != 1:
            continue
        places = log.columns_of(joint)
        column = places[0].start if attribute == "qd" else places[1].start
        computed = derivative.velocity.applied(x[:, [column]], bases)[:, 0]
        given = derivative.position.applied(v[:, [places[1].start]], bases)[:, 0]
        slope = derivative.velocity.applied(v[:, [places[1].start]], bases)[:, 0]
        rounding = np.finfo(float).eps * np.abs(x[:, column]).max() * np.abs(derivative.velocity.weights).sum()
        gains = {**KNOWN_GAINS, **(OF_TIME if kind == "hinge" else OF_LENGTH)}
        for what, guess in _said(log, computed, given, slope, float(rounding), gains):
            yield f"{rates} of '{joint}' {what} of its {values}{guess}"


def _said(
    log: Log, computed: Array, given: Array, slope: Array, rounding: float, gains: Mapping[float, str]
) -> Iterator[tuple[str, str]]:
    """Relation of given rates to computed rates, and a suspected cause: computed = given / gain, shifted; all (n,).

    Last digits of the positions cause a rate up to `rounding` [per s], also of a joint that stands still.
    """
    size = root_mean_square(given)
    noise = root_mean_square(np.diff(computed, 4)) / np.sqrt(70)  # of noise, fourth differences have √70
    roughness = max(noise, rounding)
    scale = max(size, np.finfo(float).tiny)
    A = np.stack([given, log.dt * slope], axis=1)
    inverse_gain, shift = np.linalg.lstsq(A, computed)[0]
    left = root_mean_square(computed - A @ [inverse_gain, shift])
    if left > max(WRONG_SHAPE * root_mean_square(computed), NOISY * roughness):
        wrong = ("are not the derivatives", f" (relative error {left / scale:.2g})")
        yield wrong if size else ("are zero, not the derivatives", "")
    elif size and abs(inverse_gain - 1) > WRONG_GAIN + NOISY * roughness / scale:
        near = [words for known, words in gains.items() if abs(inverse_gain * known - 1) < WRONG_SHAPE]
        yield f"are {1 / inverse_gain:.4g} times the derivatives", f" ({near[0]}?)" if near else ""
    elif abs(shift) * log.dt > _most_late(log) and abs(shift) * log.dt * root_mean_square(slope) > NOISY * roughness:
        yield f"are {abs(shift) * log.dt:.3g} s {'earlier' if shift < 0 else 'later'} than the derivatives", ""


def _most_late(log: Log) -> float:
    return LATE * max(log.dt, log.effort_time.seconds if isinstance(log.effort_time, Held) else 0.0)
