"""Terminal output of a check: a table for each robot, unsupported sources, closing lines."""

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from loopcheck.validation.check.closing import closing_lines, unsupported_in_words, wholly_unsupported
from loopcheck.validation.check.sections.reactions import reactions_line
from loopcheck.validation.check.views import source_names
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import CaseVerdict, about_robots, case_verdicts
from loopcheck.validation.report.terminal import of_tree, table, verdict_cell


def title(results: Results) -> str:
    """Title of the page."""
    return f"loopcheck: {', '.join(about_robots(results)) or 'no robot'}"


def summary(results: Results) -> Iterator[RenderableType]:
    """The worst verdict of each source in each configuration, unsupported sources, and the closing lines."""
    for robot, by_source in _by_robot(results).items():
        columns = list(dict.fromkeys(configuration for cells in by_source.values() for configuration in cells))
        unsupported = wholly_unsupported(results, robot)
        rows = (
            [source, *(verdict_cell(by_source[source].get(name, [])) for name in columns)]
            for source in source_names(results)
            if source in by_source and source not in unsupported
        )
        tree = of_tree(about_robots(results)[robot].get("loops"))
        yield table(["source", *columns], rows, title=f"{robot}{tree}: worst relative effort error")
    if unsupported_sources := unsupported_in_words(results):
        yield f"Not supported: {unsupported_sources}"
    yield from reactions_line(results)
    for line in closing_lines(results):
        yield Text(str(line)) if line.command else str(line)


def _by_robot(results: Results) -> Mapping[str, Mapping[str, Mapping[str, list[CaseVerdict]]]]:
    """The findings of each robot, by source and configuration."""
    by_robot: dict[str, dict[str, dict[str, list[CaseVerdict]]]] = {}
    for (robot, _, _, configuration), of_case in case_verdicts(results).items():
        for source, finding in of_case.items():
            by_robot.setdefault(robot, {}).setdefault(source, {}).setdefault(configuration, []).append(finding)
    return by_robot
