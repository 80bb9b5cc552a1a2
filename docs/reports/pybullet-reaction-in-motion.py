"""PyBullet 3.2.7: the reaction of a joint counts the velocity terms of a chain twice."""

import numpy as np
import pybullet

DT, MASS, LENGTH, UPRIGHT = 1e-5, 1.0, 0.6, [[0, 0, 0, 1]] * 2
pybullet.connect(pybullet.DIRECT)


def momentum(chain: int) -> np.ndarray:
    """Of both links [N s]."""
    return np.sum([MASS * np.array(pybullet.getLinkState(chain, link, 1, 1)[6]) for link in range(2)], axis=0)


def difference(rates: tuple[float, float]) -> float:
    """Force of the sensor of the first of two hinges, less that of the law of momentum [N]."""
    pybullet.resetSimulation()
    pybullet.setGravity(0, 0, -9.81)
    pybullet.setTimeStep(DT)
    links = {"linkMasses": [MASS] * 2, "linkCollisionShapeIndices": [-1] * 2, "linkVisualShapeIndices": [-1] * 2}
    joints = {"linkParentIndices": [0, 1], "linkJointTypes": [0, 0], "linkJointAxis": [[0, 1, 0]] * 2}
    places = {"linkPositions": [[0, 0, 0], [LENGTH, 0, 0]], "linkOrientations": UPRIGHT}
    inertial = {"linkInertialFramePositions": [[LENGTH / 2, 0, 0]] * 2, "linkInertialFrameOrientations": UPRIGHT}
    chain = pybullet.createMultiBody(0, **links, **joints, **places, **inertial)
    for link, (angle, rate) in enumerate(zip((0.3, 0.8), rates, strict=True)):
        pybullet.changeDynamics(chain, link, localInertiaDiagonal=[0.01, 0.03, 0.03], linearDamping=0, angularDamping=0)
        pybullet.setJointMotorControl2(chain, link, pybullet.VELOCITY_CONTROL, force=0)
        pybullet.resetJointState(chain, link, angle, rate)
        pybullet.enableJointForceTorqueSensor(chain, link)
    R = np.array(pybullet.getMatrixFromQuaternion(pybullet.getLinkState(chain, 0)[1])).reshape(3, 3)
    before = momentum(chain)
    pybullet.stepSimulation()
    force = (momentum(chain) - before) / DT + [0, 0, 2 * MASS * 9.81]
    return float(np.linalg.norm(R @ pybullet.getJointState(chain, 0)[2][:3] - force))


for rates in ((0, 0), (1, 0), (0, 1), (2, -1.4)):
    print(f"rates {rates} rad/s: {difference(rates):.2e} N")
print(f"difference from the law of momentum with rates 1 and -0.7 rad/s [N]: {difference((1, -0.7)):.4g}")
