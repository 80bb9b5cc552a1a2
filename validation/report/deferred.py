"""Makes the blocks of a report that take long, in worker processes if there are several."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.report.blocks import Block, Section


def completed(sections: Sequence[Section], pool: WorkerPool | None = None) -> list[Section]:
    """The sections with each task replaced by the blocks that it returns.

    Args:
        sections: Sections whose blocks may be tasks.
        pool: Workers for the tasks, whatever became of their other tasks; by default, and for one worker, this process.
    """
    tasks = [task._replace(on_failure=_not_drawn) for section in sections for task in _tasks(section)]
    if pool is None or pool.count == 1 or len(tasks) < 2:
        made: list[Any] = [task.function(*task.args) for task in tasks]
    else:
        made = pool.afresh().results(tasks, "figures")
    results = iter(made)
    return [_filled(section, results) for section in sections]


def _not_drawn(reason: str) -> list[Block]:
    return [f"Not drawn: {reason}."]


def _tasks(block: Block) -> Iterator[Task]:
    if isinstance(block, Task):
        yield block
    elif isinstance(block, Section):
        for inner in block.blocks:
            yield from _tasks(inner)


def _filled(part: Section, results: Iterator[Any]) -> Section:
    blocks: list[Block] = []
    for block in part.blocks:
        if isinstance(block, Task):
            blocks += next(results)
        else:
            blocks.append(_filled(block, results) if isinstance(block, Section) else block)
    return replace(part, blocks=blocks)
