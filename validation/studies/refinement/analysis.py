"""Observed order, grid-convergence index, floor of the error, and verdict of a refinement ladder.

With f1, f2, f3 the efforts at three levels, f1 the finest and each r times as fine as the one before, the order is
p = ln(|f3 - f2| / |f2 - f1|) / ln r, and the grid-convergence index Fs |f2 - f1| / (r^p - 1): Fs = 1.25 with a
plausible p, else 3 with the order by theory (Roache 1998). Distances are the largest over time and actuators.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from loopcheck.robots.arrays import Array, Efforts
from loopcheck.validation.check.efforts.compare import relative_error

CASE = ["robot", "mode", "configuration"]
LADDER = ["route", "ladder", "refined"]
RICHARDSON = ", Richardson "
"""In the name of an extrapolated refinement, before the number of its steps."""
ABOVE = 10.0
"""Smallest change over the noise for an observed order [-]; the order is then accurate to 0.15 for r = 2."""
PLAUSIBLE = 0.5
"""Largest distance of an observed order from theory for a grid-convergence index [-]."""
CONVERGES, STALLED, DIVERGES, NOT_RUN = "converges", "stalled", "diverges", "not run"


def refinements(
    values: Sequence[float], efforts: Sequence[Array | None], scale: Efforts, theory: float
) -> pd.DataFrame:
    """Change from the level before [-], observed order and grid-convergence index [-] at each level.

    Args:
        values: Values of the refined setting, coarsest first.
        efforts: Efforts at each level [N or N m], each of shape (nt, na); None for a failed level.
        scale: Scales of the actuators.
        theory: Order by theory [-]; NaN if unknown.
    """
    estimates = [(np.nan, np.nan, np.nan)]
    for k, (coarse, fine) in enumerate(pairwise(efforts), start=1):
        change = np.nan if coarse is None or fine is None else relative_error(fine, coarse, scale)
        before, ratio = estimates[-1][0], _ratio(values[k - 1], values[k])
        order = np.nan
        if np.isfinite(theory) and change > 0 and before > 0:
            order = float(np.log(before / change) / np.log(ratio))
        estimates.append((change, order, _index(change, order, ratio, theory)))
    return pd.DataFrame(estimates, columns=["change", "order", "index"])


def _ratio(coarse: float, fine: float) -> float:
    """Ratio of refinement between two values, at least 1 [-]."""
    return max(coarse / fine, fine / coarse)


def _index(change: float, order: float, ratio: float, theory: float) -> float:
    if abs(order - theory) <= PLAUSIBLE:
        return float(1.25 * change / (ratio**order - 1))
    return float(3 * change / (ratio**theory - 1))


def summary(levels: pd.DataFrame, targets: Mapping[str, float], noises: Mapping[str, float]) -> pd.DataFrame:
    """A row for each ladder of each case.

    Args:
        levels: The table of levels.
        targets: Target error by route [-].
        noises: Noise of the effort by route [-]; the order is computed from changes `ABOVE` it.
    """
    groups = levels.groupby([*CASE, *LADDER], sort=False)
    rows = [
        {
            **dict(zip([*CASE, *LADDER], key, strict=True)),
            **_row(rows, targets.get(str(key[3]), np.nan), noises.get(str(key[3]), np.nan)),
        }
        for key, rows in groups
    ]
    return pd.DataFrame(rows)


def _row(levels: pd.DataFrame, target: float, noise: float) -> Mapping[str, Any]:
    theory, values, error = (levels[column].to_numpy(float) for column in ("theory", "value", "relative_error"))
    floor = floor_of(values, error, float(theory[0]))
    finest = levels.iloc[-1]
    return {
        "theory": float(theory[0]),
        "order": _order(levels, noise),
        "error": float(finest["relative_error"]),
        "index": float(finest["index"]),
        "floor": floor,
        "target": target,
        "verdict": verdict(error, floor, target),
        "wall_time": float(finest["wall_time"]),
    }


def floor_of(values: Array, error: Array, theory: float) -> float:
    """The smallest error if it has stopped falling at the finest level, else NaN [-].

    The error falls as long as a refinement brings at least half the order of theory, or half the first order without a
    theory.

    Args:
        values: Values of the refined setting, coarsest first, shape (n,); its unit is that of the ladder [any].
        error: Error at each level [-], shape (n,).
        theory: Order by theory [-]; NaN if unknown.
    """
    if len(error) < 2 or not np.isfinite(error[-2:]).all():
        return float("nan")
    half, ratio = (theory if np.isfinite(theory) else 1.0) / 2, _ratio(float(values[-2]), float(values[-1]))
    falls = error[-2] >= error[-1] * ratio**half
    return float("nan") if falls else float(np.nanmin(error))


def verdict(error: Array, floor: float, target: float) -> str:
    """Verdict on a ladder.

    It diverges if its finest level failed or is worse than its coarsest and than the target; it stalls if its error has
    stopped falling above the target; else it converges.

    Args:
        error: Error at each level, NaN if it failed [-], shape (n,).
        floor: The floor of the error; NaN if it falls to the end [-].
        target: Target error [-].
    """
    ran = error[np.isfinite(error)]
    if not ran.size:
        return NOT_RUN
    if not np.isfinite(error[-1]) or error[-1] > max(target, ran[0]):
        return DIVERGES
    return STALLED if floor > target else CONVERGES


def _order(levels: pd.DataFrame, noise: float) -> float:
    """The order observed at the finest three levels with changes well above the noise; NaN without such levels."""
    measured = levels.loc[(levels["change"] > ABOVE * noise) & levels["order"].notna(), "order"]
    return float(measured.iloc[-1]) if len(measured) else float("nan")


def worst(levels: pd.DataFrame) -> pd.DataFrame:
    """Each level of a robot with its largest error over all cases and its mean cost; infinite if a case failed."""
    rows = levels.assign(
        relative_error=levels["relative_error"].fillna(np.inf), cost=levels["wall_time"] / levels["span"]
    )
    keys = ["robot", *LADDER, "value", "dt", "runs", "plain", "settings", "own"]
    return rows.groupby(keys, sort=False, as_index=False).agg({"relative_error": "max", "cost": "mean"})
