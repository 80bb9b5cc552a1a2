"""Outputs and pictures of documents: `python -m docs.outputs [NAME]...` runs their commands and keeps the results.

A block of commands followed by `<!-- output NAME -->` has its output between this comment and `<!-- end -->`.
The results of the first command of the block are kept in `docs/answers/NAME`; a test compares the documents with them.
"""

import base64
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.front_picture import front_picture
from loopcheck.validation.execution.invocation import UV_RUN

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = (README, *sorted((ROOT / "docs/how_to").glob("*.md")))
KEPT = ROOT / "docs/answers"
TABLES = ("summary.csv", "tune.csv", "serial.csv", "logs.csv")
"""Tables that are kept, where a command writes them."""
RECORDED = ("command", "start", "duration_s", "versions", "cpu")
"""Entries of `run.json` that are kept, besides the commit."""
COLUMNS = "80"
MARKED = re.compile(
    r"^```sh\n(?P<command>[^\n]+)\n(?:[^`]*\n)?```\n\n<!-- output (?P<name>\w+) -->\n(?P<output>.*?)(?=<!-- end -->)",
    re.MULTILINE | re.DOTALL,
)
"""A block of commands, the comment, and the output up to the comment `<!-- end -->`."""
PICTURE = re.compile(r'<img[^>]*?src="data:image/svg\+xml;base64,(?P<svg>[^"]+)"[^>]*?alt="(?P<alt>[^"]*)"')


class Marked(NamedTuple):
    """A command of a document with its output."""

    document: Path
    name: str
    command: str
    output: str


def marked() -> Iterator[Marked]:
    """The commands of the documents that are followed by their output."""
    for document in DOCUMENTS:
        for match in MARKED.finditer(document.read_text(encoding="utf-8")):
            yield Marked(document, match["name"], match["command"], match["output"])


def output_block(folder: Path, document: Path) -> str:
    """Text below the comment: the kept output, and the kept picture.

    Args:
        folder: Folder of the kept results.
        document: The document with the comment.
    """
    lines = ["", "```text", (folder / "output.txt").read_text(encoding="utf-8").strip("\n"), "```", ""]
    if (folder / "picture.svg").exists():
        alt = (folder / "picture.txt").read_text(encoding="utf-8").strip()
        picture = os.path.relpath(folder / "picture.svg", document.parent)
        lines += [f"![{alt}]({picture})", ""]
    return "\n".join(lines)


def written(document: Path) -> str:
    """A document with the kept outputs below its comments."""

    def with_output(match: re.Match[str]) -> str:
        folder = KEPT / match["name"]
        output = output_block(folder, document) if folder.exists() else match["output"]
        return match[0][: match.start("output") - match.start()] + output

    return MARKED.sub(with_output, document.read_text(encoding="utf-8"))


def keep(name: str, command: str) -> None:
    """Run a command of a document as below `uv run`, and keep its output, tables and first picture."""
    folder = KEPT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arguments = shlex.split(command.split("loopcheck", 1)[1])
    with tempfile.TemporaryDirectory() as place:
        results = Path(place) / "results" / name
        (Path(place) / "robots").symlink_to(ROOT / "robots")
        ended = subprocess.run(
            [sys.executable, "-m", "loopcheck", *arguments],
            cwd=place,
            env={**os.environ, "COLUMNS": COLUMNS, UV_RUN: "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode not in (0, 1, 3):
            raise SystemExit(f"{command}: exit status {ended.returncode}: {ended.stderr}")
        (folder / "output.txt").write_text(ended.stdout, encoding="utf-8")
        record: dict[str, Any] = json.loads((results / "run.json").read_text(encoding="utf-8"))
        kept = {"commit": _commit(), "exit_status": ended.returncode, **{key: record[key] for key in RECORDED}}
        kept["command"] = ["loopcheck", *arguments]
        (folder / "run.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        for table in TABLES:
            if (results / table).exists():
                shutil.copy(results / table, folder)
        if name == "check":
            (folder / "robot.svg").write_text(front_picture(results), encoding="utf-8")
        else:
            _keep_picture(results, folder)


def _keep_picture(results: Path, folder: Path) -> None:
    """Keep the first picture of the page, with its description."""
    for page in sorted(results.glob("*.html")):
        if (match := PICTURE.search(page.read_text(encoding="utf-8"))) is not None:
            (folder / "picture.svg").write_bytes(base64.b64decode(match["svg"]))
            (folder / "picture.txt").write_text(html.unescape(match["alt"]) + "\n", encoding="utf-8")


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> None:
    """Keep the outputs of all commands, or of the commands with the given names, and write the documents."""
    names = sys.argv[1:]
    for _, name, command, _ in marked():
        if not names or name in names:
            keep(name, command)
    for document in DOCUMENTS:
        document.write_text(written(document), encoding="utf-8")


if __name__ == "__main__":
    main()
