"""Terminal output and page of a comparison of a closed mechanism and its serial model."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.validation.report.blocks import Block, Picture, Section, digits, facts, folded_if_long, table
from loopcheck.validation.report.terminal import of_tree
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.studies.serial.pictures import effort_error, error_bars, over_workspace
from loopcheck.validation.studies.serial.transmission_rows import FACTOR

WAYS = ("plain", "constant", "function")
EFFORTS = ("effort at joint", "effort at motor")
SETTINGS = ("armature", "damping", "stiffness")
INTRODUCTION = (
    "Both models have the same motion at their shared joints. The motions of the closed mechanism per unit rate of "
    "each shared joint turn its mass matrix, damping, springs and weights into those at these joints. The "
    "transmission holds the rate of each motor per rate of each joint; its transpose turns efforts of the motors into "
    "efforts at the joints. Errors are errors of the serial model over the peak of the closed mechanism, as largest "
    "and root mean square. Constants are the armature, damping and springs of joints, and mass centres and inertias of "
    "links, with the smallest error over the workspace, as in serial_repaired.xml. Functions are in transmission.py "
    "or joint_map.py. A safe box contains limits of the joints, each independent of the other joints, that overload "
    "no motor at any sample. 'Alone' means zero effort at the other joints."
)
TRANSMISSION = (
    "Figures of the cranks and rods alone, over all poses within the joint ranges where each rod reaches and stands at "
    "least 18° from the line of its crank. The armature factor of a joint is the inertia that it feels per inertia of "
    "a motor's rotor (equal motors), the coupling factor the inertia that couples two joints. An effort limit 'alone' "
    "holds while the other joints need no effort; limits 'all together' hold in any combination. `low`, `median` and "
    "`high` are over the poses; `bound` is proven by interval arithmetic: no pose has a larger factor, and none asks a "
    "motor for more than its limit while the joints keep within this one. 'Per unit' means per unit of motor effort, "
    "of motors without a published limit. Errors of constant factors are those of the rotors' efforts along random "
    "motions, over their peak: `median` is the root mean square, `high` the largest."
)


def summary(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Needed settings of the serial joints, effort errors, and the answer in a few lines.

    Args:
        tables: Tables of the study.
        record: Record of the study.
    """
    errors, limits = tables["serial"], tables["serial_limits"]
    if "constants" in record:
        columns = ["joint", *SETTINGS, "effort limit"]
        rows = _settings(tables["serial_pairs"], record["constants"], limits)
        yield shown_table(columns, rows, title="Needed settings of the serial joints (in the file), SI units")
    shown = errors[errors["quantity"].isin(EFFORTS)]
    worst = _worst(shown) if len(shown) else []
    if worst:
        tree = of_tree(record.get("loops"))
        columns = ["effort", "peak", "unmodified", "constants", "functions"]
        yield shown_table(columns, map(_line, worst), title=f"Effort error, rms over the peak, worst motion{tree}")
        yield _answer(worst, record.get("functions", ""))
    if factors := _factors(tables["serial_transmission"]):
        yield factors
    if broken := _broken_limits(limits):
        yield broken
    unjudged = errors[errors["verdict"].isin(["not comparable", "informational"])]["note"].dropna().unique()
    if reasons := [str(note) for note in unjudged if note]:
        yield f"Not compared: {'; '.join(dict.fromkeys(reasons))}"


def transmission(rows: pd.DataFrame) -> Section:
    """Figures of a transmission by cranks and rods.

    Args:
        rows: Of the table of the transmission.
    """
    return Section(title="Transmission", anchor="transmission", blocks=[TRANSMISSION, table(rows)])


def _settings(pairs: pd.DataFrame, constants: Mapping[str, str], limits: pd.DataFrame) -> Iterator[list[str]]:
    """Armature, damping, stiffness and effort limit of each joint: required, and in brackets those of the file."""
    for joint in pairs["serial"]:
        of_joint = limits[(limits["quantity"] == "effort") & (limits["part"] == joint)].set_index("kind")["high"]
        needed, given = (digits(of_joint[kind]) if kind in of_joint else "" for kind in ("safe box", "serial file"))
        limit = f"{needed} ({given or 'no limit'})" if needed else ""
        yield [escape(joint), *(constants.get(f"{name} of {joint}", "") for name in SETTINGS), limit]


