"""Agreement of the worlds of a batch, and effort error against steps per second."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from rich.console import RenderableType

from loopcheck import engines
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.environments import engine_versions, is_there
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import MEASURED, Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Block, Picture, Section, table
from loopcheck.validation.report.terminal import table as terminal_table
from loopcheck.validation.studies.throughput.measure import ANY, agreement, rates, unmeasured
from loopcheck.validation.studies.throughput.pictures import pareto
from loopcheck.validation.studies.throughput.precisions import precisions

AGREEMENT, RATES = "worlds", "rates"
MILLION = 1e6
KEY = {name: text() for name in ("robot", "variant", "mode", "configuration", "engine", "precision")}
HEADERS = {"steps_per_second": "steps [1/s]", "rate": "rate [1/s]", "timestep": "step [s]"} | {
    name: f"{name} [-]" for name in ("worlds", "steps", "spread", "round_off", "rms", "largest", "floor")
}
"""Columns of the tables on the page, with units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput(Study):
    """Worlds of a batch beside each other and alone, and the error of settings over their rate."""

    name: ClassVar[str] = "throughput"
    page: ClassVar[str] = "throughput"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        AGREEMENT: table_of(
            {
                **KEY,
                "device": text(nullable=True),
                "worlds": number("-"),
                "start": text(nullable=True),
                "steps": number("-"),
                "spread": number("-"),
                "round_off": number("-"),
                "world": number("-"),
                "verdict": text(),
                "note": text(),
            }
        ),
        RATES: table_of(
            {
                **KEY,
                "device": text(nullable=True),
                "choice": text(nullable=True),
                "settings": text(nullable=True),
                "timestep": number("s"),
                "worlds": number("-"),
                "steps_per_second": number("1/s"),
                "rate": number("1/s"),
                "rms": number("-"),
                "largest": number("-"),
                "floor": number("-"),
                "verdict": text(),
                "note": text(),
            }
        ),
    }

    case: Case
    engines: tuple[str, ...] = ()
    """Names of engines; by default all installed engines with batches."""
    worlds: tuple[int, ...] = (1, 64, 4096)
    """Sizes of the batches, ascending."""
    steps: int = 100
    """Number of steps before the comparison of worlds."""
    seed: int = 0
    """Seed of their initial states."""

    def __post_init__(self) -> None:
        for engine in self.engines:
            if engine not in engines.engine_names() or not engines.provides(engine, "batch"):
                raise NotFoundError("engine with batches", engine, with_batches())

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        names = self.engines or tuple(name for name in with_batches() if name in engine_versions())
        present = [name for name in names if is_there(name)]
        asked = [Task(precisions, (name,), lambda _: (), engine=name) for name in present]
        kinds = dict.fromkeys(names, ()) | dict(zip(present, pool.results(asked, "engines"), strict=True))
        pairs = [(name, precision) for name in names for precision in kinds[name]]
        tasks = [self._task(agreement, pair, (self.worlds, self.steps, self.seed)) for pair in pairs]
        tasks += [self._task(rates, pair, (self.worlds, self.seed)) for pair in pairs]
        rows = list(pool.results(tasks, "batches"))
        absent = [row for name in names if not kinds[name] for row in self._absent(name)]
        of_agreement, of_rates = rows[: len(pairs)], rows[len(pairs) :]
        return Computed(
            {
                AGREEMENT: self._frame(AGREEMENT, [*(row for one in of_agreement for row in one), *absent]),
                RATES: self._frame(RATES, [row for one in of_rates for row in one]),
            },
            {"model": self.case.mechanism.model.path.name},
        )

    def _task(self, function: Any, pair: tuple[str, str], arguments: tuple[Any, ...]) -> Task:
        key = (self.case, *pair)
        return Task(function, (*key, *arguments), partial(unmeasured, *key), engine=pair[0])

    def _absent(self, engine: str) -> list[Mapping[str, Any]]:
        reason = "its worker died" if is_there(engine) else f"{engine} is not installed"
        return unmeasured(self.case, engine, ANY, reason)

    def _frame(self, name: str, rows: list[Mapping[str, Any]]) -> pd.DataFrame:
        spec = self.tables[name]
        return spec.frame(pd.DataFrame(rows, columns=list(spec.columns)))

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        of_worlds, of_rates = result.tables[AGREEMENT], result.tables[RATES]
        cpu = str(result.record["cpu"]["model"])
        return Conclusion(
            title="loopcheck: throughput and effort accuracy",
            sections=_sections(of_worlds, of_rates, cpu),
            summary=list(_summary(of_worlds, of_rates, cpu)),
            verdicts=[*of_worlds["verdict"], *of_rates["verdict"]],
        )


