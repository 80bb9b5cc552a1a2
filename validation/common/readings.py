"""Identification of a column of efforts by comparison with all quantities that are frequently confused with the effort.

Each of these readings follows from the required effort, the motion and the model. The nearest reading is named if it
differs from the effort by more than the noise floor of the log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.logs.residual import Residual
from loopcheck.robots.arrays import Array, Efforts, EffortSeries, root_mean_square
from loopcheck.robots.log import Held
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.common.limits import DISTINCT_READING, NEAREST_READING

EFFORT = "the applied effort"
TWICE = "half of the applied effort (is the drive applied twice?)"
REACTION = "the reaction of its joint, without rotor, damper and spring"
LATE = "the effort one hold late"
GEARED = "the force on its joint, behind the gear"
OTHER_SIDE = "the reaction with the opposite sign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The reading nearest to a column of efforts."""

    names: tuple[str, ...]
    """The nearest reading, then readings that are indistinguishable from it."""
    effect: float
    """Root mean square of the difference between the nearest reading and the effort [N or N m]."""
    left: float
    """Root mean square of the difference between the column and the nearest reading [N or N m]."""
    largest: float
    """Largest difference between the column and the nearest reading [N or N m]."""

    @property
    def is_effort(self) -> bool:
        """Return whether the column may be the effort."""
        return EFFORT in self.names


def reading_of(mechanism: Mechanism, residual: Residual, actuator: int) -> Reading:
    """The reading nearest to the logged efforts of an actuator.

    Args:
        residual: Residual efforts of the log.
        actuator: Number of the actuator.
    """
    logged, floor = residual.effort[:, actuator], float(residual.floor.rms[actuator])
    known = dict(_readings(mechanism, residual, actuator))
    left = {name: root_mean_square(logged - values) for name, values in known.items()}
    nearest = min(left, key=lambda name: left[name])

    def is_apart(name: str) -> bool:
        differs = root_mean_square(known[name] - known[nearest]) > DISTINCT_READING * floor
        return name != nearest and differs and left[nearest] < NEAREST_READING * left[name]

    names = (nearest, *(name for name in known if name != nearest and not is_apart(name)))
    return Reading(
        names=names,
        effect=root_mean_square(known[nearest] - known[EFFORT]),
        left=left[nearest],
        largest=float(np.abs(logged - known[nearest]).max()),
    )


def in_words(reading: Reading) -> str:
    """Note on a column that is nearest to another quantity than the effort; empty if it may be the effort."""
    if reading.is_effort:
        return ""
    return f"the logged column resembles {', or '.join(reading.names)} (rms difference {reading.left:.2g})"


def differences(effort: EffortSeries, readings: Mapping[str, Array], scale: Efforts) -> dict[str, float]:
    """Distances of other readings from the applied effort, root mean square over the scale, worst actuator [-].

    Args:
        effort: Applied effort.
        readings: Readings by kind, each of shape (nt, na); NaN for missing values.
        scale: Scales of the actuators.
    """
    acting = scale > 0
    sizes = {}
    for kind, values in readings.items():
        known = acting & np.isfinite(values).all(axis=0)
        if known.any():
            difference = (values - effort)[:, known] / scale[known]
            sizes[kind] = float(np.sqrt((difference**2).mean(axis=0)).max())
    return sizes


def _readings(mechanism: Mechanism, residual: Residual, k: int) -> Iterator[tuple[str, Array]]:
    """Expected column for each reading [N or N m], shape (n,), the effort first."""
    from scipy.interpolate import CubicSpline

    needed, motion, actuator = residual.needed[:, k], residual.motion, mechanism.actuators[k]
    yield EFFORT, needed
    yield TWICE, needed / 2
    yield OTHER_SIDE, -needed
    hold = residual.effort_time.seconds if isinstance(residual.effort_time, Held) else 0.0
    if hold:
        yield LATE, CubicSpline(motion.t, needed)(np.maximum(motion.t - hold, motion.t[0]))
    if abs(actuator.gear) != 1:
        yield GEARED, actuator.gear * needed
    if actuator.coordinate.is_joint:
        j = actuator.coordinate.joints[0]
        joint, q, dof = mechanism.joints[j], mechanism.q_slices[j].start, mechanism.dof_slices[j].start
        taken = joint.armature * motion.qdd[:, dof] + joint.damping * motion.qd[:, dof]
        taken = taken + joint.stiffness * (motion.q[:, q] - joint.spring_reference[0])
        if taken.any():
            yield REACTION, actuator.gear * needed - taken
