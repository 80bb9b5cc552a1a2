"""What an engine may declare about itself: settings of its simulations, refinements of its routes, derivatives."""

import runpy
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, nan, prod
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from loopcheck import engines
from loopcheck.engines.as_is import Record, log_of
from loopcheck.engines.forward import divided, own_steps
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Source
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ACCELERATION, FORCE = "accelerations", "forces"
"""Quantities: accelerations of all dofs along efforts; forces on the spanning tree that accelerations require."""
ACTING = {ACCELERATION: "effort", FORCE: "qdd"}
"""The third input of each quantity, beside positions and velocities."""
CONSTANTS = 10
"""Inertial parameters of a body: mass, first moments x, y, z, and inertia xx, xy, xz, yy, yz, zz about its origin."""

Function: TypeAlias = Callable[[JointPositions, JointVelocities, Array], Array]
"""Accelerations or forces [m/s² or rad/s², N or N m], shape (nv,), from positions, velocities and the third input."""
Derivatives: TypeAlias = Callable[[JointPositions, JointVelocities, Array], Mapping[str, Array]]
"""Derivatives by input, each of shape (nv, columns): `q` along displacements of all dofs, turns in body axes; `qd`;
`effort` (na columns) or `qdd`; `parameters` (10 columns of each body)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differentiated:
    """A function of an engine with its derivatives, each dof as in the mechanism."""

    name: str
    """The engine's name of the function that returns the derivatives."""
    quantity: str
    """`ACCELERATION` or `FORCE`."""
    meaning: str
    """The differentiated quantity, and how it differs from the exact accelerations or forces; empty if it does not."""
    value: Function
    derivatives: Derivatives


@dataclass(frozen=True, slots=True, kw_only=True)
class WrenchReading:
    """How an engine reports forces in the joints, and how they are brought to the common convention."""

    name: str
    """The engine's name of the reading, a key of `loopcheck.robots.efforts.EffortHistory.wrenches`."""
    carriers: str
    """What has the reading: bodies, closures or both."""
    point: str
    axes: str
    sign: str
    """The body that the wrench acts on; with `minus` if it is the opposite."""
    code: str
    """Correct lines of code."""
    drive: str = "included"
    """Whether the moment along the joint contains the effort of its drive."""
    time: str = "instantaneous"
    """Instant of the values, or the step that they are the mean of."""
    fault: str = ""
    """What no conversion makes right; empty if nothing is known to be wrong."""


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
    source: Source | None
    """Source of the efforts; None in an outline."""


@dataclass(frozen=True, slots=True)
class Order:
    """Claim on the order of an error in a refined quantity."""

    value: float
    """The expected order [-]."""
    source: str
    """Method or theorem that it follows from."""
    limit: str = ""
    """What the efforts converge to; empty for the efforts of rigid loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Settings of a route with a single refined setting."""

    route: str
    """As `mujoco/forward`."""
    name: str
    """Name, unique among the studies of the route."""
    refined: str
    """The refined quantity, with its unit."""
    order: Order | None = None
    """Expected order of the error in the refined quantity; None without a claim."""
    default: float = nan
    """Value of the refined quantity in a simulation without settings; NaN if the engine has none."""
    levels: tuple[Level, ...]
    """Coarsest first."""
    extrapolated: tuple[int, ...] = ()
    """Over how many of its rungs at a time Richardson's extrapolation is to be tried, besides each rung alone."""
    own: tuple[int, float] = field(default=(0, nan))
    """Settings of the route itself: number of extrapolated levels, and value of its finest level."""


@dataclass(frozen=True, slots=True)
class OverSteps:
    """A study of the step, with fixed settings."""

    name: str
    settings: Any
    bounds: tuple[float, float]
    """Upper bound of the coarsest and lower bound of the finest step [s]."""
    order: Order | None = None
    """See `Ladder.order`."""
    extrapolated: tuple[int, ...] = ()
    """See `Ladder.extrapolated`."""
    own: int = 0
    """Number of extrapolated levels that the route itself has; 0 if it has other settings."""


