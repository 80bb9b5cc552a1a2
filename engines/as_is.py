"""Result of a route that steps an unmodified robot: a log, judged by its own motion."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from loopcheck.engines.boundary import silenced, want_representable
from loopcheck.engines.computed_torque import bandwidth, computed_torque, drive_matrices, following
from loopcheck.engines.equations import Demands, Equations, demands_along
from loopcheck.engines.simulation import Command, Observed, Robot
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.efforts import FOLLOWING, AsIs, Deviation, EffortHistory, Source, deviation_of
from loopcheck.robots.errors import EngineError, NotRepresentableError, ShapeError
from loopcheck.robots.log import COMMON, FEWEST, Held, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class Controller(Protocol):
    """Controller input of a robot, on the steps of a run."""

    @property
    def t(self) -> Array:
        """Times at the beginning of steps [s], shape (nt,)."""
        ...

    @property
    def q(self) -> Array:
        """Desired positions of the drives then [m or rad], shape (nt, drives)."""
        ...

    @property
    def description(self) -> str:
        """Description in words."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A run, step by step."""

    controller: Controller
    """Controller of the run; its times are the beginnings of steps."""
    independent: tuple[int, ...]
    """Indices of the held drives among `Mechanism.drives`."""
    positions: Array
    """Positions of the held drives at these times [m or rad], shape (nt, drives)."""
    q: Array
    """Joint positions [m or rad], shape (nt, nq)."""
    qd: Array
    """Joint velocities [m/s or rad/s], shape (nt, nv)."""
    acted: Array
    """Efforts that acted over each step [N or N m], shape (nt, na)."""
    readings: Mapping[str, Array]
    """Further readings of the efforts, each of shape (nt, na); NaN for missing values."""
    at_limits: Mapping[str, int]
    """Number of steps at a limit of the control or force range, by actuator; absent if zero."""
    drift: Deviation
    """Largest opening of a loop."""
    iterations: float = np.nan
    """Iterations of the engine's solver per stage of a step, on average [-]; NaN if unknown."""
    timeconst: float = np.inf
    """Smallest time constant of the loops' constraints [s]; infinite if unknown."""
    note: str = ""
    """Remarkable facts about the run."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Wrenches by connection when steps begin, in the common convention [N m, N], each of shape (nt, 6)."""

    holds_itself: bool
    """Whether servos of the file hold the drives, so that their lag is part of the simulation."""

    @property
    def step(self) -> float:
        """Hold time of each effort [s]."""
        t = self.controller.t
        return float(t[-1] - t[0]) / (len(t) - 1)


BANDWIDTHS = (1.0, 1 / 2, 1 / 4, 1 / 8)
"""Bandwidths of the controller that are tried, over that for the step and the loops of the file [-]."""
FASTER = 2.0
"""Tried as well if the motion is followed at none of them: dry friction may need more [-]."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs at the largest bandwidth at which the motion is followed, and one at the smallest."""

    bandwidth: float
    """Largest at which it is followed; the first tried if it is followed at none [rad/s]."""
    whole: Record
    """From the first sample of the motion."""
    second: Record
    """From the middle of the motion."""
    not_at: float = np.nan
    """The next larger bandwidth tried, at which it is not followed [rad/s]."""
    slower: tuple[float, Record] | None = None
    """A smaller bandwidth at which it is followed, the smallest tried [rad/s], and its run from the first sample."""


