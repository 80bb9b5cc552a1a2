"""Page and terminal output of the study of seeded faults."""

import math

import pandas as pd
from rich.console import RenderableType

from loopcheck.validation.comparison.verdicts import FILE
from loopcheck.validation.report.blocks import NOTHING, Block, Cell, Section, Table, digits, percent
from loopcheck.validation.report.terminal import coloured, table
from loopcheck.validation.studies.mutants.detection import (
    BUGS,
    CAUGHT,
    MEANING,
    TIMES,
    caught_by_file,
    kill_rate,
    kill_rates,
)

KINDS = {
    "killed": "agree",
    "refused": "agree",
    "shared": "informational",
    "below tolerance": "not comparable",
    "survived": "disagree",
    "broken": "disagree",
    "not run": "not run",
    "not carried": "informational",
}
"""Colour of each result, by the name of a verdict; the text is the same."""


def sections(results: pd.DataFrame) -> list[Section]:
    """The page, from the table of the study."""
    parts = [_robot(str(robot), rows) for robot, rows in results.groupby("robot", sort=False)]
    return [_answer(results), _faults(results), *parts]


def summary(results: pd.DataFrame) -> list[RenderableType]:
    """The detection matrix of each robot, undetected faults, and the detection rates."""
    matrices: list[RenderableType] = []
    for robot, rows in results.groupby("robot", sort=False):
        wide = rows.pivot(index="mutant", columns="source", values="result").reindex(rows["mutant"].unique())
        cells = (
            [str(mutant), *(coloured(cell, KINDS[cell]) if cell else "" for cell in row)]
            for mutant, row in wide.fillna("").iterrows()
        )
        matrices.append(table(["mutant", *wide.columns], cells, title=f"{robot}: result of each fault"))
    unseen = results[~results["result"].isin([*CAUGHT, "shared", "not carried"])]
    texts = unseen[["robot", "source", "mutant", "result", "note"]].itertuples(index=False)
    rates = [
        [source, *map(str, numbers), percent(rate)]
        for source, *numbers, rate in kill_rates(results).itertuples(index=False)
    ]
    columns = ["source", "caught", "shared", "above", "kill rate"]
    title = f"faults with an effect above {TIMES:g} tolerances, by route"
    return [
        *matrices,
        *(", ".join(map(str, row)) for row in texts),
        table(columns, rates, title=title),
        sentence(results),
    ]


def sentence(results: pd.DataFrame) -> str:
    """The detection rate, and the results of the remaining faults."""
    caught, above = kill_rate(results)
    shared = caught_by_file(results)
    by_file = f", {shared} more, shared by the route and the reference, by the robot's files" if shared else ""
    noticed, perceptible = kill_rate(results, "noise")
    counts = results["result"].value_counts()
    bugs = int(sum(counts.get(name, 0) for name in BUGS))
    return (
        f"{caught} of {above} faults with an effect above the tolerance of their route were caught{by_file}. Of the "
        f"faults with an effect above the noise of their route, {noticed} of {perceptible} were caught. "
        f"{counts.get('below tolerance', 0)} agree because their "
        f"effect is below the tolerance, {counts.get('not carried', 0)} are not carried, "
        f"{counts.get('not run', 0)} did not run, {bugs} survived or broke."
    )


def _answer(results: pd.DataFrame) -> Section:
    return Section(
        title="Answer",
        anchor="answer",
        blocks=[
            sentence(results),
            "Every fault is seeded in every judged route of every robot and judged by the usual comparison. "
            "Each robot has one case: its first variant and mode, upright if it has gravity. The faults are not "
            "random. The effect of a fault is its change of the efforts of the reference, over their scales. For a "
            "fault in the adapter of an engine, which the reference cannot have, it is the change in its route.",
            "Faults that begin with 'model' are in inputs shared by the reference and the routes. Reference, motion "
            "and inputs of the engines are computed again with the fault. A route cannot detect such a fault. The "
            f"audit of the {FILE} must detect it: it compares the compiled model with further readings of the robot's "
            "files.",
            "Routes that run an unmodified robot have no tolerance. Other numbers replace the effort in their logs. "
            "The limit is the error of the route without a fault. A larger fault must increase the error, or a note "
            "must name the reading that the column resembles.",
            [f"{name}: {meaning}" for name, meaning in MEANING.items()],
            rates_table(results),
        ],
    )


