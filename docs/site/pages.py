"""Output of the pages for Sphinx, and of the files beside them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from docs.site import figures, texts
from docs.site.engine_entries import EngineEntry, engine_entries
from docs.site.entries import CATALOGUE, Entry
from docs.site.transmissions import context as context_of
from docs.site.transmissions import factor_map, transmission_entries
from loopcheck import engines
from loopcheck.validation.common.verdicts import WORST_FIRST
from loopcheck.validation.report.blocks import digits
from loopcheck.validation.report.schematic import linkage_figure

PAGES = Path("docs", "pages")
"""Output folder of the pages, relative to the root of the sources."""
MOST_NAMED = 10
"""Maximum number of joints with a name in a small drawing."""
FILES = PAGES / "files"
"""Files that are copied unchanged into the root of the site."""


def write_site(entries: Sequence[Entry], root: Path) -> None:
    """Write all pages and drawings.

    Args:
        entries: All robots.
        root: Folder of the sources; changed and obsolete files of an earlier site are replaced.
    """
    folder = root / FILES / "atlas"
    drawings = {entry.name for entry in entries if _draw(entry, root, folder)}
    errors = figures.as_is_errors(entries)
    _write(folder / "as-is.svg", figures.as_is_figure(errors) or "")
    environment = _environment()
    each_engine = list(engine_entries(entries))
    common = {"entries": entries, "root": "../../", "drawings": drawings, "engines": each_engine}
    verdicts = Counter(entry.model["verdict"] for entry in entries)
    transmissions = transmission_entries(root)
    maps = {f"transmission-{entry.name}.svg": entry.name for entry in transmissions}
    for file, name in maps.items():
        _write(folder / file, factor_map(name) or "")
    pages: Mapping[str, Mapping[str, Any]] = {
        **({"transmissions": {"transmissions": transmissions}} if transmissions else {}),
        "atlas": {
            "repositories": len({entry.model["repository"] for entry in entries if entry.model["repository"]}),
            "verdicts": {name: verdicts[name] for name in (*WORST_FIRST, "copy")},
            "chart": _in_words(errors),
        },
        "gallery": {},
        "engines": {},
    }
    for name, context in pages.items():
        _write(root / PAGES / f"{name}.md", environment.get_template(f"{name}.md").render(**common, **context))
    for entry in entries:
        text = environment.get_template("robot.md").render(**_of_robot(entry, root), drawn=entry.name in drawings)
        _write(root / PAGES / "robots" / f"{entry.name}.md", text)
    for each in each_engine:
        text = environment.get_template("engine.md").render(**_of_engine(each, root), table=_table(environment))
        _write(root / PAGES / "engines" / f"{each.name}.md", text)
    for transmission in transmissions:
        text = environment.get_template("transmission.md").render(**context_of(transmission))
        _write(root / PAGES / "transmissions" / f"{transmission.name}.md", text)
    _remove_others(root / PAGES / "robots", {f"{entry.name}.md" for entry in entries})
    _remove_others(
        folder,
        {
            "as-is.svg",
            *(f"{entry.name}.svg" for entry in entries),
            *(f"transmission-{each.name}.svg" for each in transmissions),
        },
    )


def _environment() -> jinja2.Environment:
    """Templates that escape texts from tables, and keep each text within its line."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_in_a_line,
        lstrip_blocks=True,
    )
    environment.globals |= {"decades": texts.DECADES, "symbols": texts.MARKS}
    environment.filters |= {
        "answer": texts.answer,
        "digits": digits,
        "literal": texts.literal,
        "percent": texts.percent,
        "place": texts.place,
        "shortened": texts.shortened,
        "slug": lambda name: name.replace(" ", "-"),
        "source_address": texts.source_address,
        "what_it_is": texts.what_it_is,
    }
    return environment


def _in_a_line(value: object) -> object:
    """A text of the tables without line ends, which would end its block."""
    return re.sub(r"\s+", " ", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _of_robot(entry: Entry, root: Path) -> Mapping[str, Any]:
    """Data of the page of a robot."""
    rows = sorted(
        entry.of_sources.items(), key=lambda item: (not item[0].endswith("/as_is"), *texts.worst_first(item[1]))
    )
    own = entry.collection == CATALOGUE
    computing = {source.split("/")[0] for source in entry.findings}
    return {
        "entry": entry,
        "root": "../../../",
        "rows": rows,
        "engines": engines.engine_names(),
        "versions": {
            name: version
            for name, version in entry.versions.items()
            if name in computing or name not in engines.engine_names()
        },
        "documented": (root / "robots" / entry.name / "README.md").exists(),
        "command": f"loopcheck {'check' if own else 'study atlas'} {entry.name}",
    }


def _of_engine(each: EngineEntry, root: Path) -> Mapping[str, Any]:
    """Data of the page of an engine."""
    as_is = [row for row in each.results if row[1].endswith("/as_is")]
    return {
        "each": each,
        "root": "../../../",
        "reports": {path.stem for path in (root / "docs" / "reports").glob("*.md")},
        "as_is": sorted(as_is, key=lambda row: -row[2].error if row[2].error == row[2].error else 0.0),
        "judged": [row for row in each.results if row not in as_is and row[2].verdict != "informational"],
    }


def _table(environment: jinja2.Environment) -> Any:
    """Function that makes the table of an engine's results, with routes and reasons for judged results."""
    template = environment.get_template("results.html")
    return lambda rows, judged: Markup(template.render(rows=rows, judged=judged, root="../../../"))


def _draw(entry: Entry, root: Path, folder: Path) -> bool:
    """Put the drawing of a robot into a folder, if it exists; those of our robots are beside their READMEs."""
    own = root / "robots" / entry.name / "linkage.svg"
    if entry.collection == CATALOGUE and own.exists():
        svg: str | None = own.read_text(encoding="utf-8")
    else:
        svg = linkage_figure(entry.points, MOST_NAMED) if len(entry.points) else None
    if svg:
        _write(folder / f"{entry.name}.svg", svg)
    return bool(svg)


def _in_words(errors: Mapping[str, Sequence[float]]) -> str:
    """Description of the figure of all unmodified simulations."""
    if not errors:
        return ""
    halves = [f"{engine} {texts.percent(values[len(values) // 2])}" for engine, values in errors.items()]
    return (
        "Share of robots with an effort error above a limit, for unmodified files, by engine. "
        f"Median error: {', '.join(halves)}."
    )


def _write(path: Path, text: str) -> None:
    """Write a file if its content has changed, so that Sphinx reads only changed files."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove obsolete files of an earlier site from a folder."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in names:
            path.unlink()
