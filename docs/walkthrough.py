"""Steps of docs/tutorial.md: `python -m docs.walkthrough` takes them all, and writes their outputs into the document.

Blocks `sh` are run and blocks `diff` are applied, in order, in a copy of `docs/tutorial`. A block of commands that is
followed by `<!-- output -->` has its output between this comment and `<!-- end -->`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from loopcheck.validation.execution.invocation import UV, UV_RUN

TUTORIAL = Path(__file__).parent / "tutorial.md"
FILES = TUTORIAL.with_suffix("")
COLUMNS = "100"
STEP = re.compile(
    r"^```(?P<kind>sh|diff)\n(?P<text>.*?)^```\n(?:\n<!-- output -->\n(?P<output>.*?)<!-- end -->)?", re.M | re.S
)


class Step(NamedTuple):
    """A block of commands or an edit, with the output shown below it."""

    kind: str
    text: str
    output: str


def steps(text: str) -> Iterator[Step]:
    """Steps of a document, in order."""
    for match in STEP.finditer(text):
        yield Step(match["kind"], match["text"], match["output"] or "")


def take(step: Step, folder: Path, programs: str = "") -> str:
    """Take a step in a folder.

    Args:
        programs: Folder of programs that are taken before those of this environment.

    Returns:
        Output of the commands, both streams; empty for an edit.
    """
    if step.kind == "diff":
        _edit(step.text.splitlines(), folder)
        return ""
    path = os.pathsep.join((*filter(None, [programs]), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {name: value for name, value in os.environ.items() if name not in (UV, UV_RUN)}
    ended = subprocess.run(
        ["bash", "-c", step.text],
        cwd=folder,
        env={**environment, "PATH": path, "COLUMNS": COLUMNS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.stdout.replace(f"{folder}/", "")


def _edit(lines: list[str], folder: Path) -> None:
    """Apply an edit: a line `--- FILE`, removed lines, added lines."""
    path = folder / lines[0].removeprefix("--- ")
    text = path.read_text(encoding="utf-8")
    removed, added = ("".join(f"{line[1:]}\n" for line in lines[1:] if line[0] == sign) for sign in "-+")
    if text.count(removed) != 1:
        raise SystemExit(f"{path.name}: must contain the removed lines once, got {text.count(removed)}: {removed}")
    path.write_text(text.replace(removed, added), encoding="utf-8")


def main() -> None:
    """Run all steps, and write their outputs into the document."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "gripper"
        shutil.copytree(FILES, folder)

        def with_output(match: re.Match[str]) -> str:
            step = Step(match["kind"], match["text"], match["output"] or "")
            print(f"$ {step.text}", flush=True)  # noqa: T201
            output = take(step, folder)
            print(output, flush=True)  # noqa: T201
            if match["output"] is None:
                return match[0]
            block = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
            head = match[0][: match.start("output") - match.start()]
            return f"{head}\n```text\n{block}\n```\n\n<!-- end -->"

        written = STEP.sub(with_output, TUTORIAL.read_text(encoding="utf-8"))
    TUTORIAL.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
