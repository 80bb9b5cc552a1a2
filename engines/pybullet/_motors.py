"""PyBullet's motors, one per joint, behind the driven coordinates, and their forces as efforts of the actuators.

A tendon has no motor. If the loops tie a joint to its length, that joint's motor takes its place: both act alike on
all motions that keep the loops closed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BPoly

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.projection import RANK_TOLERANCE, null_space
from loopcheck.engines.pybullet._angles import in_angles
from loopcheck.engines.pybullet._jacobian import closure_jacobian
from loopcheck.engines.pybullet._world import World
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Motors:
    """The motors that are on."""

    joints: tuple[int, ...]
    """Joints they act on, by the indices of the mechanism with hinges and slides only."""
    places: tuple[int, ...]
    """Place of the driven coordinate that each moves."""
    ratios: Array
    """Effort on that coordinate per force of the motor at each sample [-, or per m], shape (nt, motors)."""
    stand_ins: bool
    """Whether a motor replaces the motor of a tendon."""


def motors(world: World, mechanism: Mechanism, motion: Motion, places: Sequence[int]) -> Motors:
    """The motors for some of the driven coordinates.

    Args:
        mechanism: Robot; balls and all.
        places: Places of the coordinates among `Mechanism.drives`.

    Raises:
        NotRepresentableError: If a tendon moves joints that are not tied to its length.
    """
    drives = [world.mechanism.drives[k] for k in places]
    if all(drive.is_joint for drive in drives):
        joints = tuple(drive.joints[0] for drive in drives)
        return Motors(
            joints=joints, places=tuple(places), ratios=np.ones((len(motion.t), len(joints))), stand_ins=False
        )
    q, _, _ = in_angles(mechanism, motion.q, motion.qd, motion.qdd)
    spaces = [null_space(closure_jacobian(world, x)) for x in q]
    candidates = [_stand_in(world, drive, spaces) for drive in drives]
    stand_ins = [stand_in for stand_in in candidates if stand_in is not None]
    want_representable(
        "pybullet",
        (
            f"tendon '{drive.name}' on independent joints (each motor drives a single joint)"
            for drive, stand_in in zip(drives, candidates, strict=True)
            if stand_in is None
        ),
    )
    return Motors(
        joints=tuple(j for j, _ in stand_ins),
        places=tuple(places),
        ratios=np.stack([ratio for _, ratio in stand_ins], axis=1),
        stand_ins=True,
    )


def targets(mechanism: Mechanism, motion: Motion, run: Motors, t: Times) -> Array:
    """Target positions of the motors' joints.

    Args:
        mechanism: Robot; balls and all.

    Returns:
        Positions [m or rad], shape (nt, motors).
    """
    if not run.stand_ins:
        return motion.law(t).q[:, list(run.places)]
    before, after = np.ceil([(motion.t[0] - t[0]) / motion.dt, (t[-1] - motion.t[-1]) / motion.dt])
    grid = motion.t[0] + motion.dt * np.arange(-before, len(motion.t) + after)
    moved = motion.assemble(grid)
    samples = np.stack(in_angles(mechanism, moved.q, moved.qd, moved.qdd), axis=1)
    return np.asarray(BPoly.from_derivatives(grid, samples[..., list(run.joints)])(t))


def _stand_in(world: World, drive: Coordinate, spaces: Sequence[Array]) -> tuple[int, Array] | None:
    """A joint of a drive that the loops tie to it, and the effort on the drive per force on the joint, (nt,)."""
    w = world.mechanism.rates_of((drive,))[0]
    for j in drive.joints:
        rates = [(N[j], w @ N) for N in spaces]
        ratios = np.array([(joint @ tendon) / max(tendon @ tendon, np.finfo(float).tiny) for joint, tendon in rates])
        misses = [
            np.linalg.norm(joint - ratio * tendon) > RANK_TOLERANCE * np.linalg.norm(joint)
            for (joint, tendon), ratio in zip(rates, ratios, strict=True)
        ]
        if not any(misses) and np.all(ratios != 0):
            return j, ratios
    return None
