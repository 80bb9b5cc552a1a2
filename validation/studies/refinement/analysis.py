"""Observed orders, uncertainty and end of a refinement ladder, and the verdict on its expected order.

With f1, f2, f3 the efforts at three levels, f1 the finest and each r times as fine as the one before, the order is
p = ln(|f3 - f2| / |f2 - f1|) / ln r, and the uncertainty the grid-convergence index Fs |f2 - f1| / (r^p - 1) of Roache
(1998). Factor of safety and order as Oberkampf and Roy (2010, table 8.1): 1.25 and the expected order if the observed
one is within a tenth of it, else 3 and the observed order, not below 1/2 and not above the expected one. Distances are
the largest over time and actuators.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pandas as pd

from loopcheck.robots.arrays import Array, Efforts
from loopcheck.validation.check.efforts.compare import relative_error

CASE = ["robot", "mode", "configuration"]
LADDER = ["route", "ladder", "refined"]
RICHARDSON = ", Richardson "
"""In the name of an extrapolated refinement, before the number of its steps."""
ROUND_OFF = 1e-12
"""Of simulated efforts, over their scale [-]."""
ABOVE = 10.0
"""Smallest change over the noise for an observed order [-]; the order is then accurate to 0.15 for r = 2."""
CLOSE = 0.25
"""Largest distance of an observed order from the expected one in the asymptotic range [-]."""
NEAR = 0.1
"""Largest relative distance of an observed order from the expected one for the smaller factor of safety [-]."""
LOWEST = 0.5
"""Lowest order in an uncertainty [-]."""
ENOUGH = 2
"""Successive orders that show an order: four levels."""
DIVERGED = 2.0
"""Error at the finest over that at the coarsest level of a ladder that diverges [-]; below, it stalls."""
CONVERGES, STALLED, DIVERGES, NOT_RUN = "converges", "stalled", "diverges", "not run"
EXPECTED, HIGHER, LOWER, UNRESOLVED, NO_CLAIM = "as expected", "higher order", "lower order", "not resolved", "no claim"


def refinements(
    values: Sequence[float], efforts: Sequence[Array | None], scale: Efforts, expected: float
) -> pd.DataFrame:
    """Change from the level before [-], observed order [-] and uncertainty [-] at each level.

    Args:
        values: Values of the refined setting, coarsest first.
        efforts: Efforts at each level [N or N m], each of shape (nt, na); None for a failed level.
        scale: Scales of the actuators.
        expected: Expected order [-]; NaN without a claim.
    """
    estimates = [(np.nan, np.nan, np.nan)]
    for k, (coarse, fine) in enumerate(pairwise(efforts), start=1):
        change = np.nan if coarse is None or fine is None else relative_error(fine, coarse, scale)
        before, ratio = estimates[-1][0], _ratio(values[k - 1], values[k])
        order = np.nan
        if np.isfinite(expected) and change > 0 and before > 0:
            order = float(np.log(before / change) / np.log(ratio))
        estimates.append((change, order, _uncertainty(change, order, ratio, expected)))
    return pd.DataFrame(estimates, columns=["change", "order", "uncertainty"])


def _ratio(coarse: float, fine: float) -> float:
    """Ratio of refinement between two values, at least 1; NaN from or to zero [-]."""
    return max(coarse / fine, fine / coarse) if coarse > 0 and fine > 0 else np.nan


def _uncertainty(change: float, order: float, ratio: float, expected: float) -> float:
    if abs(order - expected) <= NEAR * expected:
        return float(1.25 * change / (ratio**expected - 1))
    lower = expected if np.isnan(order) else min(max(LOWEST, order), expected)
    return float(3 * change / (ratio**lower - 1))


def claims(levels: pd.DataFrame, targets: Mapping[str, float]) -> pd.DataFrame:
    """A row for each ladder of each case: expected and observed order, where it holds, and error and uncertainty.

    Args:
        levels: The table of levels.
        targets: Tolerance by route [-].
    """
    groups = levels.groupby([*CASE, *LADDER], sort=False)
    rows = [
        {**dict(zip([*CASE, *LADDER], key, strict=True)), **_claim(rows, targets.get(str(key[3]), np.nan))}
        for key, rows in groups
    ]
    return pd.DataFrame(rows)


def _claim(levels: pd.DataFrame, target: float) -> Mapping[str, Any]:
    """One row of `claims`, without its keys."""
    expected, limit = float(levels["expected"].iloc[0]), str(levels["limit"].iloc[0])
    values, errors, orders = (levels[name].to_numpy(float) for name in ("value", "relative_error", "order"))
    floor = floor_of(values, errors)
    is_measured = np.isfinite(orders) & (levels["change"].to_numpy(float) > ABOVE * ROUND_OFF)
    asymptotic = longest_run(is_measured & (np.abs(orders - expected) <= CLOSE))
    measured = orders[is_measured]
    end = end_of(errors, floor, target)
    shown = levels.iloc[_default(levels)]
    return {
        "expected": expected,
        "observed": float(orders[asymptotic[-1]]) if asymptotic else float(measured[-1]) if measured.size else np.nan,
        # an order needs two levels before its own
        "from": float(values[asymptotic[0] - 2]) if asymptotic else np.nan,
        "to": float(values[asymptotic[-1]]) if asymptotic else np.nan,
        "orders": len(asymptotic),
        "at": float(shown["value"]),
        "error": float(shown["relative_error"]),
        "uncertainty": float(shown["uncertainty"]),
        "finest error": float(errors[-1]),
        "floor": floor,
        "end": end,
        "verdict": order_verdict(expected, measured - expected, len(asymptotic), end, floor),
        "limit": limit,
        "source": str(levels["source"].iloc[0]),
    }


def _default(levels: pd.DataFrame) -> int:
    """The level next to the default value, else the finest of the route's own settings, else the finest of all."""
    values, default = levels["value"].to_numpy(float), float(levels["default"].iloc[0])
    if np.isfinite(default):
        return int(np.abs(np.log(values / default)).argmin())
    own = np.flatnonzero(levels["own"])
    return int(own[-1]) if own.size else len(values) - 1


