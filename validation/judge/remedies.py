"""Changes of a log or of its judgement that may remove a disagreement, each as a user would state it.

Without parameters to fit, simple changes first: another column or sign of an effort, the side of the gear, a
configuration, units, and efforts that are given twice or by half.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.logs.residual import Residual
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.formats.mjcf import varying_forces
from loopcheck.robots.log import EffortTime, Held, Instantaneous, Log
from loopcheck.robots.logs.log_description import FACTORS, in_words
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, configurations
from loopcheck.validation.common.limits import EXPLAINING

MOTION = {"time": ("ms", "us", "ns"), "angle": ("deg",), "length": ("mm",)}
EFFORTS = {"torque": ("N mm", "kN m"), "force": ("mN", "kN")}
"""Units that may have been forgotten."""
ROUNDED_STEP = 1e-3
"""Largest distance of the step of a log from that of the simulation [-]; others have left out steps."""
MULTIPLES = {2.0: "the efforts divided by 2 (given twice?)", 0.5: "the efforts times 2 (half of the effort?)"}
"""Known multiples of the required efforts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change, and the case and log to which it leads."""

    case: Case
    log: Log
    words: str = ""
    """Change that is no option of the command."""
    options: tuple[str, ...] = ()
    """Options of the command."""
    start: float | None = None
    """Samples before this time are ignored [s]; by default those of an unsettled start."""
    fitted: tuple[str, ...] = ()
    """Fitted terms."""
    is_of_motion: bool = False
    """Whether positions or times change."""
    is_all: bool = False
    """Whether it is a guess that must explain all of the error."""

    def __str__(self) -> str:
        return " and ".join(filter(None, (self.words, " ".join(self.options))))

    @property
    def changes(self) -> int:
        """Number of changes."""
        return len(self.options) + bool(self.words)

    def at_time(self, when: EffortTime) -> "Remedy":
        """The same with another effort time."""
        if when == self.log.effort_time:
            return self
        option = f"--effort-time {in_words(when)}"
        return replace(self, log=replace(self.log, effort_time=when), options=(*self.options, option))

    def after(self, start: float) -> "Remedy":
        """The same from another time on [s]."""
        options = [option for option in self.options if not option.startswith("--from ")]
        return replace(self, start=start, options=(*options, f"--from {start:.6g}"))

    def fitting(self, term: str) -> "Remedy":
        """The same with a fitted term."""
        return replace(self, fitted=(term,), options=(f"--fit {term}", *self.options))


def effort_times(log: Log) -> Iterator[EffortTime]:
    """Other times at which the efforts of a log may have acted."""
    for when in (Instantaneous(), Held(log.dt), Held(log.dt, until=True)):
        if log.effort_time is None or in_words(when) != in_words(log.effort_time):
            yield when


def conversions(plain: Remedy, residual: Residual, *, has_right_times: bool) -> Iterator[Remedy]:
    """Changes without parameters, the simplest first; those of the efforts only if they remove most of the residual.

    Args:
        plain: The log without a change.
        residual: Its residual.
        has_right_times: Whether the unit of its times is known to be right.
    """
    case, log = plain.case, plain.log
    yield from _other_columns(plain, residual)
    gears = np.array([case.mechanism.actuators[k].gear for k in _places(log, case.mechanism)])
    if (gears != 1).any():
        yield from _multiplied(plain, residual, 1 / gears, options=("--effort-side joint",))
    for name, gravity in configurations(case.robot, case.robot.mechanism(case.variant)).items():
        if (gravity != case.mechanism.gravity).any() and removes_most(residual, _in_gravity(case, residual, gravity)):
            yield replace(plain, case=in_gravity(case, gravity), options=(f"--configuration {name}",))
    yield from _units(plain, residual, has_right_times=has_right_times)
    for multiple, words in MULTIPLES.items():
        yield from _multiplied(plain, residual, np.full(len(gears), 1 / multiple), words=words, is_all=True)


def acted_over_steps(plain: Remedy) -> Iterator[Remedy]:
    """Efforts that acted over a step of an implicit integrator, if the columns are MuJoCo's `actuator_force`.

    The row is that of the beginning of the step, or that of its end.

    Args:
        plain: The log without a change.
    """
    log, mechanism = plain.log, plain.case.mechanism
    varying = varying_forces(mechanism.model)
    chosen = [k for k, name in enumerate(log.actuators) if name in varying and log.joints]
    if not chosen or abs(log.dt / varying[log.actuators[chosen[0]]].timestep - 1) > ROUNDED_STEP:
        return
    integrator = varying[log.actuators[chosen[0]]].integrator
    for when in (Held(log.dt), Held(log.dt, until=True)):
        effort = log.effort.copy()
        for k in chosen:
            force = varying[log.actuators[k]]
            actuator = next(one for one in mechanism.actuators if one.name == log.actuators[k])
            if not actuator.coordinate.is_joint or actuator.coordinate.name not in log.joints:
                return
            place, rate = log.columns_of(actuator.coordinate.name)
            q = log.q[:, place.start]
            v = np.gradient(q, log.t) if log.qd is None else log.qd[:, rate.start]
            acted = actuator.gear * (force.by_rate * np.diff(v) + force.by_length * np.diff(q))
            if integrator == "rk4":  # the mean over the step; after it, MuJoCo reports the force of its end
                acted *= -0.5 if when.until else 0.5
            effort[slice(1, None) if when.until else slice(-1), k] += acted
        words = (
            f"the effort that acted under {integrator} instead of actuator_force, the force at an instant (log "
            "loopcheck.acted_effort)"
        )
        yield replace(plain, log=replace(log, effort=effort, effort_time=when), words=words)


def in_gravity(case: Case, gravity: Array) -> Case:
    """A case in another gravity.

    Args:
        gravity: Acceleration of gravity, world axes [m/s²], shape (3,).
    """
    return replace(case, mechanism=case.mechanism.with_gravity(gravity))


def _in_gravity(case: Case, residual: Residual, gravity: Array) -> Array:
    """Residual in another gravity [N or N m], shape (n, na)."""
    return residual.effort - needed_in_gravity(case.mechanism, residual, gravity)


def needed_in_gravity(mechanism: Mechanism, residual: Residual, gravity: Array) -> Array:
    """Required efforts of the motion of a residual in another gravity [N or N m], shape (n, na).

    Args:
        gravity: Acceleration of gravity, world axes [m/s²], shape (3,).
    """
    motion = residual.motion
    state = State(mechanism=mechanism.with_gravity(gravity), q=motion.q, qd=motion.qd)
    return needed_efforts(state, motion.qdd).effort


def _places(log: Log, mechanism: Mechanism) -> list[int]:
    """Place in the mechanism of each actuator of the log."""
    names = [actuator.name for actuator in mechanism.actuators]
    return [names.index(name) for name in log.actuators]


def _multiplied(plain: Remedy, residual: Residual, factors: Efforts, **changes: Any) -> Iterator[Remedy]:
    """Efforts times factors (na,), if that removes most of the residual."""
    places = _places(plain.log, plain.case.mechanism)
    of_mechanism = np.ones(len(places))
    of_mechanism[places] = factors
    if removes_most(residual, of_mechanism * residual.effort - residual.needed):
        yield replace(plain, log=replace(plain.log, effort=factors * plain.log.effort), **changes)


def removes_most(residual: Residual, left: Array) -> bool:
    """Whether of the residual of each actuator, at every second sample of the later half, little is left.

    Args:
        left: Residual with a change [N or N m], shape (n, na).
    """
    before, after = (_size(values) for values in (residual.residual, left))
    return bool((after * EXPLAINING <= before).any() and (after <= before).all())


def _size(values: Array) -> Efforts:
    return np.sqrt((values[len(values) // 2 :: 2] ** 2).mean(axis=0))


def _other_columns(plain: Remedy, residual: Residual) -> Iterator[Remedy]:
    """The column nearest to each required effort, with its sign, if one is nearer than its own column."""
    log, mechanism = plain.log, plain.case.mechanism
    places = _places(log, mechanism)
    sources: dict[str, Array] = {f"{name}.effort": x for name, x in zip(log.actuators, log.effort.T, strict=True)}
    for kind, values in log.readings.items():
        sources |= {f"{name}.{kind}": x for name, x in zip(log.actuators, values.T, strict=True)}
    sources |= log.unused
    near = {name: np.interp(residual.motion.t, log.t, x) for name, x in sources.items() if np.isfinite(x).all()}
    effort, columns, signs = log.effort.copy(), dict[str, str](), dict[str, int]()
    for place, (name, k) in enumerate(zip(log.actuators, places, strict=True)):
        own, needed = f"{name}.effort", residual.needed[:, k]
        sizes = {
            (source, sign): float(_size((sign * values - needed)[:, None])[0])
            for source, values in near.items()
            for sign in (1, -1)
        }
        best, sign = min(sizes, key=lambda key: sizes[key])
        if sizes[best, sign] * EXPLAINING > sizes[own, 1]:
            continue
        effort[:, place] = sign * sources[best]
        if best != own:
            columns[own] = best
        if sign < 0:
            signs[own] = sign
    edits = [
        f"{key} = {{ {', '.join(f'{_quoted(name)} = {value}' for name, value in entries.items())} }}"
        for key, entries in (
            ("columns", {ours: _quoted(_in_file(log.columns, best)) for ours, best in columns.items()}),
            ("signs", signs),
        )
        if entries
    ]
    if edits:
        words = f"{' and '.join(edits)} in its description{' (the negative of the column)' * bool(signs)}"
        yield replace(plain, log=replace(log, effort=effort), words=words)


def _in_file(columns: Mapping[str, str], ours: str) -> str:
    """Name in the file of a column."""
    return next((theirs for theirs, name in columns.items() if name == ours), ours)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _units(plain: Remedy, residual: Residual, *, has_right_times: bool) -> Iterator[Remedy]:
    """Units of efforts and of the motion."""
    log, mechanism = plain.log, plain.case.mechanism
    torques = np.array([mechanism.actuator_units[k] == "N m" for k in _places(log, mechanism)])
    for quantity, of_efforts in EFFORTS.items():
        chosen = torques == (quantity == "torque")
        for unit in of_efforts if chosen.any() else ():
            factors = np.where(chosen, FACTORS[quantity][unit], 1.0)
            yield from _multiplied(plain, residual, factors, words=_declared(quantity, unit))
    for quantity, units in MOTION.items():
        if quantity == "time" and has_right_times:
            continue
        for unit in units:
            converted = _in_unit(log, mechanism, quantity, FACTORS[quantity][unit])
            if converted:
                yield replace(plain, log=converted, words=_declared(quantity, unit), is_of_motion=True, is_all=True)


def _declared(quantity: str, unit: str) -> str:
    return f'units = {{ {quantity} = "{unit}" }} in its description'


def _in_unit(log: Log, mechanism: Mechanism, quantity: str, factor: float) -> Log | None:
    """A log whose times, angles or lengths are taken in another unit; None if it has no such columns."""
    if quantity == "time":
        return replace(log, t=factor * log.t)
    slides = {joint.name for joint in mechanism.joints if joint.kind == "slide"}
    slides |= {drive.name for drive in mechanism.drives if mechanism.effort_unit(drive) == "N"}
    chosen: Sequence[str] = [
        joint
        for joint, kind in zip(log.joints, log.kinds, strict=True)
        if kind in ("hinge", "slide") and (joint in slides) == (quantity == "length")
    ]
    moved: dict[str, Any] = {}
    for name, place in (("q", 0), ("qd", 1), ("qdd", 1)):
        values = getattr(log, name)
        if values is not None:
            moved[name] = values.copy()
            moved[name][:, [log.columns_of(joint)[place].start for joint in chosen]] *= factor
    return replace(log, **moved) if chosen else None
