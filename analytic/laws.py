"""Motion laws: the prescribed coordinates of the actuated joints as functions of time.

A law is made by a function of the mechanism and its starting pose; a `robot.toml` names it and may give its parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from analytic import platforms
from analytic.jets import Jet, arccos, arctan, cos, drive, sin, sqrt
from analytic.task import InverseKinematics, Path, Task
from robots.arrays import AnyArray, Array, frozen
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
    task: Task | None = None
    """What the law says of the platform; None if it is given for the joints."""


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


def zubizarreta2010(
    mechanism: Mechanism, start: Array, *, radius: float = 0.1, period: float = 2.0, theta: float = 0.0
) -> Prescription:
    """Motion of the 3-RRR: P goes once round a circle about O at constant speed, the platform does not turn.

    Zubizarreta et al. 2010, section 4.8. The motors follow by inverse kinematics in the working mode of the start.

    Args:
        mechanism: The 3-RRR.
        start: Positions of the actuated joints in the starting guess [rad], shape (3,).
        radius: Radius of the circle [m].
        period: Time of a turn [s].
        theta: Orientation of the platform [rad].
    """
    _want_joints(mechanism, "zubizarreta2010", ("qa1", "qa2", "qa3"))
    _want_positive("zubizarreta2010", radius=radius, period=period)
    legs = _planar_legs(mechanism, radius, theta)
    path = partial(_round_circle, radius, 2 * np.pi / period, theta)
    return _of_task({"x": "m", "y": "m", "θ": "rad"}, path, partial(_planar_inverse, legs, np.array(start)), period)


def six_leg(mechanism: Mechanism, start: Array, *, sines: Sequence[Sequence[float]], duration: float) -> Prescription:
    """Motion of a platform on six legs: each coordinate of its pose (px, py, pz, φ, θ, ψ) is c + a sin(2πft + φ).

    Args:
        mechanism: The robot, `6spu` or `6x6r`.
        start: Positions of the actuated joints in the starting guess [m or rad], shape (6,); not used.
        sines: A row c, a [m or rad], f [Hz], φ [rad] for each coordinate of the pose.
        duration: Length of the motion [s].
    """
    _want_joints(mechanism, "six_leg", tuple(f"leg{k}" for k in platforms.LEGS))
    _want_positive("six_leg", duration=duration)
    rows = frozen(sines, (6, 4), name="motion law 'six_leg', sines")
    inverse = partial(platforms.leg_coordinates, platforms.six_legs(mechanism))
    pose = {"px": "m", "py": "m", "pz": "m", "φ": "rad", "θ": "rad", "ψ": "rad"}
    return _of_task(pose, partial(platforms.swaying, rows), inverse, duration)


def staicu2006(mechanism: Mechanism, start: Array) -> Prescription:
    """Motion (5) of the 2T1R: y = −t²(t² − 1.3t + 0.3), z = 0.2t²(2t² − t − 1), θ = 0.4 sin 4πt, for one second.

    Staicu et al. 2006. It does not begin or end at rest, because θ swings through.

    Args:
        mechanism: The 2T1R.
        start: Positions of the actuated joints in the starting guess [m], shape (3,); not used.
    """
    _want_joints(mechanism, "staicu2006", ("A", "B", "C"))
    inverse = partial(platforms.slider_coordinates, platforms.three_legs(mechanism))
    return _of_task({"y": "m", "z": "m", "θ": "rad"}, platforms.staicu_motion, inverse, 1.0)


def wang2019(
    mechanism: Mechanism, start: Array, *, radius: float, height: float, pitch: float, duration: float
) -> Prescription:
    """Motion of the 2PUR-2RPU: its tool goes once round a helix (42) to (47) by the law (B-1).

    Wang et al. 2019. The acceleration is continuous; the third derivative jumps at the beginning and the end.

    Args:
        mechanism: The 2PUR-2RPU.
        start: Positions of the actuated joints in the starting guess [m], shape (4,); not used.
        radius: Radius of the helix [m].
        height: Its initial height [m].
        pitch: Its rise in a turn [m].
        duration: Time of the turn [s].
    """
    _want_joints(mechanism, "wang2019", ("q1", "q2", "q3", "q4"))
    _want_positive("wang2019", radius=radius, height=height, pitch=pitch, duration=duration)
    limbs = platforms.crossed_limbs(mechanism)
    path = partial(platforms.helical_motion, limbs, (radius, height, pitch), duration)
    inverse = partial(platforms.limb_coordinates, limbs)
    return _of_task({"α": "rad", "β": "rad", "ζ": "m"}, path, inverse, duration)


AUTOMATIC = "automatic"
"""Name of the law that `analytic.automatic` makes for a robot that comes without one."""
RECORDED = "recorded"
"""Name of the law that `analytic.recorded` reads from a file, its parameter `file`."""

LawMaker: TypeAlias = Callable[..., Prescription]
LAWS: Mapping[str, LawMaker] = {
    "kordjazi2011": kordjazi2011,
    "sine": sine,
    "six_leg": six_leg,
    "staicu2006": staicu2006,
    "wang2019": wang2019,
    "zubizarreta2010": zubizarreta2010,
}


def prescription(case: Case) -> Prescription:
    """The motion law that a robot asks for.

    Raises:
        NotFoundError: If there is no such law.
        MechanismError: If a parameter is unknown or bad, or the law is for another robot.
    """
    spec, mechanism = case.robot.motion, case.mechanism
    if spec.law not in LAWS:
        raise NotFoundError(f"motion law of {case.robot.name}", spec.law, (*LAWS, AUTOMATIC, RECORDED))
    start = mechanism.values_of(mechanism.drives, case.guess[None])[0]
    try:
        return LAWS[spec.law](mechanism, start, **spec.parameters)
    except TypeError as error:
        raise MechanismError(f"motion law '{spec.law}' of {case.robot.name}: {error}") from error


def task(case: Case) -> Task | None:
    """The task coordinates of the law that a robot asks for; None if the law is given for the joints.

    Raises:
        MechanismError: If a parameter of the law is unknown or bad, or the law is for another robot.
    """
    return prescription(case).task if case.robot.motion.law in LAWS else None


def _of_task(units: Mapping[str, str], path: Path, inverse: InverseKinematics, duration: float) -> Prescription:
    """The law that follows from a path of the task coordinates, whose units are given by name."""
    task = Task(coordinates=tuple(units), units=tuple(units.values()), path=path, inverse=inverse)
    return Prescription(law=task.law, span=(0.0, duration), task=task)


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


PLANE = np.array([1, 1j, 0])
"""Makes a vector of the plane a complex number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanarLegs:
    """Three legs of two links in the plane; vectors are complex numbers x + iy."""

    A: AnyArray
    """Points A_i [m], shape (3,)."""
    C: AnyArray
    """Points C_i in the axes of the platform, from P [m], shape (3,)."""
    outward: Array
    """Direction from A_i to C_i where P is at O [rad], shape (3,)."""
    proximal: Array
    """Lengths A_iB_i [m], shape (3,)."""
    distal: Array
    """Lengths B_iC_i [m], shape (3,)."""


