"""Page and terminal output of a sweep."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import RenderableType

from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Block, Picture, Section, digits, facts, table
from loopcheck.validation.report.figures import COLORS, DASHES, as_svg, literal, make_panels, put_legend
from loopcheck.validation.studies.sweep import motions
from loopcheck.validation.studies.sweep.cases import COMPUTED, NO_MOTION, RESULTS, Variation, nominal
from loopcheck.validation.studies.sweep.statistics import BINS, KEPT, LOWEST, PER_DECADE, QUANTILES, Statistics, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COARSER = 5
"""Bins of the histogram per drawn bar: ten bars in a decade."""
BARS = 16
"""Number of drawn parameters, with the largest effects."""


_VARIED = {
    "all": "masses, moments of inertia, mass centres and lengths",
    "geometry": "lengths",
    "inertia": "masses, moments of inertia and mass centres",
}
_HEADERS = {
    "slope": "effort per +1 % [unit]",
    "interval": "± [unit]",
    "elasticity": "effort per +1 % [% of the effort]",
    "standardised": "standardised slope [-]",
    "value": "nominal value",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """All that the page is made from."""

    variation: Variation
    cases: int
    statistics: Statistics
    record: Mapping[str, Any]


def sections(sweep: SweepResult) -> list[Section]:
    """The page."""
    return [answer(sweep), distributions(sweep), sensitivities(sweep), failures(sweep), how(sweep)]


def derived(sweep: SweepResult) -> Mapping[str, pd.DataFrame]:
    """The tables that are written beside the data set."""
    return {
        "sweep_quantiles": quantiles(sweep),
        "sweep_sensitivity": sweep.statistics.sensitivity,
        "sweep_failures": sweep.statistics.reasons,
    }


def summary(sweep: SweepResult) -> Iterator[RenderableType]:
    """The quantiles of the error of each source, and failed comparisons, for the terminal."""
    shown = quantiles(sweep)[["source", "motion", "cases", "median", "99 %", "largest", "its case", "beyond it"]]
    shown = shown.rename(columns={"beyond it": "beyond tolerance"})
    rows = (
        [f"{value:.1e}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in shown.to_dict("records")
    )
    yield terminal.table(list(shown.columns), rows, title="relative effort error")
    for reason in sweep.statistics.reasons.to_dict("records"):
        line = f"{reason['source']}: {reason['result']}: {reason['cases']} cases, as {reason['first cases'][0]}"
        yield f"{line}: {reason['reason']}"
    yield sentence(sweep)


def tolerances() -> Mapping[str, float]:
    """The registered tolerance of each source [-]."""
    return {
        name: tolerance.relative_error
        for name, tolerance in registered().items()
        if tolerance.relative_error is not None
    }


def quantiles(sweep: SweepResult) -> pd.DataFrame:
    """Quantiles of the error by source and kind of motion [-]."""
    rows = []
    for (kind, source), tally in sweep.statistics.tallies.items():
        worst = tally.worst[0] if tally.worst else None
        rows.append(
            {
                "source": source,
                "motion": kind,
                "cases": tally.count,
                **{_percent(fraction): tally.quantile(fraction) for fraction in QUANTILES},
                "largest": worst.error if worst else math.nan,
                "its case": worst.case if worst else "",
                "tolerance": tolerances().get(source, math.nan),
                "beyond it": tally.beyond,
            }
        )
    return pd.DataFrame(rows)


def sentence(sweep: SweepResult) -> str:
    """Results of the cases in a sentence."""
    count = dict.fromkeys(RESULTS, 0)
    for (source, _, result), rows in sweep.statistics.results.items():
        count[result] += rows if source != sources.REFERENCE else 0
    others = len(sweep.variation.every_source) - 1
    beyond = sum(tally.beyond for tally in sweep.statistics.tallies.values())
    compared = sum(tally.count for tally in sweep.statistics.tallies.values())
    unmoved = count.pop(NO_MOTION) // others
    uncompared = ", ".join(f"{result} {rows}" for result, rows in count.items() if rows and result != COMPUTED)
    return (
        f"{sweep.cases} cases of {sweep.variation.name}, {others} source{'s' * (others != 1)} against "
        f"{sources.REFERENCE}: {compared} "
        f"comparisons, {beyond} with an error beyond the tolerance of the source. {unmoved} cases have no feasible "
        f"motion. Not compared: {uncompared or '–'}."
    )


def verdicts(sweep: SweepResult) -> list[str]:
    """A verdict on all errors of a source in a kind of motion, and a verdict on each kind of failure."""
    tallies = sweep.statistics.tallies.items()
    results = sweep.statistics.results.items()
    return [
        *(
            "disagree" if tally.beyond else "agree" if source in tolerances() else "informational"
            for (_, source), tally in tallies
            if tally.count
        ),
        *("not run" for (_, _, result), rows in results if rows and result == "not run"),
    ]


def answer(sweep: SweepResult) -> Section:
    """Results, and the quantiles."""
    variation, case = sweep.variation, nominal(sweep.variation).case
    about = (
        f"Mode {case.mode}, {case.configuration}. In every case each of {len(nominal(variation).varied)} parameters, "
        f"{_VARIED[variation.vary]}, has an error of up to ±{variation.spread:g} %, uniformly and independently, and "
        "all sources use this robot. Kinds of motion, in turn:"
    )
    shown = quantiles(sweep).rename(columns={"tolerance": "tolerance [-]", "largest": "largest [-]"})
    shown = shown.rename(columns={_percent(fraction): f"{_percent(fraction)} [-]" for fraction in QUANTILES})
    return Section(
        title="Answer",
        anchor="answer",
        blocks=[
            sentence(sweep),
            about,
            [f"{kind}: {motions.MEANING[kind]}" for kind in motions.KINDS if kind in variation.motions],
            "The error of a case is the largest error over time and actuators, each divided by the scale of its "
            f"actuator. Quantiles are accurate to {100 * (10 ** (1 / PER_DECADE) - 1):.0f} % of the error, and the "
            "largest error is "
            f"exact. This command repeats a single case: {_again(sweep)}",
            table(shown),
        ],
    )


def _again(sweep: SweepResult) -> str:
    variation, case = sweep.variation, nominal(sweep.variation).case
    options = [
        f"--seed {variation.seed}",
        f"--spread {variation.spread:g}",
        f"--vary {variation.vary}",
        f"--mode {case.mode}",
    ]
    options += [f"--configuration {case.configuration}", *(f"--motion {kind}" for kind in variation.motions)]
    options += [f"--source {source}" for source in variation.sources]
    return f"loopcheck study sweep {variation.target} {' '.join(options)} --case NUMBER"


def distributions(sweep: SweepResult) -> Section:
    """Histograms, and the worst cases."""
    svg = distribution_figure(sweep.statistics.tallies, tolerances())
    blocks: list[Block] = []
    if svg:
        caption = "Cases by effort error, on a logarithmic axis. The dotted line is the tolerance of the source."
        blocks.append(Picture(svg, alt=f"{sweep.variation.name}: distribution of the effort errors", caption=caption))
    worst = [
        {"source": source, "motion": kind, "case": one.case, "error [-]": one.error}
        for (kind, source), tally in sweep.statistics.tallies.items()
        for one in tally.worst
    ]
    if worst:
        part = Section(title="Worst cases", anchor="worst", folded=True, blocks=[table(pd.DataFrame(worst))])
        blocks.append(part)
    return Section(title="Distribution of the error", anchor="errors", blocks=blocks or ["No comparisons."])


def sensitivities(sweep: SweepResult) -> Section:
    """Sensitivity of the efforts to each parameter."""
    sensitivity = sweep.statistics.sensitivity
    svg = sensitivity_figure(sensitivity)
    if svg is None:
        why = "Not available: requires more cases with the robot's own motion than parameters, and a spread."
        return Section(title="Sensitivities", anchor="sensitivity", blocks=[why])
    values = {
        parameter.name: f"{digits(parameter.value)} {parameter.unit}" for parameter in nominal(sweep.variation).varied
    }
    shown = (
        sensitivity.assign(value=sensitivity["parameter"].map(values))
        .drop(columns=["told", "cases"])
        .rename(columns=_HEADERS)
    )
    shares = sensitivity.groupby("actuator", sort=False)["told"].first()
    cases = int(sensitivity["cases"].iloc[0])
    text = (
        f"A linear regression explains the root mean square effort of each actuator ({sources.REFERENCE}, the "
        f"robot's own motion) by the changes of all parameters together, over the {cases} cases with this motion. It "
        "explains "
        + ", ".join(f"{100 * part:.3g} % of the variance of {name}" for name, part in shares.items())
        + ". The rest is not linear. The standardised slope is the slope in units of both "
        "standard deviations: its square is the part of the variance caused by the parameter. Intervals are 95 %."
    )
    return Section(
        title="Sensitivities",
        anchor="sensitivity",
        blocks=[
            text,
            Picture(
                svg,
                alt=f"{sweep.variation.name}: effect of each parameter on the effort of each actuator",
                caption=f"Change of the root mean square effort for a 1 % larger parameter, for the {BARS} "
                "parameters with the largest effects, with 95 % intervals. Blue bars are more effort, vermilion bars "
                "are less.",
            ),
            Section(title="All parameters", anchor="parameters", folded=True, blocks=[table(shown)]),
        ],
    )


def failures(sweep: SweepResult) -> Section:
    """Failed comparisons, and their reasons."""
    reasons = sweep.statistics.reasons
    meaning = [f"{name}: {text}" for name, text in RESULTS.items()]
    if reasons.empty:
        return Section(
            title="Cases without a comparison", anchor="failures", blocks=["Every case was compared.", meaning]
        )
    shown = reasons.assign(**{"first cases": [", ".join(map(str, cases)) for cases in reasons["first cases"]]})
    text = f"The table counts the cases by reason, without the numbers in the reason, and names the first {KEPT} "
    "cases of each."
    return Section(title="Cases without a comparison", anchor="failures", blocks=[text, table(shown), meaning])


def how(sweep: SweepResult) -> Section:
    """Settings needed to repeat the sweep."""
    record = {"command": " ".join(map(str, sweep.record["command"])), "cases": sweep.cases}
    record |= {name: sweep.record[name] for name in ("start", "loopcheck", "versions", "scheduler", "model")}
    record |= {"duration [s]": sweep.record["duration_s"], **sweep.record["variation"]}
    record["spread [%]"] = record.pop("spread")
    seconds = {f"mean wall time of {source} [s]": value for source, value in sweep.statistics.seconds.items()}
    about = (
        f"Every motion has {motions.SAMPLES} samples, a pose has 1 sample: an exact comparison at this state. The "
        "robot and the motion of a case depend only on the seed and the number of the case, not on the number of "
        "workers. A length is measured from the origin of its body's frame, for the base from the middle of its "
        "points. Points move along their direction, so that parallel lines stay parallel. The data set, a row for "
        "each case and source, is in sweep_cases: Parquet files if pyarrow is installed (extra parquet), otherwise CSV."
    )
    return Section(title="Method", anchor="how", blocks=[about, facts(record), facts(seconds)])


def _percent(fraction: float) -> str:
    return "median" if fraction == 0.5 else f"{100 * fraction:g} %"


@as_svg
def distribution_figure(tallies: Mapping[tuple[str, str], Tally], tolerances: Mapping[str, float]) -> "Figure | None":
    """Cases by error, a panel for each kind of motion, a line for each source.

    Args:
        tallies: By kind of motion and source.
        tolerances: By source [-].
    """
    from matplotlib.ticker import LogLocator

    nonempty = {key: tally for key, tally in tallies.items() if tally.count}
    kinds = list(dict.fromkeys(kind for kind, _ in nonempty))
    if not kinds:
        return None
    sources = list(dict.fromkeys(source for _, source in tallies))
    figure, panels = make_panels(len(kinds), legend=2 * len(sources))
    edges = 10.0 ** (LOWEST + np.arange(0, BINS + 1, COARSER) / PER_DECADE)
    counts = {key: tally.histogram.reshape(-1, COARSER).sum(axis=1) for key, tally in nonempty.items()}
    filled = np.flatnonzero(sum(counts.values()))
    limits = [tolerances[source] for source in sources if source in tolerances]
    low, high = (
        edges[max(filled[0] - 2, 0)],
        max([edges[min(filled[-1] + 3, len(edges) - 1)], *(3 * x for x in limits)]),
    )
    for axes, kind in zip(panels, kinds, strict=True):
        for k, source in enumerate(sources):
            look = {"color": COLORS[k % 6], "linestyle": DASHES[k % 7]}
            if (kind, source) in counts:
                axes.stairs(counts[kind, source], edges, label=literal(source), linewidth=1.5, **look)
            if source in tolerances:
                style: Any = {"color": COLORS[k % 6], "linestyle": (0, (2, 1)), "linewidth": 1.0}
                axes.axvline(tolerances[source], label=literal(f"tolerance of {source}"), **style)
        axes.set(title=f"{kind} motion" if kind != "pose" else "single poses", xscale="log", xlim=(low, high))
        axes.set(xlabel="relative effort error [-]", ylabel="cases per tenth of a decade [-]")
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        axes.set_ylim(bottom=0)
    put_legend(figure, panels, columns=4)
    return figure


@as_svg
def sensitivity_figure(sensitivity: pd.DataFrame) -> "Figure | None":
    """Change of each actuator's effort per percent of each parameter, the largest effects on top."""
    from matplotlib.ticker import MaxNLocator

    if sensitivity.empty:
        return None
    sizes = sensitivity.assign(size=sensitivity["elasticity"].abs()).groupby("parameter", sort=False)["size"].max()
    shown = list(sizes.sort_values(ascending=False, kind="stable").index[:BARS])
    actuators = list(sensitivity["actuator"].unique())
    figure, panels = make_panels(len(actuators), legend=0, height=0.22 * len(shown) + 0.3)
    _make_room(panels)
    places = np.arange(len(shown))[::-1]
    for k, (axes, actuator) in enumerate(zip(panels, actuators, strict=True)):
        rows = sensitivity[sensitivity["actuator"] == actuator].set_index("parameter").loc[shown]
        positive = rows["slope"] >= 0
        colors = np.where(positive, COLORS[0], COLORS[1])
        axes.barh(places, rows["slope"], xerr=rows["interval"], color=colors, height=0.7, error_kw={"linewidth": 0.9})
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(places, [literal(name) for name in shown] if k % 3 == 0 else [""] * len(shown))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(literal(f"effort per +1 % [{rows['unit'].iloc[0]}]"))
        axes.set_title(literal(f"{actuator}, {100 * rows['told'].iloc[0]:.3g} % of the variance explained"))
        axes.grid(axis="y", visible=False)
    return figure


def _make_room(panels: "Sequence[Axes]") -> None:
    """Room for the names of the parameters, left of the first panel of each row."""
    left, gap = 0.2, 0.02
    columns = min(len(panels), 3)
    width = (1 - left - gap) / columns
    for k, axes in enumerate(panels):
        box = axes.get_position()
        axes.set_position((left + (k % columns) * width, box.y0, width - gap, box.height))
