"""All checks of a model file."""

import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from loopcheck.analytic.kinematics.continuation import closed_beside
from loopcheck.analytic.kinematics.offsets import in_words, with_closed_loops
from loopcheck.robots.catalogue import CATALOGUE, ROBOT_FILE, names, want_targets
from loopcheck.robots.errors import HarnessError, MechanismError, NotFoundError, listed
from loopcheck.robots.formats.losses import Kind, Loss, with_accepted
from loopcheck.robots.formats.mjcf import Description, describe, overlaps_at_loops
from loopcheck.robots.formats.model_file import xml_files
from loopcheck.robots.formats.registry import format_of
from loopcheck.robots.mechanism import WORLD, PinOffset
from loopcheck.robots.second_reading.differences import compare_with_file
from loopcheck.robots.size import size
from loopcheck.validation.gate.checks.drive_checks import drive_findings
from loopcheck.validation.gate.checks.fragments import comment_findings, fragment_findings, including
from loopcheck.validation.gate.checks.mechanism_checks import Poses, mechanism_findings, size_findings
from loopcheck.validation.gate.checks.parameter_checks import parameter_findings
from loopcheck.validation.gate.checks.softness import softness_findings
from loopcheck.validation.gate.checks.unit_checks import BY_UNITS, unit_findings
from loopcheck.validation.gate.closed_poses import OPEN, closed_near
from loopcheck.validation.gate.findings import Finding, without_ignored
from loopcheck.validation.gate.formats import GateResult

CODES: Mapping[Kind, str] = {"mechanism": "LC105", "drive": "LC211", "unknown": "LC212"}
"""Codes of the findings on names that are not read, by kind."""
NAMED = 5
"""Elements in a message."""
DEEP = 1e-5
"""Depth of a contact at a pin over the size of the robot that is reported [-]."""
TAGS = {"body": "body", "joint": "(?:free)?joint"}
"""Tags of elements; MuJoCo gives no line for elements of included files."""


