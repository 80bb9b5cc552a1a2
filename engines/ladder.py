"""Refinement studies: a forward route with other settings, one of them refined level by level.

`engines/<engine>/refinements.py` defines the studies of an engine: `ladders(motion)` returns them for the grid of a
motion.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

from loopcheck import engines
from loopcheck.robots.efforts import Source
from loopcheck.robots.motion import Motion

STEP = "step [s]"
"""Refined quantities of step-size studies that converge to the exact answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level: the route with the settings of the study and a value of the refined setting."""

    value: float
    """Value of the refined quantity."""
    dt: float
    """Step, the finest if several simulations are extrapolated [s]."""
    settings: str
    """Settings that reproduce it, besides the step."""
    runs: int
    """Number of simulations in the extrapolation; 1 without extrapolation."""
    plain: bool
    """Whether it is a single run of the engine's own stepping, as in a user's simulation."""
    source: Source | None
    """Source of the efforts; None in an outline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Settings of a route with a single refined setting."""

    route: str
    """As `mujoco/forward`."""
    name: str
    """Name, unique among the studies of the route."""
    refined: str
    """The refined quantity, with its unit."""
    order: float = nan
    """Theoretical order of the error in the refined quantity [-]; NaN without theory."""
    levels: tuple[Level, ...]
    """Coarsest first."""
    extrapolated: tuple[int, ...] = ()
    """Over how many of its rungs at a time Richardson's extrapolation is to be tried, besides each rung alone."""
    own: tuple[int, float] = field(default=(0, nan))
    """Settings of the route itself: number of extrapolated levels, and value of its finest level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A forward route and its settings: a dataclass with `steps` [s], or with `parts`, the steps in equal times."""

    name: str
    """As `mujoco/forward`."""
    source: Callable[[Any], Source]
    """Constructor of the route with settings."""
    in_words: Callable[[Any], str]
    """Settings by the names of the engine."""
    part: float = nan
    """The time that `parts` divide [s]."""
    is_plain: Callable[[Any], bool] = lambda settings: True
    """Whether a single simulation with these settings is the engine's own stepping."""

    def over_steps(self, name: str, settings: Any, steps: Sequence[float], **more: Any) -> Ladder:
        """The ladder of the same settings at several steps [s], coarsest first."""
        levels = tuple(self._level(dt, dt, settings) for dt in steps)
        return Ladder(route=self.name, name=name, refined=STEP, levels=levels, **more)

    def over(self, name: str, refined: str, values: Mapping[float, Any], dt: float, **more: Any) -> Ladder:
        """The study of several settings, by the value of the refined quantity, at a fixed step [s]."""
        levels = tuple(self._level(value, dt, settings) for value, settings in values.items())
        return Ladder(route=self.name, name=name, refined=refined, levels=levels, **more)

    def _level(self, value: float, dt: float, settings: Any) -> Level:
        """The level of a step [s]: the finest of an extrapolation, with other steps that remain multiples of it."""
        if hasattr(settings, "parts"):
            extrapolated = settings.parts
            parts = tuple(round(self.part / dt * part / max(extrapolated)) for part in extrapolated)
            source = self.source(replace(settings, parts=parts))
        else:
            extrapolated = getattr(settings, "compliances", (dt,))
            source = self.source(replace(settings, steps=(dt,)))
        runs = len(extrapolated)
        plain = runs == 1 and self.is_plain(settings)
        return Level(value=value, dt=dt, settings=self.in_words(settings), runs=runs, plain=plain, source=source)


def ladders(motion: Motion) -> Sequence[Ladder]:
    """All refinement studies of the installed engines.

    Args:
        motion: The prescribed motion; the steps divide its grid.
    """
    declared = [engines.part(name, "refinements") for name in engines.engine_names() if engines.installed(name)]
    return [ladder for module in declared if module is not None for ladder in module.ladders(motion)]


def outlines(engine: str, motion: Motion) -> list[Ladder]:
    """The studies of an engine without their functions, for a Python without the engine.

    Args:
        motion: The prescribed motion; the steps divide its grid.
    """
    module = engines.part(engine, "refinements")
    return [
        replace(ladder, levels=tuple(replace(level, source=None) for level in ladder.levels))
        for ladder in (module.ladders(motion) if module else ())
    ]


def sourced(ladder: Ladder, motion: Motion) -> Ladder:
    """A study with its functions, if its engine can be imported.

    Args:
        ladder: The study, or its outline.
        motion: The motion for which it was made.
    """
    if all(level.source for level in ladder.levels):
        return ladder
    module = engines.part(ladder.route.split("/")[0], "refinements")
    whole = module.ladders(motion) if module else ()
    return next(one for one in whole if (one.route, one.name) == (ladder.route, ladder.name))


def halvings(longest: float, *, coarsest: float, finest: float) -> list[float]:
    """The halves, quarters … of a time, and that time itself, that lie between two bounds, longest first [s]."""
    steps = [longest / 2**k for k in range(30)]
    return [dt for dt in steps if finest <= dt <= coarsest]
