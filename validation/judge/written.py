"""The folder of results of a log that is judged already. Apart, because a judgement alone imports no report."""

from dataclasses import dataclass
from pathlib import Path

from loopcheck.validation.execution.workers import ALONE, WorkerPool, worker_pool
from loopcheck.validation.frame.study import Computed, computed, write_result
from loopcheck.validation.judge.logs import JudgedLog, LogOptions
from loopcheck.validation.judge.study import Judge, compared


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged(Judge):
    """The study of such a log."""

    judged: JudgedLog

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        return self.tables_of([compared(self.judged)])


def write_judged(judged: JudgedLog, asked: LogOptions, folder: Path) -> Path:
    """Write tables and page of a judged log; returns the path of the page.

    Raises:
        OutputError: If the folder cannot be written, or holds results of another command.
    """
    study = _Judged(case=judged.case, logs={}, asked=asked, judged=judged)
    with worker_pool(ALONE) as pool:
        return write_result(Judge, folder, computed(study, folder, pool))
