"""Seeded draws of encoders and torque sensors on logs with known efforts: false verdicts and missed faults."""

from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.judge.causes import with_causes
from loopcheck.validation.judge.logs import LogOptions, judge_log, verdicts

DT = 0.02
"""Step of the logs [s]."""
PERIOD = 2.0
"""Of the motion [s]."""
SECONDS = 4.0
"""Length of the logs [s]."""
ENCODERS = (1e-4, 1e-5)
"""Deviations of the positions [m or rad]."""
SENSORS = (0.005, 0.002)
"""Deviations of the efforts, over the peak of each [-]."""
SAMPLINGS = ("regular", "jittered samples", "jittered stamps")
"""Regular samples; samples at jittered times with true stamps; regular samples with jittered stamps."""
JITTER = 0.1
"""Deviation of jittered times, over the step [-], at most four of them."""
MISSING = 0.01
"""Part of the jittered samples that is lost [-]."""
NO_ACCURACY = 1e-9
"""Requested accuracy, so small that floors alone decide [-]."""
FAULT = 3.0
"""Largest change of the efforts by a seeded fault, over the floor of the largest residual [-]."""
WITHIN = (0.8, 2.0)
"""Allowed range of the floor over the true error [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Findings of some draws, a row each."""

    rms: Array
    """Root mean square of the residual efforts, all of them errors of the log, shape (draws, na)."""
    floor: Array
    """Noise floor by the judge, with its margin, shape (draws, na)."""
    false: int
    """Draws with an actuator that disagrees."""
    caught: int
    """Draws of which a fault of three floors of the first actuator disagrees."""
    doubted: int
    """Draws with a suspected defect, unit or cause."""

    @property
    def expected(self) -> Array:
        """Floor over the root mean square that the errors of such logs have over all draws [-], shape (draws, na)."""
        return self.floor / np.sqrt((self.rms**2).mean(axis=0))

    @property
    def realized(self) -> Array:
        """Floor over that of the draw itself [-], shape (draws, na)."""
        return self.floor / self.rms

    @property
    def best(self) -> Array:
        """The same for a judge with exact knowledge of the expectation [-], shape (draws, na)."""
        return 1.5 * np.sqrt((self.rms**2).mean(axis=0)) / self.rms


def regular(seconds: float) -> Times:
    """Times of regular samples [s], shape (nt,)."""
    t: Times = DT * np.arange(round(seconds / DT) + 1, dtype=np.float64)
    return t


def jittered(t: Times, seed: int) -> Times:
    """The same times with jitter; the first and the last are exact."""
    late = np.clip(np.random.default_rng(seed).normal(size=t.shape), -4, 4) * JITTER * DT
    late[[0, -1]] = 0
    return t + late


def back_and_forth(case: Case, t: Times) -> Log:
    """The motion of a case at some times, forward and back in `PERIOD`, with exact efforts."""
    motion = prescribe(case)
    begin, span = motion.t[0], motion.t[-1] - motion.t[0]

    def law(t: Array) -> Drive:
        rate = 2 * np.pi / PERIOD
        s = span * (1 - np.cos(rate * t)) / 2
        s_dot, s_ddot = span * rate * np.sin(rate * t) / 2, span * rate**2 * np.cos(rate * t) / 2
        drive = motion.law(begin + s)
        return Drive(
            q=drive.q,
            qd=drive.qd * s_dot[:, None],
            qdd=drive.qdd * s_dot[:, None] ** 2 + drive.qd * s_ddot[:, None],
        )

    states: Motion = assemble(case.mechanism, law, motion.q[0], t)
    return Log(
        name="run",
        t=t,
        joints=tuple(joint.name for joint in case.mechanism.joints),
        kinds=tuple(joint.kind for joint in case.mechanism.joints),
        q=states.q,
        actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
        effort=Lagrange().compute_efforts(case, states).effort,
        effort_time=Instantaneous(),
    )


def draws(case: Case, exact: Log, noise: tuple[float, float], sampling: str, seeds: range) -> Draws:
    """Judge noisy copies of an exact log, each with and without a fault.

    Args:
        noise: Deviations of the positions [m or rad], and of the efforts over their peaks [-].
        sampling: One of `SAMPLINGS`.
        seeds: A draw each.
    """
    peaks = np.abs(exact.effort).max(axis=0)
    encoder, sensor = noise
    rms, floor, false, caught, doubted = [], [], 0, 0, 0
    for seed in seeds:
        random = np.random.default_rng(seed)
        q, effort = (values + random.normal(size=values.shape) * size for values, size in (
            (exact.q, encoder), (exact.effort, sensor * peaks)
        ))  # fmt: skip
        stamps = jittered(exact.t, seed) if sampling == "jittered stamps" else exact.t
        kept = (random.random(len(stamps)) >= MISSING) | (sampling == "regular")
        noisy = replace(exact, t=stamps[kept], q=q[kept], effort=effort[kept])
        judged = judge_log(case, noisy)
        residual = judged.residuals[0]
        rms.append(residual.rms)
        floor.append(residual.floor.rms)
        found = verdicts(judged, NO_ACCURACY)
        false += any(verdict == "disagree" for verdict, _ in found)
        doubted += bool(judged.doubts or with_causes(judged, case, LogOptions(accuracy=NO_ACCURACY)).causes)
        gain = np.ones(case.mechanism.na)
        gain[0] += FAULT * residual.floor.largest[0] / np.abs(residual.needed[:, 0]).max()
        faulty = judge_log(case, replace(noisy, effort=noisy.effort * gain))
        caught += verdicts(faulty, NO_ACCURACY)[0].verdict == "disagree"
    return Draws(rms=np.array(rms), floor=np.array(floor), false=false, caught=caught, doubted=doubted)


def judged_draws(case: Case, noise: tuple[float, float], sampling: str, seeds: range) -> Draws:
    """Draws of the motion of a case, forward and back; runs in a worker process.

    Args:
        noise: Deviations of the positions [m or rad], and of the efforts over their peaks [-].
        sampling: One of `SAMPLINGS`.
        seeds: A draw each.
    """
    t = regular(SECONDS)
    exact = back_and_forth(case, jittered(t, seeds[0]) if sampling == "jittered samples" else t)
    return draws(case, exact, noise, sampling, seeds)
