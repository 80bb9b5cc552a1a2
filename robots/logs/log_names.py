"""Columns of a log by our names, from the names that tools and people give them.

By a declaration; by the name that an exporter gives (`exporters.toml`); by a joint or actuator and a word for the
quantity, as `hip_pos` or `tau[hip]`; or by a word and a number in MuJoCo's order, as `qpos_0`, `data.ctrl[1]` or `tau`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.log import READINGS
from loopcheck.robots.mechanism import Mechanism

EXPORTERS = Path(__file__).with_name("exporters.toml")
UNIT = re.compile(r"^(?P<name>.*?)\s*[\[(](?!\d+[\])])(?P<unit>[^\])]+)[\])]$")
"""A name followed by a unit in brackets; a number in brackets is an index."""
NUMBERED = re.compile(
    r"(?P<head>(?:(?:self\.)?(?:mj_?)?(?:data|d|obs|observation|state|sim)[./_])?)"
    r"(?P<word>[A-Za-z][A-Za-z_]*?)[\s_.:\[(-]*(?P<number>\d*)[\])]*"
)
"""A word with or without a number. Names of topics are no such words: their messages have an order of their own."""
EFFORTS = ("effort", "reported")
"""Kinds of numbered efforts; the first that a log has is the effort. Commands are none: a servo follows them."""
STATES = {"q": "qpos", "qd": "qvel", "qdd": "qacc"}
TIME = "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a file."""

    file: str
    """Its name in the file."""
    ours: str
    """Its name with us; its own without the unit, if it is unknown."""
    unit: str = ""
    """Unit behind the name."""


def named_columns(
    columns: Sequence[str], declared: Mapping[str, str], mechanism: Mechanism, path: Path
) -> dict[str, Column]:
    """The columns of a file by our names.

    Args:
        columns: Their names in the file.
        declared: Names in the file by our names.
        mechanism: The robot.
        path: The file, for error messages.

    Raises:
        MechanismError: If two columns have the same content, a numbered quantity lacks a column, or a declaration
            refers to a missing column.
    """
    for ours, file in declared.items():
        if file not in columns:
            raise MechanismError(
                f"{path}: must have the column '{file}', declared for '{ours}' in its description, got "
                f"{', '.join(columns)}"
            )
    theirs = {file: ours for ours, file in declared.items()}
    owners = {*_owners(mechanism)}
    found = {file: UNIT.match(file) for file in columns}
    matches = {file: one if one and one["unit"].strip("'\"") not in owners else None for file, one in found.items()}
    plain = {file: match["name"] if match else file for file, match in matches.items()}
    free = {file: name for file, name in plain.items() if file not in theirs}
    guesses = {file: _of_exporter(name, mechanism) for file, name in free.items()}
    stated = {*theirs.values(), *plain.values(), *guesses.values()}  # which words do not replace
    for file, name in free.items():
        words = _of_words(name, mechanism)
        guesses[file] = guesses[file] or (words if words == name or words not in stated else "")
    unknown = {file: name for file, name in free.items() if not guesses[file]}
    guesses |= _numbered(unknown, {*theirs.values(), *guesses.values()}, mechanism, path)
    if TIME not in {*theirs.values(), *guesses.values()}:
        guesses |= _times({file: name for file, name in free.items() if not guesses.get(file)})
    known: dict[str, Column] = {}
    for file in columns:
        ours = of_actuator(theirs.get(file) or guesses.get(file) or plain[file], mechanism, path)
        if ours in declared and file not in theirs:
            continue  # another topic of the same joint, for example
        if ours in known:
            raise MechanismError(
                f"{path}: must have a single column for '{ours}', got '{known[ours].file}' and '{file}'. Declare one "
                f'of them: columns = {{ "{ours}" = "{file}" }}'
            )
        match = matches[file]
        known[ours] = Column(file=file, ours=ours, unit=match["unit"] if match else _unit_of_time(ours, plain[file]))
    return known


def _of_exporter(name: str, mechanism: Mechanism) -> str:
    """Our name of a column by the first pattern that fits with a joint or an actuator of the robot."""
    owners = {*_owners(mechanism)}
    for pattern, ours in _patterns():
        match = pattern.fullmatch(name) if ours != TIME else None
        if match and match.groupdict().get("joint", "") in {"", *owners}:
            return ours.format(**match.groupdict())
    return ""


def _of_words(name: str, mechanism: Mechanism) -> str:
    """Our name of a column with a joint or an actuator and a word, in either order."""
    for owner in sorted(_owners(mechanism), key=len, reverse=True):
        for pattern in (
            rf"{re.escape(owner)}[\s_./:-]+(?P<word>\D+)",
            rf"(?P<word>\D+?)[\s_./:-]+{re.escape(owner)}",
            rf"(?P<word>\D+?)[\[(]'?{re.escape(owner)}'?[\])]",
        ):
            match = re.fullmatch(pattern, name)
            kind = _kind(match["word"]) if match else ""
            if kind:
                return f"{_coordinate(owner, mechanism) if kind in STATES else owner}.{kind}"
    return ""


