"""Motions of the shared joints, and the efforts that a closed mechanism and its serial model need along them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.transmission.crank_rod import CrankRod
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_efforts, moved
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, sound_poses
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Mechanism

SPAN = 2.0
"""Of a random motion [s]."""
SAMPLES = 201
HARMONICS = 3
FILLED = 0.6
"""Range of a random motion over that of its box; usual motions are .35 half widths from the middle, rms [-]."""
SLOW = 100.0
"""Duration of a slow motion, over that of the others [-]."""
TILT = np.pi / 4
"""Attitude of the base of a tilted motion, towards a diagonal of the horizontal axes [rad]."""
IS_SLOW, TILTED = "slow", "tilted 45°"
"""Names of motions."""
WORSE = 1e-3
"""Largest increase of an error by a repair, over the peak [-]."""
STATED = 5
"""Random motions that errors are stated for; their seeds start at zero."""
CHOICE, CHOOSING = 1000, 3
"""First seed and number of the motions that choose what is fitted."""
FIT, FITTING = 2000, 4
"""First seed and number of the motions that links are fitted to."""
Course = tuple[Array, Array, Array]
"""Coordinates, rates and accelerations [m or rad, per s, per s²], each of shape (nt, n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionEfforts:
    """Efforts of a motion in both mechanisms."""

    name: str
    twin: Twin
    """With the gravity of the motion."""
    course: Course
    """Of the shared coordinates."""
    closed_state: tuple[Array, Array, Array]
    """q, qd, qdd of the closed mechanism [m or rad, per s, per s²], of shapes (nt, nq), (nt, nv), (nt, nv)."""
    serial_state: tuple[Array, Array, Array]
    """The same of the serial model."""
    transmission: Array
    """T of the motors [-, or ratios of the units], shape (nt, na, n)."""
    closed: Array
    """Efforts at the joints of the closed mechanism [N or N m], shape (nt, n)."""
    serial: Array
    """Efforts at the same joints of the serial model [N or N m], shape (nt, n)."""

    @property
    def scale(self) -> Array:
        """Scale of the errors of each motor effort of the closed mechanism [N or N m], shape (na,)."""
        q, qd, qdd = self.closed_state
        state = State(mechanism=self.twin.closed.mechanism, q=q, qd=qd)
        return scale_of(state, qdd).scale[list(self.twin.motors)]

    @property
    def peaks(self) -> Array:
        """Largest effort of each motor of the closed mechanism [N or N m], shape (na,)."""
        return np.asarray(np.abs(self.at_motors(self.closed)).max(axis=0))

    def at_motors(self, efforts: Array) -> EffortSeries:
        """Efforts at the joints as efforts of the motors.

        Args:
            efforts: At the joints [N or N m], shape (nt, n).

        Returns:
            Of the motors [N or N m], shape (nt, na).
        """
        return motor_efforts(self.transmission, efforts)

    def errors(self, efforts: Array) -> Array:
        """Root mean square error of each motor's effort over its peak in this motion; zero for idle motors.

        Args:
            efforts: At the joints [N or N m], shape (nt, n).

        Returns:
            [-], shape (na,).
        """
        error, peaks = self.at_motors(efforts - self.closed), self.peaks
        return np.where(peaks > 0, np.sqrt(np.mean(error**2, axis=0)) / np.where(peaks > 0, peaks, 1.0), 0.0)

    def with_constants(self, mechanism: Mechanism) -> Array:
        """Efforts at the joints of the serial model with other constants [N or N m], shape (nt, n)."""
        own = replace(mechanism, gravity=self.twin.serial.mechanism.gravity)
        return joint_efforts(replace(self.twin.serial, mechanism=own), *self.serial_state)

    def with_functions(self, functions: CrankRod | JointMap | None) -> Array:
        """Efforts of the serial model with its missing terms as functions of the pose.

        Returns:
            At the joints [N or N m], shape (nt, n); NaN outside the box of the functions, and for a tilted base.
        """
        x, xd, xdd = self.course
        efforts = np.full_like(self.serial, np.nan)
        if self.name == TILTED or functions is None:
            return efforts
        if isinstance(functions, CrankRod):
            motors = functions.motor_state(x, xd, xdd, self.serial)
            return np.einsum("tan,ta->tn", motors.transmission, motors.efforts)
        if (x >= functions.low).all() and (x <= functions.high).all():
            efforts = self.serial + functions.missing_efforts(x, xd, xdd)
        return efforts


def random_course(box: Array, seed: int) -> Course:
    """Harmonics of random size and phase about the middle of a box.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        seed: Seed of the motion.
    """
    generator, n = np.random.default_rng(seed), len(box)
    rates = 2 * np.pi * np.arange(1, HARMONICS + 1)[:, None] / SPAN
    size, phase = generator.uniform(0.3, 1, (HARMONICS, n)) / rates, generator.uniform(0, 2 * np.pi, (HARMONICS, n))
    angles = np.linspace(0, SPAN, SAMPLES)[:, None, None] * rates + phase
    x, xd, xdd = (
        (factor * size * wave).sum(axis=1)
        for factor, wave in ((1.0, np.sin(angles)), (rates, np.cos(angles)), (-(rates**2), np.sin(angles)))
    )
    scale = FILLED * np.ptp(box, axis=1) / np.ptp(x, axis=0)
    x = (x - (x.max(axis=0) + x.min(axis=0)) / 2) * scale + box.mean(axis=1)
    return x, xd * scale, xdd * scale


def slowed(course: Course) -> Course:
    """A motion along the same path, `SLOW` times as long."""
    x, xd, xdd = course
    return x, xd / SLOW, xdd / SLOW**2


def tilted(twin: Twin) -> Twin:
    """The mechanisms on a base at the attitude `TILT`."""

    def turned(space: JointSpace) -> JointSpace:
        gravity = space.mechanism.gravity
        level = np.linalg.svd(gravity[None])[2][1:].sum(axis=0) / np.sqrt(2)  # a diagonal of the horizontal plane
        inclined = np.cos(TILT) * gravity + np.sin(TILT) * np.linalg.norm(gravity) * level
        return replace(space, mechanism=replace(space.mechanism, gravity=inclined))

    return replace(twin, closed=turned(twin.closed), serial=turned(twin.serial))


def stated_motions(twin: Twin, box: Array) -> list[tuple[str, Twin, Course]]:
    """Motions that errors are stated for: random ones, a slow and a tilted one.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).

    Returns:
        Name, mechanisms and course of each; the random motions come first.
    """
    first = random_course(box, 0)
    return [
        *((f"random {seed}", twin, random_course(box, seed)) for seed in range(STATED)),
        (IS_SLOW, twin, slowed(first)),
        (TILTED, tilted(twin), first),
    ]


def choosing_motions(twin: Twin, box: Array) -> list[tuple[str, Twin, Course]]:
    """Motions that choose what is fitted, of other seeds than those that errors are stated for; some tilted.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
    """
    courses = [random_course(box, CHOICE + k) for k in range(CHOOSING)]
    inclined = tilted(twin)
    return [
        *(("choice", twin, course) for course in (*courses, slowed(courses[0]))),
        *((TILTED, inclined, course) for course in (courses[0], slowed(courses[1]))),
    ]


def fitting_motions(twin: Twin, box: Array) -> list[tuple[str, Twin, Course]]:
    """Motions that links are fitted to, of seeds of their own.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
    """
    return [("fit", twin, random_course(box, FIT + k)) for k in range(FITTING)]


def efforts_along(twin: Twin, name: str, course: Course) -> MotionEfforts:
    """Efforts of a motion in both mechanisms.

    Raises:
        HarnessError: If the motion leaves the sound poses of either.
    """
    x, xd, xdd = course
    states, efforts = [], []
    for space in (twin.closed, twin.serial):
        q, sound = sound_poses(space, x)
        if not sound.all():
            names = f"{space.mechanism.model.path.name} at {', '.join(f'{value:.3g}' for value in x[~sound][0])}"
            raise HarnessError(f"the {name} motion must stay in the sound poses of {names}, but leaves them")
        states.append((q, *moved(space, q, xd, xdd)))
        efforts.append(joint_efforts(space, *states[-1]))
    return MotionEfforts(
        name=name,
        twin=twin,
        course=course,
        closed_state=states[0],
        serial_state=states[1],
        transmission=joint_terms(twin.closed, states[0][0]).transmission[:, list(twin.motors)],
        closed=efforts[0],
        serial=efforts[1],
    )


def largest_error(motions: Sequence[MotionEfforts], mechanism: Mechanism | None = None) -> float:
    """The error of a serial model: root mean square over the peak of that motor in that motion, of the worst of all.

    Args:
        mechanism: The serial model with other constants; None for the file's own.

    Returns:
        [-].
    """
    return float(max(errors.max() for errors in _errors(motions, mechanism)))


def mean_error(motions: Sequence[MotionEfforts], mechanism: Mechanism | None = None) -> float:
    """The mean of the errors of all motors and motions [-], see `largest_error`."""
    return float(np.mean(_errors(motions, mechanism))) if motions else np.nan


def _errors(motions: Sequence[MotionEfforts], mechanism: Mechanism | None) -> list[Array]:
    return [
        motion.errors(motion.serial if mechanism is None else motion.with_constants(mechanism)) for motion in motions
    ]


def is_worse(motions: Sequence[MotionEfforts], mechanism: Mechanism) -> str:
    """The motor and motion with the largest increase of an error by other constants; empty if none is above `WORSE`.

    Args:
        mechanism: The serial model with other constants.
    """
    found, largest = "", WORSE
    for motion in motions:
        before, after = motion.errors(motion.serial), motion.errors(motion.with_constants(mechanism))
        k = int((after - before).argmax())
        if after[k] - before[k] > largest:
            largest = float(after[k] - before[k])
            ends = f"from {100 * before[k]:.3g} to {100 * after[k]:.3g} % of the peak"
            found = f"it would raise the error of '{motion.twin.motor_names[k]}' in the motion '{motion.name}' {ends}"
    return found
