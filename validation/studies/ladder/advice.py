"""What to set for a given accuracy: read off the measured rungs, the cheapest that meets it."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pandas as pd

from validation.studies.ladder.analysis import LADDER, worst

TARGETS = (1e-2, 1e-3, 1e-6)
"""Errors that a user may want to stay below [-]."""
PLAIN, ANY = "its own stepping, once", "anything"
"""What is allowed: the engine's own stepping, as in a user's simulation; or also another integrator, extrapolation."""


def advice(rungs: pd.DataFrame, targets: Sequence[float] = TARGETS) -> pd.DataFrame:
    """The cheapest settings of each route and robot that meet each target in all cases.

    A rung meets a target if it does so in every case, and so do all finer rungs of its ladder: a hit by chance is none.
    Where nothing does, the row has the most accurate rung, and `reached` is false. What is allowed comes twice, the
    engine's own stepping first; a second row that would say the same is left out.

    Args:
        rungs: The table of rungs.
        targets: Errors to stay below [-].
    """
    rows = []
    for _, of_route in worst(rungs).groupby(["robot", "route"], sort=False):
        choices = {PLAIN: of_route[of_route["plain"]], ANY: of_route}
        rows += [
            {**_chosen(some, target), "target": target, "allowed": allowed}
            for target in targets
            for allowed, some in choices.items()
            if len(some)
        ]
    table = pd.DataFrame(rows)
    return table.drop_duplicates([name for name in table if name != "allowed"], ignore_index=True)


def _chosen(rungs: pd.DataFrame, target: float) -> dict[str, Any]:
    """The cheapest rung within a target, or the most accurate where there is none."""
    best = cheapest(rungs, target)
    rung = rungs.iloc[int(_kept(rungs).argmin())] if best is None else best
    return {**{str(name): value for name, value in rung.items() if name != "own"}, "reached": best is not None}


def cheapest(rungs: pd.DataFrame, target: float) -> pd.Series | None:
    """The cheapest rung at which, and below which in its ladder, the error is within a target; None if there is none.

    Args:
        rungs: Rungs of one robot, coarsest first in each ladder, with `relative_error` and `cost`.
        target: Error to stay below [-].
    """
    good = rungs[_kept(rungs) <= target]
    return None if good.empty else good.iloc[int(good["cost"].argmin())]


def _kept(rungs: pd.DataFrame) -> "pd.Series[float]":
    """The largest error of a rung and all finer ones of its ladder [-]."""
    return rungs.iloc[::-1].groupby(LADDER, sort=False)["relative_error"].cummax().reindex(rungs.index)


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


def answer(row: Mapping[Any, Any]) -> str:
    """What a row of the advice says."""
    if row["reached"]:
        return in_words(row)
    if not isfinite(row["relative_error"]):
        return "nothing ran in every case; the notes of the rungs say why"
    return f"none reaches it; the most accurate: {in_words(row)}"


def in_words(rung: Any) -> str:
    """Which rung it is: its ladder, step and value."""
    refined = str(rung["refined"]).split(" [")[0]
    value = "" if refined == "step" else f", {refined} {rung['value']:.4g}"
    return f"{rung['ladder']}, step {1e3 * rung['dt']:.4g} ms{value}"
