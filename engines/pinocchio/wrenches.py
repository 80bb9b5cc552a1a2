"""Forces in the joints as Pinocchio gives them: forces of the constraints, and of the joints by inverse dynamics."""

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.pinocchio._simulation import Simulation
from loopcheck.engines.pinocchio._tree import loads
from loopcheck.robots.arrays import Array, JointAccelerations
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD

READINGS = (
    WrenchReading(
        name="data.f",
        carriers="bodies with joints",
        point="origin of the joint",
        axes="the joint's frame after it; force first",
        sign="on the child",
        code="""
fext = pin.StdVec_Force(model.njoints * [pin.Force.Zero()])  # with loads of the bodies that Pinocchio lacks
fext[loop.joint1_id] += loop.joint1_placement.act(loop_data.contact_force)  # after constraintDynamics
fext[loop.joint2_id] -= loop.joint2_placement.act(loop_data.c1Mc2.actInv(loop_data.contact_force))
pin.rnea(model, data, q, v, data.ddq, fext)
force, moment = data.f[joint].linear, data.f[joint].angular
""",
    ),
    WrenchReading(
        name="contact_force",
        carriers="closures",
        point="origin of the first frame of the constraint",
        axes="the first frame; force first",
        sign="on the first joint",
        code="""
R = loop.joint1_placement.rotation  # of a frame of the body: multiply with its placement
force, moment = R @ loop_data.contact_force.linear, R @ loop_data.contact_force.angular
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(simulation: Simulation, qdd: JointAccelerations) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), at the last computed accelerations."""
    tree, loops = simulation.tree, simulation.loops
    model, data, carriers = tree.model, tree.model.createData(), connections(tree.mechanism)
    pin.forwardKinematics(model, data, simulation.x)
    fext = [pin.Force.Zero() for _ in range(model.njoints)]
    for loop, result in zip(loops.models, loops.datas, strict=True):
        fext[loop.joint1_id] += loop.joint1_placement.act(result.contact_force)
        fext[loop.joint2_id] -= loop.joint2_placement.act(result.c1Mc2.actInv(result.contact_force))
    for load in loads(tree, simulation.q, simulation.qd):
        joint, place = tree.place(load.body, load.point)
        in_world = pin.SE3(data.oMi[joint].rotation.T, place.translation)
        fext[joint] += in_world.act(pin.Force(load.force, load.moment))
    every = pin.StdVec_Force()
    every.extend(fext)
    pin.rnea(model, data, simulation.x, simulation.qd, qdd, every)
    of_bodies, of_closures = np.full((2, len(carriers), 6), np.nan)
    results = iter(zip(loops.models, loops.datas, strict=True))
    for k, (_, body, _, closure) in enumerate(carriers):
        if closure is None:
            for j in tree.mechanism.joints_of[body][-1:]:  # a body without joints is part of another in Pinocchio
                force = data.f[tree.joints[j][-1]]
                of_bodies[k] = np.concatenate([force.angular, force.linear])
            continue
        loop, result = next(results)
        if body == WORLD:  # which comes second
            R = -result.oMc1.rotation
        else:
            R = model.frames[tree.bodies[body]].placement.rotation.T @ loop.joint1_placement.rotation
        of_closures[k] = np.concatenate([R @ result.contact_force.angular, R @ result.contact_force.linear])
    return {"data.f": of_bodies, "contact_force": of_closures}