def _planar_legs(mechanism: Mechanism, radius: float, theta: float) -> _PlanarLegs:
    """The legs of the 3-RRR, which must reach the whole circle without stretching out."""
    bodies = {body.name: body for body in mechanism.bodies}
    wanted = ["platform", *(f"{link}{i}" for link in ("proximal", "distal") for i in (1, 2, 3))]
    for name in wanted:
        if name not in bodies:
            raise MechanismError(f"{mechanism.model.path}: motion law 'zubizarreta2010' wants a body '{name}'")
    P = mechanism.site("P").position
    ends = [bodies["platform"].position, *(mechanism.site(f"distal{i}_end").position for i in (2, 3))]
    A = np.array([bodies[f"proximal{i}"].position for i in (1, 2, 3)]) @ PLANE
    C = np.array([mechanism.site(f"platform{i}").position - P for i in (1, 2, 3)]) @ PLANE
    v = C * np.exp(1j * theta) - A
    legs = _PlanarLegs(
        A=A,
        C=C,
        outward=np.angle(v),
        proximal=np.array([bodies[f"distal{i}"].position[0] for i in (1, 2, 3)]),
        distal=np.array([end[0] for end in ends]),
    )
    nearest, farthest = np.abs(v) - radius, np.abs(v) + radius
    reach = legs.proximal + legs.distal, np.abs(legs.proximal - legs.distal)
    for i in range(3):
        if not reach[1][i] < nearest[i] <= farthest[i] < reach[0][i]:
            raise MechanismError(
                f"{mechanism.model.path}: motion law 'zubizarreta2010': leg {i + 1} reaches from {reach[1][i]:g} to "
                f"{reach[0][i]:g} m, the circle wants {nearest[i]:g} to {farthest[i]:g} m"
            )
    return legs


def _round_circle(radius: float, rate: float, theta: float, t: Array) -> list[Jet]:
    """Pose (x, y, θ) of a platform that goes round a circle and does not turn."""
    time = Jet.of_time(t)
    return [radius * cos(rate * time), radius * sin(rate * time), 0.0 * time + theta]


def _planar_inverse(legs: _PlanarLegs, start: Array, pose: list[Jet]) -> Drive:
    """Motors of the 3-RRR at a pose of the platform, in the working mode of a start, by the law of cosines."""
    x, y, theta = pose
    motors = []
    for A, C, L, l, outward, near in zip(legs.A, legs.C, legs.proximal, legs.distal, legs.outward, start, strict=True):
        right = x + C.real * cos(theta) - C.imag * sin(theta) - A.real  # A_i to C_i
        up = y + C.real * sin(theta) + C.imag * cos(theta) - A.imag
        along = right * np.cos(outward) + up * np.sin(outward)  # positive: the leg turns by less than 90°
        across = up * np.cos(outward) - right * np.sin(outward)
        squared = along * along + across * across
        elbow = 1.0 if np.sin(outward - near) > 0 else -1.0  # sign of sin qp
        inside = arccos((squared + (L**2 - l**2)) / (sqrt(squared) * (2 * L)))  # angle at A_i
        turns = np.round((near - outward + elbow * np.pi / 4) / (2 * np.pi))
        motors.append(arctan(across / along) - elbow * inside + (outward + 2 * np.pi * turns))
    return drive(motors)


def _want_joints(mechanism: Mechanism, law: str, wanted: tuple[str, ...]) -> None:
    actuated = tuple(drive.name for drive in mechanism.drives)
    if actuated != wanted:
        raise MechanismError(
            f"{mechanism.model.path}: motion law '{law}' wants the actuated joints {', '.join(wanted)}, "
            f"got {', '.join(actuated) or 'none'}"
        )


def _want_positive(law: str, **parameters: Any) -> None:
    for name, value in parameters.items():
        if not isinstance(value, (int, float)) or not 0 < value < np.inf:
            raise MechanismError(f"motion law '{law}': want {name} > 0, got {value!r}")
