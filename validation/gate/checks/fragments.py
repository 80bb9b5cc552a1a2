"""What the texts of a model file show beside the compiled model: a part of other files, a closure in a comment."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loopcheck.robots.errors import listed
from loopcheck.validation.gate.findings import Finding

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CLOSURE = re.compile(r"<(equality|connect|weld)\b")
ANGLE = re.compile(r"<compiler\b[^>]*\bangle\s*=")
NEIGHBOURS, LONGEST = 200, 1_000_000
"""Files of the folder and of its parent that may include a file, and the longest of them that is read [byte]."""
NAMED = 3


def fragment_findings(path: Path, texts: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """A finding on a file that others include and that does not state the unit of its angles.

    Args:
        texts: Lines of the files of the model, by path.
    """
    if any(ANGLE.search(COMMENT.sub("", "\n".join(lines))) for lines in texts.values()):
        return
    names = [f"'{file.name}'" for file in including(path)]
    if names:
        yield Finding(
            code="LC311",
            message=f"{path.name} is included by {listed(names, NAMED)} and states no <compiler angle>: the units of "
            "angles, "
            "steps and gravity are those of that file and are not judged here",
            advice=f"Check {names[0]}.",
        )


def including(path: Path) -> list[Path]:
    """Files in the folder of a file, and in the folder above, that include it."""
    folder, found = path.absolute().parent, []
    candidates = [*sorted(folder.glob("*.xml")), *sorted(folder.parent.glob("*.xml"))][:NEIGHBOURS]
    pattern = re.compile(rf"""<include\s[^>]*\bfile\s*=\s*["'](?:[^"']*/)?{re.escape(path.name)}["']""")
    for file in candidates:
        with suppress(OSError):
            if file.stat().st_size > LONGEST or file.samefile(path):
                continue
            text = COMMENT.sub("", file.read_text(encoding="utf-8", errors="replace"))
            named = [re.split("[\"']", match[0])[-2] for match in pattern.finditer(text)]
            if any((file.parent / name).resolve() == path.resolve() for name in named):
                found.append(file)
    return found


def comment_findings(texts: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """A finding on each comment that contains a closure."""
    for file, lines in texts.items():
        text = "\n".join(lines)
        for comment in COMMENT.finditer(text):
            inside = CLOSURE.search(comment[0])
            if inside:
                line = text.count("\n", 0, comment.start() + inside.start()) + 1
                yield Finding(
                    code="LC313",
                    file=file,
                    line=line,
                    message=f"a comment contains <{inside[1]}>, and the model has no loop",
                )
