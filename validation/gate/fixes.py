"""Changes of a file that are safe: a keyframe with the closed pose, as a unified diff."""

import difflib
import os
from pathlib import Path

import numpy as np

from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mjcf import describe
from loopcheck.validation.gate.closed_poses import OPEN, relative_gaps
from loopcheck.validation.gate.gate import GateResult

KEY = "closed"
"""Name of the keyframe."""
END = b"</mujoco>"
UNFINISHED = b"\n\\ No newline at end of file\n"
"""Mark of a line without an end in a diff."""


def closing_diff(result: GateResult) -> bytes:
    """A diff that adds a keyframe with the closed pose; empty without an open start, or if the result does not compile.

    The keyframe changes no dynamics. The changed file is compiled beside the original, and its loops are measured.
    Bytes, because all other lines keep their encoding and their line ends.
    """
    if result.closed is None:
        return b""
    text = result.file.read_bytes()
    head, end, tail = text.rpartition(END)
    if not end or f'name="{KEY}"'.encode() in text:
        return b""
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    changed = b"".join((head, _keyframe(result.closed).replace(b"\n", newline), end, tail))
    if not _is_sound(result, changed):
        return b""
    path, folder = result.file.resolve(), Path.cwd()  # git patches no symbolic link
    name = path.relative_to(folder if path.is_relative_to(folder) else path.anchor).as_posix()
    lines = (text.splitlines(keepends=True), changed.splitlines(keepends=True))
    diff = difflib.diff_bytes(difflib.unified_diff, *lines, os.fsencode(f"a/{name}"), os.fsencode(f"b/{name}"))
    return b"".join(line if line.endswith(b"\n") else line + UNFINISHED for line in diff)


def _keyframe(q: JointPositions) -> bytes:
    numbers = " ".join(f"{value:.12g}" for value in q)
    return f'  <keyframe>\n    <key name="{KEY}" qpos="{numbers}"/>\n  </keyframe>\n'.encode()


def _is_sound(result: GateResult, changed: bytes) -> bool:
    """Whether the changed file compiles and its keyframe closes the loops."""
    trial = result.file.with_name(f".{result.file.stem}-loopcheck.xml")
    try:
        trial.write_bytes(changed)
        mechanism = describe(trial).mechanism
        q = np.array(mechanism.keyframes[KEY])
        return float(relative_gaps(mechanism, q[None]).max()) <= OPEN
    except (HarnessError, OSError, KeyError):
        return False
    finally:
        trial.unlink(missing_ok=True)
