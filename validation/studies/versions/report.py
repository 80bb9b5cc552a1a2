"""Page and terminal output of the comparison of versions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import RenderableType

from loopcheck import engines
from loopcheck.validation.common.known_issues import Issue, known_issues
from loopcheck.validation.common.sources import REFERENCE
from loopcheck.validation.common.verdicts import CASE, MEANING, WORST_FIRST, CaseVerdict
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import NOTHING, Block, Cell, Picture, Section, Table, cell, digits, facts, table
from loopcheck.validation.report.figures import COLORS, FLOOR, MARKERS, WIDTH, as_svg, literal
from loopcheck.validation.studies.versions.comparison import NOTICEABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.3
"""Height of a line of the figure [inch]."""


IN_A_CELL = (
    "A cell shows the worst verdict and the largest relative error over variants, modes and actuators. 'gap' is the "
    "largest opening of the loops [m or rad]. '×' is the wall time relative to the oldest version that ran (median of "
    "the cases). Other programs on the machine affect it."
)
"""Meaning of a cell of the matrix."""
_FINDING = ["verdict", "relative_error", "tolerance", "note"]
_STEP = ["robot", "source", "change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsResult:
    """Complete input of the study's page."""

    table: pd.DataFrame
    """Content of `versions.csv`."""
    run: Mapping[str, Any]
    """Content of `run.json`."""

    @property
    def engine(self) -> str:
        """The engine, as it is written."""
        return engines.lineage(self.run["engine"])

    @property
    def ran(self) -> tuple[str, ...]:
        """The versions that ran, the oldest first."""
        return tuple(environment["version"] for environment in self.run["environments"] if not environment["lacks"])

    @property
    def versions(self) -> tuple[str, ...]:
        """All requested versions, the oldest first."""
        return tuple(environment["version"] for environment in self.run["environments"])


def sections(comparison: VersionsResult) -> list[Section]:
    """The page."""
    robots = [
        _robot(str(robot), rows, comparison.versions) for robot, rows in comparison.table.groupby("robot", sort=False)
    ]
    return [
        _answer(comparison),
        _environments(comparison),
        _matrix(comparison),
        Section(title="What changes", anchor="changes", blocks=_named(comparison)),
        _explained(comparison),
        *robots,
    ]


def summary(comparison: VersionsResult) -> Iterator[RenderableType]:
    """The worst verdict of each source on each robot in each version, and the changes, for the terminal."""
    headers = ["source", "configuration", *(f"{comparison.engine} {version}" for version in comparison.versions)]
    for robot, of_robot in comparison.table.groupby("robot", sort=False):
        cells = []
        for (source, configuration), rows in of_robot.groupby(["source", "configuration"], sort=False):
            by_version = [rows.loc[rows["version"] == version, _FINDING] for version in comparison.versions]
            verdicts = [[CaseVerdict(*row) for row in some.itertuples(index=False)] for some in by_version]
            cells.append([str(source), str(configuration), *map(terminal.verdict_cell, verdicts)])
        yield terminal.table(headers, cells, title=f"{robot}: worst relative effort error")
    yield from steps(comparison)


def steps(comparison: VersionsResult) -> list[str]:
    """Changes by each upgrade, a sentence each, and versions without results with the reason."""
    sentences = [_step(comparison, before, after) for before, after in pairwise(comparison.ran)]
    missing = [environment for environment in comparison.run["environments"] if environment["lacks"]]
    return [
        *sentences,
        *(f"{comparison.engine} {one['version']} did not run: {one['lacks']}" for one in missing),
    ]


def _step(comparison: VersionsResult, before: str, after: str) -> str:
    compared = comparison.table[comparison.table["version"] == after]
    changed = compared[compared["change"] != ""]
    words = f"From {comparison.engine} {before} to {after}, {len(changed)} of {len(compared)} comparisons change"
    if changed.empty:
        return f"{words}."
    turned = changed["change"].str.split("; ").str[0]
    counts = turned[turned.str.contains("→")].value_counts()
    texts = [f"{count} {verdicts}" for verdicts, count in counts.items()]
    moved = changed[np.isfinite(changed["effort_change"])].sort_values("effort_change", kind="stable")
    for robot, source, most in moved[["robot", "source", "effort_change"]].tail(1).itertuples(index=False):
        texts.append(f"efforts change by up to {most:.1e} of their scale ({robot}, {source})")
    reread = changed[changed["source"] == REFERENCE]
    if len(reread):
        robots = ", ".join(dict.fromkeys(reread["robot"]))
        most = reread["effort_change"].max()
        texts.append(f"MuJoCo's compiler reads {robots} differently: the reference itself changes by up to {most:.1e}")
    return f"{words}: {'; '.join(texts)}."


