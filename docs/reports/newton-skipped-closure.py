"""Newton 1.8.0, SolverMuJoCo: a prismatic joint that closes a loop is left out with a warning, and the robot falls."""

import warp as wp

wp.config.quiet = True
import newton  # noqa: E402

MOMENT = wp.mat33(0.02, 0, 0, 0, 0.02, 0, 0, 0, 0.02)


def left_of_rows(kind: str) -> float:
    """Connects of MuJoCo's model over joints of Newton's that close a loop [-]."""
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    links = [builder.add_link(mass=1.0, inertia=MOMENT, lock_inertia=True) for _ in range(2)]
    joints = [
        builder.add_joint_revolute(-1, links[0], axis=wp.vec3(0, 1, 0)),
        builder.add_joint_revolute(links[0], links[1], parent_xform=wp.transform(1, 0, 0, 0, 0, 0, 1), axis=(0, 1, 0)),
    ]
    builder.add_articulation(joints)
    if kind == "prismatic":  # outside of the articulation: it closes the loop
        builder.add_joint_prismatic(-1, links[1], parent_xform=wp.transform(1, 0, 0, 0, 0, 0, 1), axis=wp.vec3(1, 0, 0))
    else:
        builder.add_joint_ball(-1, links[1], parent_xform=wp.transform(1, 0, 0, 0, 0, 0, 1))
    model = builder.finalize(device="cpu")
    connects = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True).mj_model.eq_type == 0
    return int(connects.sum()) / (model.joint_count - len(joints))


print(f"ball: {left_of_rows('ball'):.0f} connect for each loop")
print(f"prismatic, connects for each loop [-]: {left_of_rows('prismatic'):.0f}")
