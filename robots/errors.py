"""Errors that loopcheck raises on purpose. A message states the requirement, the value found, and its place."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

INTERNAL = "internal error"
"""Beginning of the reason of an unexpected exception."""


def listed(parts: Sequence[str], most: int, mark: str = ", ") -> str:
    """The first of some names or sentences, and the number of the others."""
    more = [f"and {len(parts) - most} more"] if len(parts) > most else []
    return mark.join([*parts[:most], *more])


COMMANDS = (
    "add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|notice|remove-matcher|save-state|set-env|set-output|"
    "stop-commands|warning"
)
COMMAND = re.compile(rf"^\s*:(?=:)|:(?=:(?:{COMMANDS})\b.*::)|##(?=\\*\[)")
"""A command to GitHub's runner in the log of a workflow: `::error::` begins a line, also a wrapped one, where names of
SDF, `model::joint`, stay as they are; `##[error]` is anywhere, also after its bracket is escaped for a table."""
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that move a cursor, turn a text around, or cannot be written."""


def one_line(text: str) -> str:
    """A text with names of a file in one line that a terminal shows and no runner takes for a command."""
    seen = (
        character.encode("unicode_escape").decode()
        if character != "\t" and unicodedata.category(character) in UNSEEN
        else character
        for character in " ".join(text.splitlines())
    )
    return COMMAND.sub(lambda found: f"{found[0]} ", "".join(seen))


class HarnessError(Exception):
    """Base of all errors of loopcheck: bad input or an engine that failed, never a bug."""

    example: str = ""
    """Lines of a file that would help, shown below the message."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors come back from worker processes; the default would call __init__ with the message alone.
        return _restored, (type(self), self.args, self.__dict__)


class NotFoundError(HarnessError):
    """An unknown name; the message lists the valid names."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(dict.fromkeys(known))
        close = get_close_matches(name, self.known, n=1, cutoff=0.75)
        guess = f" Did you mean '{close[0]}'?" if close else ""
        super().__init__(f"unknown {kind}: '{name}'.{guess} Known: {', '.join(self.known) or '(empty)'}")


class MechanismError(HarnessError):
    """A bad MJCF or TOML file, or a feature of it that is not supported."""


class ShapeError(HarnessError):
    """An array with a wrong shape, with NaN, or on a wrong time grid."""


class OutputError(HarnessError):
    """A folder of results that cannot be written or read."""


class ToleranceError(HarnessError):
    """A limit of a user's own that makes no sense."""


class LoopClosureError(HarnessError):
    """The loops cannot be closed.

    Attributes:
        residual: Smallest closure residual that was reached [m or rad].
        tolerance: Required residual [m or rad].
        time: Time of the motion at which it happened [s].
    """

    def __init__(self, message: str, *, residual: float, tolerance: float, time: float) -> None:
        self.residual, self.tolerance, self.time = residual, tolerance, time
        super().__init__(message)


class SingularityError(HarnessError):
    """The actuated joints do not determine the passive joints: the motion meets a singularity.

    Attributes:
        time: Time of the motion at which it happens [s].
        singular_value: Smallest singular value of the passive closure Jacobian there, relative to the largest [-].
    """

    def __init__(self, message: str, *, time: float, singular_value: float) -> None:
        self.time, self.singular_value = time, singular_value
        super().__init__(message)


class NotRepresentableError(HarnessError):
    """A source cannot represent an element of the robot; the message names the element."""


class EngineError(HarnessError):
    """A physics engine failed, warned, or returned something that is not a result."""


class EngineNotInstalledError(EngineError):
    """A physics engine is not installed; the message names the extra or the command that installs it."""

    def __init__(self, engine: str, extra: str) -> None:
        by_pip = f"pip install 'loopcheck[{extra}]', or " if extra else ""
        super().__init__(f"engine '{engine}' is not installed. Run: {by_pip}loopcheck engines add {engine}")


def _restored(kind: type[HarnessError], args: tuple[Any, ...], attributes: dict[str, Any]) -> HarnessError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error