def _answer(comparison: VersionsResult) -> Section:
    counts = comparison.table.groupby("version", sort=False)["verdict"].value_counts().unstack(fill_value=0)
    shown = [verdict for verdict in MEANING if verdict in counts.columns]
    rows = [
        [Cell(version), *(cell(int(counts.loc[version, verdict])) for verdict in shown)] for version in counts.index
    ]
    return Section(
        title="Answer",
        anchor="answer",
        blocks=[
            *(steps(comparison) or ["One version ran, so no comparison is possible."]),
            Table([comparison.engine, *shown], rows),
            "The same command runs in an environment for each version. All other packages have the same "
            "version in environments that uv makes with the same Python, if possible. A change is a different "
            "verdict, or an effort that changes between two versions by more than the tolerance of its source times "
            f"the scale of the actuator (by more than {NOTICEABLE:g} times for sources without a tolerance). The "
            "reference depends on MuJoCo's compiler, but on no other part of MuJoCo: "
            "if the reference changes, the compiler reads the model differently.",
            facts(
                {
                    "command": " ".join(comparison.run["command"]),
                    "start": comparison.run["start"],
                    "duration [s]": comparison.run["duration_s"],
                    "loopcheck": comparison.run["loopcheck"],
                }
            ),
        ],
    )


def _environments(comparison: VersionsResult) -> Section:
    rows = []
    for environment in comparison.run["environments"]:
        versions = environment["versions"] or {}
        report = f"{environment['folder']}/report.html" if environment["folder"] else NOTHING
        python, numpy = (versions.get(name, NOTHING) for name in ("python", "numpy"))
        state = Cell(f"not run: {environment['lacks']}", "not run") if environment["lacks"] else Cell("ran")
        rows.append(
            [Cell(environment["version"]), Cell(environment["made"]), state, Cell(python), Cell(numpy), Cell(report)]
        )
    columns = [comparison.engine, "environment", "state", "Python", "numpy", "its own report"]
    return Section(title="Environments", anchor="environments", blocks=[Table(columns, rows)])


def _matrix(comparison: VersionsResult) -> Section:
    svg = errors_figure(comparison.table, comparison.ran, comparison.engine)
    picture = Picture(
        svg or "",
        alt=f"error of each source on each robot in {comparison.engine} {', '.join(comparison.ran)}",
        caption="The largest error over variants, modes and actuators. The dashed line is the tolerance.",
    )
    return Section(
        title="Versions side by side",
        anchor="matrix",
        blocks=[
            *([picture] if svg else []),
            _table_of_verdicts(comparison),
            IN_A_CELL,
        ],
    )


def _table_of_verdicts(comparison: VersionsResult) -> Table:
    rows = []
    for names, of_line in comparison.table.groupby(["robot", "configuration", "source"], sort=False):
        cells = [_summed(of_line[of_line["version"] == version]) for version in comparison.versions]
        rows.append([*(Cell(str(name) or NOTHING) for name in names), *cells])
    versions = (f"{comparison.engine} {version}" for version in comparison.versions)
    return Table(["robot", "configuration", "source", *versions], rows)


def _summed(rows: pd.DataFrame) -> Cell:
    """Several cases in one version: the worst verdict, the largest error and drift, the median ratio of wall times."""
    verdict = min(rows["verdict"], key=WORST_FIRST.index)
    drift, error = rows["closure_drift"].max(), rows["relative_error"].max()
    ratio = rows["wall_time_ratio"].dropna().median()  # before 3.0, pandas warns of a median of NaN alone
    numbers = [f"{error:.1e}"] if np.isfinite(error) and verdict != "reference" else []
    numbers += [f"gap {drift:.0e}"] if np.isfinite(drift) else []
    time = [f"× {ratio:.2f}"] if np.isfinite(ratio) else []
    return Cell("\n".join(filter(None, (verdict, ", ".join(numbers), *time))), verdict)


