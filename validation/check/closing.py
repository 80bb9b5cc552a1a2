"""Closing lines of a check, the same on the terminal and at the top of the report."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from textwrap import shorten
from typing import Any, NamedTuple

from loopcheck import engines
from loopcheck.analytic.motion.automatic import GENERATED
from loopcheck.validation.check.closed_twins import AS_IT_IS
from loopcheck.validation.check.sections.audit import first_divergence
from loopcheck.validation.check.views import is_own_simulation, rows_where, target_of, where
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import (
    CASE,
    JUDGED,
    NOT_SUPPORTED,
    WORST_FIRST,
    CaseVerdict,
    Key,
    about_robots,
    case_verdicts,
    gravest,
    original_mode,
    shown_error,
)
from loopcheck.validation.execution.invocation import pasted
from loopcheck.validation.report.blocks import percent, two_digits

MOST = 3
"""Sources with an error in a closing line; the report has all sources."""
LONGEST = 160
"""Reason in a closing line [characters]; the report has the whole note."""
TYPICAL = 0.01
"""Accuracy in a suggested command, if the user has given no accuracy [-]."""
UNDECIDED = ("not run", "not comparable")
TIME_LIMIT = re.compile(r"^timeout after ([\d.e+-]+) s$")
"""Time limit in the note of a task that has exceeded it."""
OF_TUNE = ("--mode", "--configuration", "--actuated", "--leave-out", "--motion")
"""Options that `check` and `tune` share."""
LONGER = 4
"""Suggested time limit over a limit that did not suffice [-]."""
LIMITS_OF_TENDONS, LIMITS_OF_JOINTS = "limits of tendons ", "limits of joints "
TITLES = {"mujoco": "MuJoCo", "pybullet": "PyBullet", "dart": "DART", "mjx": "MJX", "physx": "PhysX"}
"""Names of engines that are not spelt like words."""
VERBS = {
    "agree": "agrees",
    "disagree": "disagrees",
    "not comparable": "is not comparable",
    "not run": "did not run",
    "informational": "cannot be judged",
}


class Line(NamedTuple):
    """A closing line."""

    label: str
    text: str
    command: str = ""
    """Command behind the text."""

    def __str__(self) -> str:
        return f"{self.label}: {' '.join(filter(None, (self.text, self.command)))}"


class WorstCase(NamedTuple):
    """The worst case of a source."""

    source: str
    finding: CaseVerdict
    case: Key
    actuator: str
    unit: str
    error: float
    """Largest error of the actuator [N or N m]."""


def closing_lines(results: Results) -> list[Line]:
    """At most seven lines.

    The user's own simulation, the agreement, the rest, a failed motion, limits that may carry the robot, the next step.
    """
    if results.run.get("is_first"):  # the others wait for the simulations
        return [line for line in [_agreement(results)] if line] or [Line("Agreement", "not known yet")]
    worst = _worst_cases(results)
    unmodified = [off for source, off in worst.items() if _is_as_is(source)]
    others = [off for source, off in worst.items() if not _is_as_is(source)]
    following = _next(results, unmodified, others)
    lines = (
        _unmodified(results, unmodified),
        _agreement(results),
        _open(results, others),
        _motion(results),
        _carried(results),
        following,
        None if following and following.command else _diagnosis(results, [*unmodified, *others]),
    )
    return [line for line in lines if line]


def in_plain_words(results: Results) -> str:
    """The answer in a sentence: how far off the unmodified simulation is, and whether all else agrees.

    Empty while simulations run, or if nothing was judged.
    """
    worst = _worst_cases(results)
    judged = [off for off in worst.values() if not _is_as_is(off.source) and off.finding.verdict in JUDGED]
    if results.run.get("is_first") or not judged:
        return ""
    open_ones = [off.source for off in judged if off.finding.verdict != "agree"]
    simulated = [off for off in worst.values() if _is_as_is(off.source) and _size(off)]
    other = "other " if simulated else ""
    if not open_ones:
        rest = f"every {other}source agrees with the equations of motion"
    elif len(open_ones) == len(judged):
        rest = f"no {other}source agrees with the equations of motion"
    else:
        named = ", ".join(open_ones[:MOST])
        rest = f"{named} {'do' if len(open_ones) > 1 else 'does'} not agree with the equations of motion, all others do"
    if not simulated:
        return f"{rest[0].upper()}{rest[1:]}."
    off = min(simulated, key=lambda one: not _is_own(results, one))
    engine = TITLES.get(name := off.source.split("/")[0], name.capitalize())
    off_by = f"{percent(off.finding.error)} off at '{off.actuator}'{_up_to(results, off)}"
    return f"Simulated as it is, {engine} is {off_by}; {rest}."


def worst_simulation(results: Results) -> WorstCase | None:
    """The worst case of the unmodified simulations, or of the logs; None without an error."""
    worst = [off for off in _worst_cases(results).values() if _size(off)]
    logs = [off for off in worst if sources.is_log(off.source)]
    if logs:
        gravest_logs = [off for off in logs if off.finding.verdict == logs[0].finding.verdict]
        return max(gravest_logs, key=lambda off: off.finding.error)
    return next((off for off in worst if _is_as_is(off.source)), None)


def _is_as_is(source: str) -> bool:
    return not sources.is_log(source) and sources.is_as_is(source)


def _findings(results: Results, source: str) -> Mapping[Key, CaseVerdict]:
    return {case: of[source] for case, of in case_verdicts(results).items() if source in of}


def _worst_cases(results: Results) -> Mapping[str, WorstCase]:
    """The worst case of each source that is neither the reference nor unsupported, worst source first."""
    by_source: dict[str, dict[Key, CaseVerdict]] = {}
    for case, of_case in case_verdicts(results).items():
        for source, finding in of_case.items():
            if finding.verdict not in ("reference", NOT_SUPPORTED):
                by_source.setdefault(source, {})[case] = finding
    rows: dict[tuple[str, ...], list[Mapping[Any, Any]]] = {}
    for row in results.summary.to_dict("records"):
        rows.setdefault(tuple(row[name] for name in (*CASE, "source")), []).append(row)
    worst = {source: _worst_case(rows, source, _asked(results, source, of)) for source, of in by_source.items()}
    return dict(sorted(worst.items(), key=lambda item: WORST_FIRST.index(item[1].finding.verdict)))


def _asked(results: Results, source: str, findings: Mapping[Key, CaseVerdict]) -> Mapping[Key, CaseVerdict]:
    """Cases of a source for a headline.

    Of an unmodified simulation those in its own gravity on the user's motion, unless others have a worse verdict.
    """
    if not _is_as_is(source):
        return findings
    first = next(iter(findings))
    asked = {
        case: of for case, of in findings.items() if case[3] == first[3] and not original_mode(results, case)
    } or findings
    worse = WORST_FIRST.index(gravest(list(findings.values())).verdict)
    return asked if WORST_FIRST.index(gravest(list(asked.values())).verdict) <= worse else findings


def _worst_case(
    rows: Mapping[tuple[str, ...], Sequence[Mapping[Any, Any]]], source: str, findings: Mapping[Key, CaseVerdict]
) -> WorstCase:
    """The worst case of a source, from the rows of the summary by case and source."""
    verdict = gravest(list(findings.values())).verdict
    grave = {case: finding for case, finding in findings.items() if finding.verdict == verdict}
    case = max(grave, key=lambda key: -math.inf if math.isnan(grave[key].error) else grave[key].error)
    finite = [row for row in rows[(*case, source)] if not math.isnan(shown_error(row))]
    if not finite:
        return WorstCase(source, grave[case], case, "", "", math.nan)
    row = max(finite, key=shown_error)
    return WorstCase(source, grave[case], case, str(row["actuator"]), str(row["unit"]), float(row["max_error"]))


def _unmodified(results: Results, unmodified: Sequence[WorstCase]) -> Line | None:
    """Errors of the unmodified simulations."""
    if not unmodified:
        return None
    first, *others = sorted(unmodified, key=lambda off: not _is_own(results, off))
    limit = f", accuracy {percent(first.finding.tolerance)}" if first.finding.tolerance > 0 else ""
    judged = "" if limit or not _size(first) else "; not judged without --accuracy"
    parts = [f"{_verdict(first)}{_size(first)}{where(first.case, results)}{limit}{_reason(first)}{judged}"]
    if _size(first) and (most := _up_to(results, first, named=True)):
        parts.append(most.removeprefix(", "))
    for off in others[: MOST - 1]:
        by = "" if off.finding.verdict == "informational" else ", off by"
        size = f"{by} {percent(off.finding.error)}" if _size(off) else ""
        parts.append(f"{_verdict(off)}{size}{' (unusable)' * off.finding.is_unusable}")
    if len(others) >= MOST:
        parts.append(f"{len(others) - MOST + 1} more in the report")
    owner = "Your simulation" if _is_own(results, first) else "Unmodified simulation"
    return Line(owner, "; ".join(parts))


def _up_to(results: Results, off: WorstCase, *, named: bool = False) -> str:
    """A larger error of an unmodified simulation in its other cases, perhaps with its case; empty without any."""
    elsewhere = {case: one.error for case, one in _findings(results, off.source).items() if one.error > 0}
    case, most = max(elsewhere.items(), key=lambda item: item[1], default=(off.case, 0.0))
    if most <= 1.05 * off.finding.error:
        return ""
    place = where(case, results).removeprefix(", ") if named else ""
    return f", at most {percent(most)} in its other cases" + f" ({place})" * bool(place)


def _is_own(results: Results, off: WorstCase) -> bool:
    return is_own_simulation(results, off.source, off.case[0])


def _agreement(results: Results) -> Line:
    """Number of comparisons that agree, without unmodified simulations."""
    judged = [
        finding
        for of_case in case_verdicts(results).values()
        for source, finding in of_case.items()
        if finding.verdict in JUDGED and not _is_as_is(source)
    ]
    agreeing = [finding for finding in judged if finding.verdict == "agree"]
    if not judged:
        return Line("Agreement", "no source was judged")
    number = f"{len(agreeing)} of {len(judged)}"
    largest = f", largest error {max(one.error for one in agreeing):.1e} of the effort scale" if agreeing else ""
    return Line("Agreement", f"{number} comparisons with the reference agree{largest}")


def _open(results: Results, others: Sequence[WorstCase]) -> Line | None:
    """Sources that do not agree, the worst with its reason."""
    notable = [off for off in others if off.finding.verdict in JUDGED[1:]]
    if not notable:
        return None
    first, *more = notable
    also = [f"{off.source} ({off.finding.verdict})" for off in more[:MOST]]
    also += [f"{len(more) - MOST} more"] if len(more) > MOST else []
    text = f"{_verdict(first)}{_size(first)}{where(first.case, results)}{_reason(first)}"
    return Line("Not in agreement", "; also ".join([text, ", ".join(also)] if also else [text]))


def _motion(results: Results) -> Line | None:
    """A generated motion that failed in a simulation, the first of several."""
    notes = [note for about in about_robots(results).values() for note in about.get("motion") or []]
    return next((Line("Motion", note) for note in notes if note.startswith(GENERATED)), None)


def _carried(results: Results) -> Line | None:
    """Limits that no source has, of a robot with dofs that nothing else holds."""
    for about in about_robots(results).values():
        loose = [str(each) for each in about.get("undriven") or [] if "spring" not in str(each)]
        limits = [of for sentence in about.get("left_out") or [] if (of := _limits_of(str(sentence), loose))]
        if loose and limits:
            return Line("Left out", f"{'; '.join(limits)}. They may carry the robot, but here {', '.join(loose)}")
    return None


def _limits_of(left_out: str, loose: Sequence[str]) -> str:
    """Limits of tendons, or of joints that nothing holds, in a sentence on what is left out."""
    if left_out.startswith(LIMITS_OF_TENDONS):
        return left_out
    names = left_out.removeprefix(LIMITS_OF_JOINTS).split(", ") if left_out.startswith(LIMITS_OF_JOINTS) else []
    named = [name for name in names if any(f"'{name}'" in each for each in loose)]
    return f"{LIMITS_OF_JOINTS}{', '.join(named)}" if named else ""


def _next(results: Results, unmodified: Sequence[WorstCase], others: Sequence[WorstCase]) -> Line | None:
    """The most helpful finding about the model, or command; None for several robots."""
    robots = about_robots(results)
    if len(robots) != 1:
        return None
    (robot, about), *_ = robots.items()
    return next(
        filter(
            None, (_oddity(about), _serial(about), _tuning(results, robot, unmodified), _difference(results, others))
        ),
        None,
    )


def _oddity(about: Mapping[str, Any]) -> Line | None:
    oddities = about.get("oddities") or []
    more = f" ({len(oddities) - 1} more in the report)" if len(oddities) > 1 else ""
    return Line("Check the model", f"{oddities[0]}{more}") if oddities else None


def _serial(about: Mapping[str, Any]) -> Line | None:
    """The error of a serial model against its closed-loop version."""
    import pandas as pd

    twin = about.get("closed_twin") or {}
    if not twin:
        return None
    if not twin["motors"]:
        return Line("Serial model", f"not compared with {twin['file']}: {twin['reason']}")
    plain = pd.DataFrame(twin["motors"]).max(numeric_only=True)[AS_IT_IS]
    command = pasted("serial", twin["file"], twin["model"])
    return Line("Serial model", f"rms error {percent(plain)} of the peak against {twin['file']}. Next:", command)


def _tuning(results: Results, robot: str, unmodified: Sequence[WorstCase]) -> Line | None:
    """The command that finds settings for the unmodified simulation, or that judges it."""
    with_tuning = [name for name in engines.engine_names() if engines.provides(name, "tuning")]
    tunable = [off for off in unmodified if off.source.split("/")[0] in with_tuning and _size(off)]
    if not tunable:
        return None
    undecided = [off for off in tunable if off.finding.verdict != "agree"]
    off = min(undecided or tunable, key=lambda off: not _is_own(results, off))  # the first of the others
    target = target_of(results, robot) or robot
    accuracy = off.finding.tolerance if off.finding.tolerance > 0 else TYPICAL
    option = ["--accuracy", f"{100 * accuracy:.4g}%"]
    if off.finding.verdict == "disagree" or (off.finding.verdict == "informational" and off.finding.error > accuracy):
        named = [] if off.source == "mujoco/as_is" else ["--source", off.source]
        return Line("Next", "", pasted("tune", target, option, named, _options(results, *OF_TUNE)))
    if off.finding.verdict == "informational":
        return Line("Next", "", pasted("check", target, option, _options(results, *OF_TUNE)))
    return None


def _diagnosis(results: Results, worst: Sequence[WorstCase]) -> Line | None:
    """The command that examines a missing verdict on a user's own model."""
    for off in worst:
        target = target_of(results, off.case[0])
        if not target or off.finding.verdict not in UNDECIDED:
            continue
        engine, _, route = off.source.partition("/")
        if late := TIME_LIMIT.search(off.finding.note):
            command = without_option(list(map(str, results.run["command"])), "--time-limit")
            return Line("Next", "", pasted(command[1:], "--time-limit", f"{LONGER * float(late[1]):g}"))
        if route == "forward":
            options = _options(results, "--mode", "--configuration")
            return Line("Next", "", pasted("study", "refinement", target, "--source", off.source, options))
        if route == "as_is" and engines.provides(engine, "tuning"):
            accuracy = off.finding.tolerance if off.finding.tolerance > 0 else TYPICAL
            source = [] if engine == "mujoco" else ["--source", off.source]
            options = _options(results, *OF_TUNE)
            return Line("Next", "", pasted("tune", target, "--accuracy", f"{100 * accuracy:.4g}%", source, options))
        return Line("Next", "", pasted("gate", target, _options(results, "--leave-out")))
    return None