def model_path(target: str) -> Path:
    """The MJCF of a target: a catalogue robot, a model file or a folder with `robot.toml`.

    Raises:
        NotFoundError: If the target is unknown.
        MechanismError: If the target has no model file.
    """
    want_targets([target])
    folder = CATALOGUE / target if target in names() else Path(target)
    if folder.is_file():
        return folder
    try:
        return folder / tomllib.loads((folder / ROBOT_FILE).read_text(encoding="utf-8-sig"))["mjcf"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MechanismError(f"{folder / ROBOT_FILE}: must name a model file as 'mjcf', got {error}") from error


def gate(target: str | Path, leave_out: Sequence[str] = ()) -> GateResult:
    """Check the model file of a target, without a simulation.

    Args:
        target: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        leave_out: Losses of the file that are accepted, TAG or TAG:NAME.

    Raises:
        NotFoundError: If the target is unknown.
        MechanismError: If the target has no model file.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # on a loaded machine two threads of BLAS wait for each other most of the time
        return _gate(str(target), leave_out)


def _gate(target: str, leave_out: Sequence[str]) -> GateResult:
    began, path = time.perf_counter(), model_path(target)
    texts, closed, loops = {str(part): _text_lines(part) for part in xml_files(path)}, None, None
    offsets: tuple[PinOffset, ...] = ()
    try:
        as_written = describe(path, leave_out)
        description = replace(as_written, mechanism=with_closed_loops(as_written.mechanism))
    except (MechanismError, NotFoundError) as error:  # the latter of a joint that the file names and lacks
        findings = [_not_compiled(path, error), *_losses(_losses_of_file(path, leave_out))]
    else:
        offsets = description.mechanism.offsets
        loops = len(description.mechanism.without_lengths().closures) or (
            None if description.compiled.eq_active0.any() else 0
        )
        findings = [_placed(finding, description, texts) for finding in _findings(as_written, description)]
        if description.mechanism.model.path.suffix.lower() in (".xml", ".mjcf"):
            findings = list(_as_text_has_it(path, findings, texts, is_tree=loops == 0))
        if any(finding.code == "LC201" for finding in findings):
            mechanism = description.mechanism
            closed = closed_near(mechanism, mechanism.rest_position)
            if closed is None:
                closed = next(iter(closed_beside(mechanism, mechanism.rest_position)), None)
    kept = tuple(without_ignored(findings, texts))
    seconds = time.perf_counter() - began
    return GateResult(
        target=target, file=path, findings=kept, seconds=seconds, loops=loops, closed=closed, offsets=offsets
    )


def _as_text_has_it(
    path: Path, findings: Sequence[Finding], texts: Mapping[str, Sequence[str]], *, is_tree: bool
) -> Iterator[Finding]:
    """The findings, of a part of other files those that depend on no unit, and findings on the texts."""
    parts = list(fragment_findings(path, texts))
    yield from parts
    yield from (finding for finding in findings if not (parts and finding.code in BY_UNITS))
    if is_tree:
        yield from comment_findings(texts)


def _losses(losses: Iterable[Loss]) -> Iterator[Finding]:
    """Findings on names of the file that are not read."""
    for loss in losses:
        if loss.path and loss.kind in CODES and not loss.is_accepted:
            yield Finding(code=CODES[loss.kind], message=str(loss), element=loss.tag, file=loss.file, line=loss.line)


def _findings(as_written: Description, description: Description) -> Iterator[Finding]:
    mechanism = description.mechanism
    yield from _losses(mechanism.losses)
    yield from _second_reading(as_written)
    if description.unsupported:
        elements = listed(description.unsupported, 5, "; ")
        yield Finding(code="LC305", extent=float(len(description.unsupported)), message=f"not checked: {elements}")
    if description.handles:
        yield Finding(
            code="LC312",
            element=f"equality {description.handles[0].split(' ')[1]}",
            message=f"left out: {listed(description.handles, NAMED)}, which moves from outside",
        )
    if not mechanism.nv:
        return
    for offset in mechanism.offsets:
        yield Finding(code="LC225", element=f"equality '{offset.closure}'", message=in_words(offset))
    if mechanism.closing.accuracy > OPEN:
        accuracy = f"{mechanism.closing.accuracy:.2g} of the size of the robot"
        yield Finding(code="LC226", message=f"the loops close to {accuracy}: the numbers of the file are rounded")
    poses = Poses(mechanism=mechanism)
    yield from size_findings(poses)
    yield from (
        finding
        for finding in mechanism_findings(poses)
        if not (finding.code == "LC209" and description.handles)  # a handle is no missing loop
    )
    q = poses.closed.q[0] if len(poses.closed.q) else mechanism.rest_position
    yield from parameter_findings(description, np.asarray(q))
    yield from unit_findings(description)
    yield from drive_findings(description, poses.starts, is_large=poses.is_large)
    yield from softness_findings(description, poses)
    yield from _collisions(description, poses)


def _collisions(description: Description, poses: Poses) -> Iterator[Finding]:
    """Bodies that a loop joins and whose geoms lie in each other in most closed poses: a contact pushes them apart."""
    mechanism, q = description.mechanism, poses.closed.q
    depths_of = overlaps_at_loops(description, q) if mechanism.rigid_closures and len(q) else {}
    for closure in mechanism.rigid_closures if depths_of else ():
        ends = [mechanism.bodies[k].name if k != WORLD else "world" for k in (closure.body1, closure.body2)]
        depth = float(np.median(depths_of[closure.name]))
        if depth > DEEP * size(mechanism):
            yield Finding(
                code="LC227",
                element=f"equality '{closure.name}'",
                extent=depth,
                message=f"the geoms of '{ends[0]}' and '{ends[1]}', which '{closure.name}' joins, lie "
                f"{depth * 1e3:.2g} mm in each other in most closed poses: their contact pushes against the loop, and "
                "its friction brakes it",
                advice=f'Exclude it in <contact>: <exclude body1="{ends[0]}" body2="{ends[1]}"/>. Or set contype and '
                "conaffinity of these geoms to 0.",
            )


def _second_reading(description: Description) -> Iterator[Finding]:
    """Values that a second reading of the file reads differently, and what both read by convention."""
    comparison = compare_with_file(description.mechanism)
    for difference in comparison.differences:
        yield Finding(code="LC106", message=str(difference), element=difference.element)
    for words, elements in comparison.conventions.items():
        yield Finding(code="LC307", message=f"read {words}: {listed(elements, NAMED)}")


def _not_compiled(path: Path, error: HarnessError) -> Finding:
    message = str(error).removeprefix(f"{path}: ")
    number = re.search(r"\bline (\d+)", message)
    includers = [f"'{file.name}'" for file in including(path)] if "mujocoinclude" in message else []
    advice = f"Check {listed(includers, NAMED)}, which includes this file." if includers else ""
    line = int(number[1]) if number else 1
    return Finding(code="LC101", message=message, file=str(path), line=line, advice=advice)


def _losses_of_file(path: Path, leave_out: Sequence[str]) -> tuple[Loss, ...]:
    """Losses of a file that does not compile, which they may explain."""
    with suppress(MechanismError):
        form = format_of(path)
        return with_accepted(form.losses(path) if form else (), leave_out)
    return ()


def _placed(finding: Finding, description: Description, texts: Mapping[str, Sequence[str]]) -> Finding:
    """The finding with file and line of its element.

    Args:
        texts: Lines of the files of the model, by path.
    """
    path = description.mechanism.model.path
    if finding.file:
        return finding
    kind, _, quoted = finding.element.partition(" ")
    name = quoted.strip("'")
    line = description.lines.get((kind, name), 0)
    parts = texts.items() if kind else ()
    for part, lines in parts if line else ():
        if line <= len(lines) and f'"{name}"' in lines[line - 1]:
            return replace(finding, file=part, line=line)
    if line:  # without a name of its own
        return replace(finding, file=str(path), line=line)
    tag = TAGS.get(kind, r"\w+")
    pattern = rf"""<{tag}\s[^>]*\bname\s*=\s*["']{re.escape(name)}["']""" if name else rf"<{kind}\b"
    matches = [
        (part, number)
        for part, lines in parts
        for number, text in enumerate(lines, start=1)
        if re.search(pattern, text)
    ]
    file, line = matches[-1] if matches else (str(path), 1)  # equalities and actuators follow the bodies
    return replace(finding, file=file, line=line)


def _text_lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
