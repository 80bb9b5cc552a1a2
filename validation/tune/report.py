"""Page of a tuning: before and after, the difference of the files, the proof, all runs, and parts of the error."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from loopcheck.validation.execution.invocation import pasted
from loopcheck.validation.report.blocks import Block, Cell, Code, Picture, Section, Table, digits, table
from loopcheck.validation.report.terminal import of_tree
from loopcheck.validation.report.terminal import table as shown_table
from loopcheck.validation.tune.budget import FLOOR, PRECISION, START
from loopcheck.validation.tune.pictures import shares_figure, work_precision

HEADERS = {
    "step": "step [s]",
    **{name: f"{name} [-]" for name in ("error", "rms", "start", "floor")},
    "window": "window [s]",
    "gap": "gap [m or rad]",
    "cost": "cost [1/s]",
}
SIGNS = {"+": "green", "-": "red"}
INTRODUCTION = (
    "Errors are the largest residual efforts of a run after its initial transient, over the peak effort of the worst "
    "actuator. The residual effort is the simulated effort minus the effort required by the closed loop for the "
    "simulated motion. The initial transient has a separate column. The search tries settings in the order of their "
    "cost, on the user's motion and on a random motion. The proof uses random motions outside of the search, a "
    "perturbed initial state, and slower and faster controllers. The cost counts solver iterations at all stages of "
    "all steps of a simulated second. Wall times are times of the engine's step on this machine."
)

METHOD = (
    "An unmodified simulation, judged by its own motion after its initial transient. The causes are removed step "
    "by step with the listed settings and the same controller; finer steps are averaged over each original step. "
    "The part of a cause is the change of the error by its removal. The parts and the rest add up to the error at "
    "every time. A share is the projection of a part on the error: shares add up to 1 and may be negative. "
    "Softness and step are removed in both orders: half the difference is the uncertainty of their shares, and "
    "above 20 % they are shown as one part. The initial transient is not a part: its size is 1 minus the impedance "
    "of the loops (1 - dmin in MuJoCo), in separate rows. Precision is not a part either: engines compute in double "
    "precision, and its row is the effect of changes in the last digits of the motion, that is round-off. Parts of "
    "an error below the noise floor of the log have no meaning."
)
PART_HEADERS = {name: f"{name} [unit]" for name in ("scale", "rms", "largest")} | {
    name: f"{name} [-]" for name in ("share", "uncertainty")
}
ROUNDED_UP = 1.1
"""Suggested accuracy over the least error of the tried settings [-]."""
LONGER = 4
"""Suggested CPU time over the time that did not suffice [-]."""
ANSWERS = {"agree": "Reached", "disagree": "Not reached", "not comparable": "Not comparable"}
"""First word of the answer, by verdict."""


def summary(rows: pd.DataFrame, record: Mapping[str, Any], folder: Path) -> Iterator[RenderableType]:
    """Terminal output: the settings before and after, the difference of the files, and the closing lines.

    Args:
        rows: The table of runs.
        record: Of the study.
    """
    if record.get("already"):
        yield f"{record['model']}: {record['already']}"
    columns, lines = before_and_after(rows, record)
    yield shown_table(columns, [[escape(cell) for cell in line] for line in lines], title=_title(record))
    for line in record.get("difference", ()):
        yield Text(line, style=SIGNS.get(line[:1], "") if not line.startswith(("+++", "---")) else "bold")
    yield f"{ANSWERS.get(record['verdict'], record['verdict'])}: {record['answer']}"
    if record.get("bandwidths"):
        yield f"Controller: {_controller(record)}"
    if record["notes"]:
        yield f"Note: {'; '.join(record['notes'])}"
    if record.get("files"):
        main, certificate = (str(folder / file) for file in record["files"])
        yield Text(f"Files: {main}, {certificate}")
        yield Text(f"Next: {pasted('tune', _verified(record, main), '--verify', certificate)}")
    else:
        if "unproven" in record:
            yield Text(f"File: {folder / record['unproven']} (unproven)")
        yield Text(f"Next: {pasted(_after_refusal(record)[1:])}")


def _controller(record: Mapping[str, Any]) -> str:
    """Bandwidths of the controller within the accuracy, in words."""
    found = record["bandwidths"]
    sides = {"below": "lower", "above": "higher"}
    fails = [f"fails at {found[side]:g}" if found[side] else f"{word} not tried" for side, word in sides.items()]
    return (
        f"holds from {found['lowest']:g} to {found['highest']:g} rad/s on the {found['motion']}, "
        f"proof at {record['controller_rad_s']:.3g} rad/s; {', '.join(fails)}"
    )


def _after_refusal(record: Mapping[str, Any]) -> list[str]:
    """The next command without a certificate: more time, the reached accuracy, or the reason of a missing verdict."""
    if "unproven" in record:
        longer = f"{LONGER * record['cpu_limit_s']:g}"
        command = [str(argument) for argument in record["command"]]
        if "--cpu-limit" in command:
            place = command.index("--cpu-limit")
            del command[place : place + 2]
        return [*command, "--cpu-limit", longer]
    model, engine = Path(record["model"]).stem, record["engine"]
    names = (str(argument) for argument in record.get("command") or ())
    target = next((name for name in names if Path(name).stem == model), str(record["model"]))
    source = ["--source", f"{engine}/as_is"]
    if "reached" not in record:
        return ["loopcheck", "check", target, *source]
    accuracy = f"{ROUNDED_UP * record['reached']:.2g}"
    kept = ["--keep-setting", ",".join(record["kept"])] if record["kept"] else []
    return ["loopcheck", "tune", target, *(source if engine != "mujoco" else []), "--accuracy", accuracy, *kept]


def _verified(record: Mapping[str, Any], main: str) -> str:
    """The model file of the command that verifies a certificate: the tuned model, or the model of a tuned script."""
    if main.endswith(".xml"):
        return main
    names = (str(argument) for argument in record.get("command") or ())
    return next((name for name in names if Path(name).name == record["checked"]), str(record["checked"]))


def sections(rows: pd.DataFrame, record: Mapping[str, Any]) -> Iterator[Section]:
    """The page.

    Args:
        rows: The table of runs.
        record: Of the study.
    """
    columns, lines = before_and_after(rows, record)
    already = [f"{record['model']}: {record['already']}"] if record.get("already") else []
    blocks: list[Block] = [
        *already,
        record["answer"],
        Table(columns, [[Cell(cell) for cell in line] for line in lines]),
    ]
    if record.get("bandwidths"):
        blocks.append(f"Bandwidth of the controller within the accuracy: {_controller(record)}.")
    if record["notes"]:
        blocks.append(f"Note: {'; '.join(record['notes'])}")
    if record.get("difference"):
        blocks.append(Code("\n".join(record["difference"])))
    yield Section(title=_title(record), anchor="tune", verdict=record["verdict"], blocks=[*blocks, INTRODUCTION])
    if svg := work_precision(rows, record["accuracy"]):
        alt = "error against cost of all tried settings"
        caption = "Errors and costs of all tried settings, each for its worst motion."
        yield Section(title="Work and precision", anchor="work", blocks=[Picture(svg=svg, alt=alt, caption=caption)])
    for phase, title in {"proof": "Proof", "search": "All runs"}.items():
        of_phase = rows[rows["phase"] == phase]
        if phase == "proof":
            of_phase = of_phase[of_phase["chosen"]]
        if len(of_phase):
            frame = of_phase.drop(columns=["phase", "chosen"]).rename(columns=HEADERS)
            folded = None if phase == "proof" else True
            yield Section(title=title, anchor=phase, folded=folded, blocks=[table(frame)])


def part_summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """Terminal output: parts of the error of the worst actuator, each with the setting that removes it.

    Args:
        rows: The table of parts.
    """
    for row in rows[rows["part"].fillna("") == ""].to_dict("records"):
        yield f"{row['source']}: {row['note']}"
    whole = rows[rows["part"] == "all"]
    if whole.empty:
        return
    actuator = whole["actuator"].iloc[int(np.argmax(np.nan_to_num(whole["rms"] / whole["scale"])))]
    of_worst = rows[(rows["actuator"] == actuator) & rows["part"].notna()].to_dict("records")
    without = {str(row["part"]): row for row in of_worst}
    lines = []
    for name, row in without.items():
        if "without " not in name:
            keys = [f"{START} without softness"] if name == START else [f"without {one}" for one in name.split(" × ")]
            removed = [without[key] for key in keys if key in without]
            settings = [without[f"without {key.split('without ')[1]}"]["setting"] for key in keys if key in without]
            lines.append(
                [
                    f"({name})" if name in (FLOOR, PRECISION, START) and np.isnan(row["share"]) else name,
                    "" if np.isnan(row["share"]) else f"{100 * row['share']:.1f} %",
                    _size(row),
                    " and ".join(_size(one) for one in removed),
                    escape(" and ".join(map(str, settings))),
                ]
            )
    columns = ["part", "share", "rms/scale [-]", "without it [-]", "setting that removes it"]
    about = of_worst[0]
    yield shown_table(columns, lines, title=f"{about['robot']} in {about['source']}: parts of the error of {actuator}")


def _size(row: Mapping[Any, Any]) -> str:
    """Root mean square, or if it is missing the largest value, over the scale."""
    return digits(float((row["largest"] if np.isnan(row["rms"]) else row["rms"]) / row["scale"]))


def part_sections(rows: pd.DataFrame) -> Iterator[Section]:
    """Parts of the error on the page, with their figure.

    Args:
        rows: The table of parts.
    """
    if rows.empty:
        return
    blocks: list[Block] = [METHOD]
    if svg := shares_figure(rows[rows["share"].notna() & (rows["part"] != "all")]):
        blocks.append(Picture(svg=svg, alt="shares of the parts of the error", caption="Shares of the settled error."))
    blocks.append(table(rows.drop(columns=["robot", "variant", "mode", "configuration"]).rename(columns=PART_HEADERS)))
    yield Section(title="Parts of the error of the unmodified simulation", anchor="budget", blocks=blocks)


def before_and_after(rows: pd.DataFrame, record: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of the table of figures and settings before and after.

    Args:
        rows: The table of runs.
        record: Of the study.
    """
    before = rows[rows["phase"] == "as it is"]
    own = before["purpose"].iloc[0] if len(before) else ""
    before = before[-1:] if np.isfinite(before["error"][-1:]).all() else before[:1]  # the last is one that follows
    proof = rows[(rows["phase"] == "proof") & rows["chosen"] & np.isfinite(rows["error"])]
    chosen = rows[rows["chosen"]] if "unproven" in record else proof
    after = chosen[chosen["purpose"] == own]
    lines = [
        [label, *(_figure(side[column]) for side in (before, after))]
        for label, column in {
            "effort error, settled [-]": "error",
            "effort error, initial transient [-]": "start",
            "widest loop gap [m or rad]": "gap",
            "cost [1/s]": "cost",
        }.items()
        if column != "gap" or record.get("loops") != 0
    ]
    worst = (
        [[f"worst of {len(proof)} runs of the proof [-]", "", digits(float(proof["error"].max()))]]
        if len(proof) and "unproven" not in record
        else []
    )
    times = [record.get(side, {}).get("seconds_per_simulated_second") for side in ("before", "after")]
    speed = [
        ["wall time per simulated second [µs]", *("" if time is None else digits(1e6 * time) for time in times)],
        ["real-time factor [-]", *("" if time is None else digits(1 / time) for time in times)],
    ]
    changed = [
        [name, record["before"].get(name, ""), value]
        for name, value in record["settings"].items()
        if record["before"].get(name) != value
    ]
    widths = [float(record.get(name) or np.nan) for name in ("controller_before_rad_s", "controller_rad_s")]
    controller = [["bandwidth of the controller [rad/s]", *map(digits, widths)]] if widths[0] < widths[1] else []
    return ["", "before", "after"], [*lines[:1], *controller, *worst, *lines[1:], *speed, *changed]


def _figure(values: "pd.Series[float]") -> str:
    """The first of some figures, or an empty text."""
    if not len(values):
        return ""
    return digits(float(values.iloc[0])) if np.isfinite(values.iloc[0]) else "cannot be judged"


def _title(record: Mapping[str, Any]) -> str:
    start = ", start included" if record["includes_start"] else ""
    model = f"{record['model']}{of_tree(record.get('loops'))}"
    return f"{model} in {record['engine']}: {100 * record['accuracy']:g} % of the peak effort{start}"
