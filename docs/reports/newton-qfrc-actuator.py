"""Newton 1.8.0, SolverMuJoCo: the observable qfrc_actuator is the drive's law at the begin of the step."""

import warp as wp

wp.config.quiet = True
import newton  # noqa: E402

INERTIA, STEP = 0.02, 0.002  # of a rod about its hinge [kg m²], of the simulation [s]
builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
link = builder.add_link(mass=1.0, inertia=wp.mat33(INERTIA, 0, 0, 0, INERTIA, 0, 0, 0, INERTIA), lock_inertia=True)
joint = builder.add_joint_revolute(
    -1, link, axis=wp.vec3(0, 0, 1), target_kd=10.0, actuator_mode=newton.JointTargetMode.POSITION_VELOCITY
)
builder.add_articulation([joint])
model = builder.finalize(device="cpu")
solver = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True)
before, after, control = model.state(), model.state(), model.control()
observed = solver.observables({"qfrc_actuator"})
control.joint_target_qd.fill_(1.0)
solver.step(before, after, control, None, STEP, observables=observed)
reported = float(observed.qfrc_actuator.numpy()[0])
gained = INERTIA * (float(after.joint_qd.numpy()[0]) - float(before.joint_qd.numpy()[0])) / STEP
law = 10.0 * (1.0 - float(after.joint_qd.numpy()[0]))
print(
    f"reported {reported:.4f} N m; momentum gained {gained:.4f} N m; law at the velocity where the step ends {law:.4f}"
)
print(f"reported torque over applied torque [-]: {reported / gained:.4f}")
