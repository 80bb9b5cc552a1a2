"""Fits the missing terms of a simplified serial model as functions of its joint positions."""

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from loopcheck.analytic.transmission.joint_map import JointMap
from loopcheck.analytic.transmission.terms import joint_terms
from loopcheck.analytic.transmission.twin import Twin, sound_poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError

DEGREES: Mapping[int, tuple[int, ...]] = {1: (6, 10, 16, 24, 36), 2: (6, 10, 14, 18), 3: (4, 6, 8, 10)}
"""Degrees that are tried, by the number of joints."""
COARSEST = 5
"""Points in each joint of the coarsest grid."""
ACCURATE = 1e-8
"""Error over the peak of a function that ends the increase of the degree [-]."""
MANY = 200
"""Random poses that stand for a grid of many joints."""
CHECKS = 64
"""Random poses that check a fit."""
SHRINK, SHRINKINGS = 0.9, 30
"""Factor that shrinks a box with unsound poses, and the largest number of reductions."""
FIELDS = ("motor position", "transmission", "armature", "damping", "force at rest")


def fields(twin: Twin, x: Array) -> tuple[Array, Array]:
    """The functions of a `JointMap` from the equations of both mechanisms, in sequence.

    Args:
        x: Shared coordinates [m or rad], shape (nt, n).

    Returns:
        Values [any unit], shape (nt, fields), and of each the largest of the closed mechanism alone, shape (fields,).

    Raises:
        MechanismError: If a pose is invalid.
    """
    (q, sound), (q_serial, serial_sound) = (sound_poses(space, x) for space in (twin.closed, twin.serial))
    if not (sound & serial_sound).all():
        raise MechanismError(f"{twin.closed.mechanism.model.path}: every pose of the box must be reachable")
    closed, serial = joint_terms(twin.closed, q), joint_terms(twin.serial, q_serial)
    mechanism, motors = twin.closed.mechanism, list(twin.motors)
    positions = mechanism.values_of(mechanism.drives, q) @ mechanism.gearing.T
    groups = [
        (positions[:, motors], np.zeros((len(x), len(motors)))),
        (closed.transmission[:, motors], np.zeros_like(closed.transmission[:, motors])),
        (closed.mass, serial.mass),
        (closed.damping, serial.damping),
        (closed.weight + closed.spring, serial.weight + serial.spring),
    ]
    values = [(own - other).reshape(len(x), -1) for own, other in groups]
    sizes = [np.full(own[0].size, np.abs(own).max(initial=0.0)) for own, _ in groups]
    return np.concatenate(values, axis=1), np.concatenate(sizes)


def sound_box(twin: Twin, widest: Array | None = None) -> Array:
    """A box about the start in which both mechanisms reach every pose of a grid, or random poses for many joints.

    Args:
        twin: The mechanisms.
        widest: The box that is tried first, by default that of the joint ranges [m or rad], shape (n, 2).

    Returns:
        Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).

    Raises:
        MechanismError: If there is no such box.
    """
    start = twin.closed.coordinates(twin.closed.start[None])[0]
    box, n = twin.ranges if widest is None else widest, len(start)
    if n in DEGREES:
        grid = np.array(list(product(*[np.linspace(0, 1, 5 if n > 1 else 17)] * n)))
    else:
        grid = np.random.default_rng(0).uniform(0, 1, (MANY, n))
    for _ in range(SHRINKINGS):
        x = box[:, 0] + grid * (box[:, 1] - box[:, 0])
        if all(sound_poses(space, x)[1].all() for space in (twin.closed, twin.serial)):
            return box
        box = start[:, None] + SHRINK * (box - start[:, None])
    raise MechanismError(
        f"{twin.closed.mechanism.model.path}: must have a box of reachable poses around the initial pose, none found "
        f"down to {', '.join(f'{n} {low:.3g} to {high:.3g}' for n, (low, high) in zip(twin.names, box, strict=True))}"
    )


def fitted_map(twin: Twin, box: Array, seed: int) -> tuple[JointMap, Array]:
    """Missing terms of the serial model as functions of the joint positions.

    Args:
        twin: The mechanisms; of up to three shared joints.
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        seed: Seed of the poses at which the fit is checked.

    Returns:
        The functions, and the error of each over its peak at poses outside the fit [-], shape (fields,).

    Raises:
        MechanismError: If there are too many joints, or a pose of the box is invalid.
    """
    n = len(twin.names)
    if n not in DEGREES:
        raise MechanismError(
            f"functions of the pose: at most {max(DEGREES)} shared joints, got {n} (the coarsest grid over all joints "
            f"has {COARSEST**n:,} poses). Hold further joints with --hold, for example all except an ankle"
        )
    checks = np.random.default_rng(seed).uniform(box[:, 0], box[:, 1], (CHECKS, n))
    exact, sizes = fields(twin, checks)
    scale = np.where(sizes > 0, sizes, 1.0)
    for degree in DEGREES[n]:
        fit = _series(twin, box, degree)
        error = np.abs(_values(fit, checks) - exact).max(axis=0) / scale
        if error.max() <= ACCURATE:
            break
    return fit, error


def _series(twin: Twin, box: Array, degree: int) -> JointMap:
    """Interpolation at the zeros of the next Chebyshev polynomial in each joint."""
    n, points = len(box), chebpts1(degree + 1)
    grid = np.array(list(product(points, repeat=n)))
    x = box.mean(axis=1) + grid * np.ptp(box, axis=1) / 2
    values = fields(twin, x)[0]
    inverse = np.linalg.inv(chebvander(points, degree))
    coefficients = values.reshape(*[degree + 1] * n, -1)
    for k in range(n):
        coefficients = np.moveaxis(np.tensordot(inverse, coefficients, axes=(1, k)), 0, k)
    return JointMap(
        joints=twin.names, motors=twin.motor_names, low=box[:, 0], high=box[:, 1], coefficients=coefficients
    )


def _values(fit: JointMap, x: Array) -> Array:
    """All functions of a map, in the order of `fields`."""
    parts = (fit.motor_positions(x), fit.transmission(x), fit.armature(x), fit.damping(x), fit.force(x))
    return np.concatenate([part.reshape(len(x), -1) for part in parts], axis=1)
