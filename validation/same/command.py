"""`loopcheck same`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from loopcheck.validation.frame.options import (
    JUDGEMENT,
    Command,
    Target,
    format_option,
    leave_out_option,
    names_of,
    option,
)

if TYPE_CHECKING:
    from loopcheck.validation.same.fields import Difference
    from loopcheck.validation.same.same import SameResult

SHOWN, NAMED = 15, 2
"""Largest number of rows of the table, and of names in a row."""
RELATIVE = ("mass", "inertia", "armature", "damping", "friction", "stiffness", "effort limit")
"""Fields with a relative difference."""


@click.command(cls=Command, short_help="Are two model files the same robot? Differences by field, and the dynamics.")
@click.argument("a", metavar="A", type=Target())
@click.argument("b", metavar="B", type=Target())
@option("--free-base", is_flag=True, group=JUDGEMENT, help="Compare with a free base, even if a file fixes it.")
@option("--without-actuators", is_flag=True, group=JUDGEMENT, help="Ignore effort limits, and which joints are driven.")
@option("--ignore", default="", metavar="FIELDS", group=JUDGEMENT, help="Fields to leave out, as armature,damping.")
@option("--exact", is_flag=True, group=JUDGEMENT, help="Allow round-off only.")
@option("--map", "mapping", metavar="J=J", multiple=True, group=JUDGEMENT, help="Joint of A = joint of B; may repeat.")
@leave_out_option
@option("--all", "everything", is_flag=True, help=f"Show all rows.  [default: the largest {SHOWN}]")
@format_option
def command(
    a: str,
    b: str,
    free_base: bool,
    without_actuators: bool,
    ignore: str,
    exact: bool,
    mapping: tuple[str, ...],
    leave_out: tuple[str, ...],
    everything: bool,
    format: str,
) -> int:
    """Compare two model files of a robot: every field of bodies, joints and drives, and the dynamics.

    Joints are paired by name, by the body that they move, or by a common beginning and end of all names. Bodies that
    are fixed to each other count as one. Frames of bodies and the pose of the file do not matter: all is compared along
    the axes of A with every joint at zero.

    Differences that the digits of files explain do not count: 0.1 % of a mass or a drive, 0.1 mm, 1 mrad of an axis,
    0.5 % of an inertia tensor, 2 mrad of a range. The dynamics is compared with damping, friction and armature of A.

    Exit status: 0 the same; 1 a field differs; 3 not comparable (joints in one file only, an element that is
    not supported or not read).

    \b
    Examples:
      loopcheck same robot.urdf robot.xml
      loopcheck same robot.urdf robot.xml --ignore armature,damping --free-base
      loopcheck same left.xml right.xml --map left_hip=right_hip --format json
    """
    from rich.markup import escape

    from loopcheck.validation.report.terminal import show, table
    from loopcheck.validation.same.same import same

    pairs = [text.partition("=") for text in mapping]
    for text, (left, _, right) in zip(mapping, pairs, strict=True):
        if not left or not right:
            raise click.BadParameter(f"must have the form J=J, got '{text}'", param_hint="--map")
    result = same(
        a,
        b,
        free_base=free_base,
        without_actuators=without_actuators,
        exact=exact,
        mapping={left: right for left, _, right in pairs},
        ignore=names_of(ignore),
        leave_out=leave_out,
    )
    if format == "json":
        click.echo(result.as_json())
        return result.exit_status
    rows = [list(map(escape, row)) for row in _rows(result)]
    shown = rows if everything else rows[:SHOWN]
    columns = ["element", "field", "unit", "A", "B", "difference"]
    show(
        [
            *([table(columns, shown, title=f"A: {a}, B: {b}")] if rows else []),
            *([f"And {len(rows) - len(shown)} more: --all"] if len(shown) < len(rows) else []),
            *(f"{note}." for note in result.notes),
            _verdict(result),
            f"{result.dynamics}.",
        ]
    )
    return result.exit_status


def _verdict(result: "SameResult") -> str:
    fields = len(result.rows)
    if result.exit_status == 1:
        joints = "1 joint with its body" if result.joints == 1 else f"{result.joints} joints with their bodies"
        return f"Different: {fields} field{'s' * (fields > 1)} of {joints}."
    word = "Not comparable as a whole; no shared field differs" if result.exit_status else "The same robot"
    return f"{word}: {result.joints} joints with their bodies."


def _rows(result: "SameResult") -> Iterator[list[str]]:
    """Rows of the table; elements with equal values share a row, and so do all that a file does not state."""
    groups: dict[tuple[str, ...], list[Difference]] = {}
    for row in result.rows:
        key = (row.element, row.field, row.unit)
        missing = [value in ((0.0,), "none") for value in (row.a, row.b)]
        groups.setdefault((*key, *(map(str, missing) if any(missing) else _texts(row))), []).append(row)
    for (element, field, unit, *_), of in groups.items():
        names = [row.name for row in of if row.name]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        values = [
            " to ".join(dict.fromkeys((min(texts, key=_first), max(texts, key=_first))))
            for texts in zip(*map(_texts, of), strict=True)
        ]
        shown = "mm" if unit == "m" else unit
        yield [f"{element} {', '.join(names[:NAMED])}{more}".strip(), field, shown, *values, _size(of[0])]


def _first(text: str) -> float:
    return float(text.split()[0]) if text[-1:].isdigit() and text[0] in "-0123456789" else 0.0


def _texts(row: "Difference") -> tuple[str, str]:
    """Both values; of a tensor the entry that differs most."""
    a, b = row.a, row.b
    if row.field == "inertia":
        from loopcheck.validation.same.fields import TENSOR_ENTRIES

        k = max(range(len(a)), key=lambda i: abs(float(a[i]) - float(b[i])))
        return f"{TENSOR_ENTRIES[k]} {float(a[k]):.4g}", f"{TENSOR_ENTRIES[k]} {float(b[k]):.4g}"
    return _text(a, row.unit), _text(b, row.unit)


def _text(value: Any, unit: str) -> str:
    if isinstance(value, str):
        return value
    if unit == "m":
        return " ".join(f"{1e3 * x:.2f}".replace("-0.00", "0.00") for x in value)
    return " ".join(f"{0.0 if abs(x) < 5e-10 else x:.4g}" for x in value)


def _size(row: "Difference") -> str:
    size, unit = row.difference, row.unit
    if size == float("inf") or isinstance(row.a, str) or not unit:
        return ""
    if row.field in RELATIVE:
        return f"{size:.2%}" if (0.0,) not in (row.a, row.b) else ""
    return f"{1e3 * size:.3g} mm" if unit == "m" else f"{size:.2g} {unit}"
