"""PhysX 5.3 (SAPIEN 3.0.3): forces on joints lack that of a loop between two links of one articulation."""

import numpy as np
import sapien
from sapien import physx

TURNED = sapien.Pose(q=[0.5**0.5, 0, 0, 0.5**0.5])  # the axis of a joint is its x
config = physx.PhysxSceneConfig()
config.enable_tgs = False  # it is the same with TGS
physx.set_scene_config(config)


def moments(feet: list[list[float]]) -> list[float]:
    """Moments in the free hinges of two posts that lean on each other; a list of feet is an articulation [N m]."""
    scene, posts, arms = sapien.Scene([physx.PhysxCpuSystem()]), [], []
    for of_one in feet:
        builder = scene.create_articulation_builder()
        base = builder.create_link_builder()
        base.set_mass_and_inertia(1.0, sapien.Pose(), [1, 1, 1])
        for foot in of_one:
            post = builder.create_link_builder(base)
            post.set_mass_and_inertia(2.0, sapien.Pose([0, 0, 0.5]), [0.2, 0.2, 0.01])
            post.set_joint_properties("revolute_unwrapped", [[-9, 9]], sapien.Pose([foot, 0, 0]) * TURNED, TURNED)
        arms.append(builder.build(fix_root_link=True))
        arms[-1].set_qpos(np.array([-np.arcsin(foot) for foot in of_one], np.float32))
        for joint in arms[-1].active_joints:
            joint.set_friction(0.0)  # which PhysX fills in
        posts += arms[-1].links[1:]
    loop = scene.create_drive(posts[0], sapien.Pose([0, 0, 1]), posts[1], sapien.Pose([0, 0, 1]))
    for limit in (loop.set_limit_x, loop.set_limit_y, loop.set_limit_z):
        limit(0, 0)
    for _ in range(200):
        scene.step()
    return [float(row[3]) for arm in arms for row in arm.get_link_incoming_joint_forces()[1:]]


print("two articulations:", moments([[-0.5], [0.5]]), "one:", moments([[-0.5, 0.5]]), "N m")
print(f"reported moment at a free hinge, over that of its weight [-]: {abs(moments([[-0.5, 0.5]])[0]) / 4.905:.4g}")