def runs_at(
    run: Callable[[float, int], Record],
    bandwidth: float,
    middle: int,
    again: Callable[[float, int], Record] | None = None,
) -> Runs:
    """Runs of an unmodified robot by a controller, at the bandwidths at which it follows the motion.

    The effort error belongs to a motion and a bandwidth: a controller that works against soft loops makes it larger.

    Args:
        run: Runs the robot from a sample of the motion, with a bandwidth [rad/s].
        bandwidth: For the step and the loops of the file [rad/s].
        middle: Number of the sample in the middle of the motion.
        again: The same without further readings, for the smaller bandwidth.

    Raises:
        EngineError: If the robot diverges at every bandwidth; that of the first one.
    """
    again = again or run
    ended: dict[float, Record] = {}
    error: EngineError | None = None
    for part in (*BANDWIDTHS, FASTER):
        width = part * bandwidth
        try:
            record = run(width, 0)
            if _follows(record):
                second = run(width, middle)
                break
            ended[width] = record
        except EngineError as failure:
            error = error or failure
    else:
        if not ended:
            raise error or EngineError("no bandwidth was tried")
        width, record = next(iter(ended.items()))
        return Runs(width, record, run(width, middle))
    if record.holds_itself:
        return Runs(width, record, second)
    slower = None
    for lower in sorted(one * bandwidth for one in BANDWIDTHS if one < part <= 1):
        with suppress(EngineError):
            slow = again(lower, 0)
            if _follows(slow):
                slower = (lower, slow)
                break
    return Runs(width, record, second, np.nan if part == FASTER or width == bandwidth else 2 * width, slower)


def _follows(record: Record) -> bool:
    """Whether all drives of a run follow the motion, or hold it themselves."""
    return float(_behind(record).max(initial=0.0)) <= FOLLOWING


def _behind(record: Record) -> Array:
    """Largest distance of each drive from the motion over its stroke [-], (drives,); zero if it holds itself."""
    behind = following(record.controller.q, record.positions)[1]
    return np.where(record.holds_itself, 0.0, behind)


@contextmanager
def finite(source: str) -> Iterator[None]:
    """Turn numbers that are not finite, of the motion or of the run, into an `EngineError`."""
    try:
        yield
    except ShapeError as error:
        raise EngineError(f"{source}: {error}") from error


def as_is_of(source: str, case: Case, runs: tuple[Record, Record]) -> AsIs:
    """A run with its restart, to be judged.

    Args:
        runs: From the first sample of the motion, and from its middle.

    Raises:
        NotRepresentableError: If the motion lasts too few steps for a log of its second half.
    """
    whole, second = runs
    steps = len(second.controller.t)
    if steps < FEWEST:
        step = f" of {1e3 * whole.step:.3g} ms" if len(whole.controller.t) > 1 else ""  # which may outlast the motion
        raise NotRepresentableError(
            f"{source}: half of the motion must last at least {FEWEST} steps for a log, got {steps} steps{step}"
        )
    return AsIs(
        log=log_of(source, case, whole),
        restarted=log_of(source, case, second),
        following=_behind(whole),
        timeconst=whole.timeconst,
        drives=tuple(case.mechanism.drives[k].name for k in whole.independent),
        at_limits=whole.at_limits,
    )


def history(
    source: str,
    case: Case,
    motion: Motion,
    runs: Runs,
    settings: Mapping[str, str],
    others: Sequence[Record] = (),
) -> EffortHistory:
    """Result of the route.

    Args:
        runs: All runs of the robot.
        settings: Every relevant setting.
        others: From the first sample, held by other drives of a redundant robot.

    Raises:
        NotRepresentableError: If the motion lasts too few steps for a log of its second half.
    """
    whole, mechanism = runs.whole, case.mechanism
    held_by = {", ".join(mechanism.drives[k].name for k in run.independent): run for run in others}
    as_is = replace(
        as_is_of(source, case, (whole, runs.second)),
        others={names: log_of(source, case, run) for names, run in held_by.items()},
        bandwidth=np.nan if whole.holds_itself else runs.bandwidth,
        not_at=runs.not_at,
        slower=runs.slower and (runs.slower[0], log_of(source, case, runs.slower[1])),
    )
    distance = following(whole.controller.q, whole.positions)[0]
    drives = [mechanism.drives[k] for k in whole.independent]
    return EffortHistory(
        source=source,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        t=motion.t,
        effort=_between_steps(whole, motion.t),
        closure_drift=whole.drift,
        tracking_error=deviation_of(mechanism, drives, distance),
        settings={
            "step": f"{1e3 * whole.step:g} ms",
            **settings,
            "controller": whole.controller.description,
        },
        as_is=as_is,
        note=whole.note,
    )


