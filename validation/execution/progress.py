"""How far a study is: bars on a terminal, and without one a line now and then, so that no log is silent for long."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rich.console import Console, RenderableType
from rich.progress import Progress

PERIOD = 120.0
"""Time between two lines where there is no terminal [s]."""
T = TypeVar("T")


class Display(Protocol):
    """Where it is shown how far a study is."""

    @property
    def is_live(self) -> bool:
        """Whether what is shown may change."""

    def track(self, sequence: Iterable[T], *, total: float, description: str) -> Iterable[T]:
        """What comes, counted."""

    def show(self, above: RenderableType | None) -> None:
        """Put something above what is counted, instead of what was there; nothing is shown where that is not live."""


class Bars(Progress):
    """Bars on a terminal, below what is known so far."""

    is_live = True
    above: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is shown, from above."""
        return [*([self.above] if self.above else []), *super().get_renderables()]

    def show(self, above: RenderableType | None) -> None:
        """See `Display.show`."""
        self.above = above


@dataclass(frozen=True, slots=True)
class Lines:
    """A line now and then: what is counted, and for how long."""

    console: Console
    period: float
    """Time between two lines [s]."""
    is_live: bool = False

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

    def show(self, above: RenderableType | None) -> None:
        """See `Display.show`."""


class NoDisplay:
    """Shows nothing."""

    is_live = False

    def track(self, sequence: Iterable[T], *, total: float, description: str) -> Iterable[T]:
        """See `Display.track`."""
        return sequence

    def show(self, above: RenderableType | None) -> None:
        """See `Display.show`."""


@contextmanager
def display() -> Iterator[Display]:
    """Bars on the terminal of stderr, or lines where it is none."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(console, PERIOD)
        return
    with Bars(console=console, transient=True) as bars:
        yield bars
