"""Page of the computed-torque study."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from loopcheck.validation.report.blocks import Block, Picture, Section, Table, cell, digits, facts, plain, table
from loopcheck.validation.report.figures import COLORS, DASHES, MARKERS, as_svg, make_panels
from loopcheck.validation.studies.control.perturbation import KINDS
from loopcheck.validation.studies.control.runs import INDICES, KEY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS: Mapping[str, str] = {"ISE": "m² s", "IAE": "m s", "ITAE": "m s²"}
_REFERENCE: Mapping[str, Any] = {"color": "#a3a3a3", "linewidth": 4.0, "zorder": 1.5, "label": "reference"}


CLASSICAL, EXTENDED, TASK = "classical", "extended", "task space"
GROUP = ["plant", "mode", "seed", "kind"]
DECIDES = 0.9
"""Share of the difference between two controllers from which one kind of error is its cause [-]."""


def sections(tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> list[Section]:
    """The page, from the tables of runs and histories and the record of the study."""
    runs, histories = tables["ctc_runs"], tables["ctc_histories"]
    detail = [one_run(histories, record["varied"])] if len(histories) else []
    return [answer(runs, record), indices(runs), why(runs), *detail, elsewhere(runs), diverged(runs), how(record)]


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Means and spread over the templates, wins by ISE, and diverged runs, for each controller and level."""
    keys = [*GROUP, "controller", "level"]
    same = [name for name in KEY if name != "controller"]
    best = runs["ISE"] == runs.groupby(same)["ISE"].transform("min")
    groups = runs.assign(win=best, diverged=runs["diverged_at"].notna()).groupby(keys, sort=False)
    columns = {"runs": groups.size(), "diverged": groups["diverged"].sum(), "wins": groups["win"].sum()}
    for index in INDICES:
        columns |= {f"mean {index}": groups[index].mean(), f"deviation {index}": groups[index].std(ddof=1)}
    return pd.DataFrame(columns).reset_index()


def answer(runs: pd.DataFrame, record: Mapping[str, Any]) -> Section:
    """The results, in a few sentences."""
    number_diverged = int(runs["diverged_at"].notna().sum())
    groups = _groups(runs, "all")
    sentences = [f"{len(runs)} runs, {number_diverged} diverged{_by_controller(runs)}."]
    for group in groups[:1]:
        sentences += [_against(runs, *group, CLASSICAL), _source_of(runs, *group), _against(runs, *group, TASK)]
    if len(groups) > 1:
        sentences += [_everywhere(runs, groups, CLASSICAL), _everywhere(runs, groups, TASK)]
    entries = {
        "command": " ".join(map(str, record["command"])),
        "start": record["start"],
        "duration [s]": record["duration_s"],
    }
    return Section(title="Answer", anchor="answer", blocks=[*(text for text in sentences if text), facts(entries)])


def indices(runs: pd.DataFrame) -> Section:
    """Indices by level and controller, for each plant, mode and seed."""
    parts: list[Section] = []
    for group in _groups(runs, "all"):
        rows = _of(runs, *group, "all")
        title = _where(*group)
        picture = Picture(
            indices_figure(rows) or "",
            alt=f"{title}: ISE, IAE and ITAE of each controller against the level of perturbation",
            caption="Mean over the templates; bars: the range. Diverged runs are excluded (see below).",
        )
        shown = summary(rows).drop(columns=GROUP).rename(columns=_with_units)
        parts.append(Section(title=title, anchor=f"indices-{len(parts) + 1}", blocks=[picture, table(shown)]))
    text = (
        "Indices of the position error of P over the run, as the paper's figures 4 to 6. They are cut at T_end: the "
        "paper integrates to infinity, but the error of a wrong model does not die out, so that a longer run gives "
        "larger indices. A win is the smallest ISE of the controllers on the same robot."
    )
    return Section(title="Indices", anchor="indices", blocks=[text, *parts])


