"""Changes of a file that are safe, as a unified diff: a keyframe with the closed pose, and anchors along their pin."""

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed, with_closing
from loopcheck.analytic.kinematics.offsets import pin_offsets
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import compile_model, describe
from loopcheck.robots.formats.mjcf_patch import Patch, ends_of_equality, patched, uses_of_site
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.gate.closed_poses import OPEN, relative_gaps
from loopcheck.validation.gate.formats import GateResult

KEY = "closed"
"""Name of the keyframe."""
END = b"</mujoco>"
UNFINISHED = b"\n\\ No newline at end of file\n"
"""Mark of a line without an end in a diff."""


def closing_diff(result: GateResult) -> bytes:
    """A diff that closes the loops of a file; empty without a change, or if the result does not compile.

    Anchors that lie apart along a pin are moved to their mean. A keyframe with the closed pose is added beside an open
    start; it changes no dynamics. The changed file is compiled beside the original, and its loops are measured. Bytes,
    because all other lines keep their encoding and their line ends.
    """
    text = result.file.read_bytes()
    changed = _with_keyframe(result, _with_anchors(result, text))
    if changed == text:
        return b""
    path, folder = result.file.resolve(), Path.cwd()  # git patches no symbolic link
    name = path.relative_to(folder if path.is_relative_to(folder) else path.anchor).as_posix()
    lines = (text.splitlines(keepends=True), changed.splitlines(keepends=True))
    diff = difflib.diff_bytes(difflib.unified_diff, *lines, os.fsencode(f"a/{name}"), os.fsencode(f"b/{name}"))
    return b"".join(line if line.endswith(b"\n") else line + UNFINISHED for line in diff)


def _with_anchors(result: GateResult, text: bytes) -> bytes:
    """The text with sites at their mean along a pin; a site that serves other elements stays, the other one moves."""
    if not result.offsets:
        return text
    model, sites = ModelFile(path=result.file), dict[str, Mapping[str, str]]()
    compiled = compile_model(model)
    names = [compiled.equality(k).name or f"equality{k}" for k in range(compiled.neq)]
    for offset in result.offsets:
        ends = ends_of_equality(model, names.index(offset.closure))
        movable = [name for name in ends if uses_of_site(model, name) == 1]
        for name, axis, sign in zip(ends, offset.axes, (-1, 1), strict=True):
            if name in movable:
                moved = compiled.site(name).pos + sign * offset.length / len(movable) * np.array(axis)
                sites[name] = {"pos": " ".join(f"{x:.12g}" for x in np.round(moved, 15) + 0.0)}
    try:
        files = patched(model, Patch(option={}, equalities={}, sites=sites), compiled.neq)
    except HarnessError:
        return text
    changed = files.get(result.file.absolute(), text)
    return (
        changed if len(files) == 1 and _holds(result, changed, lambda mechanism: not pin_offsets(mechanism)) else text
    )


def _with_keyframe(result: GateResult, text: bytes) -> bytes:
    """The text with a keyframe of the closed pose, if the file starts with open loops."""
    head, end, tail = text.rpartition(END)
    if result.closed is None or not end or f'name="{KEY}"'.encode() in text:
        return text
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    changed = b"".join((head, _keyframe(result.closed).replace(b"\n", newline), end, tail))
    return changed if _holds(result, changed, _is_closed) else text


def _keyframe(q: JointPositions) -> bytes:
    numbers = " ".join(f"{value:.12g}" for value in q)
    return f'  <keyframe>\n    <key name="{KEY}" qpos="{numbers}"/>\n  </keyframe>\n'.encode()


def _is_closed(mechanism: Mechanism) -> bool:
    """Whether the keyframe closes the loops."""
    q = np.array(mechanism.keyframes[KEY])
    return float(relative_gaps(mechanism, q[None]).max()) <= allowed(OPEN, with_closing(mechanism))


def _holds(result: GateResult, changed: bytes, holds: Callable[[Mechanism], bool]) -> bool:
    """Whether the changed file compiles, and a condition holds for its mechanism."""
    trial = result.file.with_name(f".{result.file.stem}-loopcheck.xml")
    try:
        trial.write_bytes(changed)
        return holds(describe(trial).mechanism)
    except (HarnessError, OSError, KeyError):
        return False
    finally:
        trial.unlink(missing_ok=True)
