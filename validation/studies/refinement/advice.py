"""What to set for a given accuracy: read off the measured levels, the cheapest that meets it."""

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

    A level meets a target if it does so in every case, and so do all finer levels of its ladder: a hit by chance is
    none. Where nothing does, the row has the most accurate level, and `reached` is false. What is allowed comes twice,
    the engine's own stepping first; a second row that would say the same is left out.

    Args:
        levels: The table of levels.
        targets: Errors to stay below [-].
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
    """The cheapest level within a target, or the most accurate where there is none."""
    best = cheapest(levels, target)
    level = levels.iloc[int(_kept(levels).argmin())] if best is None else best
    return {**{str(name): value for name, value in level.items() if name != "own"}, "reached": best is not None}


def cheapest(levels: pd.DataFrame, target: float) -> pd.Series | None:
    """The cheapest level at which, and below which in its ladder, the error is within a target; None if there is none.

    Args:
        levels: Levels of one robot, coarsest first in each ladder, with `relative_error` and `cost`.
        target: Error to stay below [-].
    """
    good = levels[_kept(levels) <= target]
    return None if good.empty else good.iloc[int(good["cost"].argmin())]


def _kept(levels: pd.DataFrame) -> "pd.Series[float]":
    """The largest error of a level and all finer ones of its ladder [-]."""
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
    """What a row of the advice says."""
    if row["reached"]:
        return in_words(row)
    if not isfinite(row["relative_error"]):
        return "no level ran in every case; see the notes of the levels"
    return f"no setting reaches the target; the most accurate: {in_words(row)}"


def in_words(level: Any) -> str:
    """Which level it is: its ladder, step and value."""
    refined = str(level["refined"]).split(" [")[0]
    value = "" if refined == "step" else f", {refined} {level['value']:.4g}"
    return f"{level['ladder']}, step {1e3 * level['dt']:.4g} ms{value}"