def why(runs: pd.DataFrame) -> Section:
    """Effects of wrong lengths and of wrong masses."""
    blocks: list[Block] = [
        "Mean ISE [m² s] with errors in all parameters, in the lengths only (geometry: L, l, d), or in all parameters "
        "except the lengths (inertia: masses, mass centres, moments of inertia).",
    ]
    for group in dict.fromkeys(group for kind in runs["kind"].unique() for group in _groups(runs, kind)):
        of_group = runs[(runs[GROUP[:3]] == list(group)).all(axis=1)]
        wide = of_group.pivot_table(index=["kind", "level"], columns="controller", values="ISE", sort=False)
        blocks += [_where(*group), table(wide.reset_index().rename(columns={"level": "level [%]"}))]
    blocks += [
        [
            "Classical CTC drives the motors to the angles of the nominal lengths. This works well, but on a "
            "robot with different lengths the pose is different, an error that the motor angles do not contain.",
            "The passive encoders detect this error: the pose from all six angles is close to the true pose, because "
            "each leg reaches its corner by two measured angles, and the errors of the legs are averaged.",
            "Extended CTC cannot bring six errors to zero with three motors. Its steady state is D Kp e = 0, a "
            "compromise weighted by inertia. Task-space CTC brings the averaged pose itself to its reference.",
            "The comparison with task-space CTC, with the same sensors and the model in active joints, shows whether "
            "the redundant model itself has an advantage.",
        ]
    ]
    return Section(title="Why", anchor="why", blocks=blocks)


def one_run(histories: pd.DataFrame, varied: Mapping[str, Any]) -> Section:
    """Histories of one robot, as the paper's figures 7 to 9."""
    about = (
        f"mode {varied['modes'][0]}, seed {varied['seeds'][0]}, template 0, {max(varied['levels']):g} %, exact plant"
    )
    largest = histories.groupby("controller", sort=False)["error"].max()
    return Section(
        title="One robot in detail",
        anchor="one-run",
        blocks=[
            f"{about}. Largest position error: "
            + ", ".join(f"{name} {digits(1e3 * float(value))} mm" for name, value in largest.items())
            + ".",
            Picture(
                error_figure(histories) or "",
                alt=f"{about}: position error over time and path of P for each controller",
                caption="Grey: the reference circle. All controllers start on it.",
            ),
            Picture(
                joints_figure(histories) or "",
                alt=f"{about}: distance of each joint from its nominal reference over time",
                caption="Distance of the joints from the joints of the nominal robot. Classical CTC measures only qa.",
            ),
        ],
    )


def elsewhere(runs: pd.DataFrame) -> Section:
    """Effect of plant, mode and seed."""
    rows = []
    for group in _groups(runs, "all"):
        ratios = _ratios(_of(runs, *group, "all"), CLASSICAL)
        same = _ratios(_of(runs, *group, "all"), TASK)
        rows.append([cell(str(name)) for name in group] + [cell(float(v)) for v in (*_range(ratios), *_range(same))])
    columns = [*GROUP[:3], "classical/extended, least", "most", "task space/extended, least", "most"]
    text = (
        "Ratios of mean ISE over the levels. Extended CTC is better above 1."
        if len(rows) > 1
        else "Only one plant, mode and seed was run. Repeat --mode, --seed or --plant to compare several."
    )
    return Section(title="Other plants, modes and seeds", anchor="elsewhere", blocks=[text, Table(columns, rows)])


def diverged(runs: pd.DataFrame) -> Section:
    """Runs that diverged."""
    stopped = runs[runs["diverged_at"].notna()]
    rows: Block = table(stopped[[*KEY, "diverged_at"]].rename(columns=_with_units)) if len(stopped) else "None."
    text = (
        "A run diverges if P is farther from its reference than the radius of the circle, or if a leg cannot reach. "
        "It is excluded from all means, which favours the controller that diverged."
    )
    return Section(title="Diverged runs", anchor="diverged", blocks=[text, rows])


def how(record: Mapping[str, Any]) -> Section:
    """Settings and assumptions."""
    chosen = [
        "Each length, mass centre, mass and moment of inertia of each leg and of the platform is multiplied by 1 + p, "
        "1 or 1 − p with equal chances. Base points are right. The same templates serve all levels and kinds.",
        "Encoders are exact, the motors apply the commanded torque, and there is no friction.",
        "Every robot starts on the circle with the reference velocity.",
        "In (59) Extended CTC takes G of (58), because of the dimensions. The paper prints G_r.",
        "Classical CTC solves (30) for the passive joints from the motors' angles, by Newton's method.",
    ]
    settings = {name: plain(value) for name, value in {**record["varied"], **record["held"]}.items()}
    return Section(title="Settings and assumptions", anchor="settings", blocks=[chosen, facts(settings)])


