"""Computations of workers on a closed mechanism and its serial model: workspace, motions, and fits."""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.motion.automatic import automatic_motion
from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.analytic.transmission.fit import fitted_map, sound_box
from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.motions import Course, MotionEfforts, efforts_along, random_course
from loopcheck.analytic.transmission.twin import Twin, Workspace, workspace
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError

COURSES = 8
"""Random motions with the typical rates of the states of the workspace."""
AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rates and accelerations of motions: reciprocating motions are pulled back to the middle."""

    middle: Array
    """Of the shared coordinates [m or rad], shape (n,)."""
    pull: Array
    """Acceleration per distance from the middle [1/s²], shape (n,)."""
    rates: Array
    """Root mean square [m/s or rad/s], shape (n,)."""
    accelerations: Array
    """Root mean square not explained by the pull [m/s² or rad/s²], shape (n,)."""


def sampled_workspace(twin: Twin, count: int, seed: int, domain: Domain | None = None) -> Workspace | str:
    """Both mechanisms over the workspace, at the start and at points of a Sobol sequence, or the reason for a failure.

    Args:
        count: Number of samples.
        seed: Seed of the sequence.
        domain: Poses that count, of a transmission by cranks and rods; by default all that are well away from singular
            ones.
    """
    from scipy.stats import qmc  # takes a sixth of the imports of the command, which bad input should not wait for

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
        return efforts_along(twin, AUTOMATIC, (space.coordinates(motion.q), motion.qd @ X_T, motion.qdd @ X_T))
    except HarnessError as error:
        return str(error)


def known_efforts(name: str, twin: Twin, course: Course) -> MotionEfforts | str:
    """Efforts along a motion, or the reason for their absence."""
    try:
        return efforts_along(twin, name, course)
    except HarnessError as error:
        return str(error)


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
