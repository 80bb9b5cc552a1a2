"""Forces in the joints as Drake reports them: its port of reactions. It has no forces of the constraints of loops."""

from collections.abc import Mapping

import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.drake._plant import Plant
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections

NAME = "reaction_forces"
READINGS = (
    WrenchReading(
        name=NAME,
        carriers="bodies",
        point="origin of the joint's frame on the child",
        axes="the joint's frame on the child; moment first",
        sign="on the child",
        code="""
reaction = plant.get_reaction_forces_output_port().Eval(context)[int(joint.index())]  # of the step from this state
frame = joint.frame_on_child().GetFixedPoseInBodyFrame()
R, arm = frame.rotation().matrix(), frame.translation() - anchor
force = R @ reaction.translational()
moment = R @ reaction.rotational() + np.cross(arm, force)
""",
        time="mean over the step",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(drake: Plant) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), in the step from the present state."""
    plant, carriers = drake.plant, connections(drake.mechanism)
    reactions = plant.get_reaction_forces_output_port().Eval(drake.context)
    joints = {int(plant.get_joint(index).child_body().index()): int(index) for index in plant.GetJointIndices()}
    found = np.full((len(carriers), 6), np.nan)
    for k, (_, body, _, closure) in enumerate(carriers):
        if closure is None:  # the frame on the child is at our point, along our axes
            reaction = reactions[joints[int(drake.bodies[body].index())]]
            found[k] = np.concatenate([reaction.rotational(), reaction.translational()])
    return {NAME: found}
