"""The figures of the site: how wrong files are as they are, and each robot at its start."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from docs.site.entries import Entry, worst_as_is
from loopcheck.validation.report.figures import COLORS, DASHES, as_svg

FEW = 3
"""Robots with at least one simulation of the unmodified file, required for a drawing."""


def as_is_errors(entries: Sequence[Entry]) -> dict[str, list[float]]:
    """Errors of the files as they are [-], by engine, sorted; engines with few are left out.

    Args:
        entries: All robots.
    """
    engines = dict.fromkeys(source.split("/")[0] for entry in entries for source in entry.findings)
    errors: dict[str, list[float]] = {}
    for engine in engines:
        findings = [worst_as_is(entry, engine) for entry in entries]
        finite = sorted(finding.error for finding in findings if finding is not None and np.isfinite(finding.error))
        if len(finite) >= FEW:
            errors[engine] = finite
    return errors


@as_svg
def as_is_figure(errors: dict[str, list[float]]) -> Figure | None:
    """Number of robots with an error above a value, by engine, on a logarithmic axis.

    Args:
        errors: Errors of unmodified simulations [-], by engine, sorted.
    """
    if not errors:
        return None
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for k, (engine, values) in enumerate(errors.items()):
        shares = 100 * np.arange(len(values), 0, -1) / len(values)
        look = {"color": COLORS[k % 6], "linestyle": DASHES[k % 7], "linewidth": 1.8}
        axes.step([*values, values[-1]], [*shares, 0], where="pre", label=f"{engine}, {len(values)} robots", **look)
    axes.axvline(0.01, color="#6b6b6b", linewidth=1.0)
    axes.annotate("1 %", (0.01, 102), ha="center", annotation_clip=False, fontsize=8)
    axes.set(xscale="log", ylim=(0, 100), xlabel="error of an effort / scale of its actuator [-]")
    axes.set_ylabel("robots with a larger error [%]")
    axes.legend(loc="best", handlelength=4)
    return figure
