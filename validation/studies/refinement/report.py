"""Page and terminal output of the refinement study."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.engines.declarations import STEP
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Block, Picture, Section, digits, facts, table
from loopcheck.validation.studies.refinement.analysis import (
    CASE,
    CLOSE,
    CONVERGES,
    EXPECTED,
    HIGHER,
    LOWER,
    NOT_RUN,
    RICHARDSON,
    claims,
)
from loopcheck.validation.studies.refinement.pictures import settings_figure, steps_figure

_HEADERS = {
    "expected": "expected order [-]",
    "observed": "observed order [-]",
    "from": "asymptotic from [unit of the setting]",
    "to": "to [unit of the setting]",
    "at": "default value, or next to it",
    "error": "error there [-]",
    "uncertainty": "uncertainty there [-]",
    "finest error": "finest error [-]",
    "floor": "floor [-]",
    "relative_error": "error [-]",
    "change": "change [-]",
    "order": "order [-]",
    "wall_time": "wall time [s]",
}
LEVEL = ("relative_error", "change", "order", "uncertainty")
"""Columns of a level with figures."""
ORIGIN = ["limit", "source"]
"""Columns of a claim that are the same for all robots."""
ANY_UNIT = {"asymptotic [ms]": "asymptotic range", "at [ms]": "at"}
"""Headers of columns with the unit of the setting."""
ORDERS = {"expected": "expected order [-]", "observed": "observed order [-]"}
_MEANINGS: Sequence[Block] = (
    "The table compares expected orders, with their sources, with observed orders. Prescribed motions with their exact "
    "efforts are manufactured solutions: the true error is known beside the estimated uncertainty, which is the "
    "grid-convergence index (Roache) with a factor of safety of 1.25 where the observed order is within a tenth of the "
    "expected one, else 3 with the lower of both (Oberkampf and Roy).",
    [
        f"as expected: at least two successive orders, from four levels, within {CLOSE:g} of the expected order; they "
        "are the asymptotic range",
        "higher order, lower order: the two finest orders are both above or both below that band, and none is in it",
        "not resolved: too few orders above round-off, or before the floor of the solver",
        "converges: the error falls to the finest level, or to a floor below the tolerance of the route",
        "stalled: the error stops falling above that tolerance, independently of the observed order; a limit in the "
        "table says what the efforts converge to",
        "diverges: the finest level failed, or its error is above the tolerance and twice the error of the coarsest",
    ],
)


def sections(levels: pd.DataFrame, record: Mapping[str, Any]) -> list[Section]:
    """The page, from the table of levels and the record of the study."""
    found = claims(levels, targets())
    robots = [
        _robot(str(robot), of_robot, found[found["robot"] == robot]) for robot, of_robot in levels.groupby("robot")
    ]
    return [_orders(found), *robots, how(record)]


def targets() -> Mapping[str, float]:
    """The registered tolerance of each route [-]."""
    return {
        name: tolerance.relative_error
        for name, tolerance in registered().items()
        if tolerance.relative_error is not None
    }


def study_verdicts(found: pd.DataFrame) -> list[str]:
    """Verdict of each ladder: a lower order, or an end that no claim names, disagrees."""
    off = (found["verdict"] == LOWER) | ~found["end"].isin([CONVERGES, NOT_RUN])
    off &= found["expected"].notna() & (found["limit"] == "")
    verdicts = found["verdict"].map({EXPECTED: "agree", HIGHER: "agree", NOT_RUN: "not run"}).fillna("measured")
    return verdicts.mask(off, "disagree").tolist()


def orders_table(found: pd.DataFrame) -> RenderableType:
    """Orders of the methods over all cases, for the terminal."""
    of_steps = found[(found["refined"] == STEP) & ~found["ladder"].str.contains(RICHARDSON, regex=False)]
    rows = [
        [
            escape(f"{row['engine']}: {row['method']}"),
            row["verdict"],
            row["expected"],
            row["observed"],
            row["asymptotic [ms]"],
            row["at [ms]"],
            row["error [-]"],
            row["uncertainty [-]"],
        ]
        for row in _by_method(of_steps)
    ]
    columns = ["method", "verdict", "expected", "observed", "range [ms]", "at [ms]", "error [-]", "± [-]"]
    return terminal.table(columns, rows, title="Orders of convergence; error and uncertainty at the default step")


def _by_method(found: pd.DataFrame) -> list[dict[str, str]]:
    """A row for each method over all cases: the range of orders, and the largest error with its uncertainty."""
    rows = []
    for (route, ladder, refined), of_method in found.groupby(["route", "ladder", "refined"], sort=False):
        factor = 1e3 if refined == STEP else 1.0
        orders = of_method["observed"].dropna()
        worst = of_method.iloc[int(of_method["error"].fillna(-np.inf).argmax())]
        common = of_method["from"].min(), of_method["to"].max()
        counts = of_method["verdict"].value_counts(sort=False)
        off = of_method[~of_method["end"].isin([CONVERGES, NOT_RUN])]
        ends = {f"{end} at {rows['floor'].max():.1e}": len(rows) for end, rows in off.groupby("end", sort=False)}
        rows.append(
            {
                "engine": str(route).split("/")[0],
                "method": str(ladder),
                "setting": str(refined),
                "expected": _number(of_method["expected"].iloc[0]),
                "observed": _range(orders),
                "asymptotic [ms]": f"{factor * common[0]:.3g} … {factor * common[1]:.3g}"
                if np.isfinite(common).all() and common[0] > common[1]
                else "",
                "at [ms]": f"{factor * worst['at']:.3g}",
                "error [-]": _size(worst["error"]),
                "uncertainty [-]": _size(worst["uncertainty"]),
                "verdict": "; ".join(
                    str(name) if len(of_method) == 1 else f"{count} {name}"
                    for name, count in [*counts.items(), *ends.items()]
                ),
                "limit": str(of_method["limit"].iloc[0]),
                "source": str(of_method["source"].iloc[0]),
            }
        )
    return rows


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:g}"


def _range(values: "pd.Series[float]") -> str:
    ends = [f"{value:.2f}" for value in (values.min(), values.max())] if len(values) else []
    return " … ".join(dict.fromkeys(ends))


def _size(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.1e}"


def _orders(found: pd.DataFrame) -> Section:
    """Expected and observed orders of all methods and settings over all cases."""
    of_steps, claimed = found["refined"] == STEP, found["expected"].notna()
    parts = {
        "Steps": (found[of_steps & claimed], ["setting", *ORIGIN], {}),
        "Other settings": (found[~of_steps & claimed], ORIGIN, ANY_UNIT),
        "Without a claim": (found[~claimed], ["expected", "observed", *ORIGIN], ANY_UNIT),
        "Sources of the claims": (
            found[claimed],
            ["observed", *ANY_UNIT, "error [-]", "uncertainty [-]", "verdict"],
            {},
        ),
    }
    tables = [
        Section(
            title=title,
            anchor=f"orders-{k}",
            folded=k > 0,
            blocks=[table(pd.DataFrame(_by_method(rows)).drop(columns=left_out).rename(columns={**headers, **ORDERS}))],
        )
        for k, (title, (rows, left_out, headers)) in enumerate(parts.items())
        if len(rows)
    ]
    return Section(
        title="Orders",
        anchor="orders",
        blocks=[_sentence(found), _uncertainty_sentence(found), *_MEANINGS, *tables],
    )


def _sentence(found: pd.DataFrame) -> str:
    """Verdicts on all ladders with a claim, and the ladders that disagree."""
    claimed = found[found["expected"].notna()]
    counts = [f"{count} {name}" for name, count in claimed["verdict"].value_counts(sort=False).items()]
    off = found[[verdict == "disagree" for verdict in study_verdicts(found)]]
    named = list(
        dict.fromkeys(
            f"{row['route'].split('/')[0]}: {row['ladder']} ({row['verdict']}, {row['end']}"
            + (f" at {digits(row['floor'])})" if np.isfinite(row["floor"]) else ")")
            for row in off.to_dict("records")
        )
    )
    return f"{len(claimed)} ladders with an expected order: {', '.join(counts)}. Claims that fail: " + (
        f"{'; '.join(named)}." if named else "none."
    )


def _uncertainty_sentence(found: pd.DataFrame) -> str:
    measured = found[found["uncertainty"].notna() & found["error"].notna()]
    covered = measured["uncertainty"] >= measured["error"]
    missed = measured[~covered]
    limited = int((missed["floor"].notna() | (missed["limit"] != "")).sum())
    return (
        f"The uncertainty covers the true error of {int(covered.sum())} of {len(measured)} ladders at their default. "
        f"Of the other {len(missed)}, {limited} have reached a floor or converge to another limit: a refinement of the "
        "step cannot detect the error of the solver or of soft loops."
    )


def _robot(robot: str, levels: pd.DataFrame, found: pd.DataFrame) -> Section:
    """Diagrams and tables of one robot."""
    ladders, every = (
        found[["route", "ladder", "refined", *CASE[1:], *list(_HEADERS)[:9], "end", "verdict"]],
        levels[["route", "ladder", *CASE[1:], "refined", "value", *LEVEL, "wall_time", "note"]],
    )
    folded = [
        Section(
            title=title, anchor=f"{title.lower()}-{robot}", folded=True, blocks=[table(rows.rename(columns=_HEADERS))]
        )
        for title, rows in (("Ladders", ladders), ("Levels", every))
    ]
    pictures: list[Block] = []
    if svg := steps_figure(levels, targets()):
        caption = (
            "Error over the scale of the actuator, the largest of all cases, against the step. Dotted: slopes of "
            "orders 1, 2 and 4. Dashed: the tolerance of the route."
        )
        pictures.append(Picture(svg, alt=f"{robot}: effort error against the step by engine", caption=caption))
    if svg := settings_figure(levels, targets()):
        caption = "Error against each setting of the solvers, finer to the right."
        pictures.append(Picture(svg, alt=f"{robot}: effort error against each setting of the solvers", caption=caption))
    return Section(title=robot, anchor=f"robot-{robot}", blocks=[*pictures, *folded])


def how(record: Mapping[str, Any]) -> Section:
    """Settings needed to repeat the study."""
    shown = {name: record[name] for name in ("start", "duration_s", "loopcheck", "versions", "cpu", "models")}
    shown["command"] = " ".join(map(str, record["command"]))
    about = (
        "An error is the difference from analytic/noc, divided by the scale of the actuator; the tables show the "
        "largest over time and actuators. Of a redundantly actuated robot, only the part of the efforts that moves it "
        "is compared. Wall times are the times of the simulations alone. Other programs on the machine affect them."
    )
    return Section(title="Method", anchor="how", blocks=[about, facts(shown)])
