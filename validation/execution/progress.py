"""Progress of a study: bars on a terminal, otherwise a line every two minutes, so that a log shows activity.

Texts and bars share one console: rich prints texts above the bars only if both belong to the same console.
"""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.text import Text

PERIOD = 120.0
"""Interval between two lines without a terminal [s]."""
PIPED = 160
"""Width of tables in a file or log [characters]."""
T = TypeVar("T")


@cache
def text_console() -> Console:
    """Console of all texts on stdout, and of the bars if stdout is a terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPED, emoji=False, highlight=False)


class Display(Protocol):
    """Display of a study's progress."""

    def track(self, sequence: Iterable[T], *, total: float, description: str) -> Iterable[T]:
        """The items of a sequence, counted."""

    def say(self, text: str) -> None:
        """Tell somebody who watches; a file needs no such line."""


class Bars(Progress):
    """Bars on a terminal."""

    def say(self, text: str) -> None:
        """See `Display.say`."""
        self.console.print(Text(text))

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars of unfinished work."""
        yield self.make_tasks_table([task for task in self.tasks if not task.finished] or self.tasks[-1:])


@dataclass(frozen=True, slots=True)
class Lines:
    """A line at intervals with the description, the count and the elapsed time."""

    console: Console
    period: float
    """Interval between two lines [s]."""

    def track(self, sequence: Iterable[T], *, total: float, description: str) -> Iterator[T]:
        """See `Display.track`."""
        begin, done, ended = time.monotonic(), 0, threading.Event()

        def say() -> None:
            while not ended.wait(self.period):
                minutes = (time.monotonic() - begin) / 60
                self.console.print(
                    f"loopcheck: {description}: {done} of {total:g} after {minutes:.1f} min", highlight=False
                )

        threading.Thread(target=say, daemon=True).start()
        try:
            for item in sequence:
                done += 1
                yield item
        finally:
            ended.set()

    def say(self, text: str) -> None:
        """See `Display.say`."""


class NoDisplay:
    """Display without output."""

    def track(self, sequence: Iterable[T], *, total: float, description: str) -> Iterable[T]:
        """See `Display.track`."""
        return sequence

    def say(self, text: str) -> None:
        """See `Display.say`."""


@contextmanager
def display() -> Iterator[Display]:
    """Bars on the terminal of stdout, otherwise on that of stderr, otherwise lines on stderr."""
    consoles = (text_console(), Console(stderr=True))
    live = next((console for console in consoles if console.file.isatty() and not console.is_dumb_terminal), None)
    if live is None:
        yield Lines(consoles[-1], PERIOD)
        return
    redirected = {f"redirect_{name}": getattr(sys, name).isatty() for name in ("stdout", "stderr")}
    with Bars(console=live, transient=True, **redirected) as bars:
        yield bars
