"""Findings of the gate: codes, severities, places in the file, and comments that switch findings off."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from loopcheck.robots.errors import MechanismError

Severity: TypeAlias = Literal["error", "warning", "note"]
SEVERITIES: Mapping[str, Severity] = {"1": "error", "2": "warning", "3": "note"}
"""Severity by the first digit of a code."""
COLUMNS = ("code", "severity", "file", "line", "element", "message", "remedy", "page")
"""What a table says of a finding."""
PAGE = "docs/how_to/gate_a_model.md"
"""Page of the documentation with a section per code."""
IGNORE = re.compile(r"loopcheck:\s*ignore(-file)?\s+((?:LC\d+[\s,]*)+)")
"""A comment that switches off findings of its line and of the next line, or of the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A kind of finding."""

    title: str
    """What is wrong, in a few words."""
    remedy: str
    """What to do, in a sentence."""


RULES: Mapping[str, Rule] = {
    "LC101": Rule(title="does not compile", remedy="Correct the element that the message names."),
    "LC102": Rule(
        title="loop cannot close",
        remedy="Compare the anchor or sites of the equality with the lengths of the links and with the units.",
    ),
    "LC103": Rule(
        title="mechanism is locked",
        remedy="Remove an equality, or replace a weld by a connect. Check the directions of the joint axes.",
    ),
    "LC104": Rule(
        title="drive without effect",
        remedy="Put the actuator on a joint that the loops leave free, or remove the equality that holds the joint.",
    ),
    "LC105": Rule(
        title="part of the mechanism not read",
        remedy="Write the element in a form that is read, or accept the model without it by --leave-out.",
    ),
    "LC106": Rule(
        title="two readings differ",
        remedy="Report the file, because one of the readers is wrong. Or write the element in a simpler form.",
    ),
    "LC107": Rule(
        title="links form a truss",
        remedy="Change the length of a link of the loop: at the stated lengths the links are in line.",
    ),
    "LC108": Rule(title="switched off by a flag", remedy="Remove the flag from <option>."),
    "LC109": Rule(title="negative coefficient", remedy="Reverse the sign."),
    "LC110": Rule(
        title="drive weaker than its friction",
        remedy="Raise the limit of the drive, or correct the unit of the friction (N m, or N of a slide).",
    ),
    "LC201": Rule(
        title="loop open at the start", remedy="Start from a keyframe with closed loops. `--fix` proposes one."
    ),
    "LC202": Rule(title="start outside limits", remedy="Correct the range of the joint, its ref or the keyframe."),
    "LC203": Rule(title="singular start", remedy="Start from a keyframe beside the singular pose."),
    "LC204": Rule(title="drive without effect at the start", remedy="Start from a keyframe beside the singular pose."),
    "LC205": Rule(
        title="inertia out of proportion",
        remedy="Check the units of mass (kg), length (m) and inertia (kg m²) of the body.",
    ),
    "LC206": Rule(
        title="gear without armature",
        remedy="Set the armature of the joint to the rotor's inertia times the square of the gear ratio.",
    ),
    "LC207": Rule(
        title="time step too long",
        remedy="Reduce the time step, or soften the loop or servo. For velocity gains, use an implicit integrator.",
    ),
    "LC208": Rule(title="doubtful unit", remedy="Use m, kg, s and N."),
    "LC209": Rule(title="loop missing", remedy="Add an equality (connect or weld) that closes the loop."),
    "LC210": Rule(
        title="friction solved apart from loops",
        remedy="Remove noslip_iterations. A larger impratio reduces the slip of contacts instead.",
    ),
    "LC211": Rule(
        title="part of an actuator not read",
        remedy="State it in the settings of the simulation. The efforts of a prescribed motion do not depend on it.",
    ),
    "LC212": Rule(title="unknown name", remedy="Correct the spelling, or remove the element if it has no effect."),
    "LC213": Rule(title="gravity points up", remedy="Reverse the sign of gravity in <option>."),
    "LC214": Rule(
        title="drive hardly stronger than its friction",
        remedy="Raise the limit of the drive, or correct the unit of the friction (N m, or N of a slide).",
    ),
    "LC215": Rule(
        title="drive weaker than the weight",
        remedy="Raise the limit of the drive, or correct the unit of the masses (kg).",
    ),
    "LC216": Rule(title="denser than any metal", remedy="Correct the unit of the mass (kg) or of the density (kg/m³)."),
    "LC217": Rule(
        title="loop closes slowly",
        remedy="Reduce the time constant in solref to at most 0.05 s; MuJoCo's default is 0.02 s.",
    ),
    "LC218": Rule(
        title="control of a keyframe outside its range",
        remedy="Correct the ctrl of the keyframe or the ctrlrange of the actuator.",
    ),
    "LC219": Rule(
        title="angle in degrees",
        remedy="State angles in the unit of <compiler angle>; ctrlrange and forcerange are in radians and N m in any "
        "file.",
    ),
    "LC220": Rule(title="range without room", remedy="Widen the range, or remove the actuator."),
    "LC221": Rule(title="closure twice", remedy="Remove one of the closures."),
    "LC222": Rule(title="closure to the parent", remedy="Name the body that closes the loop, or remove the equality."),
    "LC223": Rule(title="weld in place of a pin", remedy="Replace the weld by a connect at the pin."),
    "LC224": Rule(
        title="too large", remedy="Check a part of the robot, for example a single leg, in a file of its own."
    ),
    "LC225": Rule(
        title="offset along a pin",
        remedy="Move the sites of the equality together. `--fix` proposes their mean.",
    ),
    "LC226": Rule(
        title="few digits",
        remedy="Write the numbers of the file with more digits.",
    ),
    "LC227": Rule(
        title="collision at a pin",
        remedy="Exclude the contact of these bodies by <exclude> in <contact>.",
    ),
    "LC301": Rule(
        title="redundant closure rows", remedy="Leave planar loops as they are, and remove a duplicate closure."
    ),
    "LC302": Rule(
        title="number of drives", remedy="Compare the actuators with the degrees of freedom that they can move."
    ),
    "LC303": Rule(title="motion without drive", remedy="Add an actuator where the robot has a motor."),
    "LC304": Rule(
        title="rank uncertain",
        remedy="Write the numbers of the file with more digits, so that its loops close more exactly.",
    ),
    "LC305": Rule(
        title="not checked", remedy="Read the other findings as findings on the file without these elements."
    ),
    "LC306": Rule(
        title="soft loop opens under load",
        remedy="Reduce the time constant in solref, or increase dmax in solimp. `loopcheck tune` finds the settings.",
    ),
    "LC307": Rule(title="convention", remedy="Write the value into the file, so that every reader takes the same."),
    "LC308": Rule(title="unusual gravity", remedy="Set gravity in <option>: 9.81 m/s² on Earth, in m and s."),
    "LC309": Rule(
        title="large armature", remedy="Check the unit of the armature (kg m²) and the square of the gear ratio in it."
    ),
    "LC310": Rule(
        title="time constant below two steps",
        remedy="Set the time constant in solref to two time steps or more: MuJoCo uses two time steps anyway.",
    ),
    "LC311": Rule(title="part of other files", remedy="Check the file that includes it, which states the units."),
    "LC312": Rule(
        title="left out", remedy="Nothing depends on it here: the efforts are those of the robot without this handle."
    ),
    "LC313": Rule(
        title="closure in a comment",
        remedy="Remove the comment marks if the loop belongs to the robot, otherwise delete the comment.",
    ),
}
"""The kinds of findings, by code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault or a remark about an element of a model file."""

    code: str
    message: str
    """A sentence with the numbers."""
    element: str = ""
    """Kind and name of the element, as `joint 'knee'`; empty for the whole file."""
    advice: str = ""
    """What to do about it, with the elements and numbers of the file; empty for the remedy of the rule."""
    extent: float | None = None
    """How large the fault is, in the unit of its message, larger for worse; None for a fault without a size."""
    file: str = ""
    line: int = 1

    @property
    def severity(self) -> Severity:
        """Severity by the code."""
        return SEVERITIES[self.code[2]]

    @property
    def remedy(self) -> str:
        """What to do."""
        return self.advice or RULES[self.code].remedy

    @property
    def page(self) -> str:
        """Section of the documentation."""
        return f"{PAGE}#{self.code.lower()}"

    @property
    def row(self) -> dict[str, Any]:
        """Values by `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS}


def selected(findings: Iterable[Finding], select: Sequence[str], ignore: Sequence[str]) -> list[Finding]:
    """The findings whose codes begin with a selected and with no ignored prefix, errors first.

    Args:
        select: Prefixes of codes, as LC1; empty selects all.
        ignore: Prefixes of codes.

    Raises:
        MechanismError: If a prefix fits no code.
    """
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix) for code in RULES):
            raise MechanismError(f"--select and --ignore must name codes ({', '.join(RULES)}), got '{prefix}'")
    kept = [f for f in findings if f.code.startswith(tuple(select) or "LC") and not f.code.startswith(tuple(ignore))]
    return sorted(kept, key=lambda f: (f.code, f.file, f.line))


def without_ignored(findings: Iterable[Finding], texts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """The findings that no comment of their file switches off.

    Args:
        texts: Lines of the files of the model, by path.
    """
    comments = {file: list(_comments(lines)) for file, lines in texts.items()}
    return [finding for finding in findings if not _is_ignored(finding, comments.get(finding.file, ()))]


def _comments(lines: Sequence[str]) -> Iterator[tuple[int, bool, set[str]]]:
    """Number of the line, counted from 1, whether the whole file is meant, and codes of each comment."""
    for number, text in enumerate(lines, start=1):
        for of_file, codes in IGNORE.findall(text) if "loopcheck:" in text else ():
            yield number, bool(of_file), {*re.findall(r"LC\d+", codes)}


def _is_ignored(finding: Finding, comments: Iterable[tuple[int, bool, set[str]]]) -> bool:
    near = (finding.line - 1, finding.line)
    return any(finding.code in codes and (of_file or number in near) for number, of_file, codes in comments)


def number_of(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun, for example "2 files"."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
