"""Table of the limits that decide a verdict, in the README of the judge: `python -m docs.limits`."""

import ast
import re
from pathlib import Path

from loopcheck.validation.comparison import limits

README = Path(__file__).parents[1] / "validation/comparison/README.md"
SECTION = re.compile(r"(?<=<!-- limits -->\n).*?(?=<!-- end of limits -->)", re.DOTALL)


def table() -> str:
    """Name, value, meaning and reason of each limit, as Markdown."""
    body = ast.parse(Path(limits.__file__).read_text(encoding="utf-8")).body[1:]
    lines = ["| limit | value | meaning and reason |", "| --- | --- | --- |"]
    for assignment, text in zip(body[::2], body[1::2], strict=True):
        name = ast.unparse(assignment).split(" = ")[0]
        meaning = " ".join(ast.literal_eval(ast.unparse(text)).split())
        value = getattr(limits, name)
        numbers = " and ".join(f"{number:g}" for number in (value if isinstance(value, tuple) else (value,)))
        lines.append(f"| `{name}` | {numbers} | {meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    README.write_text(SECTION.sub(lambda _: table(), README.read_text(encoding="utf-8")), encoding="utf-8")
