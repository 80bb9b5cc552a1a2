"""Page and terminal output of the refinement study."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.engines.declarations import STEP
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Block, Picture, Section, digits, facts, table
from loopcheck.validation.studies.refinement.advice import advice, answer, own_settings
from loopcheck.validation.studies.refinement.analysis import CASE, CONVERGES, DIVERGES, STALLED, summary, worst
from loopcheck.validation.studies.refinement.pictures import settings_figure, work_figure
from loopcheck.validation.studies.refinement.tuned import HEADERS, MEANING

CLOSE = 0.1
"""Largest difference between an observed order and theory that counts as equal [-]."""
_HEADERS = {
    "target": "target [-]",
    "theory": "order by theory [-]",
    "order": "order observed [-]",
    "error": "error at the finest [-]",
    "index": "grid-convergence index there [-]",
    "floor": "floor [-]",
    "relative_error": "error [-]",
    "dt": "step [ms]",
    "cost": "wall time per simulated second [-]",
    "wall_time": "wall time [s]",
    "own error": "own error [-]",
    "own cost": "own wall time per simulated second [-]",
    "its error": "its error [-]",
    "its cost": "its wall time per simulated second [-]",
    "change": "change [-]",
}


def sections(levels: pd.DataFrame, settings: pd.DataFrame, record: Mapping[str, Any]) -> list[Section]:
    """The page, from the tables of levels and of settings and the record of the study."""
    robots = [robot_part(str(robot), of_robot) for robot, of_robot in levels.groupby("robot", sort=False)]
    return [
        what_to_set(settings),
        advisor(levels),
        routes(levels),
        orders(levels),
        *everywhere(levels),
        *robots,
        how(record),
    ]


def derived(levels: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
    """The tables that are written beside the levels."""
    return {"refinement_summary": summarized(levels), "refinement_advice": advice(levels)}


def settings_tables(settings: pd.DataFrame) -> Iterator[RenderableType]:
    """Recommended settings, for the terminal.

    Args:
        settings: The table of settings.
    """
    for robot, rows in settings.groupby("robot", sort=False):
        cells = [
            [
                escape(str(row["engine"])),
                f"{row['target']:g}",
                escape(str(row["settings"])) if row["reached"] else f"not reached; {escape(str(row['note']))}",
                f"{row['error']:.1e}",
                f"{row['cost']:.4g}",
            ]
            for row in rows.to_dict("records")
        ]
        columns = ["engine", "target", "settings", "error [-]", "cost [1/s]"]
        yield terminal.table(columns, cells, title=f"{robot}: cheapest settings within a target")


def targets() -> Mapping[str, float]:
    """The registered tolerance of each route [-]."""
    return {
        name: tolerance.relative_error
        for name, tolerance in registered().items()
        if tolerance.relative_error is not None
    }


def summarized(levels: pd.DataFrame) -> pd.DataFrame:
    """Summary of each ladder, compared with the registered tolerances and noises."""
    return summary(
        levels,
        targets(),
        {name: tolerance.noise for name, tolerance in registered().items() if tolerance.noise is not None},
    )


def what_to_set(settings: pd.DataFrame) -> Section:
    """Recommended settings of unmodified simulations for an accuracy."""
    return Section(
        title="Recommended settings", anchor="settings", blocks=[MEANING, table(settings.rename(columns=HEADERS))]
    )


def advisor(levels: pd.DataFrame) -> Section:
    """Required settings of our own routes for an accuracy."""
    parts: list[Section] = []
    for robot, rows in advice(levels).groupby("robot", sort=False):
        parts.append(Section(title=str(robot), anchor=f"advice-{len(parts) + 1}", blocks=[_advice_table(rows)]))
    return Section(
        title="Cost of the routes",
        anchor="advice",
        blocks=[
            "The table lists the cheapest measured settings of the loopcheck routes whose effort error is below the "
            "target in every measured case of the robot and at every finer refinement level. 'Its own stepping, once' "
            "is a single run without extrapolation. 'Anything' is listed if it is cheaper or more accurate. It may use "
            "another integrator, or extrapolate the efforts to zero from two compliances or from the steps dt, 2 dt, "
            "4 dt … (Richardson n: from n steps; the table shows dt and the sum of the costs).",
            *parts,
        ],
    )


def _advice_table(rows: pd.DataFrame) -> Block:
    shown = rows.assign(
        answer=[answer(row) for row in rows.to_dict("records")],
        dt=1e3 * rows["dt"],
        target=[f"{target:g}" for target in rows["target"]],
    )
    columns = ["route", "target", "allowed", "answer", "dt", "settings", "relative_error", "cost"]
    return table(shown[columns].rename(columns=_HEADERS))


def routes(levels: pd.DataFrame) -> Section:
    """The present settings of the routes on their ladders."""
    own = own_settings(levels, targets())
    blocks: list[Block] = [
        "The table compares the settings that `check` uses with the cheapest measured settings that meet the "
        "tolerance of the route. "
        "The route is more accurate, because its tolerance has a margin over its noise, and for robots without a "
        "measurement. MuJoCo: the finest of its steps, which is the reported step."
    ]
    blocks.append(
        table(own.rename(columns=_HEADERS)) if len(own) else "The levels do not contain the settings of a route."
    )
    return Section(title="The settings of the routes", anchor="routes", blocks=blocks)


def orders(levels: pd.DataFrame) -> Section:
    """Observed orders compared with theory, by route and ladder over all cases."""
    ladders = summarized(levels)
    rows = []
    for (route, ladder), of_ladder in ladders[ladders["theory"].notna()].groupby(["route", "ladder"], sort=False):
        measured = of_ladder["order"].dropna()
        off = (measured - of_ladder["theory"].iloc[0]).abs()
        row = {"route": route, "ladder": ladder, "theory": float(of_ladder["theory"].iloc[0])}
        row |= {"least": float(measured.min()), "median": float(measured.median()), "most": float(measured.max())}
        verdicts = {name: int((of_ladder["verdict"] == name).sum()) for name in (CONVERGES, STALLED, DIVERGES)}
        rows.append({**row, "within 0.1": f"{int((off <= CLOSE).sum())} of {len(measured)}", **verdicts})
    shown = pd.DataFrame(rows).rename(columns=_HEADERS)
    return Section(
        title="Orders and verdicts",
        anchor="orders",
        blocks=[_order_sentence(ladders), _index_sentence(ladders), table(shown), *_MEANINGS],
    )


_MEANINGS: Sequence[Block] = (
    "The order by theory is 4 for the classical Runge-Kutta method and n for Richardson n on a method of first "
    "order. It is 1 for Euler's method, for every integrator of mj_step (which holds the targets over a step), and "
    "for softness (compliance, or 1 - impedance). The observed order is from the finest three levels with changes of "
    "at least ten times the "
    "registered noise of the route.",
    [
        "converges: the error falls to the finest level, or to a floor below the tolerance of the route",
        "stalled: the error stops falling above that tolerance, independently of the observed order",
        "diverges: the finest level failed, or its error is above the tolerance and the error of the coarsest",
        "floor: the smallest error, if the finest level improves by less than half the order of theory",
    ],
)


def _order_sentence(ladders: pd.DataFrame) -> str:
    measured = ladders[ladders["order"].notna() & (ladders["refined"] == STEP)]
    off = (
        (measured["order"] - measured["theory"])
        .abs()
        .groupby([measured["route"], measured["ladder"]], sort=False)
        .max()
    )
    near = [_named(key) for key, most in off.items() if most <= CLOSE]
    bad = measured[measured["verdict"].isin([STALLED, DIVERGES])]
    wrong = [name for name in near if name in {_named(key) for key in zip(bad["route"], bad["ladder"], strict=True)}]
    return (
        f"The observed order is within {CLOSE:g} of theory in every case for {', '.join(near) or 'no route'}. The "
        "order alone is no proof: some of these cases stall or diverge nevertheless "
        f"({', '.join(wrong) or 'here: none'})."
    )


def _index_sentence(ladders: pd.DataFrame) -> str:
    measured = ladders[ladders["index"].notna() & ladders["error"].notna()]
    covered = measured["index"] >= measured["error"]
    missed = measured[~covered]
    stalled = int((missed["floor"].notna()).sum())
    return (
        f"The grid-convergence index covers the true error of {int(covered.sum())} of {len(measured)} refinements at "
        f"their finest level. Of the {len(missed)} remaining refinements, {stalled} have reached a floor: a "
        "refinement of the step cannot detect the error of the solver or the softness."
    )


def everywhere(levels: pd.DataFrame) -> Sequence[Section]:
    """Work and precision over all robots, if there are several."""
    levels = worst(levels)
    count = levels["robot"].nunique()
    if count < 2:
        return []
    steps = levels[levels["refined"] == STEP]
    octave = np.round(np.log2(steps["dt"] / steps["dt"].max()))
    groups = steps.assign(octave=octave).groupby(["route", "ladder", "refined", "octave"], sort=False)
    everyone = groups.agg(
        relative_error=("relative_error", "max"),
        cost=("cost", "median"),
        own=("own", "all"),
        robots=("robot", "nunique"),
    ).reset_index()
    shown = everyone[everyone["robots"] == count].sort_values(
        ["route", "ladder", "octave"], ascending=[True, True, False]
    )
    pictures = _work_pictures(shown, "all robots")
    text = (
        f"The figures show the worst error of {count} robots at about the same step over the median of their wall "
        "times, for the steps that were run with all robots."
    )
    return [Section(title="Over all robots", anchor="everywhere", blocks=[text, *pictures])]


def robot_part(robot: str, levels: pd.DataFrame) -> Section:
    """Diagrams and tables of one robot."""
    summarized_ladders = summarized(levels)
    of_settings = settings_figure(levels, targets())
    folded = [
        Section(title="Ladders", anchor=f"ladders-{robot}", folded=True, blocks=[_summary_table(summarized_ladders)]),
        Section(title="Refinement levels", anchor=f"levels-{robot}", folded=True, blocks=[_level_table(levels)]),
    ]
    pictures: list[Block] = [*_work_pictures(worst(levels), robot)]
    if of_settings:
        pictures.append(
            Picture(
                of_settings,
                alt=f"{robot}: effort error against each setting of the solvers",
                caption="Error against each setting of the solvers, finer to the right. The dashed line is the "
                "tolerance of the route.",
            )
        )
    return Section(title=robot, anchor=f"robot-{robot}", blocks=[_sentence(summarized_ladders), *pictures, *folded])


def _sentence(ladders: pd.DataFrame) -> str:
    """Verdicts on the ladders of a robot, in words."""
    texts = [f"{verdict} {count}" for verdict, count in ladders["verdict"].value_counts(sort=False).items()]
    bad = ladders[ladders["verdict"] == STALLED].groupby(["route", "ladder"], sort=False)["floor"].max()
    named = [f"{_named(key)} at {digits(floor)}" for key, floor in bad.items()]
    return f"{len(ladders)} ladders: {', '.join(texts)}. Stalled: {'; '.join(named) or 'none'}."


def _named(key: Any) -> str:
    """An engine and a ladder."""
    route, ladder = key
    return f"{route.split('/')[0]}: {ladder}"


def _work_pictures(levels: pd.DataFrame, who: str) -> list[Picture]:
    pictures = []
    for route, rows in levels.groupby("route", sort=False):
        svg = work_figure(rows, targets().get(str(route)))
        if svg:
            caption = (
                f"{route}, {who}: effort error over its scale, the worst case, against wall time. Filled: each step "
                "alone. Hollow: Richardson n, extrapolated from n steps, with their total time."
            )
            pictures.append(Picture(svg, alt=f"{route}, {who}: error against wall time", caption=caption))
    return pictures


def _summary_table(ladders: pd.DataFrame) -> Block:
    columns = ["route", "ladder", "refined", "mode", "configuration", "theory", "order", "error", "index", "floor"]
    return table(ladders[[*columns, "verdict", "wall_time"]].rename(columns=_HEADERS))


def _level_table(levels: pd.DataFrame) -> Block:
    columns = ["route", "ladder", *CASE[1:], "refined", "value", "relative_error", "change", "order", "index"]
    headers = {**_HEADERS, "index": "grid-convergence index [-]"}
    return table(levels[[*columns, "wall_time", "note"]].rename(columns=headers))


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