def _by_controller(runs: pd.DataFrame) -> str:
    counts = runs.loc[runs["diverged_at"].notna(), "controller"].value_counts()
    return f" ({', '.join(f'{name} {count}' for name, count in counts.items())})" if len(counts) else ""


def _groups(runs: pd.DataFrame, kind: str) -> list[tuple[str, str, int]]:
    """Plants, modes and seeds that were run with a kind of perturbation."""
    rows = runs.loc[runs["kind"] == kind, GROUP[:3]].drop_duplicates()
    return [(str(plant), str(mode), int(seed)) for plant, mode, seed in rows.itertuples(index=False, name=None)]


def _of(runs: pd.DataFrame, plant: str, mode: str, seed: int, kind: str) -> pd.DataFrame:
    return runs[(runs[GROUP] == [plant, mode, seed, kind]).all(axis=1)]


def _where(plant: str, mode: str, seed: int) -> str:
    return f"{plant} plant, mode {mode}, seed {seed}"


def _ratios(rows: pd.DataFrame, other: str) -> Sequence[float]:
    """Mean ISE of a controller relative to Extended CTC, by level."""
    means = _paired(rows, other).groupby("level").mean()
    return [float(value) for value in means[other] / means[EXTENDED]]


def _paired(rows: pd.DataFrame, other: str) -> pd.DataFrame:
    """ISE of a controller and of Extended CTC on each robot without divergence."""
    wide = rows.pivot(index=["level", "template"], columns="controller", values="ISE")
    return wide[[other, EXTENDED]].dropna()


def _range(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (float("nan"), float("nan"))


def _against(runs: pd.DataFrame, plant: str, mode: str, seed: int, other: str) -> str:
    """Comparison of Extended CTC with another controller, in words."""
    ratios = _ratios(_of(runs, plant, mode, seed, "all"), other)
    if not ratios:
        return ""
    low, high = _range(ratios)
    better = sum(ratio > 1 for ratio in ratios)
    verdict = f"is smaller at {better} of {len(ratios)} levels"
    return (
        f"{_where(plant, mode, seed)}: the mean ISE of Extended CTC {verdict} than that of {other} CTC, which is "
        f"{digits(low)} to {digits(high)} times as large."
    )


def _everywhere(runs: pd.DataFrame, groups: Sequence[tuple[str, str, int]], other: str) -> str:
    """Sentence on Extended CTC against another controller in all plants, modes and seeds."""
    worse = [group for group in groups if min(_ratios(_of(runs, *group, "all"), other), default=0.0) <= 1]
    exceptions = f"; not so: {'; '.join(_where(*group) for group in worse)}" if worse else ""
    return (
        f"Extended CTC has a smaller mean ISE than {other} CTC at every level in {len(groups) - len(worse)} of "
        f"{len(groups)} combinations of plant, mode and seed{exceptions}."
    )


def _source_of(runs: pd.DataFrame, plant: str, mode: str, seed: int) -> str:
    """Kind of parameters with the larger effect against classical CTC, in words."""
    gaps: dict[str, float] = {}
    for kind in KINDS:
        rows = _of(runs, plant, mode, seed, kind)
        if rows.empty:
            return ""
        means = _paired(rows, CLASSICAL).mean()
        gaps[kind] = float(means[CLASSICAL] - means[EXTENDED])
    shares = {kind: gaps[kind] / gaps["all"] for kind in ("geometry", "inertia")}
    maker = next((kind for kind, share in shares.items() if share > DECIDES), "neither alone")
    parts = ", ".join(f"{kind} alone {100 * share:.3g} %" for kind, share in shares.items())
    return (
        f"{_where(plant, mode, seed)}: of the difference to classical CTC in mean ISE, wrong {parts}. "
        f"Cause of the difference: {maker}."
    )


def _with_units(column: str) -> str:
    units = {**{f"{what} {index}": f"[{unit}]" for index, unit in UNITS.items() for what in ("mean", "deviation")}}
    units |= {"level": "[%]", "diverged_at": "[s]"}
    return f"{column} {units[column]}" if column in units else column


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
