"""Writes a list of parts as a self-contained HTML page and as the same in Markdown."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import jinja2

from robots.errors import OutputError
from validation.blocks import Part, line, pipes
from validation.tables import put


def write_pages(sections: Sequence[Part], folder: Path, *, stem: str, title: str) -> None:
    """Write `<stem>.html` and `<stem>.md` into a folder; either both are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=lambda name: str(name).endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"line": line, "pipes": pipes}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
            for kind in ("html", "md"):
                text = environment.get_template(f"report.{kind}").render(title=title, sections=sections)
                (Path(name) / f"{stem}.{kind}").write_text(text, encoding="utf-8")
            put(Path(name), folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot write {stem}.html: {error.strerror}") from error