def _named(comparison: VersionsResult) -> Sequence[Block]:
    """Every change with the robots and cases that it is seen in."""
    rows = []
    for before, after in pairwise(comparison.ran):
        new = comparison.table[(comparison.table["version"] == after) & (comparison.table["change"] != "")]
        old = comparison.table[comparison.table["version"] == before].set_index([*CASE, "source"])["relative_error"]
        kinds = new["change"].str.split("; efforts").str[0].where(new["change"].str.contains("→"), "efforts move")
        for (robot, source, change), cases in new.assign(change=kinds).groupby(_STEP, sort=False):
            errors = old.reindex(pd.MultiIndex.from_frame(cases[[*CASE, "source"]]))
            is_worse = "→" in str(change) and not str(change).endswith("→ agree")
            notes = dict.fromkeys(filter(None, cases["note"])) if is_worse else []
            rows.append(
                [
                    *map(Cell, (f"{before} → {after}", str(robot), str(source), str(change))),
                    cell(len(cases)),
                    *map(cell, (errors.max(), cases["relative_error"].max(), cases["effort_change"].max())),
                    Cell("; ".join(notes) or NOTHING),
                ]
            )
    columns = ["upgrade", "robot", "source", "change", "cases", "error before [-]", "error after [-]"]
    shown = Table([*columns, "change of effort [-]", "note"], rows)
    return [shown] if rows else ["No relevant change between these versions."]


def _explained(comparison: VersionsResult) -> Section:
    """Known issues of some of the versions only."""
    of_engine = [issue for issue in known_issues() if issue.engine == comparison.run["engine"]]
    ran_with = [(issue, [v for v in comparison.ran if issue.applies(v)]) for issue in of_engine]
    rows = [_issue(issue, versions) for issue, versions in ran_with if 0 < len(versions) < len(comparison.ran)]
    columns = [comparison.engine, "difference", "size", "cause", "remedy in loopcheck"]
    text = "Known issues of some of these versions only."
    blocks: Sequence[Block] = [text, Table(columns, rows)] if rows else ["These versions have the same known issues."]
    return Section(title="Explained differences", anchor="explained", blocks=blocks)


def _issue(issue: Issue, versions: Sequence[str]) -> Sequence[Cell]:
    low, high = issue.size
    size = f"{digits(low)} to {digits(high)} [{issue.unit}]: {issue.quantity}"
    return [Cell(", ".join(versions)), Cell(issue.title), Cell(size), Cell(issue.cause), Cell(issue.remedy)]


def _robot(robot: str, rows: pd.DataFrame, versions: Sequence[str]) -> Section:
    headers = {
        **{name: name for name in ("variant", "mode", "configuration", "source", "version", "verdict")},
        "relative_error": "relative error [-]",
        "tolerance": "tolerance [-]",
        "closure_drift": "closure drift [m or rad]",
        "wall_time": "wall time [s]",
        "wall_time_ratio": f"wall time relative to {versions[0]} [-]",
        "effort_change": "change of effort [-]",
        "change": "change",
        "note": "note",
    }
    shown = table(rows[list(headers)].rename(columns=headers))
    return Section(title=robot or "No robot", anchor=f"versions-{robot}", folded=True, blocks=[shown])


@as_svg
def errors_figure(table: pd.DataFrame, versions: Sequence[str], engine: str) -> "Figure | None":
    """Largest error over variants, modes and actuators, a panel for each source, a line for each robot.

    Args:
        table: Rows of the study.
        versions: Versions with results, the oldest first.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    rows = table[np.isfinite(table["relative_error"])]
    if rows.empty:
        return None
    worst = rows.groupby(["source", "robot", "configuration", "version"], sort=False)["relative_error"].max()
    sources = list(dict.fromkeys(rows["source"]))
    lines = list(dict.fromkeys(zip(rows["robot"], rows["configuration"], strict=True)))
    figure = Figure(figsize=(WIDTH, 1.6 + ROW * len(lines)), layout="constrained")
    panels = figure.subplots(1, len(sources), sharey=True, squeeze=False)[0]
    spread = np.linspace(-0.22, 0.22, len(versions)) if len(versions) > 1 else np.zeros(1)
    for axes, source in zip(panels, sources, strict=True):
        for k, version in enumerate(versions):
            errors = [worst.get((source, *line, version), np.nan) for line in lines]
            look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
            places = np.arange(len(lines)) + spread[k]
            axes.plot(np.clip(errors, FLOOR, None), places, linestyle="none", label=f"{engine} {version}", **look)
        for tolerance in rows.loc[rows["source"] == source, "tolerance"].dropna().unique()[:1]:
            axes.axvline(tolerance, color="black", linestyle=(0, (2, 1)), linewidth=1, label="tolerance of the source")
        axes.set(xscale="log", xlabel="relative effort error [-]", title=literal(source), ylim=(len(lines) - 0.5, -0.5))
        low, high = axes.get_xlim()
        axes.set_xlim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_yticks(range(len(lines)), [literal(", ".join(line)) for line in lines])
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=5, handlelength=4)
    return figure
