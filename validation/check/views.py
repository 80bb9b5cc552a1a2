"""Views of the results that several sections of the report share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcheck.robots.robot import DEFAULT
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.sources import is_log
from loopcheck.validation.common.verdicts import (
    CASE,
    NOT_SUPPORTED,
    WORST_FIRST,
    CaseVerdict,
    Key,
    case_verdicts,
    original_mode,
    reference_of,
)
from loopcheck.validation.report.blocks import NOTHING, Block, Cell, Section, Table

if TYPE_CHECKING:
    import pandas as pd

OWN = "mujoco/as_is"
"""Simulation of a file in the format of MuJoCo as its user runs it."""
OF_MUJOCO = (".xml", ".mjcf", "")
"""Suffixes of files in the format of MuJoCo, and of a folder with `robot.toml`."""
RUN_HEADERS = {
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "wall_time": "wall time [s]",
}


def verdict_cell(finding: CaseVerdict | None) -> Cell:
    """A verdict with its largest error, in its colour."""
    if finding is None:
        return Cell(NOTHING)
    number = "" if finding.verdict == "reference" or math.isnan(finding.error) else f"\n{finding.error:.1e}"
    return Cell(finding.word + number, finding.verdict)


def verdict_matrix(rows: Mapping[str, tuple[str, Mapping[str, CaseVerdict]]], names: Sequence[str]) -> Table:
    """Verdicts of cases or groups of cases by source; few cases are columns, for narrow screens.

    Args:
        rows: Anchor and verdicts by source of each case, by its name.
        names: Sources to show.
    """
    if len(rows) >= len(names):
        cells = [
            [Cell(name, link=anchor), *(verdict_cell(of_case.get(source)) for source in names)]
            for name, (anchor, of_case) in rows.items()
        ]
        return Table(["case", *names], cells)
    links = [Cell(""), *(Cell("efforts and errors", link=anchor) for anchor, _ in rows.values())]
    verdicts = [
        [Cell(source), *(verdict_cell(of_case.get(source)) for _, of_case in rows.values())] for source in names
    ]
    return Table(["source", *rows], [*verdicts, links])


def rows_where(frame: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows of a table with these values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def part_of(results: Results, *tables: str, **values: str) -> Results:
    """The results with the matching rows of some tables, and without the other tables: the input of a worker."""
    import pandas as pd

    frames = {field.name: getattr(results, field.name) for field in fields(results)}
    kept: dict[str, Any] = {
        name: rows_where(frame, **values) if name in tables else frame.iloc[:0]
        for name, frame in frames.items()
        if isinstance(frame, pd.DataFrame)
    }
    return replace(results, **kept)


def source_names(results: Results) -> list[str]:
    """All sources in the order of the tables, but the user's own simulation directly after the reference."""
    import pandas as pd

    tables = (results.summary, results.efforts, results.ladder)
    names = [str(source) for source in pd.concat([frame["source"] for frame in tables]).unique()]
    own = any(is_own_simulation(results, OWN, str(robot)) for robot in results.summary["robot"].unique())
    return sorted(
        names, key=lambda name: 0 if name == reference_of(results.summary) else 1 if own and name == OWN else 2
    )


def is_own_simulation(results: Results, source: str, robot: str) -> bool:
    """Whether a source is the user's own simulation: the engine of the format of the user's own file."""
    target = target_of(results, robot)
    return source == OWN and bool(target) and Path(target).suffix.lower() in OF_MUJOCO


def target_of(results: Results, robot: str) -> str:
    """Model file or folder of a robot as in the command line; empty for catalogue robots."""
    for argument in results.run.get("command") or ():
        path = Path(str(argument))
        if str(argument) != robot and robot in (path.stem, path.name):
            return str(argument)
    return ""


def anchors_of_cases(results: Results) -> Mapping[Key, str]:
    """Anchor of each case on the page."""
    cases_of = results.summary[[*CASE]].drop_duplicates().itertuples(index=False, name=None)
    return {(str(a), str(b), str(c), str(d)): f"case-{k}" for k, (a, b, c, d) in enumerate(cases_of, start=1)}


