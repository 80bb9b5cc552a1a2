"""Rank of the actuation along a motion: whether actuators move the same number of degrees of freedom throughout."""

import numpy as np

from loopcheck.analytic.kinematics.continuation import SOUND
from loopcheck.analytic.kinematics.redundancy import drive_motions, independent_rows
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion


def refuse_lost_actuation(mechanism: Mechanism, motion: Motion, where: str) -> None:
    """Refuse a motion along which the rank of the actuation changes: there efforts are not determined.

    Args:
        where: Name of the motion, for the error message.

    Raises:
        SingularityError: If it changes; names the actuators and the time.
    """
    A = drive_motions(mechanism, motion.q)
    values = np.linalg.svd(A, compute_uv=False)
    rank = int((values > SOUND).sum(axis=1).max())
    smallest = values[:, rank - 1] if rank else np.ones(len(values))
    worst, best = int(smallest.argmin()), int(smallest.argmax())
    if smallest[worst] > SOUND:
        return
    idle = sorted(set(independent_rows(A[best], SOUND)) - set(independent_rows(A[worst], SOUND)))
    names = ", ".join(f"'{name}'" for name in _actuators_of(mechanism, idle))
    times = motion.t[smallest <= SOUND]
    until = f" to {times[-1]:.6f}" if len(times) > 1 else ""
    raise SingularityError(
        f"{where}: the actuation is singular at t = {times[0]:.6f}{until} s, so the efforts are not determined there: "
        f"{names} cannot move a further degree of freedom (the actuators move {rank} at other times; smallest singular "
        f"value must be above {SOUND:g}, got {smallest[worst]:.3g})",
        time=float(times[0]),
        singular_value=float(smallest[worst]),
    )


def _actuators_of(mechanism: Mechanism, drives: list[int]) -> list[str]:
    """Names of the actuators of some drives."""
    coordinates = [mechanism.drives[k].name for k in drives]
    return [actuator.name for actuator in mechanism.actuators if actuator.coordinate.name in coordinates]
