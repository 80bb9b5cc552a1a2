"""Cost of a model at an accuracy: the search of `loopcheck tune`, in one worker process."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.progress import NoDisplay
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.tune.study import AS_IS, TABLE, Tune

ACCURACY = 0.01
"""Target accuracy of the search [-]."""


class Cost(NamedTuple):
    """Cost of the cheapest settings."""

    ratio: float = float("nan")
    """Solver iterations of a simulated second over the iterations with the unmodified file [-]."""
    accuracy: float = float("nan")
    """Error with these settings [-]."""
    reason: str = ""
    """Reason for missing settings."""


class Here(NamedTuple):
    """Executor of tasks in the calling process."""

    def outcomes(self, tasks: Sequence[Task], _: float) -> Iterator[tuple[int, Any]]:
        """See `loopcheck.validation.execution.workers.Executor.outcomes`; the task around them has the time limit."""
        return ((k, task.function(*task.args)) for k, task in enumerate(tasks))


def tuned_cost(case: Case, cpu_limit: float) -> Cost:
    """The cost of the cheapest settings that reach the accuracy and are proven to; runs in a worker process.

    Args:
        case: A case that moves.
        cpu_limit: Largest CPU time of the runs, after which the reason has the best settings so far [s].
    """
    pool = WorkerPool(executor=Here(), progress=NoDisplay(), time_limit=float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            tables, record, _ = Tune(case=case, accuracy=ACCURACY, cpu_limit=cpu_limit).compute(pool, Path(folder))
        except HarnessError as error:
            return Cost(reason=str(error))
    rows = tables[TABLE]
    if record["verdict"] != "agree":
        return Cost(reason=str(record["answer"]))
    before = rows.loc[rows["phase"] == AS_IS, "cost"].iloc[0]
    after = rows.loc[rows["chosen"], "cost"].iloc[0]
    return Cost(ratio=float(after / before), accuracy=ACCURACY)
