"""Writes a list of parts as a self-contained HTML page and as the same in Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.files import drafts
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.report.blocks import Block, OnRequest, Picture, Section, line, pipes
from loopcheck.validation.report.charts import plotly_script

FEW = 6
"""Number of figures that this process draws alone."""
RELOAD = 4
"""Time after which a browser loads a first page again [s]."""


def write_pages(sections: Sequence[Section], folder: Path, *, stem: str, title: str, is_first: bool = False) -> None:
    """Write `<stem>.html` and `<stem>.md` into a folder; after an error neither file is replaced.

    Args:
        sections: Parts of the page.
        folder: Folder of results.
        stem: Name of the files.
        title: Of the page.
        is_first: Whether the page will be replaced by a complete one; a browser loads it again from time to time.

    Raises:
        OutputError: If the folder cannot be written.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=lambda name: str(name).endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"line": line, "pipes": pipes, "breakable": _breakable, "indented": _indented}
    charted = any(isinstance(block, Picture) and block.chart is not None for block in _leaves(sections))
    try:
        with drafts(folder) as draft:
            for kind in ("html", "md"):
                page = environment.get_template(f"report.{kind}")
                script = plotly_script() if charted else ""
                text = page.render(title=title, sections=sections, plotly=script, reload=RELOAD if is_first else 0)
                (draft / f"{stem}.{kind}").write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write {stem}.html: {error.strerror}") from error


def _breakable(text: str) -> Markup:
    """A text that may be broken behind a slash, so that the names of sources make narrow columns."""
    return escape(text).replace("/", Markup("/<wbr>"))


def _indented(text: str) -> str:
    """Lines as a block of code in Markdown, which nothing in them can end."""
    return "\n".join(f"    {each}" for each in text.splitlines())


def _leaves(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks without sections, in order."""
    for block in blocks:
        yield from _leaves(block.blocks) if isinstance(block, Section) else (block,)


def selected(sections: Iterable[Section], command: str) -> Iterator[Section]:
    """The sections without figures on request; a section with such figures begins with the command that draws them.

    Args:
        command: Command that draws all figures; empty to keep the figures.
    """
    for section in sections:
        asks = command and any(isinstance(block, OnRequest) for block in _leaves([section]))
        blocks = _selected(section.blocks, everything=not command)
        yield replace(section, blocks=[*([f"More figures: {command}"] if asks else []), *blocks])


def _selected(blocks: Iterable[Block], *, everything: bool) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Section):
            yield replace(block, blocks=list(_selected(block.blocks, everything=everything)))
        elif not isinstance(block, OnRequest):
            yield block
        elif everything:
            yield block.task


def completed(sections: Sequence[Section], pool: WorkerPool | None = None) -> list[Section]:
    """The sections with each task replaced by the blocks that it returns.

    Args:
        sections: Sections whose blocks may be tasks.
        pool: Workers for many tasks, whatever became of their other tasks; by default, for one worker, and for a few
            tasks this process, as each worker would import the libraries of figures.
    """
    tasks = [
        block._replace(on_failure=lambda reason: [f"Not drawn: {reason}."])
        for block in _leaves(sections)
        if isinstance(block, Task)
    ]
    if pool is None or pool.count == 1 or len(tasks) <= FEW:
        made: list[Any] = [task.function(*task.args) for task in tasks]
    else:
        made = pool.afresh().results(tasks, "figures")
    results = iter(made)
    return [_filled(section, results) for section in sections]


def _filled(part: Section, results: Iterator[Any]) -> Section:
    blocks: list[Block] = []
    for block in part.blocks:
        if isinstance(block, Task):
            blocks += next(results)
        else:
            blocks.append(_filled(block, results) if isinstance(block, Section) else block)
    return replace(part, blocks=blocks)
