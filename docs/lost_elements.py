"""Tables of lost elements in docs/how_to/convert_a_model.md: `python -m docs.lost_elements` writes them again."""

from collections.abc import Iterator
from pathlib import Path

from loopcheck.robots.formats.carried import CARRIED, GRAVITY, LOST, ROTORS, SDF, SPRINGS, URDF, USD, WRENCHES
from loopcheck.robots.formats.losses import KINDS, table_of

PAGE = Path(__file__).parent / "how_to" / "convert_a_model.md"
BEGIN, END = "<!-- lost -->\n\n", "<!-- end -->\n"
FORMATS = {"URDF": URDF, "SDF": SDF, "USD": USD}


def tables() -> str:
    """Elements that an output loses, and names that a reader does not read, from the tables of the readers."""
    lines = [f"| element | kind | MJCF, from an MJCF | {' | '.join(FORMATS)} |", "| --- " * (3 + len(FORMATS)) + "|"]
    lines += [f"| {element} | {kind} | {' | '.join(cells)} |" for element, kind, cells in _outputs()]
    lines += ["", "| name that is not read | kind | meaning | format |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {kind} | {words} | {form} |" for name, kind, words, form in _names()]
    return "\n".join(lines) + "\n\n"


def page() -> str:
    """The page with its tables."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.split(END)[1]}"


def _outputs() -> Iterator[tuple[str, str, list[str]]]:
    for words, kind in LOST.items():
        carries = {ROTORS: "rotors", SPRINGS: "springs"}.get(words, "")
        cells = ["yes" if carries and getattr(form, carries) else "lost" for form in FORMATS.values()]
        yield words, kind, ["yes", *cells]
    of_fields = table_of("mjcf").loss
    for kind in ("load", "drive", "setting"):
        for words in dict.fromkeys(of_fields[kind].values()):
            names = [name.removeprefix("@") for name, meaning in of_fields[kind].items() if meaning == words]
            yield words, kind, ["yes", *["yes" if set(names) & set(CARRIED) else "lost"] * len(FORMATS)]
    yield GRAVITY, "load", ["yes", *("yes" if form.gravity else "lost" for form in FORMATS.values())]
    yield WRENCHES, "load", ["lost"] * (1 + len(FORMATS))


def _names() -> Iterator[tuple[str, str, str, str]]:
    for kind in KINDS:
        for form in FORMATS:
            for name, words in table_of(form.lower()).loss.get(kind, {}).items():
                yield name.removeprefix("@").replace("|", "&#124;"), kind, words, form


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
