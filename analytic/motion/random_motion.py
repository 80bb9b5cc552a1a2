"""A motion that nobody chose: harmonics of random size and phase, as far and as fast as a motion that is given."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.automatic import WELL_AWAY, left_by_drives, remaining_conditioning
from loopcheck.analytic.motion.limits import left_limits
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Law, Motion

HARMONICS = 5
"""Of the span of the motion."""
HALVINGS = 6
"""Largest number of halvings."""


def random_motion(mechanism: Mechanism, motion: Motion, *, seed: int = 0) -> Motion:
    """A random motion from the first pose of another, on its grid.

    No drive goes farther from its first position than in the other motion, or accelerates more. All harmonics have
    about the same share of the acceleration: with larger shares of the high ones a drive goes a tenth of its way, and
    in so small a stroke dry friction decides whether an engine follows. If the loops do not let it, or it comes
    nearer to a singularity than a motion made by loopcheck or the other motion, or leaves a joint limit that the
    other motion keeps, all displacements are halved, and halved again. If even the smallest leaves a limit, the
    limits are ignored.

    Args:
        motion: The other motion.
        seed: Seed of the random numbers [-].

    Raises:
        SingularityError: If even the smallest leaves the workspace or meets a singularity.
    """
    span, given = motion.t[-1] - motion.t[0], motion.law(motion.t)
    generator, drives = np.random.default_rng(seed), given.q.shape[1]
    rates = 2 * np.pi * np.arange(1, HARMONICS + 1) / span
    size = generator.uniform(0.2, 1, (HARMONICS, drives)) / rates[:, None] ** 2
    phase = generator.uniform(0, 2 * np.pi, (HARMONICS, drives))
    law = partial(_harmonics, float(motion.t[0]), given.q[0], rates, phase)
    raw = law(size, motion.t)
    limits = [np.abs(given.q - given.q[0]).max(axis=0), np.abs(given.qdd).max(axis=0)]
    peaks = [np.abs(raw.q - given.q[0]).max(axis=0), np.abs(raw.qdd).max(axis=0)]
    size = size * np.minimum(*(limit / peak for limit, peak in zip(limits, peaks, strict=True)))
    where = str(mechanism.model.path)
    tracer = Tracer(mechanism=mechanism, law=motion.law, drives=mechanism.drives, where=where)
    enough = min(WELL_AWAY, remaining_conditioning(tracer, motion))
    for halved in _limits_first(tracer, motion, [partial(law, size / 2**halving) for halving in range(HALVINGS)]):
        try:
            made = assemble(mechanism, halved, motion.q[0], motion.t)
        except SingularityError:
            continue
        if remaining_conditioning(tracer, made) >= enough:
            return made
    return assemble(mechanism, partial(law, size / 2**HALVINGS), motion.q[0], motion.t)


def _limits_first(tracer: Tracer, motion: Motion, laws: Sequence[Law]) -> Iterator[Law]:
    """The laws that keep the joint limits that a motion from the same pose keeps, then the others."""
    left, others = set(left_limits(tracer.mechanism, tracer.drives, motion.q)), []
    for law in laws:
        if left.issuperset(left_by_drives(replace(tracer, law=law), motion.q[0], motion.t)):
            yield law
        else:
            others.append(law)
    yield from others


def _harmonics(begin: float, start: Array, rates: Array, phase: Array, size: Array, t: Array) -> Drive:
    angle = (t[:, None] - begin) * rates
    angles = angle[:, :, None] + phase
    return Drive(
        q=start + (size * (np.sin(angles) - np.sin(phase))).sum(axis=1),
        qd=(size * rates[:, None] * np.cos(angles)).sum(axis=1),
        qdd=-(size * rates[:, None] ** 2 * np.sin(angles)).sum(axis=1),
    )
