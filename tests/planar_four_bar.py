r"""The catalogue's four-bar upright, in closed form with complex numbers: a plant that shares no code with loopcheck.

                 coupler 1.1
             B o============o C
    crank 0.4 /              \ rocker 0.8
             @ O ----------- o D        OD = 1, rods of 1 kg/m, gravity along -Y

m(θ) θ̈ + ½ m'(θ) θ̇² + V'(θ) = τ, θ the angle of the crank.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.logs.log_files import write_log

GROUND, CRANK, COUPLER, ROCKER, G = 1.0, 0.4, 1.1, 0.8, 9.81
START, SWING = 0.5, 0.2
COULOMB, VISCOUS, ENCODER = 0.08, 0.05, 2e-4
"""Friction [N m, N m s/rad] and steps of the encoder [rad] of the log `friction`."""
LOGS = Path(__file__).parents[1] / "robots/four_bar/logs"


class Terms(NamedTuple):
    """Terms of the equation at an angle of the crank."""

    inertia: float
    inertia_slope: float
    weight: float
    positions: tuple[float, float, float]
    rates: tuple[float, float, float]


def terms(theta: float, masses: tuple[float, float, float] = (CRANK, COUPLER, ROCKER)) -> Terms:
    """The terms of the equation; inertias are those of rods."""
    crank = np.exp(1j * theta)
    B = CRANK * crank
    diagonal = GROUND - B  # from B to D
    length = abs(diagonal)
    cosine = (length**2 + COUPLER**2 - ROCKER**2) / (2 * length * COUPLER)
    coupler = diagonal / length * np.exp(1j * np.arccos(cosine))  # the loop open upwards
    rocker = (B + COUPLER * coupler - GROUND) / ROCKER
    # B + COUPLER e^(iα) = GROUND + ROCKER e^(iβ), differentiated by θ once and twice
    A = np.array([[(1j * COUPLER * coupler).real, -(1j * ROCKER * rocker).real],
                  [(1j * COUPLER * coupler).imag, -(1j * ROCKER * rocker).imag]])  # fmt: skip
    first = 1j * B
    a1, b1 = np.linalg.solve(A, [-first.real, -first.imag])
    second = -B - COUPLER * coupler * a1**2 + ROCKER * rocker * b1**2
    a2, b2 = np.linalg.solve(A, [-second.real, -second.imag])
    centres = [
        (1j * B / 2, -B / 2),
        (1j * B + 1j * COUPLER / 2 * coupler * a1, -B + COUPLER / 2 * coupler * (1j * a2 - a1**2)),
        (1j * ROCKER / 2 * rocker * b1, ROCKER / 2 * rocker * (1j * b2 - b1**2)),
    ]
    lengths, turns = (CRANK, COUPLER, ROCKER), ((1.0, 0.0), (a1, a2), (b1, b2))
    inertia = slope = weight = 0.0
    for mass, size, (v, a), (w, w_slope) in zip(masses, lengths, centres, turns, strict=True):
        about_centre = mass * size**2 / 12
        inertia += mass * abs(v) ** 2 + about_centre * w**2
        slope += 2 * (mass * (v * np.conj(a)).real + about_centre * w * w_slope)
        weight += mass * G * v.imag
    angle = float(np.angle(coupler)) - theta
    return Terms(inertia, slope, weight, (theta, angle, float(np.angle(rocker))), (1.0, a1 - 1.0, b1))


def law(t: float, rate: float) -> tuple[float, float, float]:
    """Angle, velocity and acceleration of the crank: it swings at an angular rate [rad/s]."""
    angle = START + SWING * (1 - np.cos(rate * t))
    return angle, SWING * rate * np.sin(rate * t), SWING * rate**2 * np.cos(rate * t)


def needed(t: float, rate: float) -> float:
    """The torque that the law needs at a time [N m]."""
    q, qd, qdd = law(t, rate)
    at = terms(q)
    return at.inertia * qdd + at.inertia_slope / 2 * qd**2 + at.weight


def exact_log(dt: float, samples: int, *, hertz: float = 1.0) -> Log:
    """The law, with the torque at each time."""
    rate, t = 2 * np.pi * hertz, dt * np.arange(float(samples))
    states = [law(float(time), rate)[:2] for time in t]
    return _log(t, states, np.array([needed(float(time), rate) for time in t]), Instantaneous())


def held_log(
    dt: float,
    samples: int,
    *,
    hertz: float = 4.0,
    masses: tuple[float, float, float] = (CRANK, COUPLER, ROCKER),
    friction: Callable[[float], float] = lambda speed: 0.0,
    chatter: float = 0.0,
) -> Log:
    """The plant under the torque that the law needs at the middle of each step, held for the step (Runge-Kutta 4).

    Beside it acts a torque of that size in steps of random sign.
    """
    rate, t = 2 * np.pi * hertz, dt * np.arange(float(samples))
    effort = np.array([needed(float(time) + dt / 2, rate) for time in t])
    effort += chatter * np.random.default_rng(1).choice([-1.0, 1.0], samples)

    def slope(state: Array, torque: float) -> Array:
        at = terms(state[0], masses)
        force = torque - friction(state[1]) - at.inertia_slope / 2 * state[1] ** 2 - at.weight
        return np.array([state[1], force / at.inertia])

    state, states = np.array(law(0.0, rate)[:2]), []
    for torque in effort:
        states.append((float(state[0]), float(state[1])))
        k1 = slope(state, torque)
        k2 = slope(state + dt / 2 * k1, torque)
        k3 = slope(state + dt / 2 * k2, torque)
        k4 = slope(state + dt * k3, torque)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return _log(t, states, effort, Held(dt))


def shipped() -> dict[str, Log]:
    """The logs in the robot's folder, by name, each with a known fault."""
    rng, clean, slow = np.random.default_rng(0), held_log(1e-3, 101), exact_log(0.02, 101)
    noisy = replace(
        slow,
        q=np.round(slow.q + 1e-4 * rng.normal(size=slow.q.shape), 6),
        qd=None,
        effort=np.round(slow.effort + 0.02 * rng.normal(size=slow.effort.shape), 4),
    )
    rate = slow.qd[:, :1] if slow.qd is not None else np.zeros(0)
    rubbing = slow.effort + COULOMB * np.sign(rate) + VISCOUS * rate + 0.02 * rng.normal(size=slow.effort.shape)
    codes = ENCODER * np.round((slow.q[:, :1] + ENCODER / 2 * rng.normal(size=rate.shape)) / ENCODER)
    friction = replace(slow, joints=("crank",), kinds=(), q=np.round(codes, 6), qd=None, effort=np.round(rubbing, 4))
    sources = {
        "clean": "the four-bar in closed form, every effort held for a step",
        "noisy": "the four-bar in closed form, with errors of 1e-4 rad and 0.02 N m",
        "friction": f"the same with friction in the crank, {COULOMB} N m and {VISCOUS} N m s/rad, by an encoder of "
        f"{ENCODER} rad",
    }
    logs = {"clean": clean, "noisy": noisy, "friction": friction}
    return {name: replace(log, name=name, source=sources[name]) for name, log in logs.items()}


def _log(t: Array, states: list[tuple[float, float]], effort: Array, when: Held | Instantaneous) -> Log:
    every = [terms(q) for q, _ in states]
    return Log(
        name="run",
        t=t,
        joints=("crank", "coupler", "rocker"),
        q=np.array([at.positions for at in every]),
        qd=np.array([at.rates for at in every]) * np.array([qd for _, qd in states])[:, None],
        actuators=("crank",),
        effort=effort[:, None],
        effort_time=when,
    )


if __name__ == "__main__":
    LOGS.mkdir(exist_ok=True)
    for log in shipped().values():
        write_log(log, LOGS / f"{log.name}.csv")
