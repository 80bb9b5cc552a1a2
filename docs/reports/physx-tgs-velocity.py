"""PhysX 5.3 (SAPIEN 3.0.3): with TGS, the velocity of a joint in a closed loop is no rate of its position."""

import numpy as np
import sapien
from sapien import physx

TURNED = sapien.Pose(q=[0.5**0.5, 0, 0, -(0.5**0.5)])  # the axis of a joint is its x


def law_off(tgs: bool) -> float:
    """Law of the drive that holds a four-bar still over the torque through its joint, minus 1 [-]."""
    config = physx.PhysxSceneConfig()
    config.enable_tgs = tgs
    physx.set_scene_config(config)
    scene = sapien.Scene([physx.PhysxCpuSystem()])
    scene.set_timestep(0.005)
    builder = scene.create_articulation_builder()
    link = builder.create_link_builder()
    link.set_mass_and_inertia(1.0, sapien.Pose(), [1, 1, 1])
    for length, carrier in ((0.3, 0.0), (0.9, 0.3), (0.7, 0.9)):
        link = builder.create_link_builder(link)
        link.set_mass_and_inertia(1.0, sapien.Pose([length / 2, 0, 0]), [1e-3, length**2 / 12, length**2 / 12])
        link.set_joint_properties("revolute_unwrapped", [[-9, 9]], sapien.Pose([carrier, 0, 0]) * TURNED, TURNED)
    arm = builder.build(fix_root_link=True)
    arm.set_qpos(np.array([1.0, -0.50088, -2.28924], np.float32))
    [joint.set_friction(0.0) for joint in arm.active_joints]  # which PhysX fills in
    loop = scene.create_drive(arm.links[0], sapien.Pose([0.8, 0, 0]), arm.links[-1], sapien.Pose([0.7, 0, 0]))
    [limit(0, 0) for limit in (loop.set_limit_x, loop.set_limit_y, loop.set_limit_z)]
    arm.active_joints[0].set_drive_properties(1e5, 1e3, 1e9, "force")
    arm.active_joints[0].set_drive_target(1.0)
    places = [float(arm.qpos[0]) for _ in range(400) if scene.step() is None]
    rate, law = (places[-1] - places[-2]) / 0.005, 1e5 * (1.0 - places[-1]) - 1e3 * float(arm.qvel[0])
    passed_on = float(arm.get_link_incoming_joint_forces()[1][3])
    print(f"TGS {tgs}: velocity {arm.qvel[0]:.2g}, rate {rate:.2g} rad/s; law {law:.4g}, joint {passed_on:.4g} N m")
    return abs(law / passed_on - 1)


print(f"law over torque, less one, with PGS {law_off(False):.3g}, with TGS [-]: {law_off(True):.4g}")
