"""A Sphinx extension: makes the pages of the atlas before documents are read, and lets their tables be searched."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from docs.site.entries import read_collections
from docs.site.pages import FILES, PAGES, write_site

STATIC = Path(__file__).parent / "static"


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the builders of the pages."""
    app.add_config_value("collections", ["docs/catalogue", "docs/atlas"], "env", list)
    app.connect("config-inited", _write_pages)
    app.connect("html-page-context", _add_assets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: Sphinx, config: Config) -> None:
    root = Path(app.srcdir)
    entries = read_collections(root / name for name in config.collections)
    write_site(entries, root)
    library = root / PAGES / "static"
    library.mkdir(parents=True, exist_ok=True)
    bundle = files("itables") / "html"
    (library / "datatables.css").write_text((bundle / "dt_bundle.css").read_text(encoding="utf-8"), encoding="utf-8")
    # A page that is opened as a file may load scripts but no modules: it gets the module as a text.
    module = json.dumps((bundle / "dt_bundle.js").read_text(encoding="utf-8"))
    (library / "datatables.js").write_text(f"window.dataTablesModule = {module};\n", encoding="utf-8")
    config.html_static_path = [*config.html_static_path, str(library), str(STATIC)]
    config.html_extra_path = [*config.html_extra_path, str(root / FILES)]


def _add_assets(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Add the style to the pages of the atlas, and the search to pages with large tables."""
    if not page.startswith(PAGES.as_posix()):
        return
    app.add_css_file("atlas.css")
    if "searchable" in (context.get("body") or ""):
        app.add_css_file("datatables.css", priority=400)
        app.add_js_file("datatables.js", loading_method="defer")
        app.add_js_file("tables.js", loading_method="defer")
