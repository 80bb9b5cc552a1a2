"""Checks that the rates in a log are those of its positions.

Between samples a motion is a polynomial through positions, velocities and accelerations. If these contradict each
other, no simulation can follow the motion, whatever the efforts of the samples are.
"""

import numpy as np

from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

CONTRADICTION = 1e-3
"""Largest deviation of a rate from the derivative, relative to the largest rate, that is no contradiction [-]."""
PROPORTIONAL = 1e-2
"""The same of a rate from a multiple of the derivative: it has another unit or sign [-]."""
TRUNCATION = 8.0
"""Ratio of the deviations over double and single steps, if finite steps cause them; 16 for short steps [-]."""


def contradiction(mechanism: Mechanism, t: Times, drive: Drive, where: str) -> str:
    """Contradictions in a log of the drives, as a sentence; empty if there are none.

    Args:
        drive: Positions, velocities and accelerations at the times.
        where: Name of the log, for the error message.

    Raises:
        MechanismError: If a rate is a multiple of the derivative: it has another unit or another sign.
    """
    if len(t) < 5:
        return ""
    sentences = []
    for (rate, integral), x, v in ((("qd", "q"), drive.q, drive.qd), (("qdd", "qd"), drive.qd, drive.qdd)):
        off, coarse = _deviation(t, x, v, 1), _deviation(t, x, v, 2)
        relative = np.abs(off).max(0) / np.maximum(np.abs(v).max(0), np.finfo(float).tiny)
        for k in np.flatnonzero(relative > CONTRADICTION):
            name, column = f"'{mechanism.drives[k].name}.{rate}'", off[:, k]
            _refuse_multiple(f"{where}: column {name}", f"'{mechanism.drives[k].name}.{integral}'", t, x[:, k], v[:, k])
            if np.abs(coarse[:, k]).max() < TRUNCATION * np.abs(column).max():
                worst = int(np.abs(column).argmax())
                sentences.append(
                    f"{name} is not the derivative of '{mechanism.drives[k].name}.{integral}': difference "
                    f"{abs(column[worst]):.2g} at t = {t[worst + 1]:g} s ({relative[k]:.2g} of the largest value)"
                )
    return "; ".join(sentences)


def _deviation(t: Array, x: Array, v: Array, step: int) -> Array:
    """Distance of mean rates over two steps from the differences over them, by Simpson's rule (nt − 2 step, drives)."""
    mean = (v[: -2 * step] + 4 * v[step:-step] + v[2 * step :]) / 6
    return mean - (x[2 * step :] - x[: -2 * step]) / (2 * step * (t[1] - t[0]))


def _refuse_multiple(name: str, integral: str, t: Array, x: Array, v: Array) -> None:
    derivative, mean = (x[2:] - x[:-2]) / (2 * (t[1] - t[0])), (v[:-2] + 4 * v[1:-1] + v[2:]) / 6
    if not np.any(derivative):
        return
    factor = float(derivative @ mean / (derivative @ derivative))
    proportional = np.abs(mean - factor * derivative).max() <= PROPORTIONAL * np.abs(mean).max()
    if proportional and abs(factor - 1) > 10 * PROPORTIONAL:
        unit = ". Angles must be in radians, not degrees" if abs(abs(factor) - np.rad2deg(1)) < 1 else ""
        raise MechanismError(f"{name}: must be the derivative of {integral}, got {factor:.4g} times it{unit}")
