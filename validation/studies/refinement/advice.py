"""Recommended settings for an accuracy: the cheapest measured level that meets it."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pandas as pd

from loopcheck.validation.studies.refinement.analysis import LADDER, worst

TARGETS = (1e-2, 1e-3, 1e-6)
"""Target errors of the advice [-]."""
PLAIN, ANY = "its own stepping, once", "anything"
"""Allowed settings: the engine's own stepping as in a simulation of a user; or also other methods and extrapolation."""


def advice(levels: pd.DataFrame, targets: Sequence[float] = TARGETS) -> pd.DataFrame:
    """The cheapest settings of each route and robot that meet each target in all cases.

    A level meets a target if it and all finer levels of its ladder do so in every case; a single lucky level does not
    count. If no level meets the target, the row has the most accurate level, and `reached` is false. Two rows allow
    different ladders, the engine's own stepping first; an equal second row is left out.

    Args:
        levels: The table of levels.
        targets: Largest allowed errors [-].
    """
    rows = []
    for _, of_route in worst(levels).groupby(["robot", "route"], sort=False):
        choices = {PLAIN: of_route[of_route["plain"]], ANY: of_route}
        rows += [
            {**_chosen(some, target), "target": target, "allowed": allowed}
            for target in targets
            for allowed, some in choices.items()
            if len(some)
        ]
    table = pd.DataFrame(rows)
    return table.drop_duplicates([name for name in table if name != "allowed"], ignore_index=True)


def _chosen(levels: pd.DataFrame, target: float) -> dict[str, Any]:
    """The cheapest level within a target, otherwise the most accurate level."""
    best = cheapest(levels, target)
    level = levels.iloc[int(_kept(levels).argmin())] if best is None else best
    return {**{str(name): value for name, value in level.items() if name != "own"}, "reached": best is not None}


def cheapest(levels: pd.DataFrame, target: float) -> pd.Series | None:
    """The cheapest level with an error within a target on it and all finer levels of its ladder, or None.

    Args:
        levels: Levels of one robot, coarsest first in each ladder, with `relative_error` and `cost`.
        target: Largest allowed error [-].
    """
    good = levels[_kept(levels) <= target]
    return None if good.empty else good.iloc[int(good["cost"].argmin())]


def _kept(levels: pd.DataFrame) -> "pd.Series[float]":
    """The largest error of a level and all finer levels of its ladder [-]."""
    return levels.iloc[::-1].groupby(LADDER, sort=False)["relative_error"].cummax().reindex(levels.index)


def own_settings(levels: pd.DataFrame, targets: Mapping[str, float]) -> pd.DataFrame:
    """The settings of the routes themselves, beside the cheapest that meet the same target.

    Args:
        levels: The table of levels.
        targets: Tolerance of each route [-].
    """
    rows = []
    for (robot, route), of_route in worst(levels).groupby(["robot", "route"], sort=False):
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


def answer(row: Mapping[Any, Any]) -> str:
    """A row of the advice in words."""
    if row["reached"]:
        return in_words(row)
    if not isfinite(row["relative_error"]):
        return "no level ran in every case; see the notes of the levels"
    return f"no setting reaches the target; the most accurate: {in_words(row)}"


def in_words(level: Any) -> str:
    """Ladder, step and value of a level, in words."""
    refined = str(level["refined"]).split(" [")[0]
    value = "" if refined == "step" else f", {refined} {level['value']:.4g}"
    return f"{level['ladder']}, step {1e3 * level['dt']:.4g} ms{value}"
