"""Where Numba keeps the compiled functions: in the user's cache, in a folder for these sources on this machine."""

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

SOURCES = ("compiled.py", "march.py", "tape.py")


@cache
def folder() -> Path:
    """The folder, which need not exist."""
    here = Path(__file__).parent
    content = b"".join((here / name).read_bytes() for name in SOURCES)
    machine = f"{version('numba')} {version('numpy')} {platform.python_version()} {platform.node()}"
    digest = hashlib.sha256(content + machine.encode()).hexdigest()[:16]
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loopcheck" / digest


def is_compiled() -> bool:
    """Whether nothing is left to compile."""
    return all(any(folder().glob(f"**/march.{name}-*.nbc")) for name in ("walk", "march"))
