"""Terms of a URDF in any release of PyBullet with wheels.

Runs in environments of other releases with numpy and PyBullet alone: nothing of loopcheck may be imported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pybullet

FORMATS = ("URDF",)
MOST = 3.0
"""Largest position of a joint without a limit [rad or m]."""
GRAVITY = 9.81
"""Gravity along -z, which a URDF does not state [m/s²]."""


def read(path: str) -> tuple[int, int]:
    """Client and body of the robot with a fixed base; raises the error of PyBullet."""
    client = pybullet.connect(pybullet.DIRECT)
    body = pybullet.loadURDF(path, useFixedBase=True, physicsClientId=client)
    pybullet.setGravity(0, 0, -GRAVITY, physicsClientId=client)
    for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
        if pybullet.getJointInfo(body, joint, physicsClientId=client)[2] in (0, 1):  # without the motors of the loader
            pybullet.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client)
    return client, body


def sizes(model: tuple[int, int]) -> tuple[int, ...]:
    """Lengths of the arrays of a state: positions, rates."""
    return (len(_joints(model)),) * 2


def states(model: tuple[int, int], count: int, rng: Any) -> Iterator[list[Any]]:
    """Positions and rates within the limits of the joints."""
    limits = np.array([info[8:10] if info[8] < info[9] else (-MOST, MOST) for info in _joints(model)]).reshape(-1, 2)
    for _ in range(count):
        q = np.clip(0.3 * rng.normal(size=len(limits)), limits[:, 0], limits[:, 1])
        yield [q, rng.normal(size=len(limits))]


def terms(model: tuple[int, int], state: Sequence[Any]) -> Mapping[str, tuple[Any, Sequence[str]]]:
    """Terms of the equations of motion at a state, and one step, in the order of their dependence."""
    (client, body), (q, v), joints = model, state, _joints(model)
    names, zero = [info[1].decode() for info in joints], [0.0] * len(joints)
    for info, position, rate in zip(joints, q, v, strict=True):
        pybullet.resetJointState(body, info[0], position, rate, physicsClientId=client)
    places = [
        pybullet.getLinkState(body, info[0], computeForwardKinematics=1, physicsClientId=client) for info in joints
    ]
    M = pybullet.calculateMassMatrix(body, list(q), physicsClientId=client)
    gravity = pybullet.calculateInverseDynamics(body, list(q), zero, zero, physicsClientId=client)
    bias = pybullet.calculateInverseDynamics(body, list(q), list(v), zero, physicsClientId=client)
    pybullet.stepSimulation(physicsClientId=client)
    after = [pybullet.getJointState(body, info[0], physicsClientId=client)[:2] for info in joints]
    return {
        "places": (np.array([[*place[4], *place[5]] for place in places]), names),
        "M": (np.array(M), names),
        "gravity": (np.array(gravity), names),
        "bias": (np.array(bias), names),
        "step": (np.array(after), names),
    }


def fields(model: tuple[int, int]) -> Iterator[tuple[str, Any]]:
    """Numbers of the robot."""
    client, body = model
    links = range(-1, pybullet.getNumJoints(body, physicsClientId=client))
    dynamics = [pybullet.getDynamicsInfo(body, link, physicsClientId=client) for link in links]
    yield "mass", np.array([info[0] for info in dynamics])
    yield "inertia", np.array([info[2] for info in dynamics])
    yield "inertial frame", np.array([[*info[3], *info[4]] for info in dynamics])
    yield "damping", np.array([info[6:8] for info in _joints(model)])


def _joints(model: tuple[int, int]) -> list[Any]:
    client, body = model
    count = pybullet.getNumJoints(body, physicsClientId=client)
    every = [pybullet.getJointInfo(body, k, physicsClientId=client) for k in range(count)]
    return [info for info in every if info[2] in (0, 1)]
