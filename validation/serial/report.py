"""Terminal output and page of a comparison of a closed mechanism and its serial model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.validation.report.blocks import Block, Picture, Section, digits, facts, folded_if_long, percent, table
from loopcheck.validation.report.terminal import of_tree
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.serial.pictures import effort_error, error_bars, over_workspace
from loopcheck.validation.serial.rows.limit_rows import GIVEN, SAFE
from loopcheck.validation.serial.rows.rows import (
    ARMATURE,
    AT_MOTOR,
    CONSTANT,
    FUNCTION,
    OF_URDF,
    PLAIN,
    PUBLIC,
    WAYS,
)
from loopcheck.validation.serial.rows.transmission_rows import BEST

EFFORTS = ("effort at joint", "effort at motor")
WAY_AT = {
    PLAIN: "as it is",
    PUBLIC: "factor",
    ARMATURE: "armature",
    CONSTANT: "MJCF",
    OF_URDF: "URDF",
    FUNCTION: "exact",
}
"""Columns of the terminal by the way of repair; those without a file have none."""
COLUMNS = ("joint", "armature", "in the file", "at zero", "per rotor", "effort limit")
"""Of the settings: fitted, of the file, with the inertia at zero, per inertia of a rotor, and of all joints at once."""
INTRODUCTION = (
    "Both models have the same motion at their shared joints. The motions of the closed mechanism per unit rate of "
    "each shared joint turn its mass matrix, damping, springs and weights into those at these joints. The "
    "transmission holds the rate of each motor per rate of each joint; its transpose turns efforts of the motors into "
    "efforts at the joints. An error is the root mean square of an effort error over the peak of that motor in that "
    "motion (of the closed mechanism); one figure for all is that of the worst motor and motion. Errors are of exactly "
    "what a file holds, along motions that chose nothing: five random ones about the middle of the workspace, "
    "one a hundred times slower, one on a base tilted by 45°, and the generated motion. "
    "Armature is fitted first, to the missing inertia over a grid of usual poses. Damping, mass centres and inertias "
    "of links, and springs (of mechanisms that have some) follow if they lower the error by a tenth. Each format is "
    "fitted anew with what it can hold. 'public' is the armature of public configurations, 'best' the armature fitted "
    "to the random motions themselves: no armature leaves less. Functions are in transmission.py or joint_map.py; the "
    "inertia changes with the pose, and only these have it. The safe box is the largest box of joint efforts, all at "
    "once and of any sign, that no motor exceeds at any pose; of cranks and rods it is proven by intervals. 'Alone' "
    "means zero effort at the other joints."
)
TRANSMISSION = (
    "Figures of the cranks and rods alone, over all poses within the joint ranges where each rod reaches and stands at "
    "least 18° from the line of its crank. The armature factor of a joint is the inertia that it feels per inertia of "
    "a motor's rotor (equal motors), the coupling factor the inertia that couples two joints. An effort limit 'alone' "
    "holds while the other joints need no effort; limits 'all together' hold in any combination. `low`, `median` and "
    "`high` are over the poses; `bound` is proven by interval arithmetic: no pose has a larger factor, and none asks a "
    "motor for more than its limit while the joints keep within this one. 'Per unit' means per unit of motor effort, "
    "of motors without a published limit. The best constant factor is the armature per rotor that comes nearest over "
    "the usual poses. Errors of constant factors are those of the efforts of equal rotors alone along random motions, "
    "root mean square over the peak: `median` is the mean over motors and motions, `high` the largest."
)


def summary(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Settings of the serial joints, effort errors, and the answer in a few lines.

    Args:
        tables: Tables of the study.
        record: Record of the study.
    """
    errors, limits = tables["serial"], tables["serial_limits"]
    shown = errors[errors["quantity"].isin(EFFORTS)]
    worst = _worst(shown) if len(shown) else []
    if "armature" in record:
        rows = list(_settings(record["armature"], tables["serial_pairs"], limits, tables["serial_transmission"]))
        yield shown_table(COLUMNS, rows, title="Settings of the serial joints, SI units")
        yield _settings_effect(record, worst)
    if worst:
        tree = of_tree(record.get("loops"))
        motors = [row for row in worst if row["quantity"] == AT_MOTOR]
        ways = [way for way in WAY_AT if any(not pd.isna(row[f"{way}_rms"]) for row in worst)]
        columns = ["motor", "peak", *(WAY_AT[way] for way in ways)]
        title = f"Effort error, rms over the peak, worst of all motions{tree}"
        yield shown_table(columns, [_line(row, ways) for row in motors or worst], title=title)
        yield _answer(worst, record)
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


