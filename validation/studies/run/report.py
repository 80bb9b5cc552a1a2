"""The report of a run, made from its tables alone: one self-contained HTML file, and the same as Markdown.

A report is a list of sections. Each is a function of the results and returns a part: blocks under a heading. One
template shows the blocks as HTML, another as Markdown, so that both say the same.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from validation.execution.journal import Task
from validation.judge.independence import IN_WORDS, bases
from validation.judge.results import Results
from validation.judge.verdicts import (
    CASE,
    FILE,
    JUDGED,
    MEANING,
    SEVERITY,
    CaseVerdict,
    Key,
    about_robots,
    case_verdicts,
    gravest,
    reference_of,
    verdict_counts,
    worst,
)
from validation.report import charts, figures, schematic
from validation.report.blocks import (
    NOTHING,
    Block,
    Cell,
    Movie,
    Picture,
    Section,
    Table,
    cell,
    digits,
    facts,
    folded_if_long,
    plain,
    svg_uri,
    table,
)
from validation.studies.run.divergence import audit_section

_RUN_HEADERS = {
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "wall_time": "wall time [s]",
}
_LIMITS = {
    "source": "source",
    "relative_error": "relative error [-]",
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "power_imbalance": "power imbalance [-]",
    "noise": "noise [-]",
    "margin": "margin [-]",
    "noise_from": "noise from",
}


UNBOUNDED = 1e100
"""A size above this stands for no upper bound."""
NAMED = 3
"""So many robots are named in the headline; of more, their number is said."""


def title(results: Results) -> str:
    """Title of the page."""
    return f"loopcheck: {', '.join(about_robots(results)) or 'no robot'}"


def answer(results: Results) -> Section:
    """The answer: one sentence, one picture of all sources, the robot moving; then what was run."""
    counts, run, found = verdict_counts(results), results.run, _found_of_sources(results)
    known = {
        "command": " ".join(map(str, run.get("command") or ())),
        "start": run.get("start"),
        "duration [s]": run.get("duration_s"),
        "step of the report grid [s]": run.get("dt"),
        "the user's own tolerances [-]": (run.get("tolerances") or {}).get("own"),
        "loopcheck": run.get("loopcheck"),
        "versions": run.get("versions"),
        "CPU": run.get("cpu"),
    }
    return Section(
        title="Answer",
        anchor="answer",
        blocks=[
            _headline(list(about_robots(results)), found),
            Task(_overview_picture, (found,)),
            Task(_first_movie, (_part_of(results, "points", "frames"),)),
            f"{_sentence(counts)} {_grounds(results)}",
            *_overview(results),
            Table(list(counts), [[Cell(str(n), verdict if n else "") for verdict, n in counts.items()]]),
            "A case is a robot in a variant, mode and configuration; a comparison is one source in one case. The error "
            "of an actuator is its largest distance from the reference over time; relative means divided by the scale "
            "of that actuator: the largest sum, over time, of the magnitudes of all that acts on it, body by body, "
            "inertia, weight and loads apart. Neither units nor actuators are mixed.",
            Section(title="This run", anchor="this-run", folded=True, blocks=[facts(known)]),
        ],
    )


def _headline(robots: Sequence[str], found: Mapping[str, Sequence[CaseVerdict]]) -> str:
    """Which sources agree with the reference in every case and which do not, in one sentence."""
    subject = ", ".join(robots) if len(robots) <= NAMED else f"{len(robots)} robots"
    whole = {source: gravest(several) for source, several in found.items()}
    by_verdict = {verdict: [s for s, finding in whole.items() if finding.verdict == verdict] for verdict in MEANING}
    judged, agreeing = sum(len(by_verdict[verdict]) for verdict in JUDGED), by_verdict["agree"]
    others = [f"{verdict}: {', '.join(by_verdict[verdict])}" for verdict in JUDGED[1:] if by_verdict[verdict]]
    off = [whole[source].error for source in by_verdict["informational"] if math.isfinite(whole[source].error)]
    unjudged = [f"{len(off)} informational off by up to {digits(float(f'{100 * max(off):.2g}'))} %"] if off else []
    if not judged:
        agreement = "nothing was judged, so nothing is known to agree"
    elif not agreeing:
        agreement = f"none of {judged} judged sources agrees"
    else:
        number = f"{len(agreeing)} of {judged}" if others else f"all {judged}"
        who = f"{agreeing[0]} agrees" if len(agreeing) == 1 else f"{number} judged sources agree"
        most = max(whole[source].error for source in agreeing)
        agreement = f"{who} with the reference, within {most:.1e} of the scale"
    return f"{subject or 'no robot'}: {'; '.join([agreement, *others, *unjudged])}."


def _found_of_sources(results: Results) -> Mapping[str, Sequence[CaseVerdict]]:
    """What was found in each case, by source: of the reference, then of the judged and the informational ones."""
    of_cases = case_verdicts(results).values()
    found = {name: [of_case[name] for of_case in of_cases if name in of_case] for name in _sources(results)}
    order = {"reference": 0, "informational": 2}
    named = {name: several for name, several in found.items() if several}
    return dict(sorted(named.items(), key=lambda item: order.get(gravest(item[1]).verdict, 1)))


def _overview_picture(found: Mapping[str, Sequence[CaseVerdict]]) -> list[Block]:
    """The errors of all sources beside their tolerances."""
    svg = figures.overview_figure(found)
    said = (
        f"{source} {gravest(several).verdict} {digits(gravest(several).error)}" for source, several in found.items()
    )
    caption = (
        "A mark is the largest error in a case; the largest with the worst verdict is written. Filled: judged by the "
        "tolerance, the black stroke. Hollow: not judged."
    )
    return [Picture(svg, alt=f"largest error of each source: {', '.join(said)}", caption=caption)] if svg else []


def _overview(results: Results) -> Iterable[Block]:
    """The matrix of robots and configurations by sources: the worst of all modes and variants."""
    found, anchors, names = case_verdicts(results), _anchors(results), _sources(results)
    groups: dict[tuple[str, str], list[Key]] = {}
    for case in found:
        groups.setdefault((case[0], case[3]), []).append(case)
    rows = []
    for (robot, configuration), of_group in groups.items():
        told = [[found[case][name] for case in of_group if name in found[case]] for name in names]
        link = anchors[of_group[0]]
        rows.append(
            [
                Cell(robot, link=link),
                Cell(configuration),
                *(_verdict_cell(worst(several) if several else None) for several in told),
            ]
        )
    if rows:
        yield Table(["robot", "configuration", *names], rows)
        yield "The worst verdict and the worst relative error of all modes, variants and actuators."


def _sentence(counts: Mapping[str, int]) -> str:
    judged = sum(counts[verdict] for verdict in JUDGED)
    rest = ", ".join(f"{counts[name]} {name}" for name in ("as expected", "informational") if counts[name])
    extra = f" Besides: {rest}." if rest else ""
    if not judged:
        return f"Nothing was judged, so nothing is known to agree.{extra}"
    if counts["agree"] == judged:
        return f"All {judged} judged comparisons agree with the reference.{extra}"
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in JUDGED)
    return f"Of {judged} judged comparisons with the reference: {parts}.{extra}"


def _grounds(results: Results) -> str:
    """What the verdicts rest on, over all cases."""
    grounds, all_cases = bases(results), len(case_verdicts(results))
    if not all_cases:
        return "There is no case whose verdict could rest on anything."
    alone = {case: basis.text for case, basis in grounds.items() if not basis.is_independent}
    text = f"{len(grounds) - len(alone)} of {all_cases} cases rest on a closed form or on two lineages of code"
    if alone:
        robots = ", ".join(dict.fromkeys(f"{case[0]} ({basis})" for case, basis in alone.items()))
        text += f"; in {len(alone)} there is agreement only: {robots}"
    if len(grounds) < all_cases:
        text += f"; in {all_cases - len(grounds)} nothing agrees"
    return f"{text}."


SHARED_TEXT = (
    "What a source has in common with the reference: for that it cannot vouch, because a fault there is in both. The "
    "motion that is asked for is common to all of them, and so is what the overrides of a variant do to the MJCF. The "
    f"numbers of the robot's files are read once more past our own reading, by MuJoCo's compiler ({FILE} in the "
    "audit): where they differ, the reference is in doubt and nothing of the case agrees. What loopcheck mutants seeds "
    "in one of these columns every source notices, or the files do where the source shares it."
)


def verdicts(results: Results) -> Section:
    """The matrix of verdicts, what it rests on, and a ledger of all that does not agree."""
    found, anchors, names, grounds = case_verdicts(results), _anchors(results), _sources(results), bases(results)
    matrix = [
        [
            *(Cell(name, link=anchors[case]) for name in case),
            Cell(grounds[case].text if case in grounds else NOTHING),
            *(_verdict_cell(of_case.get(source)) for source in names),
        ]
        for case, of_case in found.items()
    ]
    shared = [
        [Cell(source), *(Cell("shared" if name in common else "its own") for name in IN_WORDS)]
        for source, common in (results.run.get("shares") or {}).items()
    ]
    ledger = [row for case, of_case in found.items() for row in _ledger_rows(case, anchors[case], of_case)]
    columns = ["case", "source", "verdict", "relative error [-]", "tolerance [-]", "what is known"]
    return Section(
        title="Verdicts",
        anchor="verdicts",
        blocks=[
            "Each source with the worst verdict and the worst relative error of its actuators.",
            *folded_if_long("Verdicts by case", "matrix", Table([*CASE, "rests on", *names], matrix)),
            [f"{verdict}: {meaning}" for verdict, meaning in MEANING.items()],
            "Verdicts rest on a closed form where the paper's own equations confirm the reference, and on two "
            "lineages where two families of engines do that share no code (MuJoCo and its ports are one). Our own two "
            "models are one lineage, which does not count. What rests on less is agreement only.",
            *_part_if(
                shared,
                "What is shared",
                "shared",
                SHARED_TEXT,
                Table(["source", *IN_WORDS.values()], shared),
                folded=True,
            ),
            *_part_if(
                ledger,
                "What does not agree",
                "ledger",
                *folded_if_long("The ledger", "ledger-rows", Table(columns, ledger)),
            ),
        ],
    )


def _ledger_rows(case: Key, anchor: str, of_case: Mapping[str, CaseVerdict]) -> Iterable[Sequence[Cell]]:
    """What of a case does not agree; sources of which the same is known share a row."""
    told = [f for f in of_case.values() if f.verdict in ("disagree", "not run", "not comparable", "as expected")]
    for verdict, note in dict.fromkeys((finding.verdict, finding.note) for finding in told):
        alike = {s: f for s, f in of_case.items() if (f.verdict, f.note) == (verdict, note)}
        largest = max(alike.values(), key=lambda finding: np.nan_to_num(finding.error))
        yield [
            Cell(" · ".join(case), link=anchor),
            Cell(", ".join(alike)),
            Cell(verdict, verdict),
            cell(largest.error),
            cell(largest.tolerance),
            Cell(note or NOTHING),
        ]


def _verdict_cell(finding: CaseVerdict | None) -> Cell:
    if finding is None:
        return Cell(NOTHING)
    number = "" if finding.verdict == "reference" or math.isnan(finding.error) else f"\n{finding.error:.1e}"
    return Cell(finding.verdict + number, finding.verdict)


def robots(results: Results) -> Section:
    """What each robot is, what was assumed, and how it moves."""
    parts: list[Section] = []
    for name, about in about_robots(results).items():
        blocks: list[Block] = [facts({"name": name, "source": about.get("source")})]
        blocks += [table(pd.DataFrame([about["mechanism"]]))] if about.get("mechanism") else []
        blocks += [f"{about['in_words']!s}."] if about.get("in_words") else []
        lists = {
            "Nothing drives these; they follow from the dynamics:": about.get("undriven"),
            "Odd:": about.get("oddities"),
            "Assumptions:": about.get("assumptions"),
            "Left out:": about.get("left_out"),
        }
        for heading, items in lists.items():
            blocks += [heading, list(map(plain, items))] if items else []
        if about.get("errata"):
            blocks += ["Errata of the source, corrected here:", table(pd.DataFrame(about["errata"]))]
        parts.append(
            Section(
                title=str(about.get("title") or name),
                anchor=f"robot-{len(parts) + 1}",
                blocks=[
                    *blocks,
                    Task(
                        _pictures_of,
                        (
                            name,
                            about,
                            _part_of(results, "points", "frames", "motion", "task", robot=name),
                            _first_mode(results),
                        ),
                    ),
                ],
            )
        )
    return Section(title="Robots", anchor="robots", blocks=parts)


def _pictures_of(robot: str, about: Mapping[str, Any], results: Results, first: tuple[str, str]) -> list[Block]:
    """The robot, and how it moves."""
    return [*_drawings(robot, results, first), *_motions(robot, about, results.motion), *_tasks(robot, results.task)]


def _first_mode(results: Results) -> tuple[str, str]:
    """The robot and the mode that move on the first screen; empty if there are none."""
    return next(results.points[["robot", "mode"]].itertuples(index=False, name=None), ("", ""))


def _first_movie(results: Results) -> list[Block]:
    """The first robot in its first mode, as it moves."""
    robot, mode = _first_mode(results)
    rows = _rows(results.points, robot=robot, mode=mode)
    scene = schematic.scene(rows[rows["variant"] == rows["variant"].iloc[0]]) if len(rows) else None
    return list(_movie(robot, mode, scene, results)) if scene else []


def _drawings(robot: str, results: Results, first: tuple[str, str]) -> Iterable[Picture | Movie]:
    """The robot in each of its modes, in the first variant that has it; the first mode moves on the first screen."""
    for mode, rows in _rows(results.points, robot=robot).groupby("mode", sort=False):
        scene = schematic.scene(_rows(rows, variant=str(rows["variant"].iloc[0])))
        svg = schematic.robot_figure(scene) if scene else None
        if scene and svg:
            plane = " and ".join(scene.axes)
            path = f"path of {scene.traced}" if scene.traced else "no point is traced"
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: first and last pose in {plane}, {path}",
                caption=f"Mode {mode}, seen in {plane}. Triangles: fixed points. Grey: initial pose. Orange: {path}.",
            )
        if scene and (robot, mode) != first:
            yield from _movie(robot, str(mode), scene, results)


def _movie(robot: str, mode: str, scene: schematic.Scene, results: Results) -> Iterable[Movie]:
    """The robot as it moves: drawn by MuJoCo if it was, else projected onto a plane."""
    frames = _rows(results.frames, robot=robot, mode=mode)
    if len(frames):
        drawn = charts.pictures(frames)
        path = f" Orange: path of {scene.traced}." if scene.traced else ""
        yield Movie(
            drawn,
            alt=f"{robot}, mode {mode}, as it moves, drawn in perspective",
            caption=f"{robot}, mode {mode}, in motion, drawn by MuJoCo.{path}",
            still=drawn["pictures"][0],
        )
    elif moving := charts.movie(scene):
        why = (results.run.get("not_drawn") or {}).get(f"{robot}, {mode}")
        yield Movie(
            moving,
            alt=f"{robot}, mode {mode}, as it moves, seen in {' and '.join(scene.axes)}",
            caption=f"{robot}, mode {mode}, in motion"
            + (f", projected, because it was not drawn: {why}." if why else "."),
            still=svg_uri(schematic.pose_figure(scene) or ""),
        )


def _motions(robot: str, about: Mapping[str, Any], motion: pd.DataFrame) -> Iterable[Picture]:
    """How the actuated joints move in each mode, in the first variant that has it; modes that move alike once."""
    drawn: set[bytes] = set()
    for mode, rows in _rows(motion, robot=robot).groupby("mode", sort=False):
        of_mode = _rows(rows, variant=str(rows["variant"].iloc[0]))
        units = about.get("actuated") or {}
        moved = of_mode[of_mode["joint"].isin(units)][["q", "qd", "qdd"]].to_numpy(float).tobytes()
        svg = None if moved in drawn else figures.motion_figure(of_mode, units)
        drawn.add(moved)
        if svg:
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: position, velocity and acceleration of {', '.join(units)} over time",
                caption=f"The prescribed motion of the actuated joints, mode {mode}.",
            )


def _tasks(robot: str, task: pd.DataFrame) -> Iterable[Picture]:
    """How the platform moves in each mode, in the first variant that has it; modes that move alike once."""
    drawn: set[bytes] = set()
    for mode, rows in _rows(task, robot=robot).groupby("mode", sort=False):
        of_mode = _rows(rows, variant=str(rows["variant"].iloc[0]))
        moved = of_mode[["x", "xd", "xdd"]].to_numpy(float).tobytes()
        svg = None if moved in drawn else figures.task_figure(of_mode)
        drawn.add(moved)
        if svg:
            names = ", ".join(of_mode["coordinate"].unique())
            yield Picture(
                svg,
                alt=f"{robot}, mode {mode}: {names} with rates and accelerations over time",
                caption=f"The prescribed motion in task coordinates, {names}, mode {mode}.",
            )


def cases(results: Results) -> Section:
    """Efforts and errors of each case."""
    found, anchors, styles = case_verdicts(results), _anchors(results), _looks(results)
    of_case = ("summary", "efforts", "task_efforts")
    parts: list[Section] = []
    for robot in dict.fromkeys(case[0] for case in found):
        of_robot = [case for case in found if case[0] == robot]
        folds = []
        for case in of_robot:
            seen = [finding.verdict for finding in found[case].values()]
            folds.append(
                Section(
                    title=" · ".join(case),
                    anchor=anchors[case],
                    verdict=next((verdict for verdict in SEVERITY if verdict in seen), ""),
                    folded=case[1] != of_robot[0][1],
                    blocks=[
                        Task(
                            _case_blocks,
                            (
                                _part_of(results, *of_case, **dict(zip(CASE, case, strict=True))),
                                case,
                                anchors[case],
                                styles,
                            ),
                        )
                    ],
                )
            )
        parts.append(Section(title=robot, anchor=f"cases-{len(parts) + 1}", blocks=folds))
    return Section(title="Efforts and errors by case", anchor="cases", blocks=parts)


def _case_blocks(results: Results, case: Key, anchor: str, styles: Mapping[str, figures.Look]) -> list[Block]:
    """The figures and the table of a case, from its rows."""
    curves = figures.curves(results.efforts, results.summary)
    pictures = list(_case_pictures(curves, " · ".join(case), styles)) if curves else ["No efforts."]
    numbers = Section(
        title="Errors of each actuator", anchor=f"{anchor}-errors", folded=True, blocks=[_error_table(results.summary)]
    )
    return [*pictures, *_task_efforts(results, case, styles), numbers]


def _task_efforts(results: Results, case: Key, styles: Mapping[str, figures.Look]) -> Iterable[Picture]:
    """What the efforts of each source do on the task coordinates, in place of actuators."""
    efforts = results.task_efforts.rename(columns={"coordinate": "actuator"})
    summary = results.summary.assign(scale=np.nan)  # that of the actuators is no measure here
    curves = figures.curves(efforts, summary)
    svg = figures.efforts_figure(curves, styles) if curves else None
    if curves and svg:
        names = ", ".join(curves.actuators)
        yield Picture(
            svg,
            alt=f"{' · '.join(case)}: generalized effort on {names} over time from {', '.join(curves.efforts)}",
            caption=f"Generalized efforts on the task coordinates {names}: what the actuators do there together, which "
            f"does not depend on how redundant actuators share it.{_beyond(curves)}",
        )


def _case_pictures(curves: figures.Curves, case: str, styles: Mapping[str, figures.Look]) -> Iterable[Picture]:
    efforts, errors = figures.efforts_figure(curves, styles), figures.errors_figure(curves, styles)
    if efforts:
        yield Picture(
            efforts,
            alt=f"{case}: effort of {', '.join(curves.actuators)} over time from {', '.join(curves.efforts)}",
            caption=f"Efforts. Thick grey: the reference, {curves.reference}. Brown: informational.{_beyond(curves)}",
            chart=charts.efforts_chart(curves, styles),
        )
    if errors:
        yield Picture(
            errors,
            alt=f"{case}: error of {', '.join(curves.errors)} over time, relative to its scale",
            caption="Distance from the reference, the largest over the actuators, each relative to its own scale: "
            f"{_scales(curves)}; what is below {figures.FLOOR:g}, also zero, is drawn there.",
            chart=charts.errors_chart(curves, styles),
        )


def _scales(curves: figures.Curves) -> str:
    """What errors are divided by, with units."""
    columns = zip(curves.actuators, curves.scale, curves.units, strict=True)
    return ", ".join(f"{name} {digits(scale)} {unit}" for name, scale, unit in columns)


def _beyond(curves: figures.Curves) -> str:
    unit = " or ".join(dict.fromkeys(curves.units))
    return "".join(f" {name} leaves the axes (up to {digits(most)} {unit})." for name, most in curves.beyond.items())


def _error_table(summary: pd.DataFrame) -> Table:
    """The rows of the summary of a case; a note that repeats the one above it is a ditto mark."""
    units = summary["unit"].unique()
    unit = units[0] if len(units) == 1 else "unit"
    notes = summary["note"].fillna("")
    repeated = (summary["source"] == summary["source"].shift()) & (notes == notes.shift()) & (notes != "")
    headers = {
        **{name: name for name in ("source", "actuator", "unit")},
        "peak": f"peak [{unit}]",
        "scale": f"scale [{unit}]",
        "max_error": f"max error [{unit}]",
        "rms_error": f"rms error [{unit}]",
        "relative_error": "relative error [-]",
        "tolerance": "tolerance [-]",
        "verdict": "verdict",
        **_RUN_HEADERS,
        "note": "note",
    }
    return table(summary.assign(note=notes.mask(repeated, "″"))[list(headers)].rename(columns=headers))


def convergence(results: Results) -> Section:
    """How the error falls with the step."""
    parts: list[Section] = []
    styles = _looks(results)
    for names, rows in results.ladder.groupby(["robot", "variant"], sort=False):
        title, number = " · ".join(map(str, names)), len(parts) + 1
        parts.append(
            Section(
                title=title, anchor=f"ladder-{number}", blocks=[Task(_ladder_blocks, (title, number, rows, styles))]
            )
        )
    text = (
        "Each step size is a run by itself; the efforts judged above may be extrapolated from several. The "
        "grid-convergence index, 1.25 change / (r^p - 1) with r the ratio of two steps and p the order observed, "
        "estimates the error of a step without a reference; it is left out where the order is below one half. What to "
        "set in a simulation of your own for 1 %, 0.1 % or 1e-6 is measured by loopcheck ladder."
    )
    blocks: Sequence[Block] = [text, *parts] if parts else ["No source was run with several steps."]
    return Section(title="Convergence", anchor="convergence", blocks=blocks)


def _ladder_blocks(title: str, number: int, rows: pd.DataFrame, styles: Mapping[str, figures.Look]) -> list[Block]:
    """The figure and the table of the steps of a robot in a variant."""
    cases_of = rows.groupby(["mode", "configuration"], sort=False)
    panels = {" · ".join(map(str, case)): ladder for case, ladder in cases_of}
    svg = figures.ladder_figure(panels, styles)
    picture = Picture(
        svg or "",
        alt=f"{title}: error and change against the step for {', '.join(rows['source'].unique())}",
        caption="Filled: error against the reference. Hollow, dotted: change from the step before. Grey: the slope "
        "of the order observed at the finest step, rounded.",
    )
    steps = Section(title=f"Steps of {title}", anchor=f"steps-{number}", folded=True, blocks=[_ladder_table(rows)])
    return [*([picture] if svg else []), steps]


def _ladder_table(rows: pd.DataFrame) -> Table:
    ratio = rows.groupby([*CASE, "source"], sort=False)["dt"].shift() / rows["dt"]
    plausible = rows["order"].where(rows["order"].between(0.5, np.inf, "left") & (ratio > 1))
    headers = {
        **{name: name for name in ("mode", "configuration", "source")},
        "dt": "step [s]",
        "relative_error": "relative error [-]",
        "change": "change [-]",
        "order": "order [-]",
        "index": "grid-convergence index [-]",
        **_RUN_HEADERS,
    }
    rows = rows.assign(index=1.25 * rows["change"] / (ratio**plausible - 1))
    return table(rows[list(headers)].rename(columns=headers))


def sources(results: Results) -> Section:
    """How each source is computed, with which settings, and how far it may be off."""
    said, settings, tolerances = (results.run.get(key) or {} for key in ("sources", "settings", "tolerances"))
    names = list(dict.fromkeys([*_sources(results), *said, *settings]))
    exercised = [[Cell(name), Cell(plain(said.get(name)))] for name in names]
    options = [(name, key, value) for name in names for key, value in (settings.get(name) or {}).items()]
    limits = pd.DataFrame([{"source": name, **limit} for name, limit in (tolerances.get("routes") or {}).items()])
    limits = limits[sorted(limits.columns, key=[*_LIMITS, *limits.columns].index)].rename(columns=_LIMITS)
    return Section(
        title="Sources, settings and tolerances",
        anchor="sources",
        blocks=[
            Table(["source", "what it exercises"], exercised) if names else "No source.",
            *_part_if(
                options,
                "Settings",
                "settings",
                table(pd.DataFrame(options, columns=["source", "setting", "value"])),
                folded=True,
            ),
            *_part_if(len(limits), "Tolerances", "tolerances", table(limits), folded=True),
        ],
    )


def explained(results: Results) -> Section:
    """The entries of the ledger that concern the engines and robots of the run."""
    issues = results.run.get("known_issues") or []
    columns = ["engine", "difference", "size", "cause", "what loopcheck does", "reproduce"]
    text = (
        "Differences between these engines and the equations of motion whose cause is known. Each is measured by the "
        "test that reproduces it, and an entry that no longer does fails the suite."
    )
    blocks: Sequence[Block] = (
        [text, *folded_if_long("Entries", "issues", Table(columns, list(map(_issue, issues))))]
        if issues
        else ["None is known here."]
    )
    return Section(title="Explained differences", anchor="explained", blocks=blocks)


def _issue(issue: Mapping[str, Any]) -> Sequence[Cell]:
    low, high = issue["size"]
    lower = "at least " if high > UNBOUNDED else ""
    size = lower + digits(low) + (f" to {digits(high)}" if low < high <= UNBOUNDED else "")
    shown = f", seen in {', '.join(issue['sources'])}" if issue["sources"] else ""
    return [
        Cell(f"{issue['engine']}\n{issue['versions']}"),
        Cell(f"{issue['title']}{shown}. Needs: {issue['feature']}."),
        Cell(f"{size} [{issue['unit']}]: {issue['quantity']}"),
        Cell(issue["cause"]),
        Cell(issue["remedy"]),
        Cell(issue["reproduce"] + (f"; upstream: {issue['link']}" if issue["link"] else "")),
    ]


def provenance(results: Results) -> Section:
    """What it takes to get the same numbers again."""
    run = results.run
    tolerances = run.get("tolerances") or {}
    files = [{"of": name, **about} for name, about in (run.get("models") or {}).items()]
    if tolerances.get("sha256"):
        files.append({"of": "tolerances", "file": tolerances.get("file"), "sha256": tolerances["sha256"]})
    command = " ".join(map(str, run.get("command") or ("loopcheck", "run")))
    return Section(
        title="How to reproduce this",
        anchor="reproduce",
        blocks=[
            [
                "Install the versions below.",
                f"Run: {command}",
                "Hold the SHA-256 of models and tolerances in the new run.json against those below.",
                "loopcheck report DIR makes this report again from the tables in DIR, which hold 17 digits.",
            ],
            *([table(pd.DataFrame(files))] if files else []),
            facts({"loopcheck": run.get("loopcheck"), **(run.get("versions") or {}), "seeds": run.get("seeds")}),
        ],
    )


SECTIONS: tuple[Callable[[Results], Section], ...] = (
    answer,
    verdicts,
    audit_section,
    robots,
    cases,
    convergence,
    explained,
    sources,
    provenance,
)


def _rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows of a table with the wanted values."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def _part_of(results: Results, *tables: str, **wanted: str) -> Results:
    """The results with the wanted rows of some tables, and none of the others: what a worker needs."""
    frames = {field.name: getattr(results, field.name) for field in fields(results)}
    kept: dict[str, Any] = {
        name: _rows(frame, **wanted) if name in tables else frame.iloc[:0]
        for name, frame in frames.items()
        if isinstance(frame, pd.DataFrame)
    }
    return replace(results, **kept)


def _sources(results: Results) -> list[str]:
    """All sources, in the order in which the tables name them."""
    tables = (results.summary, results.efforts, results.ladder)
    return [str(source) for source in pd.concat([frame["source"] for frame in tables]).unique()]


def _anchors(results: Results) -> Mapping[Key, str]:
    cases_of = results.summary[[*CASE]].drop_duplicates().itertuples(index=False, name=None)
    return {(str(a), str(b), str(c), str(d)): f"case-{k}" for k, (a, b, c, d) in enumerate(cases_of, start=1)}


def _looks(results: Results) -> Mapping[str, figures.Look]:
    informational = results.summary.loc[results.summary["verdict"] == "informational", "source"]
    reference = reference_of(results.summary)
    return figures.looks(_sources(results), reference=reference, informational=informational)


def _part_if(there: object, title: str, anchor: str, *blocks: Block, folded: bool | None = None) -> Sequence[Section]:
    return [Section(title=title, anchor=anchor, blocks=blocks, folded=folded)] if there else []
