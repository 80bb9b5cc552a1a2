"""What each erratum of a paper costs: the paper's model with one equation as printed, against the reference."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analytic.assembly import prescribe
from analytic.noc import Noc
from analytic.papers import AS_CORRECTED, paper_model
from analytic.powers import effort_scale
from robots.errors import HarnessError
from robots.robot import DEFAULT, Case, configurations, load, make_case, names, regular_modes
from validation import statuses
from validation.blocks import Part, table
from validation.compare import relative_error
from validation.pages import write_pages
from validation.tables import write_csv
from validation.workers import ALL_CORES, Call, Lost, Workers, crew

CORRECTED = "as corrected"
COLUMNS = {
    "robot": str,
    "mode": str,
    "configuration": str,
    "erratum": str,
    "equation": str,
    "printed": str,
    "corrected": str,
    "relative_error": float,
    "note": str,
}


def errata_table(robots: Sequence[str], *, workers: Workers = ALL_CORES) -> pd.DataFrame:
    """Largest effort error over its scale that each printed form causes, and that of the corrected model.

    Args:
        robots: Names of robots that come from a paper; by default all.
        workers: Worker processes; by default one for each core.

    Raises:
        HarnessError: If a robot is unknown or its model is bad.
    """
    cases = [case for name in robots or names() for case in _cases(name)]
    with crew(workers) as staff:
        found = staff.all_of([Call(_costs, (case,)) for case in cases], "errata")
    rows = [row for case, costs in zip(cases, found, strict=True) for row in _rows(case, costs)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def write_errata(costs: pd.DataFrame, folder: Path) -> None:
    """Write `errata.csv`, `errata.html` and `errata.md` into a folder."""
    write_csv(folder, {"errata": costs})
    parts = [
        Part(title=str(robot), anchor=f"errata-{robot}", blocks=[_sentence(of_robot), table(_matrix(of_robot))])
        for robot, of_robot in costs.groupby("robot", sort=False)
    ]
    write_pages([_introduction(), *parts], folder, stem="errata", title="loopcheck: errata of the papers")


def exit_status(costs: pd.DataFrame) -> int:
    """Exit status, as `statuses.exit_status` says: nothing is judged, but a case may not have run."""
    corrected = costs[costs["erratum"] == CORRECTED]
    lost = int(corrected["relative_error"].isna().sum())
    return statuses.exit_status({"agree": len(corrected) - lost, "not run": lost})


def _cases(name: str) -> Iterable[Case]:
    robot = load(name)
    if robot.paper is None:
        return
    for mode in regular_modes(robot):
        for configuration in configurations(robot.mechanism()):
            yield make_case(robot, variant=DEFAULT, mode=mode, configuration=configuration)


def _rows(case: Case, costs: list[Mapping[str, Any]] | Lost) -> list[Mapping[str, Any]]:
    if not isinstance(costs, Lost):
        return costs
    blank = dict.fromkeys(("equation", "printed", "corrected"), "")
    row = {**_where(case), **blank, "erratum": CORRECTED, "relative_error": float("nan"), "note": costs.reason}
    return [row]


def _where(case: Case) -> Mapping[str, str]:
    return {"robot": case.robot.name, "mode": case.mode, "configuration": case.configuration}


def _costs(case: Case) -> list[Mapping[str, Any]]:
    """A row for the corrected model and one for each erratum, slips of notation included."""
    model = paper_model(str(case.robot.paper))
    motion = prescribe(case)
    reference = Noc().compute_efforts(case, motion).effort
    scale = effort_scale(case.mechanism, motion).scale
    where = _where(case)
    error = relative_error(model.efforts(case, motion, AS_CORRECTED), reference, scale)
    blank = {"equation": "", "printed": "", "corrected": "", "note": ""}
    rows: list[Mapping[str, Any]] = [{**where, **blank, "erratum": CORRECTED, "relative_error": error}]
    for erratum in model.ERRATA:
        cost, note = float("nan"), "a slip of notation, nothing to compute"
        if erratum.computes:
            try:
                printed = model.efforts(case, motion, frozenset({erratum.key}))
                cost, note = relative_error(printed, reference, scale), ""
            except HarnessError as failure:
                note = f"no effort as printed: {failure}"
        text = {"equation": erratum.equation, "printed": erratum.printed, "corrected": erratum.corrected}
        rows.append({**where, **text, "erratum": erratum.key, "relative_error": cost, "note": note})
    return rows


def _introduction() -> Part:
    return Part(
        title="What is measured",
        anchor="errata",
        blocks=[
            "Each paper's own model is computed with one equation as printed and all others corrected. The number is "
            "the largest effort error against analytic/noc over time and actuators, each over its own scale."
        ],
    )


def _sentence(costs: pd.DataFrame) -> str:
    corrected = costs.loc[costs["erratum"] == CORRECTED, "relative_error"].max()
    spoiled = costs[(costs["erratum"] != CORRECTED) & (costs["relative_error"] > 1e-9)]["erratum"].unique()
    harmless = costs[(costs["erratum"] != CORRECTED) & ~costs["erratum"].isin(spoiled)]["erratum"].unique()
    return (
        f"As corrected, the model agrees with the reference to {corrected:.1e}. As printed, {len(spoiled)} of "
        f"{len(spoiled) + len(harmless)} errata change an effort: {', '.join(spoiled) or 'none'}. The others do not in "
        f"these cases, or are slips of notation: {', '.join(harmless) or 'none'}."
    )


def _matrix(costs: pd.DataFrame) -> pd.DataFrame:
    """A row for each erratum, a column for each mode and configuration."""
    texts = ["erratum", "equation", "printed", "corrected"]
    case = costs["mode"] + ", " + costs["configuration"] + " [-]"
    wide = costs.assign(case=case).set_index([*texts, "case"])["relative_error"]
    return wide.unstack("case", sort=False).reset_index()
