"""Excitation of a motion: its range and speed, the inertial share of the efforts, and idle actuators.

Efforts that only hold weights and springs test neither inertias nor velocity terms. A motor that never works, or two
drives that always move alike, are not tested by a comparison of efforts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

SAMPLES = 64
"""At about how many times it is looked at."""
IDLE = 1e-9
"""Largest effort of an idle actuator, relative to the terms that act on it [-]."""
ALIKE = 1e-6
"""Smallest singular value of independent drive accelerations, each normalized to unit length [-]."""
FEW = 0.01
"""Largest inertial share of an effort that is reported as small [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excitation:
    """Excitation of a robot by a motion."""

    swings: Array
    """Stroke of each drive [m or rad], shape (drives,)."""
    fastest: float
    """Largest velocity of a joint [m/s or rad/s]."""
    fastest_joint: int
    """The joint that has it."""
    inertial: Array
    """Peak of the inertial part of each effort, over that and the peak of the rest [-], shape (na,)."""
    idle: tuple[int, ...]
    """Actuators with zero effort during the whole motion."""
    courses: int
    """Number of independent accelerations of the drives over time."""
    condition: float
    """Condition number of the normalized independent accelerations [-]: 1 if orthogonal, large if nearly dependent."""


def excitation(mechanism: Mechanism, motion: Motion) -> Excitation:
    """Excitation of a robot by a motion."""
    some = slice(None, None, max(1, len(motion.t) // SAMPLES))
    samples = replace(motion, t=motion.t[some], q=motion.q[some], qd=motion.qd[some], qdd=motion.qdd[some])
    whole, inertial = effort_scale(mechanism, samples), effort_scale(_inertia_alone(mechanism), samples).effort
    peaks, rests = np.abs(inertial).max(0, initial=0.0), np.abs(whole.effort - inertial).max(0, initial=0.0)
    speeds = np.abs(motion.qd).max(axis=0)
    values = _accelerations(mechanism, motion)
    courses = int((values > ALIKE).sum())
    fastest = int(speeds.argmax())
    return Excitation(
        swings=np.ptp(mechanism.values_of(mechanism.drives, motion.q), axis=0),
        fastest=float(speeds[fastest]),
        fastest_joint=next(j for j, dofs in enumerate(mechanism.dof_slices) if fastest < dofs.stop),
        inertial=np.divide(peaks, peaks + rests, out=np.zeros_like(peaks), where=peaks + rests > 0),
        idle=tuple(int(k) for k in np.flatnonzero(np.abs(whole.effort).max(0, initial=0.0) <= IDLE * whole.scale)),
        courses=courses,
        condition=float(values[0] / values[courses - 1]) if courses else float("inf"),
    )


def excitation_in_words(mechanism: Mechanism, motion: Motion) -> Iterator[str]:
    """Excitation of a robot by a motion, a sentence each."""
    effect = excitation(mechanism, motion)
    joint = mechanism.joints[effect.fastest_joint]
    names = [actuator.name for actuator in mechanism.actuators]
    yield (
        f"duration {motion.t[-1] - motion.t[0]:.3g} s; strokes of the drives {_swings_in_words(mechanism, effect)}; "
        f"largest velocity {effect.fastest:.3g} {joint.unit}/s ('{joint.name}')"
    )
    working = [k for k in range(mechanism.na) if k not in effect.idle]
    if working:
        least, most = min(working, key=lambda k: effect.inertial[k]), max(working, key=lambda k: effect.inertial[k])
        small = ". The motion hardly tests the inertia" if effect.inertial[most] <= FEW else ""
        smallest = f"{effect.inertial[least]:.2g} ('{names[least]}') to " if least != most else ""
        yield f"inertial share of the peak efforts: {smallest}{effect.inertial[most]:.2g} ('{names[most]}'){small}"
    if len(mechanism.drives) > 1:
        dependent = f"; {len(mechanism.drives) - effect.courses} dependent drives"
        yield (
            f"{effect.courses} drives with linearly independent accelerations (condition number "
            f"{effect.condition:.3g}){dependent * (effect.courses < len(mechanism.drives))}"
        )
    if effect.idle:
        yield f"actuators without effort: {', '.join(names[k] for k in effect.idle)}"


def _swings_in_words(mechanism: Mechanism, effect: Excitation) -> str:
    """The smallest and the largest swing of each unit."""
    units = ["rad" if mechanism.effort_unit(drive) == "N m" else "m" for drive in mechanism.drives]
    parts = []
    for unit in dict.fromkeys(units):
        of_unit = [k for k in range(len(units)) if units[k] == unit]
        least, most = min(of_unit, key=lambda k: effect.swings[k]), max(of_unit, key=lambda k: effect.swings[k])
        smallest = f"{effect.swings[least]:.2g} ('{mechanism.drives[least].name}') to " if least != most else ""
        parts.append(f"{smallest}{effect.swings[most]:.2g} {unit} ('{mechanism.drives[most].name}')")
    return " and ".join(parts)


def _inertia_alone(mechanism: Mechanism) -> Mechanism:
    """The mechanism with its masses and rotors, without any other load."""
    return replace(
        mechanism,
        gravity=np.zeros(3),
        wrenches=(),
        point_springs=(),
        joints=tuple(replace(joint, stiffness=0.0, damping=0.0) for joint in mechanism.joints),
        tendons=tuple(replace(tendon, stiffness=0.0, damping=0.0) for tendon in mechanism.tendons),
    )


def _accelerations(mechanism: Mechanism, motion: Motion) -> Array:
    """Singular values of the drives' accelerations over time, each of length one [-]; empty at rest."""
    qdd = motion.qdd @ mechanism.rates_of(mechanism.drives).T
    length = np.linalg.norm(qdd, axis=0)
    moving = length > ALIKE * length.max(initial=0.0)
    return np.asarray(np.linalg.svd(qdd[:, moving] / length[moving], compute_uv=False), dtype=np.float64)