def _coordinate(owner: str, mechanism: Mechanism) -> str:
    """The joint or tendon of an actuator, of a joint its own name."""
    if owner in [joint.name for joint in mechanism.joints]:
        return owner
    return next((one.coordinate.name for one in mechanism.actuators if one.name == owner), owner)


def _owners(mechanism: Mechanism) -> Iterator[str]:
    for parts in (mechanism.joints, mechanism.drives, mechanism.actuators):
        yield from (part.name for part in parts)


def _numbered(names: Mapping[str, str], known: set[str], mechanism: Mechanism, path: Path) -> dict[str, str]:
    """Our names of columns that have a word and a number in MuJoCo's order.

    Args:
        names: Names without units by names in the file.
        known: Columns that are known otherwise, by our names; numbers do not replace them.
        mechanism: The robot.
        path: The file.
    """
    groups: dict[tuple[str, str, str], dict[int, str]] = {}
    for file, name in names.items():
        match = NUMBERED.fullmatch(name)
        kind = _kind(match["word"]) if match else ""
        if match and kind:
            group = groups.setdefault((kind, match["head"], match["word"]), {})
            group[int(match["number"] or 0)] = file
    found: dict[str, str] = {}
    kinds = {kind for kind, *_ in groups} | {name.rpartition(".")[2] for name in known}
    effort = next((kind for kind in EFFORTS if kind in kinds), "")
    for (kind, head, word), group in groups.items():
        files = [group[number] for number in sorted(group)]
        is_whole = max(group) - min(group) == len(group) - 1 and min(group) in (0, 1)
        ours = _in_order("effort" if kind == effort else kind, len(files), mechanism) if is_whole else []
        if not ours:
            if len(files) > 1:
                raise MechanismError(f"{path}: {head}{word} must have {_wanted(kind, mechanism)}, got {len(files)}")
            continue
        found |= {file: name for file, name in zip(files, ours, strict=True) if name and name not in known}
    return found


def _in_order(kind: str, count: int, mechanism: Mechanism) -> Sequence[str]:
    """Our names of so many numbers of a kind; empty if it cannot have so many."""
    drives = [f"{drive.name}.{kind}" for drive in mechanism.drives]
    if kind in STATES:
        whole = mechanism.spanning_tree[0 if kind == "q" else 1]
        state = [f"{STATES[kind]}.{k}" for k in range(whole)]
        return state if count == whole else drives if count == len(drives) else []
    if count == mechanism.na:
        return [f"{actuator.name}.{kind}" for actuator in mechanism.actuators]
    if count != mechanism.spanning_tree[1]:
        return []
    of_dofs = [""] * mechanism.nv  # efforts of all joints, zero where nothing drives
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if any(one.coordinate.name == joint.name for one in mechanism.actuators):
            of_dofs[dofs.start] = f"{joint.name}.{kind}"
    return of_dofs[:count]


def _wanted(kind: str, mechanism: Mechanism) -> str:
    if kind in STATES:
        whole = mechanism.spanning_tree[0 if kind == "q" else 1]
        return f"a column for each of {whole} entries of {STATES[kind]}, or of {len(mechanism.drives)} drives"
    return f"a column for each of {mechanism.na} actuators of this model"


def _times(names: Mapping[str, str]) -> dict[str, str]:
    """The column of times: the first by the order of the patterns."""
    for pattern, ours in _patterns():
        if ours == TIME:
            for file, name in names.items():
                if pattern.fullmatch(name):
                    return {file: TIME}
    return {}


def _unit_of_time(ours: str, name: str) -> str:
    """Unit at the end of a name of times, as `t_ms`."""
    match = re.search(r"_(s|sec|ms|us|ns)$", name)
    return match[1] if match and ours == TIME else ""


def _kind(word: str) -> str:
    """Quantity of a word; empty for an unknown word."""
    plain = re.sub(r"[\W_]", "", word).lower()
    return next((kind for kind, words in _words().items() if words.fullmatch(plain)), "")


@cache
def _words() -> Mapping[str, re.Pattern[str]]:
    return {kind: re.compile(words) for kind, words in _exporters()["words"].items()}


@cache
def _patterns() -> Sequence[tuple[re.Pattern[str], str]]:
    tables = [table for name, table in _exporters().items() if name != "words"]
    return [(re.compile(theirs, re.I), ours) for names in tables for theirs, ours in names.items()]


@cache
def _exporters() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(EXPORTERS.read_text(encoding="utf-8"))


def of_actuator(name: str, mechanism: Mechanism, path: Path) -> str:
    """An effort that is named by its joint, by the name of the only actuator there.

    Raises:
        MechanismError: If the joint has several actuators.
    """
    owner, _, kind = name.rpartition(".")
    if kind not in ("effort", *READINGS) or owner in [actuator.name for actuator in mechanism.actuators]:
        return name
    candidates = [actuator.name for actuator in mechanism.actuators if actuator.coordinate.name == owner]
    if len(candidates) > 1:
        raise MechanismError(
            f"{path}: column '{name}' must name one of the actuators of joint '{owner}' ({', '.join(candidates)}): "
            f'columns = {{ "{candidates[0]}.{kind}" = ... }}'
        )
    return f"{candidates[0]}.{kind}" if candidates else name