def _answer(worst: list[Mapping[str, Any]], functions: str) -> str:
    """Largest effort error of the motors, or of the joints, before and after each repair."""
    rows = [row for row in worst if row["quantity"] == "effort at motor"] or worst
    largest = max(rows, key=lambda row: float(row["plain_rms"]))
    repairs = {
        "serial_repaired.xml": max(float(row["constant_rms"]) for row in rows),
        functions: max(float(row["function_rms"]) for row in rows),
    }
    after = ", ".join(f"{_percent(error)} with {name}" for name, error in repairs.items() if not pd.isna(error))
    return (
        f"Serial model: effort error {_percent(largest['plain_rms'])} of the peak at '{largest['part']}'"
        f"{f'; {after}' if after else ''}"
    )


def _factors(rows: pd.DataFrame) -> str:
    """Armature factor of each joint; empty for other mechanisms than cranks and rods."""
    factors = rows[rows["quantity"] == FACTOR].to_dict("records")
    shown = [f"{row['part']} {row['at_zero']:.2f} ({row['low']:.1f} to {row['high']:.1f})" for row in factors]
    return f"Armature over that of a motor, at zero (at all poses): {escape(', '.join(shown))}" if shown else ""


def _broken_limits(limits: pd.DataFrame) -> str:
    """The motor that the limits of the serial file overload most."""
    over = limits[limits["ratio"] > 1]
    if over.empty:
        return ""
    row = max(records(over), key=lambda row: float(row["ratio"]))
    return (
        f"Limits: at the limits of the serial file, '{row['part']}' needs {digits(row['ratio'])} times its limit "
        f"({100 * row['share']:.0f} % of the poses)"
    )


def sections(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[Section]:
    """The page.

    Args:
        tables: Of the study.
        record: Of the study.
    """
    errors, samples = tables["serial"], tables["serial_workspace"]
    blocks: list[Block] = [INTRODUCTION, *([list(record["notes"])] if record["notes"] else [])]
    if svg := error_bars(errors):
        blocks.append(
            Picture(svg=svg, alt="errors of efforts, plain and repaired", caption="Root mean square over peak.")
        )
    yield Section(title="Errors of the serial model", anchor="serial", blocks=blocks)
    if len(tables["serial_transmission"]):
        yield transmission(tables["serial_transmission"])
    yield Section(title="Shared joints", anchor="pairs", blocks=[table(tables["serial_pairs"])])
    yield Section(title="Errors", anchor="errors", blocks=folded_if_long("Errors", "all-errors", table(errors)))
    if pictures := list(_pictures(samples)):
        yield Section(title="Over the workspace", anchor="workspace", blocks=pictures)
    if len(tables["serial_limits"]):
        yield Section(title="Limits", anchor="limits", blocks=[table(tables["serial_limits"])])
    if "accuracy" in record:
        accuracy = {name: f"{error:.1e} of the peak" for name, error in record["accuracy"].items()}
        box = {f"{name} from, to": ends for name, ends in record.get("box", {}).items()}
        yield Section(title="The transmission as code", anchor="map", blocks=[facts({**accuracy, **box})])
    if "constants" in record:
        yield Section(title="Constants in serial_repaired.xml", anchor="constants", blocks=[facts(record["constants"])])


def _pictures(samples: pd.DataFrame) -> Iterator[Block]:
    """Quantities over the workspace."""
    if svg := effort_error(samples):
        caption = (
            "Errors of the motors' efforts at each pose, over the largest required effort of the pose. Both are root "
            "mean squares over rates and accelerations typical of random motions, without products of velocities."
        )
        yield Picture(svg=svg, alt="error of efforts over the workspace, before and after", caption=caption)
    captions = {
        "transmission": "Rate of each motor per rate of each joint.",
        "inertia": "Inertia at each joint.",
        "damping": "Damping at each joint.",
        "effort at rest": "Effort required by weights and springs at rest.",
        "safe effort": "The largest box of efforts at each pose without overload, and the limit of the serial model.",
    }
    for quantity, caption in captions.items():
        if svg := over_workspace(samples, quantity):
            yield Picture(svg=svg, alt=f"{quantity} over the workspace", caption=caption)


def _worst(errors: pd.DataFrame) -> list[Mapping[str, Any]]:
    """The largest errors of each quantity and part over all motions, with the largest peak."""
    figures = ["peak", *(f"{way}_rms" for way in WAYS)]
    worst = errors.groupby(["quantity", "part", "unit"], sort=False)[figures].max()
    return records(worst.reset_index())


def records(frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Rows of a table by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _line(row: Mapping[str, Any]) -> list[str]:
    errors = [_percent(row[f"{way}_rms"]) for way in WAYS]
    place = f"{row['quantity']} {row['part']}".removeprefix("effort ")
    return [escape(place), f"{digits(row['peak'])} {row['unit']}", *errors]


def _percent(error: float) -> str:
    return "" if pd.isna(error) else f"{100 * error:.2g} %"