def _options(results: Results, *names: str) -> list[str]:
    """Options of the command with their values, without those that are repeated."""
    command = list(map(str, results.run.get("command") or ()))
    return [word for name in names for word in _option(command, name)]


def _option(command: Sequence[str], name: str) -> list[str]:
    """An option with its value; empty if it is missing or repeated."""
    values = [value for word, value in pairwise([*command, ""]) if word == name]
    values += [word.partition("=")[2] for word in command if word.startswith(f"{name}=")]
    return [name, *values] if len(values) == 1 else []


def without_option(command: Sequence[str], name: str) -> list[str]:
    """A command without an option and its value."""
    words = iter(command)
    return [word for word in words if not (word == name and next(words, word)) and not word.startswith(f"{name}=")]


def _difference(results: Results, others: Sequence[WorstCase]) -> Line | None:
    """The first difference of a disagreeing engine from the model."""
    for off in others:
        engine = off.source.split("/")[0]
        rows = rows_where(results.audit, engine=engine, **dict(zip(CASE, off.case, strict=True)))
        if off.finding.verdict == "disagree" and len(rows):
            return Line(
                "First difference",
                shorten(f"{engine}, {first_divergence(rows.to_dict('records'))}", LONGEST, placeholder=" …"),
            )
    return None


def _verdict(off: WorstCase) -> str:
    """Source and verdict; an error without verdict follows directly."""
    if off.finding.verdict == "informational" and _size(off):
        return off.source
    return f"{off.source} {VERBS.get(off.finding.verdict, off.finding.verdict)}"


