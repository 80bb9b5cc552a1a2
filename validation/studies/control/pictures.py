"""The figures of the study, as the paper's figures 4 to 9."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.validation.report.figures import COLORS, DASHES, MARKERS, as_svg, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS: Mapping[str, str] = {"ISE": "m² s", "IAE": "m s", "ITAE": "m s²"}
_REFERENCE: Mapping[str, Any] = {"color": "#a3a3a3", "linewidth": 4.0, "zorder": 1.5, "label": "reference"}


@as_svg
def indices_figure(runs: pd.DataFrame) -> "Figure | None":
    """Indices against the level of perturbation: means, and the range over the templates (figures 4 to 6)."""
    controllers = list(runs["controller"].unique())
    figure, panels = make_panels(len(UNITS), legend=len(controllers))
    for axes, (index, unit) in zip(panels, UNITS.items(), strict=True):
        for k, controller in enumerate(controllers):
            rows = runs[runs["controller"] == controller].groupby("level")[index]
            mean, low, high = rows.mean(), rows.min(), rows.max()
            bars = np.stack([mean - low, high - mean])
            shift = 0.06 * (k - (len(controllers) - 1) / 2)  # error bars stand side by side
            axes.errorbar(
                mean.index.to_numpy(float) + shift,
                mean,
                yerr=bars,
                capsize=2,
                elinewidth=0.8,
                label=controller,
                **_look(k),
            )
        axes.set(title=index, xlabel="parameters off by [%]", ylabel=f"{index} [{unit}]")
        axes.set_ylim(bottom=0)
    _put_legend(figure, panels[0])
    return figure


@as_svg
def error_figure(histories: pd.DataFrame) -> "Figure | None":
    """Position error over time (figure 7) and path of the tool centre point (figure 8)."""
    figure, panels = make_panels(2, legend=4)
    for k, (controller, rows) in enumerate(histories.groupby("controller", sort=False)):
        panels[0].plot(rows["t"], 1e3 * rows["error"], label=str(controller), **_look(k, len(rows)))
        panels[1].plot(rows["x"], rows["y"], **_look(k, len(rows)))
        if not k:
            panels[1].plot(rows["x_ref"], rows["y_ref"], **_REFERENCE)
    panels[0].set(title="position error of P", xlabel="time [s]", ylabel="error [mm]")
    panels[0].set_ylim(bottom=0)
    panels[1].set(title="path of P", xlabel="x [m]", ylabel="y [m]", aspect="equal")
    _put_legend(figure, panels[0], panels[1])
    return figure


@as_svg
def joints_figure(histories: pd.DataFrame) -> "Figure | None":
    """Errors of all joints over time (figure 9 shows the joints themselves, with coinciding lines)."""
    names = [f"{kind}{i}" for kind in ("qa", "qp") for i in (1, 2, 3)]
    figure, panels = make_panels(len(names), legend=3, height=1.9)
    for axes, name in zip(panels, names, strict=True):
        for k, (controller, rows) in enumerate(histories.groupby("controller", sort=False)):
            difference = rows[name] - rows[f"{name}_ref"]
            axes.plot(rows["t"], difference, label=str(controller), **_look(k, len(rows)))
        axes.set(title=name, xlabel="time [s]", ylabel="q − reference [rad]")
    _put_legend(figure, panels[0])
    return figure


def _look(k: int, points: int = 0) -> dict[str, Any]:
    """Colour, dashes and markers of the k-th controller."""
    look: dict[str, Any] = {
        "color": COLORS[k],
        "linestyle": DASHES[k],
        "marker": MARKERS[k],
        "markeredgecolor": "white",
    }
    return {**look, "markevery": (k * points // 30, max(1, points // 8))} if points else look


def _put_legend(figure: "Figure", *panels: Any) -> None:
    entries: dict[str, Any] = {}
    for axes in panels:
        entries |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(list(entries.values()), list(entries), loc="upper center", ncols=5, handlelength=4, borderaxespad=0.3)
