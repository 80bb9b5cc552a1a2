"""The site: the atlas and the gallery from tables, the README files, and the docstrings of all rooms.

`CONTRIBUTING.md` says how to build it.
"""

import importlib.metadata
import importlib.util
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx

import engines
from analytic import papers

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the extension that is ours

project = "loopcheck"
author = "The loopcheck authors"
copyright = author
version = release = importlib.metadata.version("loopcheck")

ROOMS = ("robots", "analytic", "engines", "validation")
READMES = [
    path.relative_to(ROOT).with_suffix("").as_posix()
    for room in (*ROOMS, "tests", "docs")
    for path in sorted((ROOT / room).rglob("README.md"))
]
REPORTS = [
    path.relative_to(ROOT).with_suffix("").as_posix()
    for path in sorted((ROOT / "docs/reports").glob("*.md"))
    if path.stem != "README"
]
CONTENTS = {
    "Atlas": ["docs/pages/atlas", "docs/pages/gallery", "docs/pages/engines", "validation/studies/atlas/FINDINGS"],
    "Robots": [page for page in READMES if page.startswith("robots/")],
    "Rooms": [page for page in READMES if not page.startswith("robots/")],
    "Reference": ["docs/errata", "CONTRIBUTING", "CHANGELOG"],
    "Reports for other projects": REPORTS,
    "Docstrings": [f"docs/api/{room}/{room}" for room in ROOMS],
}
"""Pages by the caption under which the side lists them; before them come the sections of the README, the first page."""
CONSTANTS = ("attribute", "data", "property")
"""Kinds of things that have a line of prose and no sections."""
constants: dict[str, list[str]] = {}
"""Docstrings of those that napoleon has at hand."""


extensions = ["myst_parser", "sphinx.ext.apidoc", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["docs.site.extension"]
root_doc = "README"
include_patterns = [
    "README.md",
    *(f"{page}.*" for pages in CONTENTS.values() for page in pages),
    "docs/api/**",
    "docs/pages/**.md",
]
exclude_patterns = ["docs/api/*/modules.rst"]
suppress_warnings = ["ref.python"]  # a type may have the name of another one elsewhere

myst_heading_anchors = 3

apidoc_modules = [
    {"path": f"../{room}", "destination": f"docs/api/{room}", "module_first": True, "max_depth": 1} for room in ROOMS
]
viewcode_follow_imported_members = False  # its links back to what is documented where it is imported lead nowhere
autodoc_member_order = "bysource"
autodoc_mock_imports = []
"""Packages of engines that development goes without."""
for engine in map(engines.engine, engines.engine_names()):
    if engines.installed(engine.name):
        importlib.import_module(engine.requires)  # before anything is mocked that it would take for real
    else:
        autodoc_mock_imports += [name for name in engine.packages if importlib.util.find_spec(name) is None]
# Each page lists all others at its side; with every object in those lists, the site takes minutes more to build.
toc_object_entries = False
default_role = "code"  # docstrings write names as Markdown does
python_display_short_literal_types = True

html_theme = "furo"
html_title = "loopcheck"
templates_path = ["templates"]
html_additional_pages = {"index": "index.html"}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/sections.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_show_sphinx = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Put the README before all pages, and its sections before their titles at the side."""
    app.connect("autodoc-process-docstring", _escape_bars, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _restore_constants, priority=600)
    app.connect("source-read", _add_data)
    app.connect("html-page-context", _list_sections)


def _escape_bars(app: Sphinx, kind: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Let bars be those of a magnitude: in reStructuredText they name a substitution."""
    lines[:] = [re.sub(r"(`[^`]*`)|\|", lambda match: match[1] or r"\|", line) for line in lines]
    if kind in CONSTANTS:
        constants[name] = list(lines)


def _restore_constants(app: Sphinx, kind: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Take back what napoleon makes of the docstring of a constant: a type of all that stands before a colon."""
    if kind in CONSTANTS:
        lines[:] = constants.pop(name)


def _add_data(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        source[0] += "\n".join(_listed(caption, pages) for caption, pages in CONTENTS.items() if pages)
    elif page == "docs/errata":
        source[0] += "\n".join(_errata(module.name) for module in pkgutil.iter_modules(papers.__path__))


def _listed(caption: str, pages: list[str]) -> str:
    listed = "\n".join(pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n{listed}\n```"


def _errata(paper: str) -> str:
    """The errata of a paper, as a table in Markdown."""
    model = papers.paper_model(paper)
    rows = [erratum.model_dump(exclude={"computes"}) for erratum in model.ERRATA]
    title = (model.__doc__ or "").split(":")[0]
    return f"\n## {title}\n\n{pd.DataFrame(rows).to_markdown(index=False, tablefmt='github')}\n"


def _list_sections(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    links = app.env.tocs[root_doc].findall(nodes.reference)
    context["sections"] = [(link.astext(), link["anchorname"]) for link in links if link["anchorname"]]