def _size(off: WorstCase) -> str:
    """The error with its actuator and unit; empty without an error."""
    if math.isnan(off.finding.error) or not off.actuator:
        return ""
    verb = " is" if off.finding.verdict == "informational" else ","
    verb += " unusable (chatter, a transient, or dry friction, which the peak excludes)," * off.finding.is_unusable
    absolute = f"{two_digits(off.error)} {off.unit}"
    base = "peak effort" if sources.has_accuracy(off.source) else "effort scale"
    return f"{verb} off by {percent(off.finding.error)} of the {base} at '{off.actuator}' ({absolute})"


def _reason(off: WorstCase) -> str:
    """The known cause in the note of a source that does not agree, or its first part."""
    explained = off.finding.verdict in JUDGED[1:] and not (_is_as_is(off.source) and off.finding.verdict == "disagree")
    if not off.finding.note or not (explained or not _size(off)):
        return ""
    parts = off.finding.note.split("; ")
    first = next((part for part in parts if "(known issue " in part), parts[0])
    first = first.removeprefix(f"{off.source}: ")  # stands in front of the verdict
    return f": {first if off.finding.verdict == 'not run' else shorten(first, LONGEST, placeholder=' …')}"


def unsupported_in_words(results: Results) -> str:
    """Sources without an element for something in a model, with that element, and engines that are not installed."""
    groups: dict[str, list[str]] = {}
    for source, notes in _unsupported(results).items():
        groups.setdefault(", ".join(dict.fromkeys(notes)), []).append(source)
    for engine in results.run.get("absent") or {}:
        groups.setdefault("not installed", []).append(engine)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in groups.items())


