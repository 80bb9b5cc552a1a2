"""Tables of the rules of verdicts and of the limits that decide them, in the reference: `python -m docs.limits`."""

import ast
from pathlib import Path

from docs.marked_parts import with_part
from loopcheck.validation.check.efforts.rules import RULES
from loopcheck.validation.common import limits

PAGE = Path(__file__).parent / "reference/limits.md"


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


def rules() -> str:
    """When each rule of a verdict applies, and its reason, in the order of the rules, as Markdown."""
    rows = [f"| {k} | {rule.when} | {rule.reason} |" for k, rule in enumerate(RULES, 1)]
    return "\n".join(["| | when | because |", "| --- | --- | --- |", *rows]) + "\n"


def page() -> str:
    """The page with present tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, made in (("limits", table()), ("rules", rules())):
        text = with_part(text, name, made)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
