"""A robot that an engine's own drives hold along a motion, with every number that is read for their efforts.

A drive is a law of an engine's: stiffness times how far it is behind, and damping times how much too slow. Engines put
it into the step, where it acts by the state at the end. Which of the readings is the effort is for the route to say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from loopcheck.engines.as_is import Record, Runs, finite, history
from loopcheck.engines.computed_torque import drive_matrices, targets
from loopcheck.engines.simulation import Observed
from loopcheck.robots.arrays import Array, frozen
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size

NO_RATES = 1e-2
"""Relative difference above which velocities are reported as not the derivatives of the positions [-]."""
BEHIND = 1e-3
"""How far a drive may fall behind in a step under all that the robot weighs, over its stroke [-]."""
COMMANDED, APPLIED, REPORTED, REACTION = "commanded", "applied", "reported", "reaction"
"""Readings: drive law at the state of its target's update, drive law at the end of the step, effort reported by the
engine, and reaction of the joint along its axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What the drives do: force = stiffness (target − q) + damping (rate − q̇)."""

    stiffness: Array
    """Of each drive [N/m or N m/rad], shape (drives,)."""
    damping: Array
    """Of each drive [N s/m or N m s/rad], shape (drives,)."""
    lead: float = 0.0
    """Time in which drives without stiffness return to a motion, at least a step [s]."""

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping"):
            object.__setattr__(self, name, frozen(getattr(self, name), (None,), name=f"drives, {name}"))

    def force(self, target: Array, rate: Array, q: Array, qd: Array) -> Array:
        """Effort by the law [N or N m], shape (..., drives).

        Args:
            target: Desired positions of the drives [m or rad], shape (..., drives).
            rate: Desired velocities [m/s or rad/s], shape (..., drives).
            q: Positions [m or rad], shape (..., drives).
            qd: Velocities [m/s or rad/s], shape (..., drives).
        """
        return self.stiffness * (target - q) + self.damping * (rate - qd)

    def faster(self, ratio: float) -> Self:
        """Gains of drives that lead a robot back so many times as fast [-].

        Args:
            ratio: Of their bandwidth to that of these.
        """
        return replace(self, stiffness=ratio**2 * self.stiffness, damping=ratio * self.damping)

    @classmethod
    def of_velocity(cls, mechanism: Mechanism, motion: Motion, step: float) -> Self:
        """Drives of velocity that lead a robot back in a few steps, as weak as that lets them be.

        The stronger they are, the more of their force are the last digits of a velocity.

        Args:
            mechanism: Robot; all drives are joints.
            step: Step of the engine [s].
        """
        law, length = motion.law(motion.t), size(mechanism)
        turns = np.array([mechanism.effort_unit(drive) == "N m" for drive in mechanism.drives])
        arms = np.where(turns, length, 1.0)
        fastest = float((np.abs(law.qdd) * arms).max(initial=0.0))
        weight = sum(body.mass for body in mechanism.bodies) * (float(np.linalg.norm(mechanism.gravity)) + fastest)
        stroke = np.ptp(law.q, axis=0)
        largest = float((stroke * arms).max(initial=0.0)) or 1.0
        stroke = np.where(stroke > 0, stroke, largest / arms)
        damping = weight * arms * step / (BEHIND * stroke)
        return cls(stiffness=np.zeros(len(arms)), damping=damping, lead=step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Targets of the drives of a run."""

    t: Array
    """Times of the beginnings of steps [s], shape (nt,)."""
    q: Array
    """Target positions of the drives at these times [m or rad], shape (nt, drives)."""
    ends: Array
    """Target positions at the ends of the steps [m or rad], shape (nt, drives)."""
    rates: Array
    """Target velocities at the ends of the steps [m/s or rad/s], shape (nt, drives)."""
    gains: Gains
    """Of the drives."""

    def __post_init__(self) -> None:
        nt, drives = np.shape(self.q)
        for name, shape in {"t": (nt,), **dict.fromkeys(("q", "ends", "rates"), (nt, drives))}.items():
            object.__setattr__(self, name, frozen(getattr(self, name), shape, name=f"targets, {name}"))

    @property
    def description(self) -> str:
        """Description in words."""
        gains = ", ".join(f"{k:.3g} and {d:.3g}" for k, d in zip(self.gains.stiffness, self.gains.damping, strict=True))
        return f"drives of the engine, stiffness and damping {gains}; target one step ahead of the motion"

    def of_step(self, k: int, q: Array, step: float) -> tuple[Array, Array]:
        """Target position and velocity of the drives for a step [m or rad, per s], each of shape (drives,).

        A drive without stiffness is led back by its velocity to the extrapolated motion at the end of the step: in the
        same time for all shorter steps.

        Args:
            k: Number of the step.
            q: Positions of the drives at its beginning [m or rad], shape (drives,).
            step: Its length [s].
        """
        lead = max(self.gains.lead, step)
        back = (self.ends[k] + self.rates[k] * (lead - step) - q) / lead
        return self.ends[k], np.where(self.gains.stiffness > 0, self.rates[k], back)


