"""Figures of a comparison: errors before and after the repair, and quantities over the workspace."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, WIDTH, as_svg, literal, make_panels, put_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {
    "plain_rms": "unmodified",
    "armature_rms": "serial_settings.py",
    "constant_rms": "serial_repaired.xml",
    "function_rms": "exact",
}
ERRORS = {"serial": "unmodified", "repaired": "with constants"}
LEAST = 1e-10
"""Errors below this are drawn at this value [-]."""
BAR = 0.2
"""Width of a bar, relative to the distance of groups [-]."""


@as_svg
def error_bars(errors: pd.DataFrame) -> "Figure | None":
    """Root mean square of the errors of efforts, worst motion, before and after each repair.

    Args:
        errors: The table of errors.
    """
    from matplotlib.figure import Figure

    rows = errors[errors["quantity"] == "effort at motor"]
    if rows.empty:
        return None
    worst = rows.groupby(["quantity", "part"], sort=False)[list(WAYS)].max()
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.add_axes((0.08, 0.2, 0.9, 0.66))
    places = np.arange(len(worst))
    for k, (way, words) in enumerate(WAYS.items()):
        heights = np.maximum(worst[way], LEAST)
        axes.bar(places + (k - (len(WAYS) - 1) / 2) * BAR, heights, BAR, color=COLORS[k], label=words)
    labels = [literal(str(part)) for _, part in worst.index]
    axes.set_xticks(places, labels)
    axes.set(yscale="log", ylabel="rms error / peak [-]", axisbelow=True)
    put_legend(figure, [axes])
    return figure


@as_svg
def over_workspace(samples: pd.DataFrame, quantity: str) -> "Figure | None":
    """A quantity of both models over one joint, or their difference over two joints.

    Args:
        samples: The table of the workspace.
    """
    positions = samples[samples["quantity"] == "position"].pivot(index="sample", columns="part", values="closed")
    rows = samples[samples["quantity"] == quantity]
    parts = list(dict.fromkeys(rows["part"]))[:12]
    if not parts:
        return None
    figure, panels = make_panels(len(parts), legend=2)
    poses = samples[samples["quantity"] == "position"].drop_duplicates("part")
    names = list(poses["part"])
    labels = {row["part"]: literal(f"{row['part']} [{row['unit']}]") for row in poses.to_dict("records")}
    for axes, part in zip(panels, parts, strict=True):
        of_part = rows[rows["part"] == part].set_index("sample")
        unit = of_part["unit"].iloc[0]
        if len(names) == 2:
            x, y = (positions[name] for name in names)
            lacking = of_part["serial"] - of_part["closed"]
            is_compared = bool(lacking.notna().any())
            marks = axes.scatter(x, y, c=lacking if is_compared else of_part["closed"], s=9, cmap="viridis")
            figure.colorbar(marks, ax=axes)
            title = f"{part}{': serial minus closed' if is_compared else ''} [{unit}]"
            axes.set(title=literal(title), xlabel=labels[names[0]], ylabel=labels[names[1]])
            continue
        own = next((name for name in names if part.endswith(name)), names[0])
        for side, colour in (("closed", COLORS[0]), ("serial", COLORS[1])):
            if of_part[side].notna().any():
                label = "closed mechanism" if side == "closed" else "stand-in"
                axes.plot(positions[own], of_part[side], ".", color=colour, label=label)
        axes.set(title=literal(part), xlabel=labels[own], ylabel=literal(f"{quantity} [{unit}]"))
    if len(names) != 2:
        put_legend(figure, panels)
    return figure


@as_svg
def effort_error(samples: pd.DataFrame) -> "Figure | None":
    """Error of each motor's effort at each pose, as it is and with constants: against a joint, or over two.

    Args:
        samples: The table of the workspace.
    """
    rows = samples[samples["quantity"] == "effort error"]
    parts = list(dict.fromkeys(rows["part"]))[:6]
    if not parts:
        return None
    places = samples[samples["quantity"] == "position"]
    positions = places.pivot(index="sample", columns="part", values="closed")
    units = places.drop_duplicates("part").set_index("part")["unit"]
    labels = [literal(f"{name} [{unit}]") for name, unit in units.items()]
    figure, panels = make_panels(2 * len(parts), legend=2)
    for place, part in enumerate(parts):
        of_part = rows[rows["part"] == part].set_index("sample")
        highest = max(float(of_part[side].max()) for side in ERRORS)
        for axes, (side, words) in zip(panels[2 * place : 2 * place + 2], ERRORS.items(), strict=True):
            if len(labels) > 1:
                x, y = (positions[name] for name in units.index[:2])
                marks = axes.scatter(x, y, c=of_part[side], s=9, cmap="viridis", vmin=0, vmax=highest)
                figure.colorbar(marks, ax=axes)
                axes.set(ylabel=labels[1])
            else:
                axes.plot(positions[units.index[0]], of_part[side], ".")
                axes.set(ylabel="rms error / largest rms [-]", ylim=(0, 1.05 * highest or 1.0))
            axes.set(title=literal(f"{part}, {words}"), xlabel=labels[0])
    return figure
