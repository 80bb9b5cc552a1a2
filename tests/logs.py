"""Exact logs of any case, by Lagrange's equations, and what of them remains where less is logged."""

from dataclasses import replace

import numpy as np

from analytic.dynamics.lagrange import Lagrange
from analytic.motion.prescribe import prescribe
from robots.arrays import Array
from robots.log import Instantaneous, Log
from robots.robot import Case


def exact_log(case: Case, t: Array) -> Log:
    """The prescribed motion of a case with the efforts that Lagrange's equations need."""
    motion = prescribe(case)
    effort = Lagrange().compute_efforts(case, motion.assemble(t)).effort
    there = motion.assemble(t)
    return Log(
        name="run",
        t=t,
        joints=tuple(joint.name for joint in case.mechanism.joints),
        kinds=tuple(joint.kind for joint in case.mechanism.joints),
        q=there.q,
        qd=there.qd,
        actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
        effort=effort,
        effort_time=Instantaneous(),
    )


def of_drives(log: Log, case: Case, *, velocities: bool) -> Log:
    """What a log of the drives alone would hold."""
    names = tuple(drive.name for drive in case.mechanism.drives)
    q, qd = (np.stack([log.columns_of(name)[k].start for name in names]) for k in (0, 1))
    return replace(
        log,
        joints=names,
        kinds=(),
        q=log.q[:, q],
        qd=log.qd[:, qd] if velocities and log.qd is not None else None,
    )