def rates_table(results: pd.DataFrame) -> Table:
    """The kill rate of each route."""
    headers = ["source", "caught", "shared, caught by the robot's files", f"above {TIMES:g} tolerances", "kill rate"]
    rows = [
        [Cell(source), *(Cell(str(number), "number") for number in numbers), Cell(percent(rate), "number")]
        for source, *numbers, rate in kill_rates(results).itertuples(index=False)
    ]
    return Table(headers, rows)


def _faults(results: pd.DataFrame) -> Section:
    texts = results.drop_duplicates("mutant")[["mutant", "fault"]]
    rows = [[Cell(key), Cell(text)] for key, text in texts.itertuples(index=False)]
    return Section(title="Faults", anchor="faults", blocks=[Table(["mutant", "fault"], rows)])


def _robot(robot: str, results: pd.DataFrame) -> Section:
    mode, configuration = results["mode"].iloc[0], results["configuration"].iloc[0]
    unseen = results[~results["result"].isin([*CAUGHT, "shared", "not carried"])]
    without = results[results["result"] == "not carried"]
    blocks: list[Block] = [
        f"Mode {mode}, {configuration}. {sentence(results)} Below each result: the effort error of the route [-].",
        _matrix(results),
    ]
    if len(unseen):
        blocks.append(Section(title="Not noticed", anchor=f"unseen-{robot}", blocks=[_unseen(unseen)]))
    reasons = Section(title="Why not carried", anchor=f"without-{robot}", folded=True, blocks=[_reasons(without)])
    return Section(title=robot, anchor=f"mutants-{robot}", blocks=[*blocks, *([reasons] if len(without) else [])])


def _matrix(results: pd.DataFrame) -> Table:
    """The kill matrix: a row for each fault, a column for each route."""
    routes = list(results["source"].unique())
    rows = []
    for mutant, of_mutant in results.groupby("mutant", sort=False):
        effects = of_mutant["effect"].dropna().to_numpy(float)
        effect = digits(float(effects.max())) if effects.size else NOTHING
        outcomes = dict(
            zip(of_mutant["source"], zip(of_mutant["result"], of_mutant["relative_error"], strict=True), strict=True)
        )
        rows.append(
            [
                Cell(str(mutant)),
                Cell(effect, "number"),
                *(_cell(*outcomes[route]) if route in outcomes else Cell(NOTHING) for route in routes),
            ]
        )
    return Table(["mutant", "largest effect [-]", *routes], rows)


def _cell(result: str, error: float) -> Cell:
    return Cell(result if math.isnan(error) else f"{result}\n{error:.1e}", KINDS[result])


def _unseen(rows: pd.DataFrame) -> Table:
    cells = [
        [Cell(mutant), Cell(source), Cell(result, KINDS[result]), Cell(note)]
        for mutant, source, result, note in rows[["mutant", "source", "result", "note"]].itertuples(index=False)
    ]
    return Table(["mutant", "source", "result", "why"], cells)


def _reasons(rows: pd.DataFrame) -> Table:
    routes: dict[tuple[str, str], list[str]] = {}
    for mutant, note, source in rows[["mutant", "note", "source"]].itertuples(index=False):
        routes.setdefault((mutant, note), []).append(source)
    cells = [[Cell(mutant), Cell(", ".join(of_both)), Cell(note)] for (mutant, note), of_both in routes.items()]
    return Table(["mutant", "sources", "why"], cells)
