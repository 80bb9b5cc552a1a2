"""Changes of a file that are safe: a keyframe with the closed pose, as a unified diff."""

import difflib

import numpy as np

from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mjcf import describe
from loopcheck.validation.gate.closed_poses import OPEN, relative_gaps
from loopcheck.validation.gate.gate import GateResult

KEY = "closed"
"""Name of the keyframe."""
END = "</mujoco>"


def closing_diff(result: GateResult) -> str:
    """A diff that adds a keyframe with the closed pose; empty without an open start, or if the result does not compile.

    The keyframe changes no dynamics. The changed file is compiled beside the original, and its loops are measured.
    """
    if result.closed is None:
        return ""
    text = result.file.read_text(encoding="utf-8")
    head, end, tail = text.rpartition(END)
    if not end or f'name="{KEY}"' in text:
        return ""
    changed = f"{head}{_keyframe(result.closed)}{end}{tail}"
    if not _is_sound(result, changed):
        return ""
    name = result.file.as_posix().lstrip("/")
    lines = (text.splitlines(keepends=True), changed.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, f"a/{name}", f"b/{name}"))


def _keyframe(q: JointPositions) -> str:
    numbers = " ".join(f"{value:.12g}" for value in q)
    return f'  <keyframe>\n    <key name="{KEY}" qpos="{numbers}"/>\n  </keyframe>\n'


def _is_sound(result: GateResult, changed: str) -> bool:
    """Whether the changed file compiles and its keyframe closes the loops."""
    trial = result.file.with_name(f".{result.file.stem}-loopcheck.xml")
    try:
        trial.write_text(changed, encoding="utf-8")
        mechanism = describe(trial).mechanism
        q = np.array(mechanism.keyframes[KEY])
        return float(relative_gaps(mechanism, q[None]).max()) <= OPEN
    except (HarnessError, OSError, KeyError):
        return False
    finally:
        trial.unlink(missing_ok=True)
