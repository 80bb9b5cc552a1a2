"""Computations of workers on a closed mechanism and its serial model: workspace, motions, and fits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.automatic import automatic_motion
from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.constants import Constants, Pace, at_motors, least_error
from loopcheck.analytic.transmission.crank_rod import CrankRod
from loopcheck.analytic.transmission.fit import fitted_map, sound_box
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.joint_space import joint_efforts, moved
from loopcheck.analytic.transmission.regressor import regressor
from loopcheck.analytic.transmission.terms import joint_terms, motor_efforts
from loopcheck.analytic.transmission.twin import Twin, Workspace, sound_poses, workspace
from loopcheck.robots.arrays import Array, EffortSeries
from loopcheck.robots.errors import HarnessError

SPAN = 2.0
"""Of a random motion [s]."""
SAMPLES = 201
HARMONICS = 3
COURSES = 8
"""Random motions with the typical rates of the states of the workspace."""
FAR = 0.95
"""Range of a random motion over the range of the box [-]."""
AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionEfforts:
    """Required efforts of a motion at the joints and at the motors."""

    name: str
    x: Array
    """Shared coordinates [m or rad], shape (nt, n)."""
    xd: Array
    """Their rates [m/s or rad/s], shape (nt, n)."""
    xdd: Array
    """Their accelerations [m/s² or rad/s²], shape (nt, n)."""
    transmission: Array
    """T of the motors [-, or ratios of the units], shape (nt, na, n)."""
    closed: Array
    """Efforts at the joints of the closed mechanism [N or N m], shape (nt, n)."""
    serial: Array
    """Efforts at the same joints of the serial model [N or N m], shape (nt, n)."""
    regressor: Array
    """Regressor of the serial model [any unit], shape (nt, n, p)."""
    scale: Array
    """Scale of the errors of each motor effort of the closed mechanism [N or N m], shape (na,)."""

    def at_motors(self, efforts: Array) -> EffortSeries:
        """Efforts at the joints as efforts of the motors.

        Args:
            efforts: At the joints [N or N m], shape (nt, n).

        Returns:
            Of the motors [N or N m], shape (nt, na).
        """
        return motor_efforts(self.transmission, efforts)

    def with_constants(self, constants: Constants) -> Array:
        """Efforts of the serial model with other constants.

        Args:
            constants: Constants of the repair.

        Returns:
            Efforts [N or N m], shape (nt, n).
        """
        return self.serial + self.regressor @ constants.change

    def with_functions(self, functions: CrankRod | JointMap | None) -> Array:
        """Efforts of the serial model with its missing terms as functions of the pose; NaN outside their box.

        Args:
            functions: The functions, if any.

        Returns:
            Efforts [N or N m], shape (nt, n).
        """
        if isinstance(functions, CrankRod):
            motors = functions.motor_state(self.x, self.xd, self.xdd, self.serial)
            return np.einsum("tan,ta->tn", motors.transmission, motors.efforts)
        efforts = np.full_like(self.serial, np.nan)
        if functions is not None and (self.x >= functions.low).all() and (self.x <= functions.high).all():
            efforts = self.serial + functions.missing_efforts(self.x, self.xd, self.xdd)
        return efforts


def sampled_workspace(twin: Twin, count: int, seed: int, domain: Domain | None = None) -> Workspace | str:
    """Both mechanisms over the workspace, at the start and at points of a Sobol sequence, or the reason for a failure.

    Args:
        count: Number of samples.
        seed: Seed of the sequence.
        domain: Poses that count, of a transmission by cranks and rods; by default all that are well away from singular
            ones.
    """
    low, high = twin.ranges.T
    power = max(1, int(np.ceil(np.log2(count))))
    points = qmc.Sobol(len(low), rng=np.random.default_rng(seed)).random_base2(power)[:count]
    x = low + points * (high - low)
    x = np.concatenate(
        [twin.closed.coordinates(twin.closed.start[None]), x if domain is None else x[domain.contains(x)]]
    )
    try:
        return workspace(twin, x)
    except HarnessError as error:
        return str(error)


def found_box(twin: Twin, domain: Domain | None = None) -> Array | str:
    """The box of regular poses, or the reason for its absence.

    Args:
        domain: See `sampled_workspace`.
    """
    try:
        return sound_box(twin, None if domain is None else domain.inner_box())
    except HarnessError as error:
        return str(error)


def fitted(twin: Twin, box: Array, seed: int) -> tuple[JointMap, Array] | str:
    """The missing terms of the serial model as functions of the pose, with their errors, or the reason for a failure.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        seed: Seed of the poses of the test of the fit.
    """
    try:
        return fitted_map(twin, box, seed)
    except HarnessError as error:
        return str(error)


def automatic_efforts(twin: Twin) -> MotionEfforts | str:
    """Efforts along the generated motion of the closed mechanism, or the reason for its absence."""
    space = twin.closed
    try:
        motion = automatic_motion(space.mechanism, space.start, None, str(space.mechanism.model.path))
        X_T = space.selection.T
        return _efforts(twin, AUTOMATIC, space.coordinates(motion.q), motion.qd @ X_T, motion.qdd @ X_T)
    except HarnessError as error:
        return str(error)


def random_efforts(twin: Twin, box: Array, seed: int) -> MotionEfforts | str:
    """Efforts along harmonics of random size and phase that fill a box, or the reason for their absence.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        seed: Seed of the motion.
    """
    try:
        return _efforts(twin, f"random {seed}", *random_course(box, seed))
    except HarnessError as error:
        return str(error)


def random_course(box: Array, seed: int) -> tuple[Array, Array, Array]:
    """Harmonics of random size and phase that fill a box.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        seed: Seed of the motion.

    Returns:
        Coordinates, rates and accelerations [m or rad, per s, per s²], each of shape (nt, n).
    """
    generator, n = np.random.default_rng(seed), len(box)
    rates = 2 * np.pi * np.arange(1, HARMONICS + 1)[:, None] / SPAN
    size, phase = generator.uniform(0.3, 1, (HARMONICS, n)) / rates, generator.uniform(0, 2 * np.pi, (HARMONICS, n))
    angles = np.linspace(0, SPAN, SAMPLES)[:, None, None] * rates + phase
    x, xd, xdd = (
        (factor * size * wave).sum(axis=1)
        for factor, wave in ((1.0, np.sin(angles)), (rates, np.cos(angles)), (-(rates**2), np.sin(angles)))
    )
    scale = FAR * np.ptp(box, axis=1) / np.ptp(x, axis=0)
    x = (x - (x.max(axis=0) + x.min(axis=0)) / 2) * scale + box.mean(axis=1)
    return x, xd * scale, xdd * scale


def pace_of(box: Array) -> Pace:
    """Rates and accelerations of random motions that fill a box.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
    """
    x, xd, xdd = np.concatenate([random_course(box, seed) for seed in range(COURSES)], axis=1)
    away = x - box.mean(axis=1)
    pull = (xdd * away).sum(axis=0) / (away**2).sum(axis=0)
    rates, accelerations = (np.sqrt(np.mean(values**2, axis=0)) for values in (xd, xdd - pull * away))
    return Pace(middle=box.mean(axis=1), pull=pull, rates=rates, accelerations=accelerations)


def least_of_constants(motions: Sequence[MotionEfforts]) -> float:
    """Error over the peak that no constants bring all motors below on all motions.

    It is that of the best for these motions alone, as root mean square over motions, motors and time: the worst motor
    of the worst motion has no less.
    """
    columns, lacking = [], []
    for motion in motions:
        peaks = np.abs(motion.at_motors(motion.closed)).max(axis=0)
        driven = peaks > 0
        A = at_motors(motion.transmission, motion.regressor)[:, driven] / peaks[driven, None]
        columns.append(A.reshape(-1, A.shape[2]))
        lacking.append((motion.at_motors(motion.closed - motion.serial)[:, driven] / peaks[driven]).ravel())
    return least_error(np.concatenate(columns), np.concatenate(lacking))


def _efforts(twin: Twin, name: str, x: Array, xd: Array, xdd: Array) -> MotionEfforts:
    """Required efforts of a motion of the shared coordinates in both mechanisms."""
    efforts, states = [], []
    for space in (twin.closed, twin.serial):
        q, sound = sound_poses(space, x)
        if not sound.all():
            names = f"{space.mechanism.model.path.name} at {', '.join(f'{value:.3g}' for value in x[~sound][0])}"
            raise HarnessError(f"the {name} motion must stay in the sound poses of {names}, but leaves them")
        moving = (q, *moved(space, q, xd, xdd))
        efforts.append(joint_efforts(space, *moving))
        states.append(moving)
    Y = regressor(twin.serial, *moving)
    q, qd, qdd = states[0]
    T = joint_terms(twin.closed, q).transmission[:, list(twin.motors)]
    scale = scale_of(State(mechanism=twin.closed.mechanism, q=q, qd=qd), qdd).scale[list(twin.motors)]
    return MotionEfforts(
        name=name, x=x, xd=xd, xdd=xdd, transmission=T, closed=efforts[0], serial=efforts[1], regressor=Y, scale=scale
    )
