"""Joint positions a displacement further on, as engines need them that difference along a motion."""

import numpy as np

from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism


def moved(mechanism: Mechanism, q: JointPositions, displacement: Array) -> Array:
    """Joint positions after a displacement, whose turns of balls are in body axes.

    Args:
        displacement: Along the joint velocities [m or rad], shape (nv,).
    """
    from scipy.spatial.transform import Rotation

    after = np.array(q)
    for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            after[places] += displacement[dofs]
            continue
        turn = displacement[dofs][-3:]
        after[places][:-4] += displacement[dofs][:-3]
        quaternion = Rotation.from_quat(np.roll(q[places][-4:], -1)) * Rotation.from_rotvec(turn)
        after[places][-4:] = np.roll(quaternion.as_quat(), 1)
    return after