@dataclass(frozen=True, slots=True)
class OverValues:
    """A study of another setting, at a fixed step."""

    name: str
    refined: str
    """See `Ladder.refined`."""
    settings: Mapping[float, Any]
    """All settings by the value of the refined setting."""
    order: Order | None = None
    """See `Ladder.order`."""
    longest: float = nan
    """Upper bound of the step [s]; not used for settings with `parts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinements:
    """Studies of a forward route with settings that have `steps` [s], or `parts`, the steps in equal times."""

    source: Callable[..., Any]
    """The class of the route, made with settings or with its own."""
    in_words: Callable[[Any], str]
    """Settings by the names of the engine."""
    studies: Sequence[OverSteps | OverValues]
    default: float = nan
    """Step of a simulation without settings [s]; NaN if the engine has none."""
    finest: float = nan
    """Upper bound of the finest step of the route [s]; not used for settings with `parts`."""

    def ladders(self, motion: Motion) -> Iterator[Ladder]:
        """All studies; see `loopcheck.engines.contract.Refinements.ladders`."""
        own = self.source().settings
        part = divided(motion.dt) if hasattr(own, "parts") else motion.dt
        for study in self.studies:
            ladder = partial(Ladder, route=self.source().name, name=study.name, order=study.order)
            match study:
                case OverSteps():
                    parts = getattr(study.settings, "parts", (1,))
                    ratio, (coarsest, finest) = max(parts) / min(parts), study.bounds
                    steps = halvings(part / ratio, coarsest=coarsest / ratio, finest=finest)
                    yield ladder(
                        refined=STEP,
                        default=self.default,
                        levels=tuple(self._level(dt, dt, study.settings, part) for dt in steps),
                        extrapolated=study.extrapolated,
                        own=(study.own, _fixed_step(own, part, self.finest)) if study.own else (0, nan),
                    )
                case OverValues():
                    dt = _fixed_step(next(iter(study.settings.values())), part, study.longest)
                    every = (self._level(value, dt, settings, part) for value, settings in study.settings.items())
                    yield ladder(refined=study.refined, levels=tuple(every))

    def _level(self, value: float, dt: float, settings: Any, part: float) -> Level:
        """The level of a step [s]: the finest of an extrapolation, with other steps that remain multiples of it."""
        if hasattr(settings, "parts"):
            extrapolated = settings.parts
            parts = tuple(round(part / dt * count / max(extrapolated)) for count in extrapolated)
            source = self.source(replace(settings, parts=parts))
        else:
            extrapolated = getattr(settings, "compliances", (dt,))
            source = self.source(replace(settings, steps=(dt,)))
        runs = len(extrapolated)
        return Level(value=value, dt=dt, settings=self.in_words(settings), runs=runs, source=source)


def _fixed_step(settings: Any, part: float, longest: float) -> float:
    """The finest of the `parts` of a time [s], or the longest of its halves, quarters … within a bound [s]."""
    if hasattr(settings, "parts"):
        return float(part / max(settings.parts))
    return own_steps(part, finest=longest, rungs=1)[0]


def varied(settings: Any, name: str, values: Iterable[float]) -> dict[float, Any]:
    """Settings with several values of one of them, by value."""
    return {float(value): replace(settings, **{name: value}) for value in values}


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


Settings: TypeAlias = Mapping[str, str]
"""Settings by name, as written to the file; unlisted settings keep the user's values."""
SERIES = (1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
"""Preferred numbers, ten in a decade (ISO 3, R10)."""
STEPS = tuple(round(digits * 10.0**power, 9) for power in (-2, -3, -4, -5) for digits in reversed(SERIES))[6:]
"""Steps to choose from [s], the coarsest first."""
FINER = 16
"""Number of steps that replace a single step when the step is removed from the causes of an error."""
LEFT_OUT = "friction, limits and contacts"
"""The cause that exists only in runs with such forces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of a setting."""

    step: float = 1.0
    """Step over the user's step [-]."""
    timeconst: float = 0.0
    """Time constant of the loops over the step, written as `solref`; 0 keeps the user's value [-]."""
    fixed: Settings = field(default_factory=dict)
    """Settings that do not depend on the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The settings of an engine with the same effect on the error."""

    values: Mapping[str, Value] = field(default_factory=dict)
    """Values to try, by name."""
    finer: Value | None = None
    """The value that removes the part of the error with the name of the setting; None if no value removes a part."""
    written: str = ""
    """The finer value in the words of a user."""


HARD, SOFTER = "0.9999 0.9999", "0.99 0.99"
"""Impedances of loops, `solimp`, for engines with MuJoCo's constraints."""
HARD_LOOPS = Value(timeconst=2, fixed={"solimp": HARD})
"""The shortest time constant that MuJoCo permits."""
LOOPS = {
    "hard loops": HARD_LOOPS,
    **{f"hard loops of {k} steps": Value(timeconst=k, fixed={"solimp": HARD}) for k in (3, 5)},
    **{f"softer loops of {k} steps": Value(timeconst=k, fixed={"solimp": SOFTER}) for k in (2, 3, 5)},
}
"""Values of the loops, for engines with MuJoCo's constraints, the hardest first."""


def finer_step(written: str) -> Setting:
    """The step of an engine.

    Args:
        written: The finer step in the words of a user.
    """
    return Setting(finer=Value(step=1 / FINER), written=written)


def combined(values: Iterable[Value], step: float) -> Settings:
    """Changed settings of several values together.

    Args:
        step: The user's step [s].
    """
    values = list(values)
    ratio, timeconst = prod(value.step for value in values), max((value.timeconst for value in values), default=0.0)
    settings = {"timestep": repr(ratio * step)} if ratio != 1 else {}
    loops = {"solref": f"{timeconst * ratio * step!r} 1"} if timeconst else {}
    return settings | loops | {name: text for value in values for name, text in value.fixed.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Settings that differ in their step alone."""

    method: str
    """Integration method: families of the same method have the same cost and the same order of error."""
    stages: int
    """Number of evaluations of the dynamics in a step [-]."""
    fixed: Settings
    """Settings that do not depend on the step."""
    timeconst: float = 0.0
    """Time constant of the loops over the step, written as `solref`; 0 keeps the file's value [-]."""
    longest: float = float("inf")
    """Longest step for which the remaining settings are meaningful [s]."""

    def settings(self, step: float) -> Settings:
        """The settings at a step.

        Args:
            step: The step [s].
        """
        loops = {"solref": f"{self.timeconst * step:.6g} 1"} if self.timeconst else {}
        return {"timestep": f"{step:.6g}", **self.fixed, **loops}

    def keeps(self, names: Collection[str], own: Settings) -> bool:
        """Return whether some settings, besides the step, remain as the user has them.

        Args:
            names: Names of the settings.
            own: The user's settings.
        """
        changed = {name for name, value in self.fixed.items() if value != own.get(name)}
        return not (changed | ({"solref"} if self.timeconst else set())) & set(names)


def with_loops(kept: Sequence[Family], loops: Iterable[Value]) -> list[Family]:
    """Families of a method: with the hardest loops, with the user's time constant, and with the other loops.

    Args:
        kept: Families with the user's time constant.
        loops: Values of the loops, the hardest first.
    """
    first, *others = (
        replace(kept[0], fixed={**kept[0].fixed, **value.fixed}, timeconst=value.timeconst, longest=inf)
        for value in loops
    )
    return [first, *kept, *others]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A simulation as its user has it."""

    step: float
    """Its step [s]."""
    stages: int
    """Number of evaluations of the dynamics in a step [-]."""
    bandwidth: float
    """Bandwidth of the controller, independent of the settings [rad/s]."""
    settings: Settings
    """Current values of the settings."""


BATCH, REPEATS = 50, 7
"""Steps that are timed at once, and how often."""


def best_seconds(begin: Callable[[], object], steps: Callable[[int], object]) -> float:
    """Wall time of a step on this machine, the best of several [s].

    Args:
        begin: Puts the robot into its initial state.
        steps: Makes so many steps.
    """
    best = float("inf")
    for _ in range(REPEATS):
        begin()
        start = time.perf_counter()
        steps(BATCH)
        best = min(best, time.perf_counter() - start)
    return best / BATCH


def functions_of(script: str) -> Mapping[str, Any]:
    """Run a script of settings as its user does.

    Args:
        script: Its text.

    Returns:
        Its definitions, by name.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.py"
        path.write_text(script, encoding="utf-8")
        return runpy.run_path(str(path))


class Tuning(Protocol):
    """`tuning.py`: other settings for the route `as_is`, with their results and costs."""

    @property
    def SETTINGS(self) -> Mapping[str, Setting]:
        """All settings: those with a finer value remove parts of the error of `Engine.taken_apart`, in this order."""
        ...

    def given(self, mechanism: Mechanism) -> Given:
        """The simulation as its user has it."""
        ...

    def families(self, mechanism: Mechanism) -> Sequence[Family]:
        """Families of settings, of each method the most accurate first."""
        ...

    def plan(self, mechanism: Mechanism, motion: Motion) -> Any:
        """Demands of driving the robot along a motion, for any settings."""
        ...

    def prepared(self, mechanism: Mechanism, settings: Settings, precision: str = "") -> Any:
        """Preparation of a robot's runs with other settings, for any motion.

        Args:
            precision: `single` or `double`, for engines with both; by default the user's.
        """
        ...

    def run(self, plan: Any, prepared: Any, bandwidth: float, start: int | Array = 0) -> Record:
        """The route `as_is` with other settings.

        Args:
            plan: Result of `plan`.
            prepared: Result of `prepared`.
            bandwidth: Of the controller [rad/s].
            start: Number of the sample of the motion at whose exact state the run starts, or joint positions at which
                it starts at rest [m or rad], shape (nq,).

        Raises:
            NotRepresentableError: If the engine cannot represent the mechanism.
            EngineError: If the engine fails, or its state is not finite any more.
        """
        ...

    def files(self, mechanism: Mechanism, settings: Settings) -> Mapping[Path, bytes]:
        """The files with which a user has these settings, by the paths of the replaced files.

        Raises:
            MechanismError: If the files cannot express it.
        """
        ...

    def seconds_per_step(self, mechanism: Mechanism, q: JointPositions, settings: Settings) -> float:
        """Wall time of a step of the engine alone on this machine [s], the best of several."""
        ...


def log_without(
    tuning: Tuning, case: Case, motion: Motion, removed: Collection[str], *, source: str, precision: str = ""
) -> Log:
    """A run from the first sample with the user's controller and some causes of the error removed.

    A finer step is a whole fraction of the user's step.

    Args:
        removed: Names of the causes, among `Tuning.SETTINGS`.
        precision: See `Tuning.prepared`.

    Raises:
        NotRepresentableError: If the engine cannot represent the mechanism.
        EngineError: If the engine fails.
    """
    mechanism, given = case.mechanism, tuning.given(case.mechanism)
    finer = [setting.finer for name, setting in tuning.SETTINGS.items() if name in removed and setting.finer]
    settings = {"timestep": repr(given.step), **combined(finer, given.step)}
    prepared = tuning.prepared(mechanism, settings, precision)
    return log_of(source, case, tuning.run(tuning.plan(mechanism, motion), prepared, given.bandwidth))
