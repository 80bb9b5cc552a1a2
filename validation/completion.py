"""Makes the blocks of a report that take long, in worker processes if there are several."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from validation.blocks import Block, Part
from validation.execution.workers import Call, Lost, Workers, crew


def completed(sections: Sequence[Part], workers: Workers) -> list[Part]:
    """The sections with the blocks that each of their calls returns in its place.

    Args:
        sections: Parts whose blocks may be calls of functions that return lists of blocks.
        workers: Who makes them; a single one is this process.
    """
    calls = list(chain.from_iterable(map(_calls, sections)))
    if workers.count == 1 or len(calls) < 2:
        made: list[Any] = [call.function(*call.args) for call in calls]
    else:
        with crew(workers) as staff:
            found = dict(staff.results(calls, "figures"))
        made = [found[k] for k in range(len(calls))]
    results = iter(made)
    return [_filled(section, results) for section in sections]


def _calls(block: Block) -> Iterator[Call]:
    if isinstance(block, Call):
        yield block
    elif isinstance(block, Part):
        for inner in block.blocks:
            yield from _calls(inner)


def _filled(part: Part, results: Iterator[Any]) -> Part:
    blocks: list[Block] = []
    for block in part.blocks:
        if isinstance(block, Call):
            result = next(results)
            blocks += [f"Not drawn: {result.reason}."] if isinstance(result, Lost) else result
        else:
            blocks.append(_filled(block, results) if isinstance(block, Part) else block)
    return replace(part, blocks=blocks)
