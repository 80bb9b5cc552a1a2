"""The motions of a sweep: the robot's own motion, random motions, and random poses, all on few samples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from loopcheck.analytic.kinematics.continuation import Tracer, conditioning
from loopcheck.analytic.kinematics.redundancy import independent_drives
from loopcheck.analytic.motion.automatic import SPAN, room
from loopcheck.analytic.motion.batched_assembly import assemble_batch
from loopcheck.analytic.motion.laws import LAWS, prescription
from loopcheck.analytic.motion.limits import left_limits, limits_in_words
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Drive, Law, Motion
from loopcheck.robots.robot import Case

Kind: TypeAlias = Literal["own", "random", "pose"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MEANING = {
    "own": "the robot's own motion, from its motion law",
    "random": "three random harmonics of every drive for 2 s, from the most regular pose of the own motion",
    "pose": "a single state: every drive at a random position, with a random velocity and acceleration",
}
SAMPLES = 11
"""Samples of a motion, at equal steps from its first to its last time."""
HARMONICS = np.arange(1.0, 4.0)
"""Periods of the terms of a random motion in its time span [-]."""
MOST_HALVINGS = 6
"""Largest number of reductions of a random motion by half."""


class Baseline(NamedTuple):
    """Common input of all cases of a sweep."""

    case: Case
    """Nominal."""
    own: Motion
    """The nominal robot's own motion, on the samples of the study."""
    start: Array
    """Pose of the own motion farthest from singularities, the start of random motions, shape (1, nq)."""
    drives: tuple[Coordinate, ...]
    """Independent driven coordinates, prescribed by random motions."""
    room: Array
    """Largest displacement of each coordinate from the start [m or rad], shape (drives,)."""


def make_scene(case: Case) -> Baseline:
    """Common input of all cases, from the nominal robot.

    Raises:
        HarnessError: If it has no motion.
    """
    motion = prescribe(case)
    own = motion.assemble(np.linspace(motion.t[0], motion.t[-1], SAMPLES))
    drives = independent_drives(case.mechanism, own.q[len(own.q) // 2])
    Phi_u = Tracer(mechanism=case.mechanism, law=own.law, drives=drives, where="").dependent_jacobian(own.q)
    best = int(np.argmax(conditioning(Phi_u)[0])) if Phi_u.size else 0
    return Baseline(
        case=case,
        own=own,
        start=own.q[[best]],
        drives=drives,
        room=2 * np.abs(room(case.mechanism, own.q[best], drives)),
    )


def make_motion(scene: Baseline, case: Case, kind: Kind, rng: np.random.Generator) -> Motion:
    """A motion of a perturbed robot.

    Args:
        scene: Common input of all cases.
        case: The perturbed robot.

    Raises:
        HarnessError: If the loops cannot be closed, or random motions of any size meet singularities.
    """
    where = f"{case.robot.name}, {kind} motion"
    assemble = partial(assemble_batch, case.mechanism, drives=scene.drives, where=where)
    if kind == "own":
        return assemble(_own_law(scene, case), scene.own.q, scene.own.t)
    start = case.mechanism.values_of(scene.drives, scene.start)[0]
    if kind == "random":
        swing = _random_swing(scene, start, rng)
        t = np.linspace(*SPAN, SAMPLES)
        return _largest(
            case.mechanism, scene.drives, lambda scale: assemble(partial(swing, scale=scale), scene.start, t)
        )
    state = _random_state(scene, start, rng)
    return _largest(
        case.mechanism,
        scene.drives,
        lambda scale: assemble(partial(state, scale=scale), scene.start, np.zeros(1)),
    )


def _largest(mechanism: Mechanism, drives: tuple[Coordinate, ...], move: Callable[[float], Motion]) -> Motion:
    """The motion, halved until it can be assembled inside the joint limits."""
    for halvings in range(MOST_HALVINGS):
        try:
            motion = move(2.0**-halvings)
        except SingularityError as error:
            refused = error
            continue
        left = left_limits(mechanism, drives, motion.q)
        if not left:
            return motion
        refused = SingularityError(
            f"{mechanism.model.path.name}: no random motion within the limits of {limits_in_words(mechanism, left[0])}",
            time=0.0,
            singular_value=float("nan"),
        )
    raise refused


def _own_law(scene: Baseline, case: Case) -> Law:
    """The law of the robot for its perturbed parameters, of the independent drives."""
    law = prescription(case).law if case.robot.motion.law in LAWS else scene.own.law
    names = [drive.name for drive in case.mechanism.drives]
    return partial(_chosen, law, [names.index(drive.name) for drive in scene.drives])


def _chosen(law: Law, columns: list[int], t: Array) -> Drive:
    return Drive(*(x[:, columns] for x in law(t)))


@dataclass(frozen=True, slots=True)
class _Swing:
    """Sums of harmonics that start at a position and stay within a distance of it."""

    start: Array
    amplitudes: Array
    """Amplitudes of each harmonic and drive [m or rad], shape (harmonics, drives)."""
    phases: Array
    """Phases of each harmonic and drive [rad], shape (harmonics, drives)."""

    def __call__(self, t: Array, scale: float = 1.0) -> Drive:
        rate = (2 * np.pi / (SPAN[1] - SPAN[0]) * HARMONICS)[:, None]
        angle = t[:, None, None] * rate + self.phases
        a = scale * self.amplitudes
        return Drive(
            q=self.start + (a * (np.cos(self.phases) - np.cos(angle))).sum(axis=1),
            qd=(a * rate * np.sin(angle)).sum(axis=1),
            qdd=(a * rate**2 * np.cos(angle)).sum(axis=1),
        )


def _random_swing(scene: Baseline, start: Array, rng: np.random.Generator) -> _Swing:
    shape = (len(HARMONICS), len(start))
    weights = rng.uniform(size=shape) / HARMONICS[:, None]
    weights = weights / weights.sum(axis=0) * rng.uniform(size=len(start))
    return _Swing(start, weights * scene.room / 2, rng.uniform(0, 2 * np.pi, shape))


@dataclass(frozen=True, slots=True)
class _State:
    """Constant accelerations through a state at time zero."""

    start: Array
    away: Drive
    """Position from the start, velocity and acceleration, each of shape (drives,)."""

    def __call__(self, t: Array, scale: float = 1.0) -> Drive:
        q, qd, qdd = (scale * x for x in self.away)
        time = t[:, None]
        return Drive(
            q=self.start + q + qd * time + qdd * time**2 / 2,
            qd=qd + qdd * time,
            qdd=np.broadcast_to(qdd, (len(t), len(qdd))),
        )


def _random_state(scene: Baseline, start: Array, rng: np.random.Generator) -> _State:
    """Uniform in the room about the start, and in the speeds and accelerations of swings through it once a second."""
    rate = 2 * np.pi
    q, qd, qdd = (rng.uniform(-1, 1, len(start)) * scene.room for _ in range(3))
    return _State(start, Drive(q=q, qd=qd * rate / 2, qdd=qdd * rate**2 / 2))
