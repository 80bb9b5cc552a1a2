"""The page of the papers: `python -m docs.papers` computes every value and curve and writes `docs/papers/README.md`."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.papers.curves import CURVES
from docs.papers.values import PAPERS

FOLDER = Path(__file__).parent
PAGE, VALUES, ROWS = FOLDER / "README.md", FOLDER / "values.json", FOLDER / "rows.toml"
INTRODUCTION = """\
What five papers state and show, in our words, and what we found. `uv run python -m docs.papers` computes every number
and curve of this page again, in under two minutes; a test compares them. Once the errata are corrected, each robot
agrees with two independent formulations to round-off.

Operations are counted on the scalar graph of the equations: sums, products and quotients 1, a root 6, sine, cosine and
their inverses 18, as in (41) of Wang et al.; equal operations count once, and those with 0, 1 or −1 vanish. Where
angles are stated, their sines and cosines are apart. Relative times of machine code are medians of seven, in turns,
with the lowest and the highest."""
FINDINGS = {
    "equal": "equal to our independent computation",
    "erratum": "printed equation that cannot be correct; the README of the robot has its cost in effort",
    "confirmed": "claim confirmed",
    "refuted": "claim not confirmed: the figure says why",
    "not testable": "not testable here",
    "curve": "curve in the layout and units of the paper's figure, for comparison by eye: the papers print no digits",
    "diagram": "a drawing, nothing to compute",
}
"""Meaning of each finding."""


def page(values: Mapping[str, Mapping[str, float | str]]) -> str:
    """The page.

    Args:
        values: Values of each paper by their names.
    """
    papers: dict[str, Any] = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    counts = Counter(finding for paper in papers.values() for _, _, _, finding in paper["rows"])
    lines = [
        "# Papers and results",
        "",
        *INTRODUCTION.splitlines(),
        "",
        "| finding | meaning | items |",
        "| --- | --- | --- |",
        *(f"| {name} | {meaning} | {counts[name]} |" for name, meaning in FINDINGS.items()),
        "",
    ]
    for name, paper in papers.items():
        lines += list(_section(name, paper, values[name]))
    return "\n".join(lines)


def _section(name: str, paper: Mapping[str, Any], values: Mapping[str, float | str]) -> Iterator[str]:
    yield from (f"## {paper['title']}", "", "```sh", paper["command"], "```", "")
    yield f"Errata with their costs: [{Path(paper['errata']).parent.name}](../../{paper['errata']})."
    yield from ("", "| place | what it states or shows | our result | finding |", "| --- | --- | --- | --- |")
    for place, what, result, finding in paper["rows"]:
        yield f"| {place} | {what} | {_filled(result, values)} | {finding} |"
    yield ""
    for picture, description, _ in CURVES.get(name, ()):
        yield from (f"![{description}]({name}-{picture}.svg)", "")


def _filled(result: str, values: Mapping[str, float | str]) -> str:
    """A text with the values at their names; a bar would end the cell."""
    return result.format(**values).replace("|", "\\|")


def main() -> None:
    """Compute and write all."""
    values = {name: of() for name, of in PAPERS.items()}
    VALUES.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, curves in CURVES.items():
        for picture, _, drawn in curves:
            (FOLDER / f"{name}-{picture}.svg").write_text(drawn() or "", encoding="utf-8")
    PAGE.write_text(page(values), encoding="utf-8")


if __name__ == "__main__":
    main()
