"""The first screen: one sentence, one picture of all sources, the robot moving; then what was run."""

import math
from collections.abc import Iterable, Mapping, Sequence

from validation.execution.journal import Task
from validation.judge.independence import bases
from validation.judge.results import Results
from validation.judge.verdicts import (
    JUDGED,
    MEANING,
    CaseVerdict,
    Key,
    about_robots,
    case_verdicts,
    gravest,
    verdict_counts,
    worst,
)
from validation.report import figures
from validation.report.blocks import Block, Cell, Picture, Section, Table, digits, facts
from validation.studies.run.sections.robots import first_movie
from validation.studies.run.views import anchors_of_cases, part_of, source_names, verdict_cell

NAMED = 3
"""So many robots are named in the headline; of more, their number is said."""


def answer(results: Results) -> Section:
    """The answer: one sentence, one picture of all sources, the robot moving; then what was run."""
    counts, run, findings = verdict_counts(results), results.run, _found_of_sources(results)
    entries = {
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
            _headline(list(about_robots(results)), findings),
            Task(_overview_picture, (findings,)),
            Task(first_movie, (part_of(results, "points", "frames"),)),
            f"{_sentence(counts)} {_grounds(results)}",
            *_overview(results),
            Table(list(counts), [[Cell(str(n), verdict if n else "") for verdict, n in counts.items()]]),
            "A case is a robot in a variant, mode and configuration; a comparison is one source in one case. The error "
            "of an actuator is its largest distance from the reference over time; relative means divided by the scale "
            "of that actuator: the largest sum, over time, of the magnitudes of all that acts on it, body by body, "
            "inertia, weight and loads apart. Neither units nor actuators are mixed.",
            Section(title="This run", anchor="this-run", folded=True, blocks=[facts(entries)]),
        ],
    )


def _headline(robots: Sequence[str], findings: Mapping[str, Sequence[CaseVerdict]]) -> str:
    """Which sources agree with the reference in every case and which do not, in one sentence."""
    subject = ", ".join(robots) if len(robots) <= NAMED else f"{len(robots)} robots"
    whole = {source: gravest(several) for source, several in findings.items()}
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
    findings = {name: [of_case[name] for of_case in of_cases if name in of_case] for name in source_names(results)}
    order = {"reference": 0, "informational": 2}
    named = {name: several for name, several in findings.items() if several}
    return dict(sorted(named.items(), key=lambda item: order.get(gravest(item[1]).verdict, 1)))


def _overview_picture(findings: Mapping[str, Sequence[CaseVerdict]]) -> list[Block]:
    """The errors of all sources beside their tolerances."""
    svg = figures.overview_figure(findings)
    descriptions = (
        f"{source} {gravest(several).verdict} {digits(gravest(several).error)}" for source, several in findings.items()
    )
    caption = (
        "A mark is the largest error in a case; the largest with the worst verdict is written. Filled: judged by the "
        "tolerance, the black stroke. Hollow: not judged."
    )
    return (
        [Picture(svg, alt=f"largest error of each source: {', '.join(descriptions)}", caption=caption)] if svg else []
    )


def _overview(results: Results) -> Iterable[Block]:
    """The matrix of robots and configurations by sources: the worst of all modes and variants."""
    findings, anchors, names = case_verdicts(results), anchors_of_cases(results), source_names(results)
    groups: dict[tuple[str, str], list[Key]] = {}
    for case in findings:
        groups.setdefault((case[0], case[3]), []).append(case)
    rows = []
    for (robot, configuration), of_group in groups.items():
        columns = [[findings[case][name] for case in of_group if name in findings[case]] for name in names]
        link = anchors[of_group[0]]
        rows.append(
            [
                Cell(robot, link=link),
                Cell(configuration),
                *(verdict_cell(worst(several) if several else None) for several in columns),
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


def _is_judged(of_case: Mapping[str, CaseVerdict]) -> bool:
    """Whether anything in a case is judged; simulations as they are on random motions are shown for what they are."""
    return any(finding.verdict in JUDGED for finding in of_case.values())


def _grounds(results: Results) -> str:
    """What the verdicts rest on, over all cases."""
    grounds = bases(results)
    all_cases = sum(map(_is_judged, case_verdicts(results).values()))
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
