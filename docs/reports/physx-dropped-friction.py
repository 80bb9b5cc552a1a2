"""SAPIEN 3.0.3 drops the friction that a builder of articulations is given: PhysX's default of 0.05 stays."""

import numpy as np
import sapien
from sapien import physx

TURNED = sapien.Pose(q=[0.5**0.5, 0, 0, 0.5**0.5])  # the axis of a joint is its x
config = physx.PhysxSceneConfig()
config.enable_tgs = False
physx.set_scene_config(config)


def mean_law(mended: bool) -> float:
    """Law of the drive that turns a hanging arm of two links by 0.004 rad, almost without load [N m]."""
    scene = sapien.Scene([physx.PhysxCpuSystem()])
    scene.set_timestep(0.002)
    builder = scene.create_articulation_builder()
    link = builder.create_link_builder()
    link.set_mass_and_inertia(1.0, sapien.Pose(), [1, 1, 1])
    for place in (sapien.Pose(), sapien.Pose([0, 0, -0.5])):
        link = builder.create_link_builder(link)
        link.set_mass_and_inertia(1.0, sapien.Pose([0, 0, -0.25]), [0.02, 0.02, 0.001])
        link.set_joint_properties("revolute_unwrapped", [[-9, 9]], place * TURNED, TURNED, friction=0, damping=0)
    arm = builder.build(fix_root_link=True)
    for joint in arm.active_joints if mended else ():
        joint.set_friction(0.0)
    print("requested friction: 0; set again:", mended, "; read back:", [float(x.friction) for x in arm.active_joints])
    arm.active_joints[0].set_drive_properties(0.0, 100.0, 1e9, "force")
    arm.active_joints[0].set_drive_velocity_target(0.01)
    return float(np.mean([100 * (0.01 - float(arm.qvel[0])) for _ in range(200) if scene.step() is None]))


print(f"friction of two links of 1 kg [N m]: {mean_law(mended=False) - mean_law(mended=True):.4g}")