class Order(NamedTuple):
    """Command to the drives for the end of a step."""

    target: Array
    """Positions of the drives [m or rad], shape (drives,)."""
    rate: Array
    """Velocities of the drives [m/s or rad/s], shape (drives,)."""


class Driven(Observed[Order], Protocol):
    """A robot at the start of a run, with the gains of its drives set; all drives are joints, with a reading each."""

    @property
    def precision(self) -> DTypeLike:
        """Kind of the engine's numbers: targets are rounded to it before the law is evaluated."""
        ...

    @property
    def iterations(self) -> float:
        """Of its solver in the last step, at least 1 [-]; NaN if unknown."""
        ...

    @property
    def timeconst(self) -> float:
        """Decay time of an opening of a loop to its e-th part [s]; infinite if unknown."""
        ...

    @property
    def note(self) -> str:
        """Note on the steps so far, as steps without convergence."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Reading of an engine's result by a route."""

    effort: str
    """Kind of the reading that is the effort."""
    reason: str
    """Reason for the choice, as text."""


def driven_by_own_drives(
    source: str,
    case: Case,
    motion: Motion,
    start: Callable[[int], tuple[Driven, Gains]],
    reading: Reading,
    settings: Mapping[str, str],
) -> EffortHistory:
    """Result of a route for a robot held along the motion by the engine's own drives.

    Args:
        start: Puts the robot at the exact state of a sample of the motion, by its number, and returns its gains.
        reading: The reading that is the effort.
        settings: Every relevant setting.

    Raises:
        NotRepresentableError: If the engine cannot represent the robot, or the motion lasts too few steps.
        EngineError: If the engine fails, or its state is not finite any more.
    """
    with finite(source):
        first, second = (
            own_drives_run(source, start(sample), motion, sample, reading) for sample in (0, len(motion.t) // 2)
        )
        all_settings = {**settings, "effort": f"{reading.effort}: {reading.reason}"}
        returned = history(source, case, motion, Runs(np.nan, first, second), all_settings)
    return replace(returned, note="; ".join(filter(None, (_note(case.mechanism, first), first.note))))


def own_drives_run(source: str, started: tuple[Driven, Gains], motion: Motion, sample: int, reading: Reading) -> Record:
    """A run from a sample of the motion to its end.

    Args:
        started: The robot at the exact state of the sample, and the gains of its drives.
        motion: The motion to follow.
        sample: Its number.
        reading: The reading that is the effort.

    Raises:
        EngineError: If the engine fails, or its state is not finite any more.
    """
    robot, gains = started
    mechanism, begin = robot.mechanism, float(motion.t[sample])
    controller = _targets(motion, gains, (begin, robot.timestep))
    A, W = drive_matrices(mechanism, range(len(mechanism.drives)))
    states, rows, iterations, drift = [], [], [], Deviation()
    state = _finite_state(source, robot)
    for k in range(len(controller.t)):
        states.append(state)
        drift = drift.or_worse(robot.opening())
        q, qd = A @ state[0], W @ state[1]
        orders = controller.of_step(k, q, robot.timestep)
        target, rate = (np.asarray(values, robot.precision).astype(float) for values in orders)
        read = robot.step(Order(target, rate))
        iterations.append(robot.iterations)
        state = _finite_state(source, robot)
        law = {
            COMMANDED: gains.force(target, rate, q, qd),
            APPLIED: gains.force(target, rate, A @ state[0], W @ state[1]),
        }
        rows.append({**law, **read})
    positions, velocities = (np.array(values) for values in zip(*states, strict=True))
    readings = _of_actuators(mechanism, rows)
    return Record(
        controller=controller,
        independent=tuple(range(len(mechanism.drives))),
        positions=positions @ A.T,
        q=positions,
        qd=velocities,
        acted=readings[reading.effort],
        readings={kind: values for kind, values in readings.items() if kind != reading.effort},
        at_limits={},
        drift=drift,
        iterations=float(np.mean(iterations)),
        timeconst=robot.timeconst,
        note=robot.note,
        holds_itself=bool((gains.stiffness > 0).any()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivesPlan:
    """See `Tuning.plan`: drives along a motion with any settings of the engine."""

    mechanism: Mechanism
    motion: Motion
    gains: Gains
    """Of the drives as the user has them."""
    bandwidth: float
    """Of the controller then [rad/s]."""

    def run(
        self,
        source: str,
        put: Callable[[Gains, tuple[Array, Array]], Driven],
        reading: Reading,
        bandwidth: float,
        start: int | Array,
    ) -> Record:
        """A run along the motion; see `Tuning.run`.

        Args:
            put: Puts the robot into a state, with drives of some gains.
            reading: The reading that is the effort.
            bandwidth: Of the controller [rad/s]; scales the drives relative to the user's gains.
            start: Number of the sample at whose exact state it starts, or joint positions at which it starts at rest
                [m or rad], shape (nq,).
        """
        gains, motion = self.gains.faster(bandwidth / self.bandwidth), self.motion
        if isinstance(start, int):
            sample, state = start, (motion.q[start], motion.qd[start])
        else:
            sample, state = 0, (start, 0 * motion.qd[0])
        return own_drives_run(source, (put(gains, state), gains), motion, sample, reading)


def rates_off(mechanism: Mechanism, run: Record) -> float:
    """Largest distance of a joint's displacement in a step from the range of its velocities at both ends [-].

    Returns:
        Over the largest rate of the same joint.
    """
    scalar = [j for j, joint in enumerate(mechanism.joints) if joint.kind in ("hinge", "slide")]
    q = run.q[:, [mechanism.q_slices[j].start for j in scalar]]
    v = run.qd[:, [mechanism.dof_slices[j].start for j in scalar]]
    way, low, high = np.diff(q, axis=0) / run.step, np.minimum(v[:-1], v[1:]), np.maximum(v[:-1], v[1:])
    off = np.maximum(np.maximum(low - way, way - high), 0).max(axis=0, initial=0.0)
    largest = np.abs(way).max(axis=0, initial=0.0)
    return float(np.divide(off, largest, out=np.zeros_like(off), where=largest > 0).max(initial=0.0))


def _note(mechanism: Mechanism, run: Record) -> str:
    off = rates_off(mechanism, run)
    return (
        (f"velocities are not the derivatives of the positions: relative difference up to {off:.2g}")
        if off > NO_RATES
        else ""
    )


def _finite_state(source: str, robot: Driven) -> tuple[Array, Array]:
    q, qd = robot.state()
    if not (np.isfinite(q).all() and np.isfinite(qd).all()):
        raise EngineError(f"{source}: the simulation diverged: its state is not finite")
    return q, qd


def _targets(motion: Motion, gains: Gains, steps: tuple[float, float]) -> Targets:
    """Targets of the drives from a time on [s], in equal steps [s], to the end of the motion.

    The last step ends after it, on the continuation of the last polynomial: a constant target there would be a brake.
    """
    begin, step = steps
    count = int(np.floor((motion.t[-1] - begin) / step + 1e-9)) + 1
    t: Array = begin + step * np.arange(count, dtype=float)
    ends = targets(motion, t + step)
    return Targets(t=t, q=targets(motion, t).q, ends=ends.q, rates=ends.qd, gains=gains)


def _of_actuators(mechanism: Mechanism, rows: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Readings along the drives as efforts of the actuators, before their gears, by kind, each of shape (nt, na)."""
    behind_gears = np.linalg.pinv(mechanism.gearing.T)
    return {kind: np.array([row[kind] for row in rows]) @ behind_gears.T for kind in rows[0]}