def wholly_unsupported(results: Results, robot: str) -> frozenset[str]:
    """Sources that are unsupported in every case of a robot."""
    supported: set[str] = set()
    every: set[str] = set()
    for case, of_case in case_verdicts(results).items():
        if case[0] == robot:
            every |= of_case.keys()
            supported |= {source for source, finding in of_case.items() if finding.verdict != NOT_SUPPORTED}
    return frozenset(every - supported)


def _unsupported(results: Results) -> Mapping[str, list[str]]:
    """Unsupported elements by source; an engine without any supported route stands for all its routes."""
    by_source: dict[str, list[str]] = {}
    supported: set[str] = set()
    for of_case in case_verdicts(results).values():
        for source, finding in of_case.items():
            if finding.verdict == NOT_SUPPORTED:
                by_source.setdefault(source, []).extend(_elements(finding.note))
            else:
                supported.add(source.split("/")[0])
    by_name: dict[str, list[str]] = {}
    for source, elements in by_source.items():
        engine = source.split("/")[0]
        by_name.setdefault(source if engine in supported else engine, []).extend(elements)
    return by_name


def _elements(note: str) -> Iterator[str]:
    """Elements in a note of the form `ENGINE: not supported: ELEMENT (reason); ELEMENT (reason)`."""
    for part in note.rpartition("not supported: ")[2].split("; "):
        yield part.partition(" (")[0]
