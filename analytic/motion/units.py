"""Suspected units of a motion that does not close the loops."""

from collections.abc import Callable
from functools import partial

import numpy as np

from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.errors import HarnessError, LoopClosureError, MechanismError, SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Law, Motion

HALF_TURN = np.pi
"""Largest magnitude of an angle that is certainly plausible in radians [rad]."""


def with_plausible_units(
    mechanism: Mechanism, law: Law, t: Times, assembly: Callable[[Law], Motion], remedy: str
) -> Motion:
    """The assembled motion of a recorded law. If the loops stay closed in degrees alone, these are suspected.

    Args:
        law: Recorded motion of all its drives.
        assembly: Assembles the motion of a law.
        remedy: Advice to the user.

    Raises:
        MechanismError: If columns of angles look like degrees.
        LoopClosureError: If the loops cannot be closed at the first time.
        SingularityError: If the motion leaves the workspace or meets a singularity.
    """
    try:
        return assembly(law)
    except (LoopClosureError, SingularityError) as error:
        turns = np.array([mechanism.effort_unit(drive) == "N m" for drive in mechanism.drives])
        largest = np.abs(law(t).q).max(axis=0)
        if not (largest[turns] > HALF_TURN).any():
            raise
        try:
            assembly(partial(_scaled, law, np.where(turns, np.pi / 180, 1.0)))
        except HarnessError:
            raise error from None
        columns = [
            f"'{drive.name}.q' (up to {size:.3g})"
            for drive, size, is_turn in zip(mechanism.drives, largest, turns, strict=True)
            if is_turn
        ]
        raise MechanismError(
            f"angles must be in radians, got columns that look like degrees: {', '.join(columns)}. "
            f"As degrees they keep the loops closed. {remedy}. As radians: {error}"
        ) from error


def _scaled(law: Law, factors: Array, t: Array) -> Drive:
    drive = law(t)
    return Drive(q=factors * drive.q, qd=factors * drive.qd, qdd=factors * drive.qdd)
