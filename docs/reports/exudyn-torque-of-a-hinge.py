"""Exudyn 1.13: the torque of a revolute joint is turned about the axis of the joint."""

import exudyn
import exudyn.itemInterface as items
import numpy as np


def torque(angle: float, load: list[float]) -> np.ndarray:
    """TorqueLocal of a hinge about z between the ground and a body that carries a load.

    Args:
        angle: Of the body about the hinge [rad]; it stays there.
        load: Torque in the axes of the ground [N m], without a part along the hinge.
    """
    mbs = exudyn.SystemContainer().AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    node = mbs.AddNode(items.NodeRigidBodyRxyz(initialCoordinates=[0, 0, 0, 0, 0, angle]))
    body = mbs.AddObject(items.ObjectRigidBody(mass=1, inertia=[1, 1, 1, 0, 0, 0], nodeNumber=node))
    markers = [mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=each)) for each in (ground, body)]
    joint = mbs.AddObject(items.ObjectJointRevoluteZ(markerNumbers=markers))
    mbs.AddLoad(items.LoadTorqueVector(markerNumber=markers[1], loadVector=load))
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 10, 0.01
    settings.solution.file.write = False
    mbs.SolveDynamic(settings)
    return mbs.GetObjectOutput(joint, exudyn.OutputVariableType.TorqueLocal)


for angle, load in ((0, [1, 0, 0]), (0, [0, 1, 0]), (np.pi / 6, [1, 0, 0]), (np.pi / 2, [1, 0, 0])):
    print(f"angle {angle:.3f} rad, load {load} N m: TorqueLocal {np.round(torque(angle, load), 9) + 0.0}")
reported = torque(0, [1, 0, 0])
off = np.degrees(np.arccos(reported[0] / np.linalg.norm(reported)))
print(f"angle between TorqueLocal and the torque in the hinge [deg]: {off:.4g}")
