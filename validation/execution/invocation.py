"""Commands to paste, called in the way in which the user called the running command."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

UV, UV_RUN = "UV", "UV_RUN_RECURSION_DEPTH"
"""Variables that `uv run` sets for its command; `uvx` sets the first alone."""


def pasted(*arguments: str | Iterable[str]) -> str:
    """A command of loopcheck in the words of a shell.

    Args:
        *arguments: Of the command, without `loopcheck`, singly or in groups.
    """
    words = [[one] if isinstance(one, str) else one for one in arguments]
    return shlex.join([*called(), *(word for group in words for word in group)])


def as_called(text: str) -> str:
    """A message whose command, behind a colon or `or`, begins as the user has called it."""
    return re.sub(r"(?:(?<=: )|(?<= or ))loopcheck (?=[a-z])", f"{pasted()} ".replace("\\", r"\\"), text)


def called() -> tuple[str, ...]:
    """First words of a command: as the user has typed them, as far as a process can see it."""
    if UV_RUN in os.environ:
        return ("uv", "run", "loopcheck")
    program, found = sys.argv[0], shutil.which("loopcheck")
    is_module = Path(program).parts[-2:] == ("loopcheck", "__main__.py")
    if is_module or (found is None and Path(program).stem != "loopcheck"):
        names = (name for name in ("python", "python3") if shutil.which(name) == sys.executable)
        return (next(names, sys.executable), "-m", "loopcheck")
    is_path = Path(program).stem == "loopcheck" and Path(program).name != program
    is_hidden = program != found or UV in os.environ  # the script of uvx is in PATH for itself alone
    return (program if is_path and is_hidden else "loopcheck",)
