"""The site: tutorial, guides, reference, background, the atlas and the gallery from tables, and README files.

See `CONTRIBUTING.md` for the build.
"""

import importlib.metadata
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx

from loopcheck.analytic import papers

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the modules in docs/site

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
HOW_TO = [f"docs/how_to/{path.stem}" for path in sorted((ROOT / "docs/how_to").glob("*.md"))]
BACKGROUND = [f"docs/reference/{page}" for page in ("analytic", "engines")]
PAGES = (
    "commands",
    "python",
    "results",
    "limits",
    "terms",
    "judge",
    "tune",
    "serial",
    "gradients",
    "atlas",
    "orders",
    "forces",
    "forces_in_threads",
    "measured",
    "versions",
)
REFERENCE = [f"docs/reference/{page}" for page in PAGES]
CONTENTS = {
    "Tutorial": ["docs/tutorial"],
    "Papers": ["docs/papers/README"],
    "How-to guides": HOW_TO,
    "Reference": [
        *REFERENCE,
        "docs/errata",
        "CHANGELOG",
    ],
    "Background": ["docs/background", *BACKGROUND],
    "Transmissions": ["docs/pages/transmissions"],
    "Atlas": ["docs/pages/atlas", "docs/pages/gallery", "docs/pages/engines", "validation/studies/atlas/FINDINGS"],
    "Robots": [page for page in READMES if page.startswith("robots/")],
    "Reports for engine developers": REPORTS,
    "Development": [
        "CONTRIBUTING",
        "docs/lanes",
        *(page for page in READMES if not page.startswith("robots/")),
    ],
}
"""Pages by their caption in the navigation, below the sections of the README (the first page)."""
CONSTANTS = ("attribute", "data", "property")
"""Kinds of objects with a one-line description and no sections."""
constants: dict[str, list[str]] = {}
"""Docstrings of objects that napoleon processes."""


extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["docs.site.extension"]
root_doc = "README"
include_patterns = [
    "README.md",
    *(f"{page}.*" for pages in CONTENTS.values() for page in pages),
    "docs/pages/**.md",
]
suppress_warnings = ["ref.python"]  # a type may have the name of another one elsewhere

myst_heading_anchors = 3

autodoc_member_order = "bysource"
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
    """Escape bars of magnitudes: in reStructuredText they enclose a substitution."""
    lines[:] = [re.sub(r"(`[^`]*`)|\|", lambda match: match[1] or r"\|", line) for line in lines]
    if kind in CONSTANTS:
        constants[name] = list(lines)


def _restore_constants(app: Sphinx, kind: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Restore the docstring of a constant: napoleon takes the text before a colon for a type."""
    if kind in CONSTANTS:
        lines[:] = constants.pop(name)


def _add_data(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        source[0] += "\n".join(_listed(caption, pages) for caption, pages in CONTENTS.items() if pages)
    elif page == "docs/reference/commands":
        from docs.site.commands import reference

        source[0] += reference()
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