class ObservedRobot(Robot[Command], Observed[Command], Protocol[Command]):
    """A robot that starts from the states of a motion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedTorqueAsIs(Source):
    """Route `as_is` of an engine without files with actuators: computed torque drives a robot out of the box."""

    name: str
    """As `dart/as_is`."""
    equations: Callable[[Mechanism], Equations]
    """Makes the engine's equations of a mechanism."""
    robot: Callable[[Mechanism], ObservedRobot[Efforts]]
    """Makes the robot in the engine."""
    guarded: Callable[[str], AbstractContextManager[None]]
    """Converts exceptions of the engine."""
    settings: Mapping[str, str]
    """Every relevant setting."""
    unsupported: Callable[[Mechanism], Iterable[str]] = lambda mechanism: ()
    """Elements that only this route lacks, each with its reason."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        want_representable(self.name.split("/")[0], self.unsupported(case.mechanism))
        with self.guarded(self.name), silenced(), finite(self.name):
            known = demands_along(self.equations(case.mechanism), (motion.q, motion.qd, motion.qdd))

            def run(width: float, sample: int, held: Demands = known) -> Record:
                return _held_run(self.name, self.robot(case.mechanism), motion, held, (width, sample))

            runs = runs_at(run, bandwidth(self.robot(case.mechanism).timestep), len(motion.t) // 2)
            others = held_by_others(lambda held: run(runs.bandwidth, 0, held), known)
            return history(self.name, case, motion, runs, self.settings, others)


def held_by_others(run: Callable[[Demands], Record], known: Demands) -> list[Record]:
    """Runs that other drives of a redundant robot hold; drives that lose the motion do not hold it."""
    runs = []
    for drives in known.others:
        with suppress(EngineError):
            runs.append(run(known._replace(independent=drives)))
    return runs


def _held_run(
    source: str, robot: ObservedRobot[Efforts], motion: Motion, known: Demands, way: tuple[float, int]
) -> Record:
    """A run with a bandwidth of the controller from a sample of the motion to its end."""
    width, sample = way
    independent, begin = known[0], float(motion.t[sample])
    step = robot.timestep
    steps = (begin, step, int(np.floor((motion.t[-1] - begin) / step + 1e-9)) + 1)
    controller = computed_torque(motion, known[1], independent, steps, width)
    robot.put(motion.q[sample], motion.qd[sample], begin)
    A, W = drive_matrices(robot.mechanism, independent)
    states, efforts, drift = [], [], Deviation()
    for k in range(len(controller.t)):
        q, qd = robot.state()
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            raise EngineError(f"{source}: the simulation diverged: its state is not finite")
        states.append((q, qd))
        efforts.append(controller.efforts(k, A @ q, W @ qd))
        drift = drift.or_worse(robot.opening())
        robot.step(efforts[-1])
    positions, velocities = (np.array(values) for values in zip(*states, strict=True))
    acted = np.array(efforts)
    return Record(
        controller=controller,
        independent=independent,
        positions=positions @ A.T,
        q=positions,
        qd=velocities,
        acted=acted,
        readings={"commanded": acted},
        at_limits={},
        drift=drift,
        holds_itself=False,
    )


def log_of(source: str, case: Case, run: Record) -> Log:
    """A run as a log."""
    mechanism = case.mechanism
    return Log(
        name="-".join((*case.key, source.split("/")[0])),
        t=run.controller.t,
        joints=tuple(joint.name for joint in mechanism.joints),
        kinds=tuple(joint.kind for joint in mechanism.joints),
        q=run.q,
        qd=run.qd,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        effort=run.acted,
        readings=run.readings,
        wrenches=run.wrenches,
        convention=COMMON if run.wrenches else None,
        effort_time=Held(run.step),
        source=f"{source} of loopcheck: every step, with the effort applied over the step",
    )


def _between_steps(run: Record, t: Array) -> Array:
    """The efforts between the middles of their steps [N or N m], shape (nt, na)."""
    middle = run.controller.t + run.step / 2
    return np.stack([np.interp(t, middle, column) for column in run.acted.T], axis=1)
