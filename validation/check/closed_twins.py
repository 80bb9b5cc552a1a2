"""Files beside a serial model that may be of the same robot with its loops closed, by their text alone."""

import re
from pathlib import Path

from loopcheck.robots.mechanism import DOFS, Mechanism

LARGEST = 4_000_000
"""Largest file that is searched [bytes]."""
AS_IT_IS, REPAIRED, AT_LIMITS = "rms error / peak [-]", "with constants [-]", "at the limits here, of its own [-]"
"""Names of figures of each motor."""
CLOSURE = re.compile(rb"<(connect|weld)\s")


def possible_twins(mechanism: Mechanism) -> tuple[Path, ...]:
    """MJCFs in the folder of a model without loops that have closures and name all of its joints."""
    model = mechanism.model.path.absolute()
    names = [joint.name for joint in mechanism.joints if DOFS[joint.kind] == 1]
    if mechanism.rigid_closures or not names:
        return ()
    patterns = [re.compile(rb"\sname\s*=\s*[\"']" + re.escape(name.encode()) + rb"[\"']") for name in names]
    possible = []
    for path in sorted(model.parent.glob("*.xml")):
        text = b"" if path == model else _text(path)
        if CLOSURE.search(text) and all(pattern.search(text) for pattern in patterns):
            possible.append(path)
    return tuple(possible)


def _text(path: Path) -> bytes:
    """Content of a file, or an empty string if it is too large, missing or unreadable."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= LARGEST else b""
    except OSError:
        return b""
