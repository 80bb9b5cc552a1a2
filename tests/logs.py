"""Exact logs of any case, by Lagrange's equations, and reduced versions of them."""

from dataclasses import replace

import numpy as np

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.robot import Case

PARALLELOGRAM = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
    <body name="a"><joint name="a" axis="0 1 0"/><inertial pos="0 0 .2" mass="1" diaginertia=".1 .1 .1"/>
      <body name="rod" pos="0 0 .4"><joint name="pin" axis="0 1 0"/>
        <inertial pos=".5 0 0" mass="2" diaginertia=".1 .1 .1"/></body></body>
    <body name="b" pos="1 0 0"><joint name="b" axis="0 1 0"/>
      <inertial pos="0 0 .2" mass="1" diaginertia=".1 .1 .1"/></body></worldbody>
    <equality><connect body1="rod" body2="b" anchor="1 0 0"/></equality>
    <actuator><motor name="a" joint="a"/><motor name="b" joint="b"/></actuator></mujoco>"""
"""A crank at either end of a rod, both driven: a redundant drive."""


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
    """A log of the drives alone."""
    names = tuple(drive.name for drive in case.mechanism.drives)
    q, qd = (np.stack([log.columns_of(name)[k].start for name in names]) for k in (0, 1))
    return replace(
        log,
        joints=names,
        kinds=(),
        q=log.q[:, q],
        qd=log.qd[:, qd] if velocities and log.qd is not None else None,
    )