def _settings(
    armatures: Sequence[Mapping[str, Any]], pairs: pd.DataFrame, limits: pd.DataFrame, figures: pd.DataFrame
) -> Iterator[list[str]]:
    """Armature and effort limit of each joint, beside those of the file, and the armature per inertia of a rotor."""
    best = figures[figures["quantity"] == BEST].set_index("part")["median"]
    closed = pairs.set_index("serial")["closed"]
    for row in armatures:
        joint = row["joint"]
        of_joint = limits[(limits["quantity"] == "effort") & (limits["part"] == closed[joint])]
        high = of_joint.set_index("kind")["high"]
        limit = digits(high[SAFE]) if SAFE in high else ""
        given = digits(high[GIVEN]) if GIVEN in high else "no limit"
        yield [
            escape(joint),
            "as it is" if row["needed"] is None else f"{row['needed']:.6g}",
            f"{row['file']:.4g}",
            f"{row['at_zero']:.4g}",
            f"{best[closed[joint]]:.3g}" if closed[joint] in best else "",
            f"{limit} ({given})" if limit else "",
        ]


def _settings_effect(record: Mapping[str, Any], worst: Sequence[Mapping[str, Any]]) -> str:
    """What the table of settings is worth, alone."""
    motors = [row for row in worst if row["quantity"] == AT_MOTOR]
    before, after = (max((float(row[f"{way}_rms"]) for row in motors), default=np.nan) for way in (PLAIN, ARMATURE))
    joints = ", ".join(escape(row["joint"]) for row in record["armature"])
    if not pd.isna(after):
        return (
            f"These armatures alone (serial_settings.py: Isaac Lab, mjlab): error {percent(after)}, without them "
            f"{percent(before)}."
        )
    if not record["rotors"]:
        remedy = "it is that of your rotor [kg m²] times 'per rotor'" if record["usual"] else "state it in the file"
        return f"Armature of {joints}: as it is, since the closed mechanism states no rotor inertia; {remedy}."
    return f"Armature of {joints}: as it is ({escape(record['settings'])})."


def _answer(worst: list[Mapping[str, Any]], record: Mapping[str, Any]) -> str:
    """Largest effort error of the motors, or of the joints, before and after each repair."""
    rows = [row for row in worst if row["quantity"] == AT_MOTOR] or worst
    largest = max(rows, key=lambda row: float(row["plain_rms"]))
    names = {**{way: WAYS[way] for way in (ARMATURE, CONSTANT, OF_URDF)}, FUNCTION: record.get("functions", "")}
    repairs = {name: max(float(row[f"{way}_rms"]) for row in rows) for way, name in names.items()}
    after = ", ".join(f"{percent(error)} with {name}" for name, error in repairs.items() if not pd.isna(error))
    coupling = record.get("coupling", "")
    left = f" Coupling at the start that no armature has: {escape(coupling)} of the inertia." if coupling else ""
    return (
        f"Serial model: effort error {percent(largest['plain_rms'])} of the peak at '{largest['part']}'"
        f"{f'; {after}' if after else ''}.{left}"
    )


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
    if "armature" in record:
        yield Section(title="What to write", anchor="settings", blocks=list(_answer_blocks(tables, record)))
    blocks: list[Block] = [INTRODUCTION]
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


def _answer_blocks(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[Block]:
    """Settings and what they leave of the error, before any explanation."""
    settings = _settings(
        record["armature"], tables["serial_pairs"], tables["serial_limits"], tables["serial_transmission"]
    )
    units = dict.fromkeys(COLUMNS[1:4], " [kg m² or kg]") | {COLUMNS[5]: " [N m or N]"}
    yield table(pd.DataFrame(settings, columns=[f"{name}{units.get(name, '')}" for name in COLUMNS]))
    errors = tables["serial"]
    worst = _worst(errors[errors["quantity"] == AT_MOTOR])
    if worst:
        yield _settings_effect(record, worst)
        ways = [way for way in WAYS if any(not pd.isna(row[f"{way}_rms"]) for row in worst)]
        rows = [_line(row, ways) for row in worst]
        yield table(pd.DataFrame(rows, columns=["motor", "peak", *(WAYS[way] for way in ways)]))
    yield list(record["notes"])


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


def _line(row: Mapping[str, Any], ways: Sequence[str]) -> list[str]:
    errors = ["" if pd.isna(row[f"{way}_rms"]) else percent(row[f"{way}_rms"]) for way in ways]
    return [escape(row["part"]), f"{digits(row['peak'])} {row['unit']}", *errors]
