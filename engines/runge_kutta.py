"""The classical Runge-Kutta method of fourth order for mechanisms with ball and free joints.

Positions are integrated in the coordinates of the displacement since the beginning of the step, because the angular
velocities of ball and free joints at different stages belong to different poses (Munthe-Kaas 1999).
"""

from collections.abc import Callable, Sequence

import numpy as np

from robots.arrays import AnyArray, Array


def runge_kutta(
    move: Callable[[AnyArray, AnyArray], None],
    acceleration: Callable[[int], Array],
    start: tuple[Array, Array],
    dt: float,
    turns: Sequence[slice],
) -> None:
    """One step of the method.

    Args:
        move: Sets the state to a displacement from the beginning of the step and a velocity, each of shape (nv,).
        acceleration: Computes the accelerations in that state, so many half steps into the step, shape (nv,).
        start: Velocities [m/s or rad/s] and accelerations [m/s² or rad/s²] at the beginning, each of shape (nv,).
        dt: Step [s].
        turns: Where the angular velocities of ball and free joints stand among the velocities.
    """
    v1, a1 = start
    u1, v2 = v1, v1 + dt / 2 * a1
    move(dt / 2 * u1, v2)
    a2 = acceleration(1)
    u2, v3 = _rate_of_displacement(dt / 2 * u1, v2, turns), v1 + dt / 2 * a2
    move(dt / 2 * u2, v3)
    a3 = acceleration(1)
    u3, v4 = _rate_of_displacement(dt / 2 * u2, v3, turns), v1 + dt * a3
    move(dt * u3, v4)
    a4 = acceleration(2)
    u4 = _rate_of_displacement(dt * u3, v4, turns)
    move(dt / 6 * (u1 + 2 * u2 + 2 * u3 + u4), v1 + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4))


def _rate_of_displacement(displacement: AnyArray, velocity: AnyArray, turns: Sequence[slice]) -> AnyArray:
    """Rate at which a displacement grows, θ̇ = ω + θ × ω / 2 + θ × (θ × ω) / 12 for turns in body axes, (nv,)."""
    rate = velocity.copy()
    for turn in turns:
        theta, omega = displacement[turn], velocity[turn]
        once = _cross(theta, omega)
        rate[turn] += once / 2 + _cross(theta, once) / 12
    return rate


def _cross(a: AnyArray, b: AnyArray) -> AnyArray:
    """Cross product; numpy's own takes several times as long on single vectors."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])
