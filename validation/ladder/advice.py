"""What to set for a given accuracy: read off the measured rungs, the cheapest that meets it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from validation.ladder.analysis import LADDER, worst

TARGETS = (1e-2, 1e-3, 1e-6)
"""Errors that a user may want to stay below [-]."""
PLAIN, ANY = "its own stepping, once", "anything"
"""What is allowed: the engine's own stepping, as in a user's simulation; or also other integrators and extrapolation."""


def advice(rungs: pd.DataFrame, targets: Sequence[float] = TARGETS) -> pd.DataFrame:
    """The cheapest settings of each route and robot that meet each target in all cases.

    A rung meets a target if it does so in every case, and so do all finer rungs of its ladder: a hit by chance is none.
    Where nothing does, the row has the most accurate rung, and `reached` is false.

    Args:
        rungs: The table of rungs.
        targets: Errors to stay below [-].
    """
    rows = []
    for _, of_route in worst(rungs).groupby(["robot", "route"], sort=False):
        for target in targets:
            for allowed in (PLAIN, ANY):
                some = of_route[of_route["plain"]] if allowed == PLAIN else of_route
                if some.empty:
                    continue
                best = cheapest(some, target)
                chosen = some.iloc[int(some["relative_error"].argmin())] if best is None else best
                rung = {str(name): value for name, value in chosen.items() if name != "own"}
                rows.append({**rung, "target": target, "allowed": allowed, "reached": best is not None})
    return pd.DataFrame(rows)


def cheapest(rungs: pd.DataFrame, target: float) -> pd.Series | None:
    """The cheapest rung at which, and below which in its ladder, the error is within a target; None if there is none.

    Args:
        rungs: Rungs of one robot, coarsest first in each ladder, with `relative_error` and `cost`.
        target: Error to stay below [-].
    """
    finer = rungs.iloc[::-1].groupby(LADDER, sort=False)["relative_error"].cummax().reindex(rungs.index)
    good = rungs[finer <= target]
    return None if good.empty else good.iloc[int(good["cost"].argmin())]


def own_settings(rungs: pd.DataFrame, targets: Mapping[str, float]) -> pd.DataFrame:
    """The settings of the routes themselves, beside the cheapest that meet the same target.

    Args:
        rungs: The table of rungs.
        targets: Tolerance of each route [-].
    """
    rows = []
    for (robot, route), of_route in worst(rungs).groupby(["robot", "route"], sort=False):
        own, target = of_route[of_route["own"]], targets.get(str(route), float("nan"))
        best = cheapest(of_route, target)
        if own.empty:
            continue
        rows.append(
            {
                "robot": robot,
                "route": route,
                "target": target,
                "own error": float(own["relative_error"].iloc[0]),
                "own cost": float(own["cost"].iloc[0]),
                "cheapest": "none" if best is None else in_words(best),
                "its error": float("nan") if best is None else float(best["relative_error"]),
                "its cost": float("nan") if best is None else float(best["cost"]),
            }
        )
    return pd.DataFrame(rows)


def in_words(rung: Any) -> str:
    """Which rung it is: its ladder, step and value."""
    refined = str(rung["refined"]).split(" [")[0]
    value = "" if refined == "step" else f", {refined} {rung['value']:.4g}"
    return f"{rung['ladder']}, step {1e3 * rung['dt']:.4g} ms{value}"
