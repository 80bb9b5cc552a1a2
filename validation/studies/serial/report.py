"""What a comparison of a closed mechanism and its stand-in says, on the terminal and on the page."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from validation.report.blocks import Block, Picture, Section, digits, facts, folded_if_long, table
from validation.report.terminal import table as shown_table

WAYS = {"plain": "as it is", "constant": "with constants", "function": "with functions of the pose"}
SHOWN = ("effort at joint", "effort at motor", "inertia", "damping", "weight", "spring", "effort at rest")
INTRODUCTION = (
    "Both models are moved alike at the joints that they share. D holds the joint velocities of the closed mechanism "
    "per unit rate of each shared joint; inertia, damping, springs and weights seen there are Dᵀ M D, Dᵀ C D and Dᵀ f, "
    "and motors turn with T = S D, so that efforts at the joints are Tᵀ times theirs. Errors are those of the stand-in "
    "over the peak of the closed mechanism, as largest and root mean square. Constants are the armature, damping and "
    "springs of joints, and mass centres and inertias of links, that come nearest over the workspace, as in "
    "serial_repaired.xml; functions are those of joint_map.py. A safe box "
    "holds limits of the joints, each independent of the others, that break no motor at any sample; alone means that "
    "the other joints give nothing."
)


def summary(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What the terminal says.

    Args:
        tables: Of the study.
        record: Of the study.
    """
    pairs = tables["serial_pairs"]
    if len(pairs):
        rows = [_pair(row) for row in records(pairs)]
        columns = [str(record["closed"]), str(record["serial"]), "paired by", "reached", "range in the stand-in"]
        yield shown_table(columns, rows, title="joints that both have")
    errors = tables["serial"]
    shown = errors[errors["quantity"].isin(SHOWN) & ~errors["part"].str.contains("×")]  # couplings are in the table
    if len(shown):
        columns = ["quantity", "", "peak", "unit", *(f"{words}, rms" for words in WAYS.values())]
        yield shown_table(
            columns, [_line(row) for row in _worst(shown)], title="error over the peak, each the worst of the motions"
        )
    limits = tables["serial_limits"]
    if len(limits):
        rows = [_limit(row) for row in records(limits)]
        yield shown_table(["limit", "", "low", "high", "unit", ""], rows, title="what limits mean")
    yield from record["notes"]
    unjudged = errors[errors["verdict"].isin(["not comparable", "informational"])]["note"]
    yield from (note for note in unjudged.unique() if note not in record["notes"])


def sections(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> Iterator[Section]:
    """The page.

    Args:
        tables: Of the study.
        record: Of the study.
    """
    from validation.studies.serial.pictures import error_bars

    errors, samples = tables["serial"], tables["serial_workspace"]
    blocks: list[Block] = [INTRODUCTION, *([list(record["notes"])] if record["notes"] else [])]
    if svg := error_bars(errors):
        blocks.append(
            Picture(svg=svg, alt="errors of efforts, plain and repaired", caption="Root mean square over peak.")
        )
    yield Section(title="What the stand-in loses", anchor="serial", blocks=blocks)
    yield Section(title="Joints that both have", anchor="pairs", blocks=[table(tables["serial_pairs"])])
    yield Section(title="Errors", anchor="errors", blocks=folded_if_long("Errors", "all-errors", table(errors)))
    if pictures := list(_pictures(samples)):
        yield Section(title="Over the workspace", anchor="workspace", blocks=pictures)
    if len(tables["serial_limits"]):
        yield Section(title="Limits", anchor="limits", blocks=[table(tables["serial_limits"])])
    if "accuracy" in record:
        accuracy = {name: f"{error:.1e} of the peak" for name, error in record["accuracy"].items()}
        box = {f"{name} from, to": ends for name, ends in record["box"].items()}
        yield Section(title="joint_map.py and joint_map.c", anchor="map", blocks=[facts({**accuracy, **box})])
    if "constants" in record:
        yield Section(title="What serial_repaired.xml has", anchor="constants", blocks=[facts(record["constants"])])


def _pictures(samples: pd.DataFrame) -> Iterator[Block]:
    """What changes over the workspace."""
    from validation.studies.serial.pictures import effort_error, over_workspace

    if svg := effort_error(samples):
        caption = (
            "What the motors' efforts are off by, pose by pose, over the largest that a pose needs: both as root mean "
            "square over rates and accelerations as random motions have them, products of velocities left out."
        )
        yield Picture(svg=svg, alt="error of efforts over the workspace, before and after", caption=caption)
    captions = {
        "transmission": "Rate of each motor per rate of each joint.",
        "inertia": "Inertia at each joint.",
        "damping": "Damping at each joint.",
        "effort at rest": "Effort that holds weights and springs.",
        "safe effort": "The largest box of efforts that breaks no motor, pose by pose, and the stand-in's limit.",
    }
    for quantity, caption in captions.items():
        if svg := over_workspace(samples, quantity):
            yield Picture(svg=svg, alt=f"{quantity} over the workspace", caption=caption)


def _worst(errors: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Of each quantity and part the largest errors of all motions, with the largest peak."""
    figures = ["peak", *(f"{way}_rms" for way in WAYS)]
    worst = errors.groupby(["quantity", "part", "unit"], sort=False)[figures].max()
    return records(worst.reset_index())


def records(frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Rows of a table by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _pair(row: Mapping[str, Any]) -> list[str]:
    names = [escape(f"{row[side]} ({row[f'{side}_body']})") for side in ("closed", "serial")]
    return [*names, row["by"], _range(row, "reached"), _range(row, "serial")]


def _limit(row: Mapping[str, Any]) -> list[str]:
    ends = [digits(row[end]) for end in ("low", "high")]
    return [f"{row['quantity']}: {row['kind']}", escape(row["part"]), *ends, row["unit"], _broken(row)]


def _line(row: Mapping[str, Any]) -> list[str]:
    errors = [_percent(row[f"{way}_rms"]) for way in WAYS]
    return [row["quantity"], escape(row["part"]), digits(row["peak"]), row["unit"], *errors]


def _percent(error: float) -> str:
    return "" if pd.isna(error) else f"{100 * error:.2g} %"


def _range(row: Mapping[str, Any], name: str) -> str:
    return f"{digits(row[f'{name}_low'])} to {digits(row[f'{name}_high'])} {row['unit']}"


def _broken(row: Mapping[str, Any]) -> str:
    if pd.isna(row["ratio"]):
        return ""
    return f"{digits(row['ratio'])} of its limit, beyond it at {100 * row['share']:.0f} % of the poses, {row['note']}"