def longest_run(holds: Array) -> Sequence[int]:
    """The longest run of true values, by their indices; the last one of equal runs.

    Args:
        holds: Truth values, shape (n,) [-].
    """
    runs = [[k for k, _ in run] for is_run, run in groupby(enumerate(holds), key=lambda pair: pair[1]) if is_run]
    return max(reversed(runs), key=len, default=[])


def order_verdict(expected: float, off: Array, count: int, end: str, floor: float) -> str:
    """Verdict on an expected order.

    Near a floor that the tolerance allows, the solver's remainder and round-off change differences of efforts: then a
    lower order is not a finding.

    Args:
        expected: It [-]; NaN without a claim.
        off: Measured orders minus it, coarsest first, shape (n,) [-].
        count: Successive orders close to it.
        end: End of the ladder.
        floor: Floor of the error; NaN if it falls to the end [-].
    """
    if end == NOT_RUN:
        return NOT_RUN
    if not np.isfinite(expected):
        return NO_CLAIM
    if count >= ENOUGH:
        return EXPECTED
    finest = off[-ENOUGH:]
    if count or finest.size < ENOUGH:
        return UNRESOLVED
    if (finest > CLOSE).all():
        return HIGHER
    if (finest < -CLOSE).all() and (np.isnan(floor) or end != CONVERGES):
        return LOWER
    return UNRESOLVED


def floor_of(values: Array, error: Array) -> float:
    """The smallest error if it has stopped falling at the finest level, else NaN [-].

    The error falls as long as a refinement brings at least half the first order.

    Args:
        values: Values of the refined setting, coarsest first, shape (n,); its unit is that of the ladder [any].
        error: Error at each level [-], shape (n,).
    """
    if len(error) < 2 or not np.isfinite(error[-2:]).all():
        return float("nan")
    falls = error[-2] >= error[-1] * _ratio(float(values[-2]), float(values[-1])) ** 0.5
    return float("nan") if falls else float(np.nanmin(error))


def end_of(error: Array, floor: float, target: float) -> str:
    """End of a ladder.

    It diverges if its finest level failed or is `DIVERGED` times as bad as its coarsest and above the target; it stalls
    if its error has stopped falling above the target; else it converges.

    Args:
        error: Error at each level, NaN if it failed [-], shape (n,).
        floor: The floor of the error; NaN if it falls to the end [-].
        target: Target error [-].
    """
    ran = error[np.isfinite(error)]
    if not ran.size:
        return NOT_RUN
    if not np.isfinite(error[-1]) or error[-1] > max(target, DIVERGED * ran[0]):
        return DIVERGES
    return STALLED if floor > target else CONVERGES
