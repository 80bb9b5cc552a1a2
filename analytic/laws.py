"""Motion laws: the prescribed coordinates of the actuated joints as functions of time.

A law is made by a function of the mechanism and its starting pose; a `robot.toml` names it and may give its parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from robots.arrays import Array
from robots.errors import MechanismError, NotFoundError
from robots.mechanism import Mechanism
from robots.motion import Drive, Law
from robots.robot import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Prescription:
    """A motion law with the time it lasts."""

    law: Law
    span: tuple[float, float]
    """First and last time [s]."""


def kordjazi2011(mechanism: Mechanism, start: Array, *, displacement: float = 0.1595) -> Prescription:
    """Motion of the 3-PRR: accelerations sin 3t, sin 2t, 0.5 sin 3t from rest, for one second.

    Kordjazi and Akbarzadeh 2011, equations (37) and (38).

    Args:
        mechanism: The 3-PRR.
        start: Positions of the actuated joints in the starting guess [m], shape (3,); not used.
        displacement: Initial displacement of all sliders [m].
    """
    _want_joints(mechanism, "kordjazi2011", ("q1", "q2", "q3"))
    return Prescription(law=partial(_accelerated_sines, displacement), span=(0.0, 1.0))


def sine(
    mechanism: Mechanism,
    start: Array,
    *,
    amplitude: float = 0.02,
    frequency: float = 1.0,
    duration: float = 1.0,
) -> Prescription:
    """Every actuated joint swings about its starting position, each a little out of step with the one before.

    The whole swing of joint k is a (cos φ_k − cos(2πft + φ_k)), φ_k = k radians, so it starts at the starting pose.

    Args:
        mechanism: Robot.
        start: Positions of the actuated joints in the starting guess [m or rad], shape (actuated joints,).
        amplitude: Half of the swing, a [m or rad].
        frequency: Frequency, f [Hz].
        duration: Length of the motion [s].
    """
    _want_positive("sine", amplitude=amplitude, frequency=frequency, duration=duration)
    law = partial(_swing, np.array(start), amplitude, 2 * np.pi * frequency)
    return Prescription(law=law, span=(0.0, duration))


LawMaker: TypeAlias = Callable[..., Prescription]
LAWS: Mapping[str, LawMaker] = {"kordjazi2011": kordjazi2011, "sine": sine}


def prescription(case: Case) -> Prescription:
    """The motion law that a robot asks for.

    Raises:
        NotFoundError: If there is no such law.
        MechanismError: If a parameter is unknown or bad, or the law is for another robot.
    """
    spec, mechanism = case.robot.motion, case.mechanism
    if spec.law not in LAWS:
        raise NotFoundError(f"motion law of {case.robot.name}", spec.law, LAWS)
    start = case.guess[[mechanism.q_slices[j].start for j in mechanism.actuated_joints]]
    try:
        return LAWS[spec.law](mechanism, start, **spec.parameters)
    except TypeError as error:
        raise MechanismError(f"motion law '{spec.law}' of {case.robot.name}: {error}") from error


def _accelerated_sines(displacement: float, t: Array) -> Drive:
    s3, c3, s2, c2 = np.sin(3 * t), np.cos(3 * t), np.sin(2 * t), np.cos(2 * t)
    q1, q2 = t / 3 - s3 / 9, t / 2 - s2 / 4
    qd1, qd2 = (1 - c3) / 3, (1 - c2) / 2
    return Drive(
        q=displacement + np.stack([q1, q2, q1 / 2], axis=-1),
        qd=np.stack([qd1, qd2, qd1 / 2], axis=-1),
        qdd=np.stack([s3, s2, s3 / 2], axis=-1),
    )


def _swing(start: Array, amplitude: float, rate: float, t: Array) -> Drive:
    phase = np.arange(len(start), dtype=float)
    angle = rate * t[:, None] + phase
    return Drive(
        q=start + amplitude * (np.cos(phase) - np.cos(angle)),
        qd=amplitude * rate * np.sin(angle),
        qdd=amplitude * rate**2 * np.cos(angle),
    )


def _want_joints(mechanism: Mechanism, law: str, wanted: tuple[str, ...]) -> None:
    actuated = tuple(mechanism.joints[j].name for j in mechanism.actuated_joints)
    if actuated != wanted:
        raise MechanismError(
            f"{mechanism.model.path}: motion law '{law}' wants the actuated joints {', '.join(wanted)}, "
            f"got {', '.join(actuated) or 'none'}"
        )


def _want_positive(law: str, **parameters: Any) -> None:
    for name, value in parameters.items():
        if not isinstance(value, (int, float)) or not 0 < value < np.inf:
            raise MechanismError(f"motion law '{law}': want {name} > 0, got {value!r}")