STUDY = Throughput


def with_batches() -> list[str]:
    """Engines that have batches, there or not."""
    return [name for name in engines.engine_names() if engines.provides(name, "batch")]


def cost_of_a_million(rates: pd.DataFrame, cpu: str) -> str:
    """Effort error at a million steps a second, or the distance of the fastest settings from this rate, in words.

    Args:
        rates: The table of rates.
        cpu: Model of the processor.
    """
    rates = rates.assign(device=rates["device"].replace("CPU", f"CPU ({cpu})"))
    known = rates[(rates["verdict"] == MEASURED) & np.isfinite(rates["rms"])]
    if known.empty:
        return "Effort accuracy at 1 million steps per second: no measurement succeeded"
    fast, most_accurate = known[known["rate"] >= MILLION], known.loc[known["rms"].idxmin()]
    if fast.empty:
        best = known.loc[known["rate"].idxmax()]
        return (
            f"1 million steps per second is not reached on {best['device']}. The fastest: {_in_words(best)}. "
            f"The most accurate: {_in_words(most_accurate)}"
        )
    best = fast.loc[fast["rms"].idxmin()]
    return (
        f"Effort accuracy at 1 million steps per second on {best['device']}: {_in_words(best)}. "
        f"The most accurate: {_in_words(most_accurate)}"
    )


def _in_words(row: pd.Series) -> str:
    return (
        f"{row['engine']} in {row['precision']} precision, {row['choice']}, {row['worlds']:.0f} worlds, "
        f"{row['rate']:.2g} steps per second with an error of {row['rms']:.2g}"
    )


def _summary(of_worlds: pd.DataFrame, of_rates: pd.DataFrame, cpu: str) -> Iterator[RenderableType]:
    """Worlds of each engine, the rates of its settings, and the effort error at a million steps a second."""
    rows = [
        [
            f"{row['engine']}, {row['precision']}",
            *_cells(row, ("worlds", "spread", "round_off")),
            *(_plain(row[name]) for name in ("start", "verdict", "note")),
        ]
        for row in of_worlds.to_dict("records")
    ]
    columns = ["engine", "worlds", "spread [-]", "round-off [-]", "start", "verdict", ""]
    yield terminal_table(columns, rows, title="worlds of a batch")
    rows = [
        [
            f"{row['engine']}, {row['precision']}",
            _plain(row["choice"]),
            *_cells(row, ("worlds", "rate", "rms")),
            _plain(row["note"]),
        ]
        for row in of_rates.to_dict("records")
    ]
    yield terminal_table(
        ["engine", "settings", "worlds", "steps of the file [1/s]", "error [-]", ""],
        rows,
        title="settled error of effort, rms over scale, and rate",
    )
    yield cost_of_a_million(of_rates, cpu)


def _plain(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _cells(row: Mapping[Any, Any], names: tuple[str, ...]) -> list[str]:
    return ["" if pd.isna(row[name]) else f"{row[name]:.4g}" for name in names]


def _sections(of_worlds: pd.DataFrame, of_rates: pd.DataFrame, cpu: str) -> Iterator[Section]:
    """Explanation, worlds, and rates with their figure."""
    yield Section(title="Method", anchor="worlds", blocks=[INTRODUCTION])
    yield Section(title="Do worlds agree?", anchor="agreement", blocks=[table(of_worlds.rename(columns=HEADERS))])
    blocks: list[Block] = [cost_of_a_million(of_rates, cpu)]
    if svg := pareto(of_rates):
        caption = (
            "Settled effort error over steps per second, in the largest batch. Lines join the best settings of an "
            "engine. Hollow marks are settings that are slower and less accurate than another setting of the same "
            "engine."
        )
        blocks.append(Picture(svg=svg, alt="error of effort over steps per second", caption=caption))
    blocks.append(table(of_rates.rename(columns=HEADERS)))
    yield Section(title="Effort accuracy and throughput", anchor="rates", blocks=blocks)


INTRODUCTION = (
    "The worlds of a batch have equal initial states, or different seeded closed states along the motion. Efforts are "
    "constant. Spread is the largest distance between worlds with equal initial states after the steps, or between a "
    "world of a batch and the same world alone, over the largest position or velocity. Round-off is the effect of the "
    "last digit of the initial state on a single world after the same steps: a larger spread than three times this "
    "disagrees. The rate counts steps of the length in the file: a step of half the length counts half. Errors are "
    "errors of the unmodified simulation, judged by its own motion after its initial transient, with the named "
    "settings and the controller of the file. The device is the device of the computation."
)
