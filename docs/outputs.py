"""Outputs and pictures of README.md: `python -m docs.outputs [NAME]...` runs its commands and keeps their results.

A block of commands followed by `<!-- output NAME -->` has its output between this comment and `<!-- end -->`.
The results of the first command of the block are kept in `docs/answers/NAME`; a test compares README.md with them.
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

from loopcheck.validation.execution.invocation import UV_RUN

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
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
    """A command of README.md with its output."""

    name: str
    command: str
    output: str


def marked(text: str) -> Iterator[Marked]:
    """The commands of a document that are followed by their output."""
    for match in MARKED.finditer(text):
        yield Marked(match["name"], match["command"], match["output"])


def output_block(folder: Path) -> str:
    """Text below the comment: the kept output, and the kept picture.

    Args:
        folder: Folder of the kept results.
    """
    lines = ["", "```text", (folder / "output.txt").read_text(encoding="utf-8").strip("\n"), "```", ""]
    if (folder / "picture.svg").exists():
        alt = (folder / "picture.txt").read_text(encoding="utf-8").strip()
        lines += [f"![{alt}](docs/answers/{folder.name}/picture.svg)", ""]
    return "\n".join(lines)


def written(text: str) -> str:
    """A document with the kept outputs below its comments."""

    def with_output(match: re.Match[str]) -> str:
        folder = KEPT / match["name"]
        output = output_block(folder) if folder.exists() else match["output"]
        return match[0][: match.start("output") - match.start()] + output

    return MARKED.sub(with_output, text)


def keep(name: str, command: str) -> None:
    """Run a command of README.md as below `uv run`, and keep its output, tables and first picture."""
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
    """Keep the outputs of all commands, or of the commands with the given names, and write README.md."""
    names = sys.argv[1:]
    for name, command, _ in marked(README.read_text(encoding="utf-8")):
        if not names or name in names:
            keep(name, command)
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