def drawn_cases(results: Results) -> frozenset[Key]:
    """Cases whose efforts are drawn on every complete page: the worst cases with efforts."""
    if results.run.get("is_first"):  # whose pictures would be drawn again
        return frozenset()
    rows = results.efforts[[*CASE]].drop_duplicates().itertuples(index=False, name=None)
    drawable = {tuple(map(str, row)) for row in rows}
    return worst_of_configurations({case: of for case, of in case_verdicts(results).items() if case in drawable})


def worst_of_configurations(findings: Mapping[Key, Mapping[str, CaseVerdict]]) -> frozenset[Key]:
    """The worst case of each robot in each configuration: the gravest verdict, then the largest error over its limit.

    Args:
        findings: Verdicts by case and source.
    """
    groups: dict[tuple[str, str], list[Key]] = {}
    for robot, variant, mode, configuration in findings:
        groups.setdefault((robot, configuration), []).append((robot, variant, mode, configuration))
    return frozenset(min(group, key=lambda case: _place(findings[case].values())) for group in groups.values())


def _place(findings: Iterable[CaseVerdict]) -> tuple[int, float, float]:
    """Place of a case, the worst first; a source without support for the model does not count."""
    counted = [finding for finding in findings if finding.verdict != NOT_SUPPORTED]
    gravest = min((WORST_FIRST.index(finding.verdict) for finding in counted), default=len(WORST_FIRST))
    ratios = (finding.error / finding.tolerance for finding in counted if finding.tolerance > 0)
    return gravest, -_largest(ratios), -_largest(finding.error for finding in counted)


def _largest(errors: Iterable[float]) -> float:
    return max((error for error in errors if not math.isnan(error)), default=0.0)


def section_if(
    content: object, title: str, anchor: str, *blocks: Block, folded: bool | None = None
) -> Sequence[Section]:
    """A section, if it has content."""
    return [Section(title=title, anchor=anchor, blocks=blocks, folded=folded)] if content else []


def case_name(case: Key, results: Results) -> str:
    """Name of a case for readers, as "3prr, horizontal (gravity -Z), mode plus"."""
    robot, variant, _, configuration = case
    variants = set(results.summary.loc[results.summary["robot"] == robot, "variant"])
    parts = [
        robot,
        *([f"variant {variant}"] if variants != {DEFAULT} else []),
        configuration_name(robot, configuration, results),
    ]
    return ", ".join([*parts, *_mode(case, results)])


def where(case: Key, results: Results) -> str:
    """The part of a case's name that distinguishes it from the other cases, behind a comma."""
    robot, variant, mode, configuration = case
    of_robot = rows_where(results.summary, robot=robot)
    original = original_mode(results, case)
    modes = of_robot["mode"].nunique() - len((results.run.get("random_modes") or {}).get(robot, {}))
    parts = [
        *([robot] if len(of_robot) < len(results.summary) else []),
        *([f"variant {variant}"] if of_robot["variant"].nunique() > 1 else []),
        *([f"mode {original or mode}"] if modes > 1 else []),
        *([configuration] if of_robot["configuration"].nunique() > 1 else []),
        *(["random motion"] if original else []),
    ]
    return "".join(f", {part}" for part in parts)


def _mode(case: Key, results: Results) -> Sequence[str]:
    of_logs = results.summary[results.summary["source"].map(is_log).astype(bool)]
    if len(rows_where(of_logs, **dict(zip(CASE, case, strict=True)))):
        return [f"log {case[2]}"]
    original = original_mode(results, case)
    return [f"mode {original or case[2]}", *(["random motion"] if original else [])]


def configuration_name(robot: str, configuration: str, results: Results) -> str:
    """A configuration with the direction of gravity."""
    gravity = ((results.run.get("gravity") or {}).get(robot) or {}).get(configuration)
    if gravity is None:
        return configuration
    return f"{configuration} ({gravity_in_words(gravity)})"


def gravity_in_words(gravity: Sequence[float]) -> str:
    """Direction of gravity along an axis, otherwise its components [m/s²]."""
    components = [0.0 if abs(component) < 1e-9 else component for component in gravity]
    along = [(name, component) for name, component in zip("XYZ", components, strict=True) if component]
    if not along:
        return "no gravity"
    if len(along) == 1:
        ((name, component),) = along
        return f"gravity {'-' if component < 0 else '+'}{name}"
    return f"gravity {', '.join(f'{component:.3g}' for component in components)} m/s²"
